"""What fp3o asks of an environment, and how a single pure game becomes a batch of them."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

from jaxtyping import Array, Bool, Float, PRNGKeyArray

from fp3o.spec import EnvSpec
from fp3o.types import TimeStep

Act = Callable[..., Any]
"""Chooses actions `(e, n, d)` on the host by the step's number, `obs`, `legal` and `start`."""


@runtime_checkable
class Env(Protocol):
    """A batch of `e` environments that begin new episodes by themselves."""

    @property
    def spec(self) -> EnvSpec:
        """The task's facts."""
        ...

    @property
    def num_envs(self) -> int:
        """The size of the batch, `e`."""
        ...

    @property
    def traced(self) -> bool:
        """Whether JAX may trace `step`; if not, it is called on the host, with NumPy arrays."""
        ...

    def reset(self, key: PRNGKeyArray) -> tuple[Any, TimeStep]:
        """Begin an episode in every environment.

        On the host, with several seeds, there is a key for each; it has an equal part of them.
        """
        ...

    def step(self, state: Any, action: Any) -> tuple[Any, TimeStep]:
        """Play the actions `(e, n, d)`; where an episode ends, the next one begins."""
        ...


class Sight(NamedTuple):
    """What the agents of one environment see."""

    obs: Float[Array, "n f"]
    state: Float[Array, "n f2"]
    legal: Bool[Array, "n a"]
    alive: Bool[Array, " n"]


@runtime_checkable
class Game(Protocol):
    """One environment as pure functions; `Vectorised` makes a batch of it.

    A game whose spec names `outcomes` also has `outcome(state)`, an array of these numbers.
    """

    @property
    def spec(self) -> EnvSpec:
        """The task's facts."""
        ...

    def reset(self, key: PRNGKeyArray) -> Any:
        """The state in which an episode begins."""
        ...

    def step(self, state: Any, action: Array, key: PRNGKeyArray) -> tuple[Any, Array, Array, Array]:
        """Next state, reward `(n,)`, terminated, truncated."""
        ...

    def sight(self, state: Any) -> Sight:
        """What the agents see in this state."""
        ...


@runtime_checkable
class HostGame(Protocol):
    """A task whose batches of environments live on the host."""

    @property
    def spec(self) -> EnvSpec:
        """The task's facts."""
        ...

    def batch(self, num_envs: int) -> Env:
        """Environments that are stepped together."""
        ...
