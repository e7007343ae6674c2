"""Environment steps a second of PettingZoo environments: in this process and in workers.

    python benchmarks/workers.py

`raw` steps the environments themselves, dictionaries and all, one after the other: PettingZoo has
no vector environments of its own. `idle workers` are processes that do nothing but answer with
arrays of the same shapes: what pipes and pickles cost. `--work` adds milliseconds of computation
to each step, to see from when on processes pay. The cases take turns and the best turn counts.
"""

import argparse
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import jax
import numpy as np

from fp3o.envs.crew import Crew, Games, form
from fp3o.envs.pettingzoo import PettingZoo
from fp3o.envs.pettingzoo_worker import build, load
from fp3o.spaces import Discrete, EnvSpec

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

    spec: EnvSpec

    def __call__(self, seed: int) -> "Idle":
        return self

    def reset(self, *_: int) -> tuple[np.ndarray, ...]:
        return tuple(np.zeros(shape, dtype) for _, shape, dtype in form(self.spec))

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


def batched(games: Games) -> Callable[[], None]:
    """A turn of a batch."""
    actions = draw(games.spec, games.num_envs)
    state, _ = games.reset(jax.random.key(0))

    def run() -> None:
        nonlocal state
        for chosen in actions:
            state, _ = games.step(state, chosen)

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
    print(f"{'case':16} {'steps/s':>10} {'us a step':>11} {'times raw':>10}")
    for name, took in best.items():
        rate = CHUNK * num_envs / took
        print(f"{name:16} {rate:10,.0f} {1e6 / rate:11.0f} {best['raw'] / took:10.2f}")


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
    idle = Games(here.spec, Crew(Idle(here.spec), form(here.spec), asked.envs))
    cases = {
        "raw": raw(here, asked.envs),
        "in this process": batched(here.batch(asked.envs)),
        "workers": batched(there.batch(asked.envs)),
        "idle workers": batched(idle),
    }
    measure(cases, asked.envs, asked.seconds)


if __name__ == "__main__":
    # As a module of its own: workers can import that, but not what is only a program.
    import_module("workers").main()
