"""Playing: one decision of the team, a rollout of many, and deterministic evaluation."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key, PRNGKeyArray

from fp3o.envs.api import VecEnv
from fp3o.learning.batch import bootstraps
from fp3o.learning.optim import PackedParams
from fp3o.learning.setup import Setup
from fp3o.networks.actor import Actor
from fp3o.networks.distributions import Categorical, Gaussian, num_outputs
from fp3o.spec import Discrete
from fp3o.training.episodes import EpisodeStats, EvalEpisodes, count
from fp3o.types import TimeStep, Trajectory


class RolloutState(NamedTuple):
    """Where the environments stand between two rollouts."""

    env_state: Any
    timestep: TimeStep
    actor_hidden: Float[Array, "e n h"]
    critic_hidden: Float[Array, "e n h"]
    episode_stats: EpisodeStats


def begin(setup: Setup, env: VecEnv, key: PRNGKeyArray) -> RolloutState:
    """Reset every environment; memories are empty."""
    return RolloutState(*env.reset(key), *fresh(setup, env.num_envs))


def fresh(setup: Setup, num_envs: int) -> tuple[Array, Array, EpisodeStats]:
    """Empty memories and tallies."""
    hidden_state = jnp.zeros((num_envs, setup.spec.num_agents, setup.config.gru_size))
    return hidden_state, hidden_state, EpisodeStats(jnp.zeros(num_envs), jnp.zeros(num_envs, int))


class Decision(NamedTuple):
    """What the team does at one step."""

    action: Any
    log_prob: Float[Array, "e n"]
    hidden_state: Float[Array, "e n h"]
    """The memory after the step."""


def decide(
    setup: Setup,
    rows: PackedParams,
    timestep: TimeStep,
    hidden_state: Float[Array, "e n h"],
    key: PRNGKeyArray | None,
) -> Decision:
    """Every agent acts on its own observation; without a key, its most likely action."""
    noise = None if key is None else draw(setup, key, timestep.obs.shape[0])
    obs, action_mask, episode_start = timestep.obs, timestep.action_mask, timestep.episode_start
    return act(setup, setup.actor(rows), obs, action_mask, episode_start, hidden_state, noise)


def draw(setup: Setup, key: PRNGKeyArray, num_envs: int) -> Float[Array, "n e a"]:
    """The randomness of one decision of the team in every environment."""
    actions = setup.spec.actions
    kind = Categorical if isinstance(actions, Discrete) else Gaussian
    return kind.noise(key, (setup.spec.num_agents, num_envs, num_outputs(actions)), float)


def act(
    setup: Setup,
    actor: Actor,
    obs: Float[Array, "e n f"],
    action_mask: Bool[Array, "e n a"],
    episode_start: Bool[Array, " e"],
    hidden_state: Float[Array, "e n h"],
    noise: Float[Array, "n e a"] | None,
) -> Decision:
    """Every agent acts on its own observation; without noise, its most likely action."""
    swap = lambda x: jnp.swapaxes(x, 0, 1)  # noqa: E731
    features = swap(setup.inputs(obs))
    action_mask = swap(action_mask & setup.spec.actions.mask)
    begins = jnp.broadcast_to(episode_start, features.shape[:2])
    policy, hidden_states = actor(features, action_mask, swap(hidden_state), begins)
    action = policy.mode() if noise is None else policy.sample(noise)
    return Decision(swap(action), swap(policy.log_prob(action)), swap(hidden_states))


def collect(
    setup: Setup, env: VecEnv, rows: PackedParams, carry: RolloutState, keys: Key[Array, " t"]
) -> tuple[RolloutState, Trajectory]:
    """Play one step a key in every environment, with sampled actions.

    Nothing is computed here that can wait: what was seen is kept as it came, and judged in bulk.
    """

    def step(carry: RolloutState, key: Array) -> tuple[RolloutState, Trajectory]:
        now, hidden_state = carry.timestep, carry.actor_hidden
        choice = decide(setup, rows, now, hidden_state, key)
        env_state, after = env.step(carry.env_state, choice.action)
        new = carry._replace(env_state=env_state, timestep=after, actor_hidden=choice.hidden_state)
        return new, record(setup, now, after, hidden_state, choice)

    carry, trajectory = jax.lax.scan(step, carry, keys)
    return carry, completed(setup, trajectory, carry.timestep)


def record(
    setup: Setup, now: TimeStep, after: TimeStep, hidden_state: Any, choice: Decision
) -> Trajectory:
    """A step, or a rollout of them: what was there, what was done, and what came of it."""
    central = setup.row.critic_input == "state"
    return Trajectory(
        obs=now.obs,
        critic_input=now.state if central else now.obs,
        final_critic_input=final_view(setup, after) if bootstraps(setup) else (),  # pyright: ignore
        action_mask=now.action_mask,
        alive=now.alive,
        episode_start=now.episode_start,
        actor_hidden=hidden_state,
        action=choice.action,
        log_prob=choice.log_prob,
        reward=after.reward,
        terminated=after.terminated,
        truncated=after.truncated,
        episode_metrics=after.episode_metrics,
    )


def completed(setup: Setup, trajectory: Trajectory, last: TimeStep) -> Trajectory:
    """With the critic's view after the last step, where that is the only one that counts."""
    if bootstraps(setup):
        return trajectory
    return trajectory._replace(final_critic_input=final_view(setup, last)[None])


def final_view(setup: Setup, step: TimeStep) -> Any:
    """What the critic sees after a step, before any reset."""
    return step.final_state if setup.row.critic_input == "state" else step.final_obs


def evaluate(
    setup: Setup,
    env: VecEnv,
    rows: PackedParams,
    key: PRNGKeyArray,
    num_steps: int,
    deterministic: bool = True,
) -> EvalEpisodes:
    """The first episode of every environment, the most likely actions taken.

    Without `deterministic`, actions are drawn. NaN where the episode did not end within
    `num_steps`. Counting first episodes only keeps long ones from being left out.
    """

    def step(
        state: tuple[RolloutState, EvalEpisodes], key: Array
    ) -> tuple[tuple[RolloutState, EvalEpisodes], None]:
        carry, first = state
        choice = decide(
            setup, rows, carry.timestep, carry.actor_hidden, None if deterministic else key
        )
        env_state, after = env.step(carry.env_state, choice.action)
        tally, finished = count(
            carry.episode_stats, (after.reward, after.terminated | after.truncated)
        )
        news = finished.ended & jnp.isnan(first.returns)
        first = EvalEpisodes(
            jnp.where(news, finished.team_return, first.returns),
            jnp.where(news[:, None], after.episode_metrics, first.episode_metrics),
        )
        return (
            RolloutState(env_state, after, choice.hidden_state, carry.critic_hidden, tally),
            first,
        ), None

    reset_key, play_key = jax.random.split(key)
    unknown = jnp.full((env.num_envs, 1 + len(setup.spec.episode_metrics)), jnp.nan)
    begun = begin(setup, env, reset_key), EvalEpisodes(unknown[:, 0], unknown[:, 1:])
    played = jax.lax.scan(step, begun, jax.random.split(play_key, num_steps))[0][1]
    return played._replace(returns=played.returns / setup.spec.reward_sum_over)
