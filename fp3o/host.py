"""Playing environments that live on the host: compiled decisions, everything else in NumPy.

A step should cost little beside the environment's own: a decision is one compiled call that is
given only what it depends on, on the processor even where an accelerator learns.
"""

from functools import partial
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from fp3o.envs.base import Env
from fp3o.rollout import Carry, Decision, collect, decide
from fp3o.setup import Setup
from fp3o.spaces import Discrete
from fp3o.types import TimeStep, Trajectory

# Small computations run at once instead of being handed to another thread and waited for: a
# decision then takes a third of the time. It has to be said before JAX starts its CPU client.
jax.config.update("jax_cpu_enable_async_dispatch", False)


@runtime_checkable
class Player(Protocol):
    """Who plays host environments: this process, or others for it."""

    def collect(self, env: Env, rows: Any, carry: Carry, keys: Array) -> tuple[Carry, Trajectory]:
        """A rollout of one step a key, `(*s, t)`, with sampled actions."""
        ...

    def evaluate(
        self, env: Env, rows: Any, keys: Array, num_steps: int, deterministic: bool
    ) -> np.ndarray:
        """One agent's return in the first episode of every environment."""
        ...


class HostPlayer:
    """Plays for one seed, or with an axis of seeds in front of everything."""

    def __init__(self, setup: Setup, num_seeds: int | None):
        self.setup, self.num_seeds = setup, num_seeds
        self._recurrent = bool(setup.config.recurrent)
        self._discrete = isinstance(setup.spec.actions, Discrete)
        over_seeds = lambda function, axes: jax.vmap(function, axes) if num_seeds else function  # noqa: E731
        self._sample = jax.jit(over_seeds(self._decide, 0))
        self._most_likely = jax.jit(over_seeds(partial(self._decide, key=None), 0))
        self._split = jax.jit(over_seeds(jax.random.split, 0))

    def collect(self, env: Env, rows: Any, carry: Carry, keys: Array) -> tuple[Carry, Trajectory]:
        """A rollout of one step a key, `(*s, t)`, with sampled actions."""
        rows, numbers = nearby(rows), self._by_step(keys)
        return collect(self.setup, env, rows, carry, numbers, self._choose)  # pyright: ignore

    def evaluate(
        self, env: Env, rows: Any, keys: Array, num_steps: int, deterministic: bool
    ) -> np.ndarray:
        """One agent's return in the first episode of every environment, as `rollout.evaluate`."""
        reset_keys, play_keys = jnp.moveaxis(self._split(keys), -1, 0)
        each = jnp.stack([jax.random.split(k, num_steps) for k in play_keys.reshape(-1)])
        numbers = self._by_step(each if self.num_seeds else each[0])
        rows, (env_state, now) = nearby(rows), env.reset(reset_keys)
        memory = np.zeros((*now.alive.shape, self.setup.config.recurrent), np.float32)
        earned, playing = np.zeros(now.start.shape), np.ones(now.start.shape, bool)
        for key in numbers:
            choice = self._choose(self.setup, rows, now, memory, None if deterministic else key)
            env_state, now = env.step(env_state, choice.action)
            memory = choice.memory
            earned += np.asarray(now.reward).mean(-1) * playing
            playing &= ~np.asarray(now.terminated | now.truncated)
            if not playing.any():
                break
        return np.where(playing, np.nan, earned) / self.setup.spec.shares

    def _by_step(self, keys: Array) -> np.ndarray:
        """Keys `(*s, t)` as numbers, step first: looking one up costs nothing."""
        numbers = np.asarray(jax.random.key_data(keys))
        return np.moveaxis(numbers, 1, 0) if self.num_seeds else numbers

    def _choose(
        self, setup: Setup, rows: Any, now: TimeStep, memory: Any, key: np.ndarray | None
    ) -> Decision:
        seen = (
            now.obs,
            now.legal if self._discrete else None,
            now.start if self._recurrent else None,
            memory if self._recurrent else None,
        )
        act = self._most_likely(rows, seen) if key is None else self._sample(rows, seen, key)
        action, log_prob, *after = map(np.asarray, act)
        return Decision(action, log_prob, *after or (memory,))  # pyright: ignore

    def _decide(self, rows: Any, seen: tuple[Array, Any, Any, Any], key: Any) -> tuple[Array, ...]:
        obs, legal, start, memory = seen
        shape, mask = obs.shape[:2], self.setup.spec.actions.mask
        now = TimeStep(
            obs=obs, state=obs, legal=jnp.broadcast_to(mask, (*shape, mask.shape[1])),
            alive=jnp.ones(shape, bool), reward=jnp.zeros(shape),
            terminated=jnp.zeros(shape[0], bool), truncated=jnp.zeros(shape[0], bool),
            start=jnp.zeros(shape[0], bool), final_obs=obs, final_state=obs,
        )  # fmt: skip
        now = now if legal is None else now._replace(legal=legal)
        now = now if start is None else now._replace(start=start)
        before = jnp.zeros((*shape, 0)) if memory is None else memory
        drawn = None if key is None else jax.random.wrap_key_data(key)
        choice = decide(self.setup, rows, now, before, drawn)
        known = choice.action, choice.log_prob
        return known if memory is None else (*known, choice.memory)


def nearby(tree: Any) -> Any:
    """A copy on the processor, where the environments are: an accelerator is too far away."""
    return jax.device_put(tree, jax.devices("cpu")[0])
