"""Rollouts of host environments: action selection on the CPU, even if an accelerator learns.

The overhead per step should be small compared to the environment's step. Whatever can be computed
for the whole rollout at once is left until its end.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from fp3o.envs.api import VecEnv
from fp3o.learning.setup import Setup
from fp3o.training.episodes import EvalEpisodes
from fp3o.training.faults import refuse_host_step
from fp3o.training.host_policy import HostPolicy
from fp3o.training.rollout import (
    ActorInputs,
    Decision,
    RolloutState,
    add_final_input,
    make_trajectory,
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
        self.setup, self.policy = setup, HostPolicy(setup, num_seeds)
        actions = setup.spec.actions
        self._action_size = actions.action_size
        self._action_type = jnp.zeros(0, int if actions.integers else float).dtype
        self._split = jax.jit(jax.vmap(jax.random.split) if num_seeds else jax.random.split)

    def collect(
        self, env: VecEnv, params: Any, state: RolloutState, keys: Array
    ) -> tuple[RolloutState, Trajectory]:
        """Collect a rollout of one step per key, `(*s, t)`, with sampled actions."""
        noise = self.policy.sample_noise(keys, env.num_envs, self.setup.config.blocks)
        return self.play(env, self.policy.fold(params), state, noise)

    def play(
        self, env: VecEnv, folded: tuple[Array, ...], state: RolloutState, noise: np.ndarray
    ) -> tuple[RolloutState, Trajectory]:
        """Collect a rollout of one step per entry of the noise, `(t, *s, e, n, a)`."""
        decide, num_steps = self.policy.decide(folded, env.num_envs), len(noise)
        hidden: Any = np.empty((num_steps + 1, *state.actor_hidden.shape), state.actor_hidden.dtype)
        hidden[0], output = state.actor_hidden, np.empty_like(noise)
        actions = np.empty((*noise.shape[:-1], self._action_size), self._action_type)

        def act(t: int, obs: Any, action_mask: Any, episode_start: Any) -> Any:
            inputs = ActorInputs(obs, action_mask, episode_start, hidden[t])
            actions[t], output[t], hidden[t + 1] = decide(inputs, noise[t])
            return actions[t]

        env_state, steps = env.rollout(state.env_state, state.timestep, act, num_steps)
        now, after = TimeStep._make(x[:-1] for x in steps), TimeStep._make(x[1:] for x in steps)
        # A copy, so that the memory of the rollout can be freed.
        last = TimeStep._make(np.array(x[-1], order="C") for x in steps)
        log_prob = self.policy.log_prob(folded, output, actions, now.action_mask)
        decisions = Decision(actions, log_prob, hidden[1:])
        trajectory = make_trajectory(self.setup, now, after, hidden[:-1], decisions)
        state = state._replace(env_state=env_state, timestep=last, actor_hidden=hidden[-1].copy())
        return state, add_final_input(self.setup, trajectory, last)

    def evaluate(
        self, env: VecEnv, params: Any, keys: Array, num_steps: int, deterministic: bool
    ) -> EvalEpisodes:
        """First episode of every environment, like `evaluate_episodes`."""
        reset_keys, step_keys = jnp.moveaxis(self._split(keys), -1, 0)
        decide = self.policy.decide(self.policy.fold(params), env.num_envs)
        env_state, now = env.reset(reset_keys)
        hidden_state: Any = np.zeros((*now.alive.shape, self.setup.config.gru_size), np.float32)
        total, running = np.zeros(now.episode_start.shape), np.ones(now.episode_start.shape, bool)
        metrics, lengths = np.zeros(now.episode_metrics.shape), np.zeros(total.shape)
        for step in range(num_steps):
            noise = None
            if not deterministic:
                keys = jnp.vectorize(jax.random.fold_in)(step_keys, step)
                noise = self.policy.sample_noise(keys[..., None], env.num_envs)[0]
            inputs = ActorInputs(now.obs, now.action_mask, now.episode_start, hidden_state)
            decision = decide(inputs, noise)
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
