"""Multi-Agent MuJoCo: teams whose agents control different joints of one body.

Bodies and partitions follow the paper's release (profile `paper`) and gymnasium-robotics (profile
`farama`). Environments run on MuJoCo itself, in batches on native threads, as one kernel that
computes the same (`backend=fused`), or approximately on MJX (`backend=mjx`).

| module        | contents                                                              |
|---------------|-----------------------------------------------------------------------|
| `catalogue`   | names of bodies and partitions, known without importing MuJoCo        |
| `variant`     | profile and options of a task, `paper:obsk=2`                         |
| `task`        | `BodyTask`: which readings each agent observes, which actuators it has |
| `readings`    | quantities read from a simulation                                     |
| `partition`   | joint graphs, and which joints an agent observes                      |
| `bodies`      | the bodies: joint graph, partitions, reward rules                     |
| `rewards`     | rewards, failures and initial states                                  |
| `models`      | MuJoCo models                                                         |
| `native`      | `NativeVecEnv`: a batch of environments on MuJoCo                     |
| `simulation`  | the batch of MuJoCo simulations behind it                             |
| `rollout_log` | recorded steps of a rollout, and time steps from them                 |
| `fused`       | `FusedEnv`: an environment step as one kernel, for GPUs and CPUs      |
| `mjx`         | `MjxEnv`: the same tasks in JAX                                       |
| `env`         | the environment of a task by name                                     |
| `tasks`       | tasks and presets                                                     |
| `render`      | images; with `camera`, `raycast`, `shapes` and `floor`                |
"""
