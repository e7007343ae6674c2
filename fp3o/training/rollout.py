"""Playing: one decision of the team, a rollout of many, and deterministic evaluation."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key, PRNGKeyArray

from fp3o.envs.api import Env
from fp3o.learning.batch import bootstraps
from fp3o.learning.optim import Rows
from fp3o.learning.setup import Setup
from fp3o.networks.actor import Actor
from fp3o.networks.distributions import Categorical, Gaussian, num_outputs
from fp3o.spec import Discrete
from fp3o.training.episodes import Played, Tally, count
from fp3o.types import TimeStep, Trajectory


class Carry(NamedTuple):
    """Where the environments stand between two rollouts."""

    env_state: Any
    timestep: TimeStep
    actor_memory: Float[Array, "e n h"]
    critic_memory: Float[Array, "e n h"]
    tally: Tally


def begin(setup: Setup, env: Env, key: PRNGKeyArray) -> Carry:
    """Reset every environment; memories are empty."""
    return Carry(*env.reset(key), *fresh(setup, env.num_envs))


def fresh(setup: Setup, num_envs: int) -> tuple[Array, Array, Tally]:
    """Empty memories and tallies."""
    memory = jnp.zeros((num_envs, setup.spec.num_agents, setup.config.recurrent))
    return memory, memory, Tally(jnp.zeros(num_envs), jnp.zeros(num_envs, int))


class Decision(NamedTuple):
    """What the team does at one step."""

    action: Any
    log_prob: Float[Array, "e n"]
    memory: Float[Array, "e n h"]
    """The memory after the step."""


def decide(
    setup: Setup,
    rows: Rows,
    timestep: TimeStep,
    memory: Float[Array, "e n h"],
    key: PRNGKeyArray | None,
) -> Decision:
    """Every agent acts on its own observation; without a key, its most likely action."""
    noise = None if key is None else draw(setup, key, timestep.obs.shape[0])
    obs, legal, start = timestep.obs, timestep.legal, timestep.start
    return act(setup, setup.actor(rows), obs, legal, start, memory, noise)


def draw(setup: Setup, key: PRNGKeyArray, num_envs: int) -> Float[Array, "n e a"]:
    """The randomness of one decision of the team in every environment."""
    actions = setup.spec.actions
    kind = Categorical if isinstance(actions, Discrete) else Gaussian
    return kind.noise(key, (setup.spec.num_agents, num_envs, num_outputs(actions)), float)


def act(
    setup: Setup,
    actor: Actor,
    obs: Float[Array, "e n f"],
    legal: Bool[Array, "e n a"],
    start: Bool[Array, " e"],
    memory: Float[Array, "e n h"],
    noise: Float[Array, "n e a"] | None,
) -> Decision:
    """Every agent acts on its own observation; without noise, its most likely action."""
    swap = lambda x: jnp.swapaxes(x, 0, 1)  # noqa: E731
    features = swap(setup.inputs(obs))
    legal = swap(legal & setup.spec.actions.mask)
    begins = jnp.broadcast_to(start, features.shape[:2])
    policy, memories = actor(features, legal, swap(memory), begins)
    action = policy.mode() if noise is None else policy.sample(noise)
    return Decision(swap(action), swap(policy.log_prob(action)), swap(memories))


def collect(
    setup: Setup, env: Env, rows: Rows, carry: Carry, keys: Key[Array, " t"]
) -> tuple[Carry, Trajectory]:
    """Play one step a key in every environment, with sampled actions.

    Nothing is computed here that can wait: what was seen is kept as it came, and judged in bulk.
    """

    def step(carry: Carry, key: Array) -> tuple[Carry, Trajectory]:
        now, memory = carry.timestep, carry.actor_memory
        choice = decide(setup, rows, now, memory, key)
        env_state, after = env.step(carry.env_state, choice.action)
        new = carry._replace(env_state=env_state, timestep=after, actor_memory=choice.memory)
        return new, record(setup, now, after, memory, choice)

    carry, trajectory = jax.lax.scan(step, carry, keys)
    return carry, completed(setup, trajectory, carry.timestep)


def record(
    setup: Setup, now: TimeStep, after: TimeStep, memory: Any, choice: Decision
) -> Trajectory:
    """A step, or a rollout of them: what was there, what was done, and what came of it."""
    central = setup.row.view == "state"
    return Trajectory(
        obs=now.obs,
        view=now.state if central else now.obs,
        final_view=final_view(setup, after) if bootstraps(setup) else (),  # pyright: ignore
        legal=now.legal,
        alive=now.alive,
        start=now.start,
        memory=memory,
        action=choice.action,
        log_prob=choice.log_prob,
        reward=after.reward,
        terminated=after.terminated,
        truncated=after.truncated,
        outcome=after.outcome,
    )


def completed(setup: Setup, trajectory: Trajectory, last: TimeStep) -> Trajectory:
    """With the critic's view after the last step, where that is the only one that counts."""
    if bootstraps(setup):
        return trajectory
    return trajectory._replace(final_view=final_view(setup, last)[None])


def final_view(setup: Setup, step: TimeStep) -> Any:
    """What the critic sees after a step, before any reset."""
    return step.final_state if setup.row.view == "state" else step.final_obs


def evaluate(
    setup: Setup,
    env: Env,
    rows: Rows,
    key: PRNGKeyArray,
    num_steps: int,
    deterministic: bool = True,
) -> Played:
    """The first episode of every environment, the most likely actions taken.

    Without `deterministic`, actions are drawn. NaN where the episode did not end within
    `num_steps`. Counting first episodes only keeps long ones from being left out.
    """

    def step(state: tuple[Carry, Played], key: Array) -> tuple[tuple[Carry, Played], None]:
        carry, first = state
        choice = decide(
            setup, rows, carry.timestep, carry.actor_memory, None if deterministic else key
        )
        env_state, after = env.step(carry.env_state, choice.action)
        tally, finished = count(carry.tally, (after.reward, after.terminated | after.truncated))
        news = finished.ended & jnp.isnan(first.returns)
        first = Played(
            jnp.where(news, finished.team_return, first.returns),
            jnp.where(news[:, None], after.outcome, first.outcome),
        )
        return (Carry(env_state, after, choice.memory, carry.critic_memory, tally), first), None

    reset_key, play_key = jax.random.split(key)
    unknown = jnp.full((env.num_envs, 1 + len(setup.spec.outcomes)), jnp.nan)
    begun = begin(setup, env, reset_key), Played(unknown[:, 0], unknown[:, 1:])
    played = jax.lax.scan(step, begun, jax.random.split(play_key, num_steps))[0][1]
    return played._replace(returns=played.returns / setup.spec.shares)
