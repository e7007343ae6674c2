"""Playing environments that live on the host: compiled decisions, everything else in NumPy.

A step should cost little beside the environment's own: a decision is one compiled call that is
given only what it depends on, on the processor even where an accelerator learns.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from fp3o.envs.api import VecEnv
from fp3o.learning.setup import Setup
from fp3o.spec import Discrete
from fp3o.training.episodes import EvalEpisodes
from fp3o.training.rollout import Decision, RolloutState, act, completed, draw, record
from fp3o.types import TimeStep, Trajectory

# Small computations run at once instead of being handed to another thread and waited for: a
# decision then takes a third of the time. It has to be said before JAX starts its CPU client.
jax.config.update("jax_cpu_enable_async_dispatch", False)

BEFORE_AND_AFTER = slice(None, -1), slice(1, None)
"""Of all that was seen in a rollout, what was seen before and after each step."""


class HostRollout:
    """Plays for one seed, or with an axis of seeds in front of everything."""

    def __init__(self, setup: Setup, num_seeds: int | None):
        self.setup, self.num_seeds = setup, num_seeds
        self._recurrent = bool(setup.config.gru_size)
        self._discrete = isinstance(setup.spec.actions, Discrete)
        over_seeds = jax.vmap if num_seeds else lambda function: function
        self._structure: Any = None
        self._ready = jax.jit(over_seeds(self._prepare))
        self._sample = jax.jit(over_seeds(self._decide))
        self._most_likely = jax.jit(over_seeds(partial(self._decide, noise=None)))
        self._split = jax.jit(over_seeds(jax.random.split))
        self._noise: dict[int, Callable[[Array], Array]] = {}

    def collect(
        self, env: VecEnv, rows: Any, carry: RolloutState, keys: Array
    ) -> tuple[RolloutState, Trajectory]:
        """A rollout of one step a key, `(*s, t)`, with sampled actions."""
        actor, noise = self._ready(nearby(rows)), self._draw(keys, env.num_envs)
        choices: list[Decision] = []
        hidden_states = [carry.actor_hidden]

        def act(t: int, obs: Any, action_mask: Any, episode_start: Any) -> Any:
            choice = self._choose(
                actor, obs, action_mask, episode_start, hidden_states[t], noise[t]
            )
            choices.append(choice)
            hidden_states.append(choice.hidden_state)
            return choice.action

        env_state, seen = env.rollout(carry.env_state, carry.timestep, act, len(noise))
        now, after = (TimeStep._make(x[part] for x in seen) for part in BEFORE_AND_AFTER)
        # A copy, so that the rollout can be let go.
        last = TimeStep._make(np.array(x[-1], order="C") for x in seen)
        chosen = Decision._make(map(np.stack, zip(*choices, strict=True)))
        trajectory = record(self.setup, now, after, np.stack(hidden_states[:-1]), chosen)
        carry = carry._replace(env_state=env_state, timestep=last, actor_hidden=hidden_states[-1])
        return carry, completed(self.setup, trajectory, last)

    def evaluate(
        self, env: VecEnv, rows: Any, keys: Array, num_steps: int, deterministic: bool
    ) -> EvalEpisodes:
        """The first episode of every environment, as `rollout.evaluate`."""
        reset_keys, play_keys = jnp.moveaxis(self._split(keys), -1, 0)
        actor, (env_state, now) = self._ready(nearby(rows)), env.reset(reset_keys)
        hidden_state = np.zeros((*now.alive.shape, self.setup.config.gru_size), np.float32)
        earned, playing = np.zeros(now.episode_start.shape), np.ones(now.episode_start.shape, bool)
        outcome = np.zeros(now.episode_metrics.shape)
        for step in range(num_steps):
            noise = None
            if not deterministic:
                keys = jnp.vectorize(jax.random.fold_in)(play_keys, step)
                noise = self._draw(keys[..., None], env.num_envs)[0]
            choice = self._choose(
                actor, now.obs, now.action_mask, now.episode_start, hidden_state, noise
            )
            env_state, now = env.step(env_state, choice.action)
            hidden_state = choice.hidden_state
            earned += np.asarray(now.reward).mean(-1) * playing
            outcome = np.where(playing[..., None], now.episode_metrics, outcome)
            playing &= ~np.asarray(now.terminated | now.truncated)
            if not playing.any():
                break
        returns = np.where(playing, np.nan, earned) / self.setup.spec.reward_sum_over
        return EvalEpisodes(returns, np.where(playing[..., None], np.nan, outcome))

    def _draw(self, keys: Array, num_envs: int) -> np.ndarray:
        """All randomness of the steps of keys `(*s, t)` at once, step first: `(t, *s, n, e, a)`."""
        if num_envs not in self._noise:
            steps = jax.vmap(partial(draw, self.setup, num_envs=num_envs))
            self._noise[num_envs] = jax.jit(
                jax.vmap(steps, out_axes=1) if self.num_seeds else steps
            )
        return np.asarray(self._noise[num_envs](nearby(keys)))

    def _choose(
        self,
        actor: Any,
        obs: Any,
        action_mask: Any,
        episode_start: Any,
        hidden_state: Any,
        noise: np.ndarray | None,
    ) -> Decision:
        seen = (
            obs,
            action_mask if self._discrete else None,
            episode_start if self._recurrent else None,
            hidden_state if self._recurrent else None,
        )
        made = self._most_likely(actor, seen) if noise is None else self._sample(actor, seen, noise)
        action, log_prob, *after = map(np.asarray, made)
        return Decision(action, log_prob, *after or (hidden_state,))  # pyright: ignore

    def _prepare(self, rows: Any) -> tuple[Array, ...]:
        """What does not change during a rollout; a flat tuple is passed most quickly."""
        leaves, self._structure = jax.tree.flatten(self.setup.actor(rows).folded())
        return tuple(leaves)

    def _decide(
        self, actor: tuple[Array, ...], seen: tuple[Array, Any, Any, Any], noise: Any
    ) -> tuple[Array, ...]:
        obs, action_mask, episode_start, hidden_state = seen
        shape, mask = obs.shape[:2], self.setup.spec.actions.mask
        if action_mask is None:
            action_mask = jnp.broadcast_to(mask, (*shape, mask.shape[1]))
        if episode_start is None:
            episode_start = jnp.zeros(shape[0], bool)
        before = jnp.zeros((*shape, 0)) if hidden_state is None else hidden_state
        team = jax.tree.unflatten(self._structure, actor)
        choice = act(self.setup, team, obs, action_mask, episode_start, before, noise)
        known = choice.action, choice.log_prob
        return known if hidden_state is None else (*known, choice.hidden_state)


def nearby(tree: Any) -> Any:
    """A copy on the processor, where the environments are: an accelerator is too far away."""
    try:
        processor = jax.devices("cpu")[0]
    except RuntimeError:  # JAX_PLATFORMS leaves it out
        return tree
    return jax.device_put(tree, processor)
