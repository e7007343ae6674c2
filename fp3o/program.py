"""Training: one iteration as one program, for one seed or many, on JAX or host environments."""

from collections.abc import Callable
from functools import partial, reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from fp3o import rollout
from fp3o.batch import assemble
from fp3o.config import Config, Rates
from fp3o.envs.base import Env, Seeded
from fp3o.errors import NonFiniteError
from fp3o.host import HostPlayer
from fp3o.learn import Metrics, improve
from fp3o.rollout import Carry, Finished, Played, begin, collect, count
from fp3o.setup import Learner, Setup
from fp3o.spaces import EnvSpec
from fp3o.types import Trajectory


class State(NamedTuple):
    """Everything training needs to go on: what is learned, where the games stand, randomness."""

    learner: Learner
    carry: Carry
    key: PRNGKeyArray


def iteration(setup: Setup, env: Env, state: State, rates: Rates) -> tuple[State, Metrics]:
    """Collect a rollout, judge it, and improve the policies: one iteration of training."""
    key, play_keys, learn_key = split_keys(setup, state.key)
    carry, trajectory = collect(setup, env, state.learner.actor, state.carry, play_keys)
    learner, carry, metrics = learn(setup, rates, state.learner, trajectory, carry, learn_key)
    return State(learner, carry, key), metrics


def split_keys(setup: Setup, key: PRNGKeyArray) -> tuple[Array, Array, Array]:
    """Randomness of later iterations, of every step of the rollout, of the learner."""
    key, play_key, learn_key = jax.random.split(key, 3)
    return key, jax.random.split(play_key, setup.config.rollout), learn_key


def learn(
    setup: Setup,
    rates: Rates,
    learner: Learner,
    trajectory: Trajectory,
    carry: Carry,
    key: PRNGKeyArray,
) -> tuple[Learner, Carry, Metrics]:
    """From a rollout to better policies; the carry's critic memory and tallies are brought on."""
    ends = trajectory.terminated | trajectory.truncated
    tally, finished = jax.lax.scan(count, carry.tally, (trajectory.reward, ends))
    batch, residual, memory, judged = assemble(
        setup, rates, learner, trajectory, carry.critic_memory
    )
    score = judged["advantage_size"]
    learner, improved = improve(setup, rates, learner, batch, residual, score, key)
    metrics = (
        judged
        | improved
        | episodes(finished, trajectory.outcome, setup.spec)
        | {"fault": first_fault(trajectory)}
    )
    return learner, carry._replace(critic_memory=memory, tally=tally), metrics


def episodes(finished: Finished, outcome: Float[Array, "t e o"], spec: EnvSpec) -> Metrics:
    """Number of episodes that ended in the rollout; means of their returns, lengths, outcomes.

    The means are NaN where no episode ended.
    """
    ended, number = finished.ended, finished.ended.sum()
    mean = lambda x: jnp.where(number > 0, (x * ended).sum() / jnp.maximum(number, 1), jnp.nan)  # noqa: E731
    return {
        "episodes": number,
        "episode_return": mean(finished.team_return) / spec.shares,
        "episode_length": mean(finished.length),
        **{f"episode_{name}": mean(outcome[..., i]) for i, name in enumerate(spec.outcomes)},
    }


FAULTS = ("reward", "observation", "critic's view")
"""What an environment may spoil, in the order in which `first_fault` looks."""


def first_fault(trajectory: Trajectory) -> Int[Array, " 4"]:
    """Kind, step, environment and agent of the first number that is not finite; -1: none."""

    def find(x: Float[Array, "t e n *f"]) -> Array:
        bad = ~jnp.isfinite(x).reshape(*x.shape[:3], -1).all(-1)
        place = jnp.stack(jnp.unravel_index(bad.reshape(-1).argmax(), bad.shape))
        return jnp.where(bad.any(), place, -1)

    places = jnp.stack([find(x) for x in (trajectory.reward, trajectory.obs, trajectory.view)])
    kind = (places[:, 0] >= 0).argmax()
    return jnp.concatenate([kind[None], places[kind]])


def refuse_fault(fault: Array, task: str) -> None:
    """Raise if an environment produced a number that is not finite, and say where."""
    for seed, (kind, step, env, agent) in enumerate(np.asarray(fault).reshape(-1, 4)):
        if step >= 0:
            raise NonFiniteError(
                f"{task}: the {FAULTS[kind]} is not finite in environment {env}, agent {agent}, "
                f"step {step} of the rollout (seed number {seed}). Nothing was learned from this "
                "rollout; look for a division by zero or an overflow in the task"
            )


class Program:
    """A task and a configuration, checked and compiled together.

    With `num_seeds`, states, rates and metrics carry a leading axis of seeds and all of them train
    in one program. Without it there is no such axis: one seed pays nothing for it. A host
    environment plays all seeds in one batch of `num_seeds * config.num_envs` environments.
    """

    def __init__(self, env: Env, config: Config, num_seeds: int | None = None):
        self.setup, self.num_seeds = Setup(env.spec, config), num_seeds
        self.on_host = not env.traced
        copies = num_seeds if self.on_host and num_seeds else 1
        if env.num_envs != config.num_envs * copies:
            raise ValueError(
                f"the task has {env.num_envs} environments, the configuration asks for "
                f"num_envs={config.num_envs}" + f" x {copies} seeds" * (copies > 1)
            )
        self.env: Env = Seeded(env, num_seeds) if self.on_host and num_seeds else env
        self._begin = self._compiled(partial(begin, self.setup, env))
        self._iterate = self._compiled(partial(iteration, self.setup, env))
        self._keys = self._compiled(partial(split_keys, self.setup))
        self._host = HostPlayer(self.setup, num_seeds)
        # Host rollouts are stacked step by step, so their seeds are the second axis.
        self._learn = self._compiled(partial(learn, self.setup), in_axes=(0, 0, 1, 0, 0))
        self._plays: dict[tuple[Env, int, bool], Callable[..., Played]] = {}

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
        if not self.on_host:
            return State(learner, self._begin(play_key), key)
        rest = stack(*(rollout.fresh(self.setup, self.env.num_envs) for _ in seeds))
        # What the host plays with stays on the host.
        rest = jax.tree.map(np.asarray, rest)
        return State(learner, Carry(*self.env.reset(play_key), *rest), key)

    def iterate(self, state: State, rates: Rates | None = None) -> tuple[State, dict[str, Any]]:
        """One iteration for every seed. Bad numbers from the task raise; `state` stays good."""
        rates = self.rates() if rates is None else rates
        run = self._iterate_on_host if self.on_host else self._iterate
        state, metrics = run(state, rates)
        refuse_fault(metrics.pop("fault"), self.setup.spec.name)
        return state, metrics

    def evaluate(
        self, rows: Any, env: Env, keys: Array, num_steps: int, deterministic: bool = True
    ) -> Played:
        """The first episodes of every seed's actor in separate environments.

        A host environment has those of all seeds, one seed behind the other.
        """
        if not env.traced:
            env = Seeded(env, self.num_seeds) if self.num_seeds else env
            return self._host.evaluate(env, rows, keys, num_steps, deterministic)
        plan = env, num_steps, deterministic
        if plan not in self._plays:
            play = partial(
                rollout.evaluate, self.setup, env, num_steps=num_steps, deterministic=deterministic
            )
            self._plays[plan] = self._compiled(play)
        return self._plays[plan](rows, keys)

    def keys(self, seed: int, *purpose: int) -> Array:
        """Randomness apart from training's for `seed, seed + 1, ...`: one stream a purpose."""
        seeds = range(seed, seed + (self.num_seeds or 1))
        streams = [reduce(jax.random.fold_in, purpose, jax.random.key(s)) for s in seeds]
        return jnp.stack(streams) if self.num_seeds else streams[0]

    def compile(self, state: State) -> None:
        """Compile an iteration for states like this one ahead of time."""
        if self.on_host:
            # What is compiled depends on what the host does: an iteration that nobody keeps.
            self._iterate_on_host(state, self.rates())
        else:
            self._iterate = self._iterate.lower(state, self.rates()).compile()

    def _compiled(self, function: Callable[..., Any], in_axes: Any = 0) -> Any:
        return jax.jit(jax.vmap(function, in_axes) if self.num_seeds else function)

    def _iterate_on_host(self, state: State, rates: Rates) -> tuple[State, Metrics]:
        key, play_keys, learn_key = self._keys(state.key)
        carry, trajectory = self._host.collect(
            self.env, state.learner.actor, state.carry, play_keys
        )
        # The learner is told only what it needs, and what the host plays with stays there.
        told = carry._replace(env_state=(), timestep=(), actor_memory=())
        learner, told, metrics = self._learn(rates, state.learner, trajectory, told, learn_key)
        known = jax.tree.map(np.asarray, (told.critic_memory, told.tally))
        carry = carry._replace(critic_memory=known[0], tally=known[1])
        return State(learner, carry, key), metrics
