"""Training: one iteration as one program, for one seed or many, on JAX or host environments."""

from collections.abc import Callable
from functools import partial, reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from fp3o.envs.api import VecEnv
from fp3o.envs.vectorise import SeedBatchedEnv
from fp3o.learning.batch import make_batch
from fp3o.learning.config import Config, Hyperparameters
from fp3o.learning.setup import Learner, Setup
from fp3o.learning.stage_data import Metrics
from fp3o.learning.update import policy_iteration
from fp3o.training import rollout
from fp3o.training.episodes import EvalEpisodes, count, episodes
from fp3o.training.faults import first_fault, refuse_fault
from fp3o.training.host_rollout import HostRollout
from fp3o.training.rollout import RolloutState, begin, collect
from fp3o.types import Trajectory


class TrainState(NamedTuple):
    """Everything training needs to go on: what is learned, where the games stand, randomness."""

    learner: Learner
    rollout: RolloutState
    key: PRNGKeyArray


def iteration(
    setup: Setup, env: VecEnv, state: TrainState, hparams: Hyperparameters
) -> tuple[TrainState, Metrics]:
    """Collect a rollout, judge it, and improve the policies: one iteration of training."""
    key, play_keys, learn_key = split_keys(setup, state.key)
    carry, trajectory = collect(setup, env, state.learner.actor, state.rollout, play_keys)
    learner, carry, metrics = learn(setup, hparams, state.learner, trajectory, carry, learn_key)
    return TrainState(learner, carry, key), metrics


def split_keys(setup: Setup, key: PRNGKeyArray) -> tuple[Array, Array, Array]:
    """Randomness of later iterations, of every step of the rollout, of the learner."""
    key, play_key, learn_key = jax.random.split(key, 3)
    return key, jax.random.split(play_key, setup.config.rollout), learn_key


def learn(
    setup: Setup,
    hparams: Hyperparameters,
    learner: Learner,
    trajectory: Trajectory,
    carry: RolloutState,
    key: PRNGKeyArray,
) -> tuple[Learner, RolloutState, Metrics]:
    """From a rollout to better policies; the carry's critic memory and tallies are brought on."""
    ends = trajectory.terminated | trajectory.truncated
    tally, finished = jax.lax.scan(count, carry.episode_stats, (trajectory.reward, ends))
    batch, residual, hidden_state, judged = make_batch(
        setup, hparams, learner, trajectory, carry.critic_hidden
    )
    score = judged["mean_abs_advantage"]
    learner, improved = policy_iteration(setup, hparams, learner, batch, residual, score, key)
    metrics = (
        judged
        | improved
        | episodes(finished, trajectory.episode_metrics, setup.spec)
        | {"fault": first_fault(trajectory)}
    )
    return learner, carry._replace(critic_hidden=hidden_state, episode_stats=tally), metrics


class Program:
    """A task and a configuration, checked and compiled together.

    With `num_seeds`, states, rates and metrics carry a leading axis of seeds and all of them train
    in one program. Without it there is no such axis: one seed pays nothing for it. A host
    environment plays all seeds in one batch of `num_seeds * config.num_envs` environments.
    """

    def __init__(self, env: VecEnv, config: Config, num_seeds: int | None = None):
        self.setup, self.num_seeds = Setup(env.spec, config), num_seeds
        self.on_host = not env.jittable
        copies = num_seeds if self.on_host and num_seeds else 1
        if env.num_envs != config.num_envs * copies:
            raise ValueError(
                f"the task has {env.num_envs} environments, the configuration asks for "
                f"num_envs={config.num_envs}" + f" x {copies} seeds" * (copies > 1)
            )
        self.env: VecEnv = SeedBatchedEnv(env, num_seeds) if self.on_host and num_seeds else env
        self._begin = self._compiled(partial(begin, self.setup, env))
        self._iterate = self._compiled(partial(iteration, self.setup, env))
        self._keys = self._compiled(partial(split_keys, self.setup))
        self._host = HostRollout(self.setup, num_seeds)
        # Host rollouts are stacked step by step, so their seeds are the second axis.
        self._learn = self._compiled(partial(learn, self.setup), in_axes=(0, 0, 1, 0, 0))
        self._plays: dict[tuple[VecEnv, int, bool], Callable[..., EvalEpisodes]] = {}

    def hyperparameters(self) -> Hyperparameters:
        """The configured rates, for every seed."""
        hparams = self.setup.hyperparameters()
        if not self.num_seeds:
            return hparams
        return jax.tree.map(lambda x: jnp.broadcast_to(x, (self.num_seeds,)), hparams)

    def init(self, seed: int = 0) -> TrainState:
        """The state before training; seeds are `seed, seed + 1, ...`."""
        seeds = range(seed, seed + (self.num_seeds or 1))
        stack = partial(jax.tree.map, lambda *x: jnp.stack(x) if self.num_seeds else x[0])
        learner = stack(*map(self.setup.init, seeds))
        key, play_key = stack(*(jax.random.split(jax.random.key(s)) for s in seeds)).T
        if not self.on_host:
            return TrainState(learner, self._begin(play_key), key)
        rest = stack(*(rollout.fresh(self.setup, self.env.num_envs) for _ in seeds))
        # What the host plays with stays on the host.
        rest = jax.tree.map(np.asarray, rest)
        return TrainState(learner, RolloutState(*self.env.reset(play_key), *rest), key)

    def iterate(
        self, state: TrainState, hparams: Hyperparameters | None = None
    ) -> tuple[TrainState, dict[str, Any]]:
        """One iteration for every seed. Bad numbers from the task raise; `state` stays good."""
        hparams = self.hyperparameters() if hparams is None else hparams
        run = self._iterate_on_host if self.on_host else self._iterate
        state, metrics = run(state, hparams)
        refuse_fault(metrics.pop("fault"), self.setup.spec.name)
        return state, metrics

    def evaluate(
        self, rows: Any, env: VecEnv, keys: Array, num_steps: int, deterministic: bool = True
    ) -> EvalEpisodes:
        """The first episodes of every seed's actor in separate environments.

        A host environment has those of all seeds, one seed behind the other.
        """
        if not env.jittable:
            env = SeedBatchedEnv(env, self.num_seeds) if self.num_seeds else env
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

    def compile(self, state: TrainState) -> None:
        """Compile an iteration for states like this one ahead of time."""
        if self.on_host:
            # What is compiled depends on what the host does: an iteration that nobody keeps.
            self._iterate_on_host(state, self.hyperparameters())
        else:
            self._iterate = self._iterate.lower(state, self.hyperparameters()).compile()

    def _compiled(self, function: Callable[..., Any], in_axes: Any = 0) -> Any:
        return jax.jit(jax.vmap(function, in_axes) if self.num_seeds else function)

    def _iterate_on_host(
        self, state: TrainState, hparams: Hyperparameters
    ) -> tuple[TrainState, Metrics]:
        key, play_keys, learn_key = self._keys(state.key)
        carry, trajectory = self._host.collect(
            self.env, state.learner.actor, state.rollout, play_keys
        )
        # The learner is told only what it needs, and what the host plays with stays there.
        told = carry._replace(env_state=(), timestep=(), actor_hidden=())
        learner, told, metrics = self._learn(hparams, state.learner, trajectory, told, learn_key)
        known = jax.tree.map(np.asarray, (told.critic_hidden, told.episode_stats))
        carry = carry._replace(critic_hidden=known[0], episode_stats=known[1])
        return TrainState(learner, carry, key), metrics
