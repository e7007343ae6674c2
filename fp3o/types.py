"""What flows through fp3o, and the letters of its axes.

Axis legend, used in every shape annotation of the package:

| letter | axis                                   | letter | axis                              |
|--------|----------------------------------------|--------|-----------------------------------|
| `t`    | step of a rollout                      | `c`    | chunk of consecutive steps        |
| `e`    | environment                            | `l`    | step inside a chunk               |
| `n`    | agent of the team                      | `r`    | row: all steps of all chunks, c·l |
| `k`    | agent updated in a stage               | `s`    | stage of an iteration             |
| `f`    | feature of an observation              | `g`    | group of agents sharing numbers   |
| `h`    | number a recurrent network remembers   | `p`    | parameter of a group              |
| `a`    | choice (or dimension) of an action     | `d`    | sub-action (or dimension) taken   |
| `o`    | outcome of an episode                  |        |                                   |

Environments and trajectories keep the agent axis just before the features, `(t, e, n, ...)`.
The learner keeps it first, `(n, r, ...)`: that is where batched matrix products want it, and
one long axis of rows is what they are fastest with.
"""

from typing import Any, NamedTuple

from jaxtyping import Array, Bool, Float

Scalar = float | Float[Array, "*s"]
"""A number, or an array of it: of no axis inside a program, of one for many seeds."""


class TimeStep(NamedTuple):
    """What `e` environments show after a step (or a reset) that may have begun new episodes."""

    obs: Float[Array, "e n f"]
    state: Float[Array, "e n f2"]
    action_mask: Bool[Array, "e n a"]
    """Choices allowed now (Box: dimensions that exist)."""
    alive: Bool[Array, "e n"]
    """Agents that act now; a dead one is kept out of policy losses and ratios."""
    reward: Float[Array, "e n"]
    terminated: Bool[Array, " e"]
    """The last step ended the episode for good: nothing follows, nothing to bootstrap."""
    truncated: Bool[Array, " e"]
    """The last step was cut by a time limit: the value of `final_*` follows."""
    episode_start: Bool[Array, " e"]
    """`obs` is the first of an episode: memories are emptied before it is seen."""
    final_obs: Float[Array, "e n f"]
    """What was there before the reset; equal to `obs` where no episode ended."""
    final_state: Float[Array, "e n f2"]
    episode_metrics: Float[Array, "e o"]
    """What `EnvSpec.outcomes` names, after the step and before any reset; read where it ended."""


class Trajectory(NamedTuple):
    """A rollout of `t` steps in `e` environments."""

    obs: Float[Array, "t e n f"]
    """What the actors saw."""
    critic_input: Float[Array, "t e n f2"]
    """What the critic sees: the state, or the agent's own observation."""
    final_critic_input: Float[Array, "t2 e n f2"]
    """The critic's view after each step, before any reset (only the last one, `t2 = 1`, where
    time limits count as ends)."""
    action_mask: Bool[Array, "t e n a"]
    alive: Bool[Array, "t e n"]
    episode_start: Bool[Array, "t e"]
    actor_hidden: Float[Array, "t e n h"]
    """The actor's memory before each step."""
    action: Any
    log_prob: Float[Array, "t e n"]
    reward: Float[Array, "t e n"]
    terminated: Bool[Array, "t e"]
    truncated: Bool[Array, "t e"]
    episode_metrics: Float[Array, "t e o"]


class Batch(NamedTuple):
    """A rollout cut into chunks, agent first: what the stages of an iteration learn from.

    Rows are ordered by environment, then time, so chunks are neighbours.
    """

    obs: Float[Array, "n r f"]
    critic_input: Float[Array, "n r f2"]
    action_mask: Bool[Array, "n r a"]
    alive: Float[Array, "n r"]
    """1 where the agent acts, 0 where it is dead."""
    episode_start: Bool[Array, "n r"]
    actor_hidden: Float[Array, "n c h"]
    """Memory at the beginning of the chunk, as it was in the rollout."""
    critic_hidden: Float[Array, "n c h"]
    action: Any
    log_prob: Float[Array, "n r"]
    value: Float[Array, "n r"]
    """The critic's prediction at the rollout, in normalised units."""
    advantage: Float[Array, "n r"]
    """Standardised, and split over the agents."""
    target: Float[Array, "n r"]
    """What the critic learns to predict, in the units of the reward."""
