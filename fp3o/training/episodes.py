"""TODO."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int


class EpisodeStats(NamedTuple):
    """The team's return and length in the episode each environment is playing."""

    team_return: Float[Array, " e"]
    length: Int[Array, " e"]


class EvalEpisodes(NamedTuple):
    """First episodes of some environments, of one policy or, with an axis `s`, of many."""

    returns: Float[Array, "*s e"] | Float[np.ndarray, "*s e"]
    """One agent's return; NaN where the episode did not end."""
    episode_metrics: Float[Array, "*s e o"] | Float[np.ndarray, "*s e o"]


class FinishedEpisodes(NamedTuple):
    """Which environments ended an episode at a step, with what return and length."""

    ended: Bool[Array, "*t e"]
    team_return: Float[Array, "*t e"]
    length: Int[Array, "*t e"]


def count(
    tally: EpisodeStats, step: tuple[Float[Array, "e n"], Bool[Array, " e"]]
) -> tuple[EpisodeStats, FinishedEpisodes]:
    """Add a step's reward; an episode that ended is handed out and its tally emptied."""
    reward, ended = step
    team_return, length = tally.team_return + reward.mean(-1), tally.length + 1
    emptied = EpisodeStats(jnp.where(ended, 0.0, team_return), jnp.where(ended, 0, length))
    return emptied, FinishedEpisodes(ended, team_return, length)


from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from fp3o.learning.stage_data import Metrics
from fp3o.spec import EnvSpec


def episodes(finished: FinishedEpisodes, outcome: Float[Array, "t e o"], spec: EnvSpec) -> Metrics:
    """Number of episodes that ended in the rollout; means of their returns, lengths, outcomes.

    The means are NaN where no episode ended.
    """
    ended, number = finished.ended, finished.ended.sum()
    mean = lambda x: jnp.where(number > 0, (x * ended).sum() / jnp.maximum(number, 1), jnp.nan)  # noqa: E731
    return {
        "episodes": number,
        "episode_return": mean(finished.team_return) / spec.reward_sum_over,
        "episode_length": mean(finished.length),
        **{f"episode_{name}": mean(outcome[..., i]) for i, name in enumerate(spec.episode_metrics)},
    }
