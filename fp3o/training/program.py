"""One training iteration as one compiled program, for one seed or several."""

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from fp3o.envs.api import VecEnv
from fp3o.envs.interface import require_shapes
from fp3o.envs.vectorise import SeedBatchedEnv
from fp3o.errors import SettingError
from fp3o.learning.batch import make_batch
from fp3o.learning.config import Config, Hyperparameters
from fp3o.learning.obs_moments import update_obs_norms
from fp3o.learning.setup import Learner, Setup
from fp3o.learning.stage_data import Metrics
from fp3o.learning.update import policy_iteration
from fp3o.networks.backend import scan_unroll
from fp3o.training.divergence import magnitudes, refuse_divergence
from fp3o.training.episodes import EvalEpisodes, count_step, rollout_metrics
from fp3o.training.evaluator import Evaluator
from fp3o.training.faults import first_fault, refuse_fault
from fp3o.training.host_rollout import HostRollout, disable_async_dispatch
from fp3o.training.mesh import BY_ENV, BY_SEED, BY_STEP, DeviceGrid, Devices
from fp3o.training.players import PlayedBlocks
from fp3o.training.rollout import (
    RolloutState,
    collect_rollout,
    empty_hidden_and_stats,
    initial_rollout_state,
)
from fp3o.training.seeds import over_seeds
from fp3o.training.state import STATE, TrainState, split_keys
from fp3o.types import Trajectory


def train_iteration(
    setup: Setup, env: VecEnv, state: TrainState, hparams: Hyperparameters
) -> tuple[TrainState, Metrics]:
    """One iteration of training: collect a rollout and update the policies."""
    key, step_keys, learn_key = split_keys(setup, state.key)
    rollout, trajectory = collect_rollout(setup, env, state.learner.actor, state.rollout, step_keys)
    learner, rollout, metrics = update_learner(
        setup, hparams, state.learner, trajectory, rollout, learn_key
    )
    return TrainState(learner, rollout, key), metrics


def update_learner(
    setup: Setup,
    hparams: Hyperparameters,
    learner: Learner,
    trajectory: Trajectory,
    rollout: RolloutState,
    key: PRNGKeyArray,
) -> tuple[Learner, RolloutState, Metrics]:
    """Update the learner on a rollout; also advances the critic's hidden state and statistics."""
    ends = trajectory.terminated | trajectory.truncated
    stats, finished = jax.lax.scan(
        count_step, rollout.episode_stats, (trajectory.reward, ends), unroll=scan_unroll()
    )
    data, critic_hidden, batch_metrics = make_batch(
        setup, hparams, learner, trajectory, rollout.critic_hidden
    )
    learner, update_metrics = policy_iteration(setup, hparams, learner, data, key)
    if setup.config.obs_norm:
        learner = update_obs_norms(setup, learner, trajectory)
    numbers = {"advantage": data.batch.advantage, "target": data.batch.target}
    numbers["log_prob"] = update_metrics.pop("largest_log_ratio")
    metrics = (
        batch_metrics
        | update_metrics
        | rollout_metrics(finished, trajectory.episode_metrics, setup.spec)
        | {"fault": first_fault(trajectory, setup.spec)}
        | {"magnitudes": magnitudes(setup, learner, trajectory, critic_hidden, numbers)}
    )
    return learner, rollout._replace(critic_hidden=critic_hidden, episode_stats=stats), metrics


class Program:
    """A task and a configuration, checked and compiled together.

    With `num_seeds`, states, hyperparameters and metrics have a leading axis of seeds; see `seeds`
    for how they run. Without it there is no such axis and no overhead. A host environment steps all
    seeds in one batch of `num_seeds * config.num_envs` environments, or block by block: `players`.

    With `devices`, which may belong to several processes, they share the seeds and the blocks of
    environments; see `mesh`. Without it the program runs on one device.
    """

    def __init__(
        self,
        env: VecEnv,
        config: Config,
        num_seeds: int | None = None,
        devices: Devices | None = None,
    ):
        self.on_host = not env.jittable
        if self.on_host:
            disable_async_dispatch()
        self.setup, self.num_seeds = Setup(env.spec, config), num_seeds
        copies = num_seeds if self.on_host and num_seeds else 1
        if env.num_envs != config.num_envs * copies:
            raise SettingError(
                f"the task has {env.num_envs} environments, the configuration asks for "
                f"num_envs={config.num_envs}" + f" x {copies} seeds" * (copies > 1)
            )
        whole = self.on_host and not isinstance(env, PlayedBlocks)
        self.env: VecEnv = SeedBatchedEnv(env, num_seeds) if whole and num_seeds else env
        self.grid = DeviceGrid.make(devices, num_seeds, config.blocks) if devices else None
        batched = jax.vmap if num_seeds else lambda function: function
        self._reset = jax.jit(batched(partial(initial_rollout_state, self.setup, env)))
        self._split_keys = jax.jit(batched(partial(split_keys, self.setup)))
        iterate = partial(train_iteration, self.setup, env)
        self._iterate = self._compiled(iterate, (0, 0), (STATE, BY_SEED), (STATE, BY_SEED))
        self._host = HostRollout(self.setup, num_seeds)
        # Host rollouts are stacked step by step, so seeds are their second axis.
        update = partial(update_learner, self.setup)
        parts = (BY_SEED, BY_SEED, BY_STEP, BY_ENV, BY_SEED), (BY_SEED, BY_ENV, BY_SEED)
        self._update = self._compiled(update, (0, 0, 1, 0, 0), *parts)
        self._evaluator = Evaluator(self._host, self.grid, num_seeds, self._compiled)
        self._seed = 0  # for messages

    def hyperparameters(self, given: Hyperparameters | None = None) -> Hyperparameters:
        """Hyperparameters for every seed: the given ones, or the configured ones at the start."""
        hparams = (given or self.setup.config.hyperparameters).as_arrays()
        if self.num_seeds:
            hparams = jax.tree.map(lambda x: jnp.broadcast_to(x, (self.num_seeds,)), hparams)
        return self.grid.put(hparams, BY_SEED) if self.grid else hparams

    def init(self, seed: int | Sequence[int] = 0) -> TrainState:
        """Initial training state; the seeds are `seed, seed + 1, ...`, or those of a sequence.

        A sequence may have any length, except that a host environment needs all seeds.
        """
        seeds = range(seed, seed + (self.num_seeds or 1)) if isinstance(seed, int) else seed
        self._seed = seeds[0]
        stack = partial(jax.tree.map, lambda *x: jnp.stack(x) if self.num_seeds else x[0])
        learner = stack(*map(self.setup.init, seeds))
        key, reset_key = stack(*(jax.random.split(jax.random.key(s)) for s in seeds)).T
        if not self.on_host:
            return self.place(TrainState(learner, self._reset(reset_key), key))
        num_envs = self.setup.config.num_envs
        rest = stack(*(empty_hidden_and_stats(self.setup, num_envs) for _ in seeds))
        # The state of host rollouts stays on the host.
        rest = jax.tree.map(np.asarray, rest)
        env_state, now = self.env.reset(reset_key)
        if not self.num_seeds:  # otherwise checked before it is divided among the seeds
            require_shapes(self.setup.spec, num_envs, now, "reset")
        return self.place(TrainState(learner, RolloutState(env_state, now, *rest), key))

    def place(self, state: TrainState) -> TrainState:
        """The same state, distributed among the devices."""
        if self.grid is None:
            return state
        rollout = state.rollout if self.on_host else self.grid.put(state.rollout, BY_ENV)
        learner, key = self.grid.put((state.learner, state.key), BY_SEED)
        return TrainState(learner, rollout, key)

    def fetch(self, tree: Any) -> Any:
        """Arrays on the host; with several processes, all of them have to call this."""
        return self.grid.fetch(tree) if self.grid else jax.device_get(tree)

    def iterate(
        self, state: TrainState, hparams: Hyperparameters | None = None
    ) -> tuple[TrainState, dict[str, Any]]:
        """One iteration for every seed; raises if the task breaks its interface or it diverges.

        A number from the task that is not finite, a living agent without a choice, and an update
        that cannot be continued are refused. `state` is not changed and stays usable.
        """
        hparams = self.hyperparameters() if hparams is None else hparams
        state, metrics = self.iterate_unchecked(state, hparams)
        refuse_fault(metrics.pop("fault"), self.setup.spec.name, self._seed)
        refuse_divergence(metrics.pop("magnitudes"), hparams, self.setup, self._seed)
        return state, metrics

    def iterate_unchecked(
        self, state: TrainState, hparams: Hyperparameters
    ) -> tuple[TrainState, dict[str, Any]]:
        """The same without checks: the metrics contain `fault` and `magnitudes` of every seed."""
        run = self._iterate_on_host if self.on_host else self._iterate
        state, metrics = run(state, hparams)
        if self.grid and self.grid.spans_processes:
            metrics = self.grid.fetch(metrics)
        return state, metrics

    def evaluate(
        self, params: Any, env: VecEnv, keys: Array, num_steps: int, deterministic: bool = True
    ) -> EvalEpisodes:
        """First episodes of every seed's actor in separate environments.

        A host environment contains those of all seeds, one seed after another. Raises if the task
        breaks its interface, like `iterate`.
        """
        episodes, fault = self._evaluator(params, env, keys, num_steps, deterministic)
        if fault is not None:
            refuse_fault(fault, self.setup.spec.name, self._seed, "evaluation")
        return episodes

    def keys(self, seed: int, *purpose: int) -> Array:
        """Keys for `seed, seed + 1, ...`, independent of training: one stream per purpose."""
        seeds = range(seed, seed + (self.num_seeds or 1))
        streams = [reduce(jax.random.fold_in, purpose, jax.random.key(s)) for s in seeds]
        return jnp.stack(streams) if self.num_seeds else streams[0]

    def compile(self, state: TrainState) -> None:
        """Compile an iteration for states of this shape ahead of time."""
        if self.on_host:
            # Shapes depend on what the environments return: run an iteration and discard it.
            self._iterate_on_host(state, self.hyperparameters())
        else:
            self._iterate = self._iterate.lower(state, self.hyperparameters()).compile()

    def _compiled(
        self, function: Callable[..., Any], axes: tuple[int, ...], in_parts: Any, out_parts: Any
    ) -> Any:
        """The function of all seeds, which are these axes of its arguments.

        The parts say how arguments and results are divided if several devices share the work.
        """
        if self.grid:
            each = jax.vmap(function, axes) if self.num_seeds else function
            return self.grid.compiled(each, in_parts, out_parts)
        samples = self.setup.config.num_envs * self.setup.config.rollout
        return over_seeds(function, self.num_seeds, axes, samples)

    def _iterate_on_host(
        self, state: TrainState, hparams: Hyperparameters
    ) -> tuple[TrainState, Metrics]:
        key, step_keys, learn_key = self._split_keys(state.key)
        inputs = state.learner.actor, state.rollout, step_keys
        if isinstance(self.env, PlayedBlocks):
            rollout, trajectory = self.env.collect(*inputs)
        else:
            rollout, trajectory = self._host.collect(self.env, *inputs)
        # Only what the learner needs is passed on; the rest stays on the host.
        passed = rollout._replace(env_state=(), timestep=(), actor_hidden=())
        learner, passed, metrics = self._update(
            hparams, state.learner, trajectory, passed, learn_key
        )
        hidden, stats = jax.tree.map(np.asarray, (passed.critic_hidden, passed.episode_stats))
        rollout = rollout._replace(critic_hidden=hidden, episode_stats=stats)
        return TrainState(learner, rollout, key), metrics
