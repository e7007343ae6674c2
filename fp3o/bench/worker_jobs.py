"""PettingZoo environments as timed jobs: directly, in fp3o, and in other wrappers."""

from collections.abc import Iterable
from contextlib import ExitStack
from functools import partial
from typing import Any

import gymnasium
import jax
import numpy as np

from fp3o.bench.timing import TimedJob
from fp3o.bench.worker_envs import FlatTeam, TeamTask
from fp3o.envs.adapters.pettingzoo import PettingZoo
from fp3o.envs.adapters.pettingzoo_make import make_parallel_env
from fp3o.envs.workers.vec_env import PooledVecEnv
from fp3o.spec import Discrete, EnvSpec

WORKER_STEPS = 50
"""Steps of all environments per chunk."""


def chunk_actions(spec: EnvSpec, num_envs: int) -> np.ndarray:
    """Random actions of a chunk, `(t, e, n, d)`."""
    random, shape = np.random.default_rng(0), (WORKER_STEPS, num_envs, spec.num_agents)
    if isinstance(spec.actions, Discrete):
        sizes = np.array(spec.actions.sizes)
        return random.integers(0, sizes, (*shape, sizes.shape[1]))
    return random.uniform(-1.0, 1.0, (*shape, spec.actions.action_size)).astype(np.float32)


def pettingzoo_job(task: PettingZoo, num_envs: int) -> TimedJob:
    """The environments themselves, one after the other."""
    envs, layout = (
        [make_parallel_env(task.make, task.kwargs) for _ in range(num_envs)],
        task._inspection.layout,
    )
    actions = chunk_actions(task.spec, num_envs)
    for seed, env in enumerate(envs):
        env.reset(seed=seed)

    def run() -> None:
        for chosen in actions:
            for env, own in zip(envs, chosen, strict=True):
                env.step(layout.decode(own, layout.agents))
                if not env.agents:
                    env.reset()

    return TimedJob(WORKER_STEPS * num_envs, run)


def batched_job(tasks: PooledVecEnv) -> TimedJob:
    """A batch of fp3o."""
    actions = chunk_actions(tasks.spec, tasks.num_envs)
    state, _ = tasks.reset(jax.random.key(0))

    def run() -> None:
        nonlocal state
        for chosen in actions:
            state, _ = tasks.step(state, chosen)

    return TimedJob(WORKER_STEPS * tasks.num_envs, run)


def supersuit_job(task: PettingZoo, num_envs: int, processes: int, closing: ExitStack) -> TimedJob:
    """SuperSuit's vector environment; it has one place for every agent."""
    import supersuit  # pyright: ignore[reportMissingImports]

    one = supersuit.pettingzoo_env_to_vec_env_v1(make_parallel_env(task.make, task.kwargs))
    env = supersuit.concat_vec_envs_v1(one, num_envs, num_cpus=processes)
    layout = task._inspection.layout
    actions = [
        np.array([x for team in chosen for x in layout.decode(team, layout.agents).values()])
        for chosen in chunk_actions(task.spec, num_envs)
    ]
    # It would wait for its processes for ever, when this one ends.
    for process in getattr(env, "procs", ()):
        closing.callback(process.kill)
    return _stepping_job(env, actions, num_envs)


def async_job(task: PettingZoo, num_envs: int, closing: ExitStack) -> TimedJob:
    """Gymnasium's vector environment."""
    actions = chunk_actions(task.spec, num_envs)
    team = TeamTask(task.make, task.kwargs, task._inspection.layout, actions[0, 0])
    makers = [partial(FlatTeam, team)] * num_envs
    env = gymnasium.vector.AsyncVectorEnv(makers, shared_memory=True, context="spawn")
    closing.callback(env.close)
    return _stepping_job(env, actions, num_envs)


def _stepping_job(env: Any, actions: Iterable[Any], num_envs: int) -> TimedJob:
    """Steps of a vector environment with these actions."""
    env.reset(seed=0)

    def run() -> None:
        for chosen in actions:
            env.step(chosen)

    return TimedJob(WORKER_STEPS * num_envs, run)
