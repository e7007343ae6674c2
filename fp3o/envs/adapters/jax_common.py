"""Shared by the adapters of other JAX libraries: options, rewards, episode metrics."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from fp3o.envs.adapters.variants import (
    REWARDS,
    EnvArguments,
    read_variant,
    split_names,
    write_variant,
)
from fp3o.envs.api import Env
from fp3o.errors import SettingError, nearest


@dataclass(frozen=True)
class AdaptedEnv(Env):
    """An environment of another library, made from its name and `options`."""

    name: str
    reward: str = "mean"
    """Each agent's reward: `mean` or `sum` over the team, or its `own`."""
    metric_names: tuple[str, ...] = ()
    """Episode metrics, by the names that the library gives them."""
    options: EnvArguments = ()
    made: Any = None
    """An environment object to use instead of making one."""

    def __post_init__(self) -> None:
        if self.reward not in REWARDS:
            raise SettingError(f"unknown reward {self.reward!r}: {nearest(self.reward, REWARDS)}")

    @classmethod
    def read(cls, name: str, variant: str) -> Any:
        """An environment by name and variant, as in `default:reward=sum,env.num_agents=3`."""
        ours, options = read_variant(variant, ("reward", "episode_metrics"))
        metrics = split_names(ours.get("episode_metrics", ""))
        return cls(name, str(ours.get("reward", cls.reward)), metrics, options)

    @property
    def variant(self) -> str:
        """The options as text."""
        ours = {} if self.reward == type(self).reward else {"reward": self.reward}
        metrics = {"episode_metrics": "+".join(self.metric_names)} if self.metric_names else {}
        return write_variant(ours | metrics, self.options)

    def team_reward(self, own: Float[Array, " n"]) -> Float[Array, " n"]:
        """The reward of every agent, from the individual rewards."""
        if self.reward == "own":
            return own
        return jnp.full_like(own, own.mean() if self.reward == "mean" else own.sum())

    def select_metrics(self, names: Sequence[str], info: Mapping[str, Any]) -> Float[Array, " o"]:
        """The metrics of these names; where every agent has one, their mean."""
        for name in names:
            if name not in info:
                raise SettingError(
                    f"{self.name} has no episode metric {name!r}: {nearest(name, info)}"
                )
        means = [jnp.asarray(info[name], jnp.float32).mean() for name in names]
        return jnp.stack(means) if means else jnp.zeros(0)


def flat(x: Any) -> Float[Array, " f"]:
    """An array as a vector of floats."""
    return jnp.ravel(jnp.asarray(x)).astype(jnp.float32)


def match_dtypes(new: Any, old: Any) -> Any:
    """A new state with the data types of the old one, as JAX loops require."""
    same = lambda x, y: x if jnp.result_type(x) == y.dtype else jnp.asarray(x, y.dtype)  # noqa: E731
    return jax.tree.map(same, new, old)
