"""One policy iteration: from a trajectory to updated actors and critics.

Reading order: `config` and `setup` (what is fixed), `batch` (values and advantages), `update`
(iteration, stages, epochs), `steps` (minibatches), `losses`, `optim`, `metrics`.
"""
