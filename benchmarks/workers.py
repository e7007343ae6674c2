"""Environment steps a second of PettingZoo environments: here, in workers, in others' wrappers.

    pip install supersuit
    python benchmarks/workers.py

| case              | steps the same environments                                                  |
|-------------------|------------------------------------------------------------------------------|
| `raw`             | themselves, dictionaries and all, one after the other: PettingZoo has no     |
|                   | vector environments of its own                                               |
| `in this process` | as fp3o's tasks                                                              |
| `workers`         | as fp3o's tasks, each in a process that is watched over                      |
| `idle workers`    | not at all: such processes that only answer, with arrays of the same shapes  |
| `supersuit`       | in SuperSuit's `concat_vec_envs_v1`, in this process and in two others; left |
|                   | out where it is not installed                                                |
| `gymnasium async` | in Gymnasium's `AsyncVectorEnv`, which has a process for each as well, and   |
|                   | shared memory; a team is one agent to it                                     |

The other wrappers give observations, rewards and ends; fp3o's also states, masks, who is alive and
what was seen before a reset. `--work` adds milliseconds of computation to each step, to see from
when on processes pay. The cases take turns and the best turn counts.
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
from fp3o.envs.adapters.pettingzoo_worker import build, load
from fp3o.envs.workers.shared_memory import BufferSpec
from fp3o.envs.workers.vec_env import PooledVecEnv, WorkerPool, buffer_spec
from fp3o.spec import Discrete, EnvSpec

PATH = "mpe2.simple_spread_v3:parallel_env"
CHUNK = 50
"""Steps of all environments in a turn."""


def laborious(path: str, work: float, **kwargs: Any) -> Any:
    """An environment whose steps take some milliseconds more."""
    env = load(path)(**kwargs)
    step = env.step

    def slow_step(actions: Mapping[Any, Any]) -> Any:
        until = time.perf_counter() + work / 1000
        while time.perf_counter() < until:
            pass
        return step(actions)

    env.step = slow_step
    return env


@dataclass(frozen=True)
class Idle:
    """A place where nothing happens."""

    form: BufferSpec

    def __call__(self, seed: int) -> "Idle":
        return self

    def reset(self, *_: int) -> tuple[np.ndarray, ...]:
        return tuple(np.zeros(shape, dtype) for _, shape, dtype in self.form.answer)

    def step(self, action: np.ndarray) -> tuple[np.ndarray, ...]:
        return self.reset()

    def close(self) -> None:
        pass


def draw(spec: EnvSpec, num_envs: int) -> np.ndarray:
    """Random actions of a turn, `(t, e, n, d)`."""
    random, shape = np.random.default_rng(0), (CHUNK, num_envs, spec.num_agents)
    if isinstance(spec.actions, Discrete):
        sizes = np.array(spec.actions.sizes)
        return random.integers(0, sizes, (*shape, sizes.shape[1]))
    return random.uniform(-1.0, 1.0, (*shape, max(spec.actions.sizes))).astype(np.float32)


def raw(game: PettingZoo, num_envs: int) -> Callable[[], None]:
    """A turn of the environments themselves."""
    envs, layout = [build(game.make, game.kwargs) for _ in range(num_envs)], game._facts.layout
    actions = draw(game.spec, num_envs)
    for seed, env in enumerate(envs):
        env.reset(seed=seed)

    def run() -> None:
        for chosen in actions:
            for env, own in zip(envs, chosen, strict=True):
                hands = zip(layout.agents, layout.hands, own, strict=True)
                env.step({agent: hand.write(x) for agent, hand, x in hands})
                if not env.agents:
                    env.reset()

    return run


def batched(games: PooledVecEnv) -> Callable[[], None]:
    """A turn of a batch."""
    actions = draw(games.spec, games.num_envs)
    state, _ = games.reset(jax.random.key(0))

    def run() -> None:
        nonlocal state
        for chosen in actions:
            state, _ = games.step(state, chosen)

    return run


def supersuit(
    game: PettingZoo, num_envs: int, processes: int, closing: ExitStack
) -> Callable[[], None]:
    """A turn of SuperSuit's vector environment; it has one place for every agent."""
    import supersuit  # pyright: ignore[reportMissingImports]

    one = supersuit.pettingzoo_env_to_vec_env_v1(build(game.make, game.kwargs))
    env = supersuit.concat_vec_envs_v1(one, num_envs, num_cpus=processes)
    hand = game._facts.layout.hands[0]
    actions = [
        np.array([hand.write(own) for team in chosen for own in team])
        for chosen in draw(game.spec, num_envs)
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

    def __init__(self, game: PettingZoo):
        self._env, self._layout = build(game.make, game.kwargs), game._facts.layout
        size = sum(sense.size for sense in self._layout.senses)
        self.observation_space = spaces.Box(-np.inf, np.inf, (size,), np.float32)
        own = draw(game.spec, 1)[0, 0]
        self.action_space = spaces.Box(-np.inf, np.inf, own.shape, own.dtype.type)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return self._row(self._env.reset(seed=seed)[0]), {}

    def step(self, action: np.ndarray) -> Any:
        hands = zip(self._layout.agents, self._layout.hands, action, strict=True)
        given = {agent: hand.write(x) for agent, hand, x in hands}
        seen, rewards, ended, cut, _ = self._env.step(given)
        paid = float(np.mean([*rewards.values()]))
        return self._row(seen), paid, all(ended.values()), all(cut.values()), {}

    def _row(self, seen: Mapping[Any, Any]) -> np.ndarray:
        return np.concatenate([seen[agent] for agent in self._layout.agents], dtype=np.float32)


def asynchronous(game: PettingZoo, num_envs: int, closing: ExitStack) -> Callable[[], None]:
    """A turn of Gymnasium's vector environment."""
    makers = [partial(Flat, game)] * num_envs
    env = gymnasium.vector.AsyncVectorEnv(makers, shared_memory=True, context="spawn")
    closing.callback(env.close)
    actions = draw(game.spec, num_envs)
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
    print(f"{'case':26} {'steps/s':>10} {'us a step':>11} {'times raw':>10}")
    for name, took in best.items():
        rate = CHUNK * num_envs / took
        print(f"{name:26} {rate:10,.0f} {1e6 / rate:11.0f} {best['raw'] / took:10.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of PettingZoo environments.")
    parser.add_argument("--env", default=PATH, help="where to import the environment from")
    parser.add_argument("--envs", type=int, default=8, help="environments of a batch")
    parser.add_argument("--work", type=float, default=0.0, help="milliseconds more in each step")
    parser.add_argument("--seconds", type=float, default=5.0, help="of measuring, for each case")
    asked = parser.parse_args()
    make = laborious if asked.work else asked.env
    kwargs = {"path": asked.env, "work": asked.work} if asked.work else {}
    here, there = (PettingZoo(make, kwargs, workers=number) for number in (0, 1))
    print(f"{here.spec.name}: {asked.envs} environments, {len(os.sched_getaffinity(0))} cores")
    idle = PooledVecEnv(
        here.spec, WorkerPool(Idle(buffer_spec(here.spec)), buffer_spec(here.spec), asked.envs)
    )
    with ExitStack() as closing:
        cases = {
            "raw": raw(here, asked.envs),
            "in this process": batched(here.batch(asked.envs)),
            "workers": batched(there.batch(asked.envs)),
            "idle workers": batched(idle),
            "gymnasium async": asynchronous(here, asked.envs, closing),
        }
        for processes in (0, 2) if find_spec("supersuit") else ():
            name = f"supersuit, {processes} processes"
            cases[name] = supersuit(here, asked.envs, processes, closing)
        measure(cases, asked.envs, asked.seconds)


if __name__ == "__main__":
    # As a module of its own: workers can import that, but not what is only a program.
    import_module("workers").main()
