"""Playing: one step of the team, a rollout of many, and the check that it is made of numbers."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from fp3o.batch import bootstraps
from fp3o.envs.base import Env
from fp3o.errors import NonFiniteError
from fp3o.nets import normalise
from fp3o.optim import Rows
from fp3o.setup import Setup
from fp3o.types import TimeStep, Trajectory


class Tally(NamedTuple):
    """The team's return and length in the episode each environment is playing."""

    team_return: Float[Array, " e"]
    length: Int[Array, " e"]


class Carry(NamedTuple):
    """Where the environments stand between two rollouts."""

    env_state: Any
    timestep: TimeStep
    actor_memory: Float[Array, "n e h"]
    critic_memory: Float[Array, "n e h"]
    tally: Tally


class Finished(NamedTuple):
    """Which environments ended an episode at a step, with what return and length."""

    ended: Bool[Array, " e"]
    team_return: Float[Array, " e"]
    length: Int[Array, " e"]


def begin(setup: Setup, env: Env, key: PRNGKeyArray) -> Carry:
    """Reset every environment; memories are empty."""
    state, timestep = env.reset(key)
    memory = jnp.zeros((setup.spec.num_agents, env.num_envs, setup.config.recurrent))
    tally = Tally(jnp.zeros(env.num_envs), jnp.zeros(env.num_envs, int))
    return Carry(state, timestep, memory, memory, tally)


class Decision(NamedTuple):
    """What the team saw and did at one step."""

    obs: Float[Array, "e n f"]
    legal: Bool[Array, "e n a"]
    action: Any
    log_prob: Float[Array, "e n"]
    memory: Float[Array, "n e h"]
    """The memory after the step."""


def decide(
    setup: Setup,
    rows: Rows,
    timestep: TimeStep,
    memory: Float[Array, "n e h"],
    key: PRNGKeyArray | None,
) -> Decision:
    """Every agent acts on its own observation; without a key, its most likely action."""
    obs = normalise(setup.features(timestep.obs))
    legal = timestep.legal & setup.spec.actions.mask
    start = jnp.broadcast_to(timestep.start[:, None], timestep.alive.shape)
    swap = lambda x: jnp.swapaxes(x, 0, 1)  # noqa: E731
    policy, memory = setup.actor(rows)(swap(obs), swap(legal), memory, swap(start))
    action = policy.mode() if key is None else policy.sample(key)
    return Decision(obs, legal, swap(action), swap(policy.log_prob(action)), memory)


def collect(
    setup: Setup,
    env: Env,
    rows: Rows,
    carry: Carry,
    key: PRNGKeyArray,
    decide: Callable[..., Decision] = decide,
) -> tuple[Carry, Trajectory, Finished]:
    """Play `rollout` steps in every environment with sampled actions."""

    def step(carry: Carry, key: PRNGKeyArray) -> tuple[Carry, tuple[Trajectory, Finished]]:
        now, memory = carry.timestep, carry.actor_memory
        choice = decide(setup, rows, now, memory, key)
        env_state, after = env.step(carry.env_state, choice.action)
        tally, finished = count(carry.tally, after)
        row = Trajectory(
            obs=choice.obs,
            view=view(setup, now.obs, now.state),
            final_view=view(setup, after.final_obs, after.final_state),
            legal=choice.legal,
            alive=now.alive,
            start=now.start,
            memory=jnp.swapaxes(memory, 0, 1),
            action=choice.action,
            log_prob=choice.log_prob,
            reward=after.reward,
            terminated=after.terminated,
            truncated=after.truncated,
        )
        if not bootstraps(setup):
            row = row._replace(final_view=jnp.zeros((0,)))
        new = Carry(env_state, after, choice.memory, carry.critic_memory, tally)
        return new, (row, finished)

    keys = jax.random.split(key, setup.config.rollout)
    carry, (trajectory, finished) = env.scan(step, carry, keys, setup.config.rollout)
    if not bootstraps(setup):
        last = view(setup, carry.timestep.final_obs, carry.timestep.final_state)
        trajectory = trajectory._replace(final_view=last[None])
    return carry, trajectory, finished


def view(
    setup: Setup, obs: Float[Array, "e n f"], state: Float[Array, "e n f2"]
) -> Float[Array, "e n f3"]:
    """What the critic sees, standardised: the state, or (IPPO) the agent's own observation."""
    return normalise(setup.features(state if setup.row.view == "state" else obs))


def count(tally: Tally, after: TimeStep) -> tuple[Tally, Finished]:
    """Add a step to the returns; an episode that ended is handed out and its tally emptied."""
    ended = after.terminated | after.truncated
    team_return = tally.team_return + after.reward.mean(-1)
    length = tally.length + 1
    emptied = Tally(jnp.where(ended, 0.0, team_return), jnp.where(ended, 0, length))
    return emptied, Finished(ended, team_return, length)


def evaluate(
    setup: Setup, env: Env, rows: Rows, key: PRNGKeyArray, num_steps: int
) -> Float[Array, " e"]:
    """Return of the first episode of every environment under the most likely actions.

    NaN where it did not end within `num_steps`. Counting first episodes only keeps long ones from
    being left out.
    """

    def step(carry: tuple[Any, ...], _: Array) -> tuple[tuple[Any, ...], None]:
        state, now, memory, tally, first = carry
        choice = decide(setup, rows, now, memory, None)
        state, after = env.step(state, choice.action)
        tally, finished = count(tally, after)
        news = finished.ended & jnp.isnan(first)
        first = jnp.where(news, finished.team_return, first)
        return (state, after, choice.memory, tally, first), None

    start = begin(setup, env, key)
    unknown = jnp.full(env.num_envs, jnp.nan)
    carry = (start.env_state, start.timestep, start.actor_memory, start.tally, unknown)
    return env.scan(step, carry, jnp.zeros(num_steps), num_steps)[0][-1]


def first_fault(trajectory: Trajectory) -> dict[str, Int[Array, " 3"]]:
    """Step, environment and agent of the first non-finite number of each kind; -1: none.

    Standardising spreads a bad number over its vector, so the standardised rows show it too.
    """

    def find(x: Array) -> Int[Array, " 3"]:
        bad = ~jnp.isfinite(x).reshape(*x.shape[:3], -1).all(-1)
        place = jnp.stack(jnp.unravel_index(bad.reshape(-1).argmax(), bad.shape))
        return jnp.where(bad.any(), place, -1)

    named = {"reward": trajectory.reward, "observation": trajectory.obs, "state": trajectory.view}
    return {name: find(x) for name, x in named.items()}


def refuse_faults(faults: dict[str, Any], task: str) -> None:
    """Raise if an environment produced a number that is not finite, and say where."""
    for name, places in faults.items():
        for seed, place in enumerate(np.asarray(places).reshape(-1, 3)):
            if place[0] >= 0:
                step, env, agent = map(int, place)
                raise NonFiniteError(
                    f"{task}: {name} is not finite in environment {env}, agent {agent}, step "
                    f"{step} of the rollout (seed index {seed}); nothing was learned from this "
                    "rollout. Check the task's physics and rewards for division by zero or "
                    "overflow"
                )


collect_on_host = partial(collect, decide=jax.jit(decide, static_argnums=0))
