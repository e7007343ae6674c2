"""Statistics of episodes: returns, lengths, episode metrics."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from fp3o.learning.collectives import total
from fp3o.learning.stage_data import Metrics
from fp3o.spec import EnvSpec


class EpisodeStats(NamedTuple):
    """Team return and length so far of the current episode of each environment."""

    team_return: Float[Array, " e"]
    length: Int[Array, " e"]


class EvalEpisodes(NamedTuple):
    """First episodes of some environments, of one policy or, with an axis `s`, one per seed."""

    returns: Float[Array, "*s e"] | Float[np.ndarray, "*s e"]
    """Return per agent; NaN where the episode did not end."""
    episode_metrics: Float[Array, "*s e o"] | Float[np.ndarray, "*s e o"]
    lengths: Float[Array, "*s e"] | Float[np.ndarray, "*s e"]
    """Number of steps; NaN where the episode did not end."""

    def replaced(self, where: Bool[Array, " e"], by: "EvalEpisodes") -> "EvalEpisodes":
        """These episodes, and others in their place in some environments."""
        metrics = jnp.where(where[:, None], by.episode_metrics, self.episode_metrics)
        returns, lengths = (
            jnp.where(where, new, old)
            for new, old in ((by.returns, self.returns), (by.lengths, self.lengths))
        )
        return EvalEpisodes(returns, metrics, lengths)


class FinishedEpisodes(NamedTuple):
    """Which environments ended an episode at a step, with its return and length."""

    ended: Bool[Array, "*t e"]
    team_return: Float[Array, "*t e"]
    length: Int[Array, "*t e"]


def count_step(
    stats: EpisodeStats, step: tuple[Float[Array, "e n"], Bool[Array, " e"]]
) -> tuple[EpisodeStats, FinishedEpisodes]:
    """Add the reward of a step; statistics restart from 0 where an episode ended."""
    reward, ended = step
    team_return, length = stats.team_return + reward.mean(-1), stats.length + 1
    restarted = EpisodeStats(jnp.where(ended, 0.0, team_return), jnp.where(ended, 0, length))
    return restarted, FinishedEpisodes(ended, team_return, length)


def rollout_metrics(
    finished: FinishedEpisodes, episode_metrics: Float[Array, "t e o"], spec: EnvSpec
) -> Metrics:
    """Number of episodes that ended in a rollout; means of their returns, lengths and metrics.

    The means are NaN if no episode ended.
    """
    ended = finished.ended
    summed = {"episode_return": finished.team_return, "episode_length": finished.length}
    summed |= {
        f"episode_{name}": episode_metrics[..., i] for i, name in enumerate(spec.episode_metrics)
    }
    sums = {name: (x * ended).sum() for name, x in summed.items()}
    number, sums = total((ended.sum(), sums))
    mean = {
        name: jnp.where(number > 0, x / jnp.maximum(number, 1), jnp.nan) for name, x in sums.items()
    }
    mean["episode_return"] /= spec.reward_sum_over
    return {"episodes": number, **mean}
