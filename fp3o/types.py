"""Data structures of training, and the letters of the array axes.

Axis letters in all shape annotations of the package:

| letter | axis                                 | letter | axis                                 |
|--------|--------------------------------------|--------|--------------------------------------|
| `t`    | step of a rollout                    | `c`    | sequence of consecutive steps        |
| `e`    | environment                          | `l`    | step within a sequence               |
| `n`    | agent of the team                    | `r`    | sample: all steps of all sequences   |
| `k`    | agent updated in a stage             | `s`    | stage of an iteration, or seed       |
| `f`    | feature of an observation or state   | `g`    | group of agents sharing parameters   |
| `h`    | unit of the recurrent hidden state   | `p`    | parameter of a group                 |
| `a`    | choice (or dimension) of an action   | `d`    | sub-action (or dimension) taken      |
| `o`    | episode metric                       |        |                                      |

Environments and trajectories keep the agent axis just before the features, `(t, e, n, ...)`. The
learner keeps it first and merges sequences and steps into one axis, `(n, r, ...)`: batched matrix
products are fastest in this layout.
"""

from typing import Any, NamedTuple

from jaxtyping import Array, Bool, Float

Scalar = float | Float[Array, "*s"]
"""A number or an array of numbers: without axes inside a program, one axis for several seeds."""


LARGEST_NUMBER = 1e15
"""Largest magnitude of a number from an environment, and of a parameter: squares of such numbers,
and sums of the squares, are finite in 32-bit floats."""


class TimeStep(NamedTuple):
    """Output of `step` and `reset` of `e` environments.

    Where an episode ended, the next one has already started.
    """

    obs: Float[Array, "e n f"]
    state: Float[Array, "e n f2"]
    """Input of a centralised critic, one row per agent."""
    action_mask: Bool[Array, "e n a"]
    """Choices available now (Box: dimensions that exist)."""
    alive: Bool[Array, "e n"]
    """Agents that act now; dead agents are excluded from policy losses and ratios."""
    reward: Float[Array, "e n"]
    terminated: Bool[Array, " e"]
    """Whether the last step ended the episode for good: no value to bootstrap from."""
    truncated: Bool[Array, " e"]
    """Whether a time limit cut the episode at the last step: bootstrap from `final_*`."""
    episode_start: Bool[Array, " e"]
    """Whether `obs` is the first of an episode: the hidden state is reset before it."""
    final_obs: Float[Array, "e n f"]
    """Observation before the automatic reset; equal to `obs` where no episode ended."""
    final_state: Float[Array, "e n f2"]
    episode_metrics: Float[Array, "e o"]
    """Values of `EnvSpec.episode_metrics` before the automatic reset; read where episodes end."""


class Trajectory(NamedTuple):
    """A rollout of `t` steps in `e` environments."""

    obs: Float[Array, "t e n f"]
    critic_input: Float[Array, "t e n f2"]
    """The state, or the agent's observation, depending on the algorithm. For a critic that looks
    across agents: the observation, then 1 for every agent that it looks at, else 0."""
    final_critic_input: Float[Array, "t2 e n f2"]
    """Critic input after each step, before any reset; only the last one (`t2 = 1`) where time
    limits do not bootstrap."""
    action_mask: Bool[Array, "t e n a"]
    alive: Bool[Array, "t e n"]
    episode_start: Bool[Array, "t e"]
    actor_hidden: Float[Array, "t e n h"]
    """Hidden state of the actor before each step."""
    action: Any
    log_prob: Float[Array, "t e n"]
    reward: Float[Array, "t e n"]
    terminated: Bool[Array, "t e"]
    truncated: Bool[Array, "t e"]
    episode_metrics: Float[Array, "t e o"]


class Batch(NamedTuple):
    """A rollout cut into sequences, agent axis first: the data of one policy iteration.

    Samples are ordered by environment, then time, so each sequence is contiguous.
    """

    obs: Float[Array, "n r f"]
    critic_input: Float[Array, "n r f2"]
    """In a stage of a critic that looks across agents: still of all agents."""
    action_mask: Bool[Array, "n r a"]
    alive: Float[Array, "n r"]
    """1 where the agent is alive, else 0."""
    episode_start: Bool[Array, "n r"]
    actor_hidden: Float[Array, "n c h"]
    """Hidden state at the start of each sequence, as it was in the rollout."""
    critic_hidden: Float[Array, "n c h"]
    action: Any
    log_prob: Float[Array, "n r"]
    value: Float[Array, "n r"]
    """The critic's prediction during the rollout, in normalised units."""
    advantage: Float[Array, "n r"]
    """Standardised, and split over the agents."""
    target: Float[Array, "n r"]
    """Regression target of the critic, in reward units."""
