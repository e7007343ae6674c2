"""What fp3o asks of an environment, and how a single pure game becomes a batch of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key, PRNGKeyArray

from fp3o.spaces import EnvSpec
from fp3o.types import TimeStep


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
    def scan(self) -> Callable[..., Any]:
        """`jax.lax.scan` if JAX may trace `step`, or `host_scan`."""
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
    """One environment as pure functions; `Vectorised` makes a batch of it."""

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


def batch_of(game: Game | HostGame, num_envs: int) -> Env:
    """A batch of environments of a task, pure or not."""
    return game.batch(num_envs) if isinstance(game, HostGame) else Vectorised(game, num_envs)


@dataclass(frozen=True)
class Vectorised:
    """A batch of one pure game, with a random stream for each environment and automatic reset."""

    game: Game
    num_envs: int
    scan = staticmethod(jax.lax.scan)

    @property
    def spec(self) -> EnvSpec:
        """The game's facts."""
        return self.game.spec

    def reset(self, key: PRNGKeyArray) -> tuple[Any, TimeStep]:
        """Begin an episode in every environment."""
        return jax.vmap(self._reset)(jax.random.split(key, self.num_envs))

    def step(self, state: Any, action: Array) -> tuple[Any, TimeStep]:
        """Advance every environment."""
        return jax.vmap(self._step)(state, action)

    def _reset(self, key: PRNGKeyArray) -> tuple[Any, TimeStep]:
        key, reset_key = jax.random.split(key)
        game_state = self.game.reset(reset_key)
        sight, none = self.game.sight(game_state), jnp.zeros((), bool)
        reward = jnp.zeros(self.spec.num_agents)
        step = TimeStep(*sight, reward, none, none, ~none, sight.obs, sight.state)
        return (game_state, key), step

    def _step(self, state: Any, action: Array) -> tuple[Any, TimeStep]:
        old, key = state
        key, step_key, reset_key = jax.random.split(key, 3)
        played, reward, terminated, truncated = self.game.step(old, action, step_key)
        final, ended = self.game.sight(played), terminated | truncated
        fresh = self.game.reset(reset_key)
        new = jax.tree.map(lambda a, b: jnp.where(ended, a, b), fresh, played)
        sight = self.game.sight(new)
        step = TimeStep(*sight, reward, terminated, truncated, ended, final.obs, final.state)
        return (new, key), step


@dataclass(frozen=True)
class Seeded:
    """A host environment of `s·e` games seen as `e` games of `s` seeds: arrays `(s, e, ...)`."""

    env: Env
    num_seeds: int

    @property
    def spec(self) -> EnvSpec:
        """The task's facts."""
        return self.env.spec

    @property
    def num_envs(self) -> int:
        """Environments of each seed."""
        return self.env.num_envs // self.num_seeds

    @property
    def scan(self) -> Callable[..., Any]:
        """That of the environment."""
        return self.env.scan

    def reset(self, key: Key[Array, " s"]) -> tuple[Any, TimeStep]:
        """Begin an episode in every environment of every seed, which has a key of its own."""
        return self._by_seed(*self.env.reset(key))

    def step(self, state: Any, action: Any) -> tuple[Any, TimeStep]:
        """Advance all seeds in one batch."""
        return self._by_seed(*self.env.step(state, action.reshape(-1, *action.shape[2:])))

    def _by_seed(self, state: Any, step: TimeStep) -> tuple[Any, TimeStep]:
        # Without a tree map: this happens at every step.
        shape = self.num_seeds, self.num_envs
        return state, TimeStep(*(x.reshape(*shape, *x.shape[1:]) for x in step))


def host_scan(body: Callable[[Any, Any], tuple[Any, Any]], carry: Any, xs: Any) -> tuple[Any, Any]:
    """`jax.lax.scan` over an array `xs` as a Python loop, for environments JAX cannot trace."""
    kept: list[np.ndarray] = []
    row = None
    for i, x in enumerate(xs):
        carry, row = body(carry, x)
        leaves = jax.tree.leaves(row)
        if not kept:
            kept = [np.empty((len(xs), *leaf.shape), leaf.dtype) for leaf in leaves]
        for rows, leaf in zip(kept, leaves, strict=True):
            rows[i] = leaf
    return carry, jax.tree.unflatten(jax.tree.structure(row), kept)
