"""Rollouts of host environments: compiled action selection, everything else in NumPy.

The overhead per step should be small compared to the environment's step: a decision is one compiled
call on the CPU, even if an accelerator does the learning, and takes only the arrays it depends on.
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
from fp3o.training.faults import refuse_host_step
from fp3o.training.rollout import (
    ActorInputs,
    Decision,
    RolloutState,
    add_final_input,
    choose_actions,
    make_trajectory,
    sample_noise,
)
from fp3o.types import TimeStep, Trajectory


def disable_async_dispatch() -> None:
    """Make JAX run small computations on the CPU at once instead of in another thread.

    A decision then takes a third of the time. This has an effect only before JAX uses the CPU for
    the first time in a process.
    """
    jax.config.update("jax_cpu_enable_async_dispatch", False)


class HostRollout:
    """Rollouts of one seed, or of several with a leading axis of seeds in every array."""

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
        self, env: VecEnv, params: Any, state: RolloutState, keys: Array
    ) -> tuple[RolloutState, Trajectory]:
        """Collect a rollout of one step per key, `(*s, t)`, with sampled actions."""
        actor, noise = self._ready(_to_cpu(params)), self._sample_noise(keys, env.num_envs)
        decisions: list[Decision] = []
        hidden_states = [state.actor_hidden]

        def act(t: int, obs: Any, action_mask: Any, episode_start: Any) -> Any:
            inputs = ActorInputs(obs, action_mask, episode_start, hidden_states[t])
            decision = self._choose(actor, inputs, noise[t])
            decisions.append(decision)
            hidden_states.append(decision.hidden_state)
            return decision.action

        env_state, steps = env.rollout(state.env_state, state.timestep, act, len(noise))
        now, after = TimeStep._make(x[:-1] for x in steps), TimeStep._make(x[1:] for x in steps)
        # A copy, so that the memory of the rollout can be freed.
        last = TimeStep._make(np.array(x[-1], order="C") for x in steps)
        stacked = Decision._make(map(np.stack, zip(*decisions, strict=True)))
        hidden = np.stack(hidden_states[:-1])
        trajectory = make_trajectory(self.setup, now, after, hidden, stacked)
        state = state._replace(env_state=env_state, timestep=last, actor_hidden=hidden_states[-1])
        return state, add_final_input(self.setup, trajectory, last)

    def evaluate(
        self, env: VecEnv, params: Any, keys: Array, num_steps: int, deterministic: bool
    ) -> EvalEpisodes:
        """First episode of every environment, like `evaluate_episodes`."""
        reset_keys, step_keys = jnp.moveaxis(self._split(keys), -1, 0)
        actor, (env_state, now) = self._ready(_to_cpu(params)), env.reset(reset_keys)
        hidden_state: Any = np.zeros((*now.alive.shape, self.setup.config.gru_size), np.float32)
        total, running = np.zeros(now.episode_start.shape), np.ones(now.episode_start.shape, bool)
        metrics, lengths = np.zeros(now.episode_metrics.shape), np.zeros(total.shape)
        for step in range(num_steps):
            noise = None
            if not deterministic:
                keys = jnp.vectorize(jax.random.fold_in)(step_keys, step)
                noise = self._sample_noise(keys[..., None], env.num_envs)[0]
            inputs = ActorInputs(now.obs, now.action_mask, now.episode_start, hidden_state)
            decision = self._choose(actor, inputs, noise)
            before = now
            env_state, now = env.step(env_state, decision.action)
            refuse_host_step(self.setup.spec, before, now.reward, running, step)
            hidden_state = decision.hidden_state
            total += np.asarray(now.reward).mean(-1) * running
            metrics = np.where(running[..., None], now.episode_metrics, metrics)
            lengths += running
            running &= ~np.asarray(now.terminated | now.truncated)
            if not running.any():
                break
        returns, lengths = (np.where(running, np.nan, x) for x in (total, lengths))
        metrics = np.where(running[..., None], np.nan, metrics)
        return EvalEpisodes(returns / self.setup.spec.reward_sum_over, metrics, lengths)

    def _sample_noise(self, keys: Array, num_envs: int) -> np.ndarray:
        """Noise of all steps of keys `(*s, t)` at once, step first: `(t, *s, n, e, a)`."""
        if num_envs not in self._noise:
            steps = jax.vmap(partial(sample_noise, self.setup, num_envs=num_envs))
            self._noise[num_envs] = jax.jit(
                jax.vmap(steps, out_axes=1) if self.num_seeds else steps
            )
        return np.asarray(self._noise[num_envs](_to_cpu(keys)))

    def _choose(self, actor: Any, inputs: ActorInputs, noise: np.ndarray | None) -> Decision:
        """Run the compiled decision, passing only the arrays it depends on."""
        passed = (
            inputs.obs,
            inputs.action_mask if self._discrete else None,
            inputs.episode_start if self._recurrent else None,
            inputs.hidden_state if self._recurrent else None,
        )
        if noise is None:
            outputs = self._most_likely(actor, passed)
        else:
            outputs = self._sample(actor, passed, noise)
        action, log_prob, *after = map(np.asarray, outputs)
        return Decision(action, log_prob, *after or (inputs.hidden_state,))  # pyright: ignore

    def _prepare(self, params: Any) -> tuple[Array, ...]:
        """Leaves of the folded policy; a flat tuple is the fastest to pass to a compiled call."""
        leaves, self._structure = jax.tree.flatten(self.setup.actor(params).folded())
        return tuple(leaves)

    def _decide(
        self, actor: tuple[Array, ...], passed: tuple[Array, Any, Any, Any], noise: Any
    ) -> tuple[Array, ...]:
        obs, action_mask, episode_start, hidden_state = passed
        shape, mask = obs.shape[:2], self.setup.spec.actions.mask
        if action_mask is None:
            action_mask = jnp.broadcast_to(mask, (*shape, mask.shape[1]))
        if episode_start is None:
            episode_start = jnp.zeros(shape[0], bool)
        before = jnp.zeros((*shape, 0)) if hidden_state is None else hidden_state
        policy = jax.tree.unflatten(self._structure, actor)
        inputs = ActorInputs(obs, action_mask, episode_start, before)
        decision = choose_actions(self.setup, policy, inputs, noise)
        outputs = decision.action, decision.log_prob
        return outputs if hidden_state is None else (*outputs, decision.hidden_state)


def _to_cpu(tree: Any) -> Any:
    """Copy to the CPU, where the environments are."""
    try:
        cpu = jax.devices("cpu")[0]
    except RuntimeError:  # excluded by JAX_PLATFORMS
        return tree
    return jax.device_put(tree, cpu)
