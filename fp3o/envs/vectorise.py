"""TODO."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PRNGKeyArray

from fp3o.envs.api import Act, Env, Game, HostGame, Sight
from fp3o.spec import EnvSpec
from fp3o.types import TimeStep


def batch_of(game: Game | HostGame, num_envs: int) -> Env:
    """A batch of environments of a task, pure or not."""
    return game.batch(num_envs) if isinstance(game, HostGame) else Vectorised(game, num_envs)


@dataclass(frozen=True)
class Vectorised:
    """A batch of one pure game, with a random stream for each environment and automatic reset."""

    game: Game
    num_envs: int
    traced = True

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
        outcome = self._outcome(game_state)
        step = TimeStep(*sight, reward, none, none, ~none, sight.obs, sight.state, outcome)
        return (game_state, key), step

    def _step(self, state: Any, action: Array) -> tuple[Any, TimeStep]:
        old, key = state
        key, step_key, reset_key = jax.random.split(key, 3)
        played, reward, terminated, truncated = self.game.step(old, action, step_key)
        final, ended = self.game.sight(played), terminated | truncated
        fresh = self.game.reset(reset_key)
        choose = partial(jax.tree.map, lambda a, b: jnp.where(ended, a, b))
        # Where all episodes begin alike this is seen once, not once in every environment.
        new, sight = choose(fresh, played), Sight(*choose(self.game.sight(fresh), final))
        ends, outcome = (terminated, truncated, ended), self._outcome(played)
        step = TimeStep(*sight, reward, *ends, final.obs, final.state, outcome)
        return (new, key), step

    def _outcome(self, state: Any) -> Float[Array, " o"]:
        return self.game.outcome(state) if self.spec.outcomes else jnp.zeros(0)  # pyright: ignore


@dataclass(frozen=True)
class Seeded:
    """A host environment of `s·e` games seen as `e` games of `s` seeds: arrays `(s, e, ...)`."""

    env: Env
    num_seeds: int
    traced = False

    @property
    def spec(self) -> EnvSpec:
        """The task's facts."""
        return self.env.spec

    @property
    def num_envs(self) -> int:
        """Environments of each seed."""
        return self.env.num_envs // self.num_seeds

    def reset(self, key: Key[Array, " s"]) -> tuple[Any, TimeStep]:
        """Begin an episode in every environment of every seed, which has a key of its own."""
        return self._by_seed(*self.env.reset(key))

    def step(self, state: Any, action: Any) -> tuple[Any, TimeStep]:
        """Advance all seeds in one batch."""
        return self._by_seed(*self.env.step(state, self._together(action)))

    def roll(self, state: Any, now: TimeStep, act: Act, num_steps: int) -> tuple[Any, TimeStep]:
        """Play all seeds in one batch."""

        def act_together(t: int, *seen: Any) -> Any:
            return self._together(act(t, *map(self._apart, seen)))

        flat = TimeStep._make(map(self._together, now))
        state, seen = roll(self.env, state, flat, act_together, num_steps)
        return state, TimeStep._make(self._apart(x, 1) for x in seen)

    def _by_seed(self, state: Any, step: TimeStep) -> tuple[Any, TimeStep]:
        # Without a tree map: this happens at every step.
        return state, TimeStep._make(map(self._apart, step))

    def _together(self, x: Any) -> Any:
        return x.reshape(x.shape[0] * x.shape[1], *x.shape[2:])

    def _apart(self, x: Any, axis: int = 0) -> Any:
        shape = x.shape
        return x.reshape(*shape[:axis], self.num_seeds, self.num_envs, *shape[axis + 1 :])


def roll(env: Env, state: Any, now: TimeStep, act: Act, num_steps: int) -> tuple[Any, TimeStep]:
    """Play on the host: the state at the end, and all that was seen, `(t + 1, ...)`, `now` first.

    `act(t, obs, legal, start)` chooses the actions of step `t`. An environment that can do it
    faster than step by step has a method `roll`.
    """
    if hasattr(env, "roll"):
        return env.roll(state, now, act, num_steps)  # pyright: ignore
    seen = [np.empty((num_steps + 1, *x.shape), x.dtype) for x in map(np.asarray, now)]
    for t in range(num_steps + 1):
        for kept, x in zip(seen, now, strict=True):
            kept[t] = x
        if t < num_steps:
            state, now = env.step(state, act(t, now.obs, now.legal, now.start))
    return state, TimeStep._make(seen)
