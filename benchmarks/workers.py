"""Environment steps per second of PettingZoo environments: in-process, in workers, in wrappers.

    pip install supersuit
    python benchmarks/workers.py

| case              | steps the same environments                                                  |
|-------------------|------------------------------------------------------------------------------|
| `raw`             | directly, with dictionaries, one after the other: PettingZoo has no vector   |
|                   | environments                                                                 |
| `in this process` | as fp3o's tasks                                                              |
| `workers`         | as fp3o's tasks, each in a worker process                                    |
| `idle workers`    | not at all: worker processes that only reply, with arrays of the same shapes |
| `supersuit`       | in SuperSuit's `concat_vec_envs_v1`, in this process and in two others; left |
|                   | out where it is not installed                                                |
| `gymnasium async` | in Gymnasium's `AsyncVectorEnv`, which has a process per environment and     |
|                   | shared memory as well; a team is one agent                                   |

The other wrappers return observations, rewards and ends; fp3o also states, masks, which agents are
alive and the observations before a reset. `--work` adds milliseconds of computation per step, to
see from when on processes are faster. The cases are measured in turn and the best turn counts.
"""

import argparse
import os
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import gymnasium
import jax
import numpy as np
from gymnasium import spaces

from fp3o.envs.adapters.pettingzoo import PettingZoo
from fp3o.envs.adapters.pettingzoo_worker import load_factory, make_parallel_env
from fp3o.envs.workers.pool import WorkerPool
from fp3o.envs.workers.protocol import WorkerEnv, buffer_spec
from fp3o.envs.workers.shared_memory import BufferSpec
from fp3o.envs.workers.vec_env import PooledVecEnv
from fp3o.spec import Discrete, EnvSpec

PATH = "mpe2.simple_spread_v3:parallel_env"
CHUNK = 50
"""Steps of all environments in a turn."""


def laborious(path: str, work: float, **kwargs: Any) -> Any:
    """An environment whose steps take some milliseconds more."""
    env = load_factory(path)(**kwargs)
    step = env.step

    def slow_step(actions: Mapping[Any, Any]) -> Any:
        until = time.perf_counter() + work / 1000
        while time.perf_counter() < until:
            pass
        return step(actions)

    env.step = slow_step
    return env


@dataclass(frozen=True)
class Idle(WorkerEnv):
    """An environment that does nothing."""

    spec: BufferSpec

    def __call__(self, seed: int) -> "Idle":
        return self

    def reset(self, seed: int = 0, episode: int = 0) -> tuple[np.ndarray, ...]:
        return tuple(np.zeros(shape, dtype) for _, shape, dtype in self.spec.reply)

    def step(self, action: np.ndarray) -> tuple[np.ndarray, ...]:
        return self.reset()


def random_actions(spec: EnvSpec, num_envs: int) -> np.ndarray:
    """Random actions of a turn, `(t, e, n, d)`."""
    random, shape = np.random.default_rng(0), (CHUNK, num_envs, spec.num_agents)
    if isinstance(spec.actions, Discrete):
        sizes = np.array(spec.actions.sizes)
        return random.integers(0, sizes, (*shape, sizes.shape[1]))
    return random.uniform(-1.0, 1.0, (*shape, max(spec.actions.sizes))).astype(np.float32)


def raw(task: PettingZoo, num_envs: int) -> Callable[[], None]:
    """A turn of the environments themselves."""
    envs, layout = (
        [make_parallel_env(task.make, task.kwargs) for _ in range(num_envs)],
        task._inspection.layout,
    )
    actions = random_actions(task.spec, num_envs)
    for seed, env in enumerate(envs):
        env.reset(seed=seed)

    def run() -> None:
        for chosen in actions:
            for env, own in zip(envs, chosen, strict=True):
                codecs = zip(layout.agents, layout.action_codecs, own, strict=True)
                env.step({agent: codec.decode(x) for agent, codec, x in codecs})
                if not env.agents:
                    env.reset()

    return run


def batched(tasks: PooledVecEnv) -> Callable[[], None]:
    """A turn of a batch."""
    actions = random_actions(tasks.spec, tasks.num_envs)
    state, _ = tasks.reset(jax.random.key(0))

    def run() -> None:
        nonlocal state
        for chosen in actions:
            state, _ = tasks.step(state, chosen)

    return run


def supersuit(
    task: PettingZoo, num_envs: int, processes: int, closing: ExitStack
) -> Callable[[], None]:
    """A turn of SuperSuit's vector environment; it has one place for every agent."""
    import supersuit  # pyright: ignore[reportMissingImports]

    one = supersuit.pettingzoo_env_to_vec_env_v1(make_parallel_env(task.make, task.kwargs))
    env = supersuit.concat_vec_envs_v1(one, num_envs, num_cpus=processes)
    codec = task._inspection.layout.action_codecs[0]
    actions = [
        np.array([codec.decode(own) for team in chosen for own in team])
        for chosen in random_actions(task.spec, num_envs)
    ]
    # It would wait for its processes for ever, when this one ends.
    for process in getattr(env, "procs", ()):
        closing.callback(process.kill)
    env.reset(seed=0)

    def run() -> None:
        for chosen in actions:
            env.step(chosen)

    return run


class Flat(gymnasium.Env):
    """A team as one agent, which Gymnasium's vector environments can hold."""

    def __init__(self, task: PettingZoo):
        self._env, self._layout = make_parallel_env(task.make, task.kwargs), task._inspection.layout
        size = sum(codec.size for codec in self._layout.obs_codecs)
        self.observation_space = spaces.Box(-np.inf, np.inf, (size,), np.float32)
        own = random_actions(task.spec, 1)[0, 0]
        self.action_space = spaces.Box(-np.inf, np.inf, own.shape, own.dtype.type)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return self._row(self._env.reset(seed=seed)[0]), {}

    def step(self, action: np.ndarray) -> Any:
        codecs = zip(self._layout.agents, self._layout.action_codecs, action, strict=True)
        given = {agent: codec.decode(x) for agent, codec, x in codecs}
        obs, rewards, ended, cut, _ = self._env.step(given)
        reward = float(np.mean([*rewards.values()]))
        return self._row(obs), reward, all(ended.values()), all(cut.values()), {}

    def _row(self, obs: Mapping[Any, Any]) -> np.ndarray:
        return np.concatenate([obs[agent] for agent in self._layout.agents], dtype=np.float32)


def asynchronous(task: PettingZoo, num_envs: int, closing: ExitStack) -> Callable[[], None]:
    """A turn of Gymnasium's vector environment."""
    makers = [partial(Flat, task)] * num_envs
    env = gymnasium.vector.AsyncVectorEnv(makers, shared_memory=True, context="spawn")
    closing.callback(env.close)
    actions = random_actions(task.spec, num_envs)
    env.reset(seed=0)

    def run() -> None:
        for chosen in actions:
            env.step(chosen)

    return run


def measure(cases: Mapping[str, Callable[[], None]], num_envs: int, seconds: float) -> None:
    """Print every case's best turn."""
    best = dict.fromkeys(cases, float("inf"))
    until = time.perf_counter() + seconds * len(cases)
    while time.perf_counter() < until:
        for name, run in cases.items():
            began = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - began)
    print(f"{'case':26} {'steps/s':>10} {'us per step':>11} {'times raw':>10}")
    for name, took in best.items():
        rate = CHUNK * num_envs / took
        print(f"{name:26} {rate:10,.0f} {1e6 / rate:11.0f} {best['raw'] / took:10.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of PettingZoo environments.")
    parser.add_argument("--env", default=PATH, help="where to import the environment from")
    parser.add_argument("--envs", type=int, default=8, help="environments of a batch")
    parser.add_argument("--work", type=float, default=0.0, help="milliseconds more in each step")
    parser.add_argument("--seconds", type=float, default=5.0, help="of measuring, for each case")
    args = parser.parse_args()
    make = laborious if args.work else args.env
    kwargs = {"path": args.env, "work": args.work} if args.work else {}
    here, there = (PettingZoo(make, kwargs, workers=number) for number in (0, 1))
    print(f"{here.spec.name}: {args.envs} environments, {len(os.sched_getaffinity(0))} cores")
    idle = PooledVecEnv(
        here.spec, WorkerPool(Idle(buffer_spec(here.spec)), buffer_spec(here.spec), args.envs)
    )
    with ExitStack() as closing:
        cases = {
            "raw": raw(here, args.envs),
            "in this process": batched(here.vectorise(args.envs)),
            "workers": batched(there.vectorise(args.envs)),
            "idle workers": batched(idle),
            "gymnasium async": asynchronous(here, args.envs, closing),
        }
        for processes in (0, 2) if find_spec("supersuit") else ():
            name = f"supersuit, {processes} processes"
            cases[name] = supersuit(here, args.envs, processes, closing)
        measure(cases, args.envs, args.seconds)


if __name__ == "__main__":
    # Imported as a module, because workers can import that, but not `__main__`.
    import_module("workers").main()
