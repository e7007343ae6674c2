"""Training: an iteration as one program, for one seed or many, on JAX or host environments."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from fp3o.batch import assemble
from fp3o.config import Config, Rates
from fp3o.envs.base import Env
from fp3o.learn import Metrics, improve
from fp3o.rollout import (
    Carry,
    Finished,
    begin,
    collect,
    first_fault,
    refuse_faults,
)
from fp3o.setup import Learner, Setup
from fp3o.types import Trajectory


class State(NamedTuple):
    """Everything training needs to go on: what is learned, where the games stand, randomness."""

    learner: Learner
    carry: Carry
    key: PRNGKeyArray


def iteration(setup: Setup, env: Env, state: State, rates: Rates) -> tuple[State, Metrics]:
    """Collect a rollout, judge it, and improve the policies: one iteration of training."""
    key, play_key, learn_key = jax.random.split(state.key, 3)
    carry, trajectory, finished = collect(setup, env, state.learner.actor, state.carry, play_key)
    learner, memory, metrics = learn(setup, rates, state.learner, trajectory, carry, learn_key)
    carry = carry._replace(critic_memory=memory)
    return State(learner, carry, key), metrics | episodes(finished)


def learn(
    setup: Setup,
    rates: Rates,
    learner: Learner,
    trajectory: Trajectory,
    carry: Carry,
    key: PRNGKeyArray,
) -> tuple[Learner, Array, Metrics]:
    """From a rollout to better policies; also the critic's memory after the rollout."""
    batch, residual, memory, judged = assemble(
        setup, rates, learner, trajectory, carry.critic_memory
    )
    score = judged["advantage_size"]
    learner, improved = improve(setup, rates, learner, batch, residual, score, key)
    return learner, memory, judged | improved | {"faults": first_fault(trajectory)}  # pyright: ignore


def episodes(finished: Finished) -> Metrics:
    """Number of episodes that ended in the rollout, their mean return and length (NaN if none)."""
    ended = finished.ended
    number = ended.sum()
    mean = lambda x: jnp.where(number > 0, (x * ended).sum() / jnp.maximum(number, 1), jnp.nan)  # noqa: E731
    return {
        "episodes": number,
        "episode_return": mean(finished.team_return),
        "episode_length": mean(finished.length),
    }


class Program:
    """A task and a configuration, checked and compiled together.

    With `num_seeds`, states, rates and metrics carry a leading axis of seeds and all of them train
    in one program. Without it there is no such axis: one seed pays nothing for it.
    """

    def __init__(self, env: Env, config: Config, num_seeds: int | None = None):
        self.setup, self.env, self.num_seeds = Setup(env.spec, config), env, num_seeds
        if env.num_envs != config.num_envs:
            raise ValueError(
                f"the task has {env.num_envs} environments, the configuration {config.num_envs}"
            )
        over_seeds = jax.vmap if num_seeds else lambda f: f
        self._begin = jax.jit(over_seeds(partial(begin, self.setup, env)))
        self._iterate = jax.jit(over_seeds(partial(iteration, self.setup, env)))

    def rates(self) -> Rates:
        """The configured rates, for every seed."""
        rates = self.setup.rates()
        if not self.num_seeds:
            return rates
        return jax.tree.map(lambda x: jnp.broadcast_to(x, (self.num_seeds,)), rates)

    def init(self, seed: int = 0) -> State:
        """The state before training; seeds are `seed, seed + 1, ...`."""
        seeds = range(seed, seed + (self.num_seeds or 1))
        stack = partial(jax.tree.map, lambda *x: jnp.stack(x) if self.num_seeds else x[0])
        learner = stack(*map(self.setup.init, seeds))
        key, play_key = stack(*(jax.random.split(jax.random.key(s)) for s in seeds)).T
        return State(learner, self._begin(play_key), key)

    def iterate(self, state: State, rates: Rates | None = None) -> tuple[State, dict[str, Any]]:
        """One iteration for every seed. Bad numbers from the task raise; `state` stays good."""
        state, metrics = self._iterate(state, self.rates() if rates is None else rates)
        refuse_faults(metrics.pop("faults"), self.setup.spec.name)
        return state, metrics
