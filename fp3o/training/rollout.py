"""Rollouts inside a compiled program: action selection, collection, evaluation."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

from fp3o.envs.api import VecEnv
from fp3o.learning.batch import bootstraps
from fp3o.learning.collectives import block_keys
from fp3o.learning.critic_input import critic_input
from fp3o.learning.optim import PackedParams
from fp3o.learning.setup import Setup
from fp3o.networks.actor import Actor
from fp3o.networks.backend import on_gpu
from fp3o.networks.distributions import action_noise
from fp3o.training.episodes import EpisodeStats, EvalEpisodes, count_step
from fp3o.training.faults import step_fault
from fp3o.training.packed_scan import packed_scan, packed_while
from fp3o.types import TimeStep, Trajectory

MAX_NOISE = 2**24
"""Random numbers that are sampled ahead at most, for each seed."""


class RolloutState(NamedTuple):
    """State of the environments and hidden states between two rollouts."""

    env_state: Any
    timestep: TimeStep
    actor_hidden: Float[Array, "e n h"]
    critic_hidden: Float[Array, "e n h"]
    episode_stats: EpisodeStats


class ActorInputs(NamedTuple):
    """Inputs of the policies in every environment."""

    obs: Float[Array, "e n f"]
    action_mask: Bool[Array, "e n a"]
    episode_start: Bool[Array, " e"]
    hidden_state: Float[Array, "e n h"]


class Decision(NamedTuple):
    """Actions of the team at one step."""

    action: Any
    log_prob: Float[Array, "e n"]
    hidden_state: Float[Array, "e n h"]
    """Hidden state after the step."""


def initial_rollout_state(setup: Setup, env: VecEnv, key: PRNGKeyArray) -> RolloutState:
    """Reset every environment, with hidden states of 0."""
    return RolloutState(*env.reset(key), *empty_hidden_and_stats(setup, env.num_envs))


def empty_hidden_and_stats(setup: Setup, num_envs: int) -> tuple[Array, Array, EpisodeStats]:
    """Hidden states of actor and critic and episode statistics before the first step."""
    actor_hidden, critic_hidden = (
        jnp.zeros((num_envs, setup.spec.num_agents, trunk.gru_size))
        for trunk in (setup.trunks["actor"], setup.trunks["critic"])
    )
    return actor_hidden, critic_hidden, EpisodeStats(jnp.zeros(num_envs), jnp.zeros(num_envs, int))


def decide(
    setup: Setup,
    actor: Actor,
    timestep: TimeStep,
    hidden_state: Float[Array, "e n h"],
    noise: Float[Array, "n e a"] | None,
) -> Decision:
    """Sample the actions of all agents; without noise, take the most likely ones."""
    inputs = ActorInputs(timestep.obs, timestep.action_mask, timestep.episode_start, hidden_state)
    return choose_actions(setup, actor, inputs, noise)


def sample_noise(
    setup: Setup, key: PRNGKeyArray, num_envs: int, blocks: int = 1
) -> Float[Array, "n e a"]:
    """Sample the noise of one decision of the team in every environment, block by block."""
    actions, keys = setup.spec.actions, block_keys(key, blocks)
    batch = setup.spec.num_agents, num_envs // len(keys)
    noise = jax.vmap(lambda key: action_noise(actions, key, batch), out_axes=1)(keys)
    return noise.reshape(batch[0], num_envs, actions.num_outputs)


def choose_actions(
    setup: Setup, actor: Actor, inputs: ActorInputs, noise: Float[Array, "n e a"] | None
) -> Decision:
    """Actions of all agents from their observations; without noise, the most likely ones."""
    swap = lambda x: jnp.swapaxes(x, 0, 1)  # noqa: E731
    features = swap(setup.inputs(inputs.obs, "actor", actor.obs_norm))
    action_mask = swap(inputs.action_mask & setup.spec.actions.mask)
    starts = jnp.broadcast_to(inputs.episode_start, features.shape[:2])
    policy, hidden_states = actor(features, action_mask, swap(inputs.hidden_state), starts)
    action = policy.mode() if noise is None else policy.sample(noise)
    return Decision(swap(action), swap(policy.log_prob(action)), swap(hidden_states))


def collect_rollout(
    setup: Setup, env: VecEnv, params: PackedParams, state: RolloutState, keys: Key[Array, " t"]
) -> tuple[RolloutState, Trajectory]:
    """Collect a rollout of one step per key in every environment, with sampled actions.

    Everything that can be computed later is left to the learner, which does it in bulk.
    """
    actor = setup.actor(params).folded()

    sample = partial(
        sample_noise, setup, num_envs=len(state.timestep.obs), blocks=setup.config.blocks
    )
    # Small kernels are slow to start: on a GPU, the noise of all steps is sampled together.
    ahead = on_gpu() and jax.eval_shape(sample, keys[0]).size * len(keys) <= MAX_NOISE

    def step(state: RolloutState, x: Array) -> tuple[RolloutState, Trajectory]:
        now, hidden_state = state.timestep, state.actor_hidden
        noise = x if ahead else sample(x)
        decision = decide(setup, actor, now, hidden_state, noise)
        env_state, after = env.step(state.env_state, decision.action)
        new = state._replace(
            env_state=env_state, timestep=after, actor_hidden=decision.hidden_state
        )
        return new, make_trajectory(setup, now, after, hidden_state, decision)

    state, trajectory = packed_scan(step, state, jax.vmap(sample)(keys) if ahead else keys)
    return state, add_final_input(setup, trajectory, state.timestep)


def make_trajectory(
    setup: Setup, now: TimeStep, after: TimeStep, hidden_state: Any, decision: Decision
) -> Trajectory:
    """Trajectory of one step or a rollout; `now` is before the actions, `after` is after them."""
    alive = _final_alive(now, after) if setup.crosses_agents else after.alive
    return Trajectory(
        obs=now.obs,
        critic_input=critic_input(setup, now.obs, now.state, now.alive),
        final_critic_input=_final_input(setup, after, alive) if bootstraps(setup) else (),  # pyright: ignore
        action_mask=now.action_mask,
        alive=now.alive,
        episode_start=now.episode_start,
        actor_hidden=hidden_state,
        action=decision.action,
        log_prob=decision.log_prob,
        reward=after.reward,
        terminated=after.terminated,
        truncated=after.truncated,
        episode_metrics=after.episode_metrics,
    )


def add_final_input(setup: Setup, trajectory: Trajectory, last: TimeStep) -> Trajectory:
    """Add the critic input after the last step, if it is the only final input needed."""
    if bootstraps(setup):
        return trajectory
    # Values after the end of an episode are not used, so nobody has to be alive there.
    return trajectory._replace(final_critic_input=_final_input(setup, last, last.alive)[None])


def _final_alive(now: TimeStep, after: TimeStep) -> Any:
    """The living agents after a step; after an episode's last step, those who took it.

    Who survives the last step is not known: the environment has been reset.
    """
    ended = (after.terminated | after.truncated)[..., None]
    return (now.alive & ended) | (after.alive & ~ended)


def _final_input(setup: Setup, step: TimeStep, alive: Any) -> Any:
    """Critic input after a step, before any reset."""
    return critic_input(setup, step.final_obs, step.final_state, alive)


class Evaluation(NamedTuple):
    """First episodes of some environments, and the first fault met in them."""

    episodes: EvalEpisodes
    fault: Int[Array, " 4"]
    """Kind, step, environment and agent; a step of -1: none."""


def evaluate_episodes(
    setup: Setup,
    env: VecEnv,
    params: PackedParams,
    key: PRNGKeyArray,
    num_steps: int,
    deterministic: bool = True,
) -> Evaluation:
    """First episode of every environment, with the most likely actions.

    Without `deterministic`, actions are sampled. NaN where the episode did not end within
    `num_steps`. Only first episodes count, so that long ones are not under-represented; when all
    have ended, nothing more is simulated.
    """
    actor, (reset_key, step_key) = setup.actor(params).folded(), jax.random.split(key)
    step_keys = jax.random.split(step_key, num_steps)

    def unfinished(carry: tuple[Array, RolloutState, Evaluation]) -> Array:
        number, _, (first, _) = carry
        return (number < num_steps) & jnp.isnan(first.returns).any()

    def step(carry: tuple[Array, RolloutState, Evaluation]) -> Any:
        number, state, found = carry
        step_key = None if deterministic else step_keys[number]
        after = _evaluation_step(setup, env, actor, (state, found), (number, step_key))
        return number + 1, *after

    unknown = jnp.full((env.num_envs, 1 + len(setup.spec.episode_metrics)), jnp.nan)
    episodes = EvalEpisodes(unknown[:, 0], unknown[:, 1:], unknown[:, 0])
    nothing = Evaluation(episodes, jnp.full(4, -1))
    start = jnp.zeros((), int), initial_rollout_state(setup, env, reset_key), nothing
    _, _, (episodes, fault) = packed_while(unfinished, step, start)
    per_agent = episodes.returns / setup.spec.reward_sum_over
    return Evaluation(episodes._replace(returns=per_agent), fault)


def _evaluation_step(
    setup: Setup,
    env: VecEnv,
    actor: Actor,
    before: tuple[RolloutState, Evaluation],
    step: tuple[Array, PRNGKeyArray | None],
) -> tuple[RolloutState, Evaluation]:
    """One step of all environments: their state and the evaluation, before and after it."""
    (state, (first, fault)), (number, key) = before, step
    now = state.timestep
    noise = None if key is None else sample_noise(setup, key, len(now.obs))
    decision = decide(setup, actor, now, state.actor_hidden, noise)
    env_state, after = env.step(state.env_state, decision.action)
    ended = after.terminated | after.truncated
    stats, finished = count_step(state.episode_stats, (after.reward, ended))
    new = finished.ended & (running := jnp.isnan(first.returns))
    found = step_fault(setup.spec, now, after.reward, running, number)
    ends = EvalEpisodes(finished.team_return, after.episode_metrics, finished.length)
    hidden = decision.hidden_state, state.critic_hidden
    result = Evaluation(first.replaced(new, ends), jnp.where(fault[1] < 0, found, fault))
    return RolloutState(env_state, after, *hidden, stats), result
