"""What games of other JAX libraries have in common: options by name, pay, outcomes, pictures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from fp3o.envs.adapters.variants import EnvArguments, read_variant, write_variant
from fp3o.envs.api import Env
from fp3o.errors import nearest

REWARDS = ("mean", "sum", "own")

UNKNOWN_LIMIT = 1000
"""Steps after which an evaluation gives up where no limit is known."""


@dataclass(frozen=True)
class Foreign(Env):
    """An environment by its name, made with `options`, or one that is `made` already."""

    name: str
    reward: str = "mean"
    outcomes: tuple[str, ...] = ()
    """Numbers that an episode ends with, by the names its library gives them."""
    options: EnvArguments = ()
    made: Any = None

    def __post_init__(self) -> None:
        if self.reward not in REWARDS:
            raise ValueError(f"unknown reward {self.reward!r}: {nearest(self.reward, REWARDS)}")

    @classmethod
    def of(cls, name: str, variant: str) -> Any:
        """A game by its name and options, as in `default:reward=sum,env.num_agents=3`."""
        ours, options = read_variant(variant, ("reward", "outcomes"))
        outcomes = tuple(filter(None, str(ours.get("outcomes", "")).split("+")))
        return cls(name, str(ours.get("reward", cls.reward)), outcomes, options)

    @property
    def variant(self) -> str:
        """The options as text."""
        ours = {} if self.reward == type(self).reward else {"reward": self.reward}
        told = {"outcomes": "+".join(self.outcomes)} if self.outcomes else {}
        return write_variant(ours | told, self.options)

    def paid(self, own: Float[Array, " n"]) -> Float[Array, " n"]:
        """What each agent is paid, of what all have earned."""
        if self.reward == "own":
            return own
        return jnp.full_like(own, own.mean() if self.reward == "mean" else own.sum())

    def told(self, names: Sequence[str], info: Mapping[str, Any]) -> Float[Array, " o"]:
        """The numbers of these names; where each agent has one, their mean."""
        for name in names:
            if name not in info:
                raise ValueError(f"{self.name} tells no outcome {name!r}: {nearest(name, info)}")
        means = [jnp.asarray(info[name], jnp.float32).mean() for name in names]
        return jnp.stack(means) if means else jnp.zeros(0)


def flat(x: Any) -> Float[Array, " f"]:
    """Numbers as one row."""
    return jnp.ravel(jnp.asarray(x)).astype(jnp.float32)


def alike(new: Any, old: Any) -> Any:
    """A new state with the number types of the old one: a loop needs them equal."""
    same = lambda x, y: x if jnp.result_type(x) == y.dtype else jnp.asarray(x, y.dtype)  # noqa: E731
    return jax.tree.map(same, new, old)
