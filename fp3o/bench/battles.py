"""SMAC-style battles: random available actions beside JaxMARL's SMAX, and training.

Observations and states of all agents are computed at every step. A step is half a second of game
time in both. SMAX has simpler units and rules, and some of the maps.
"""

from collections.abc import Iterator
from functools import partial

import jax

from fp3o.bench.compiled_jobs import random_play_job, training_job
from fp3o.bench.jaxmarl_jobs import EXTRA, jaxmarl_play_job
from fp3o.bench.measurement import BenchSettings, Measurement, SpeedComparison, optional_job
from fp3o.envs.registry import get_task
from fp3o.runs.run_config import RunConfig

MAPS_BY_DEFAULT = (
    "3s5z", "bane_vs_bane", "2c_vs_64zg", "5m_vs_6m", "6h_vs_8z", "corridor", "10m_vs_11m",
    "3s5z_vs_3s6z",
)  # fmt: skip

BATTLE_STEPS = 50
"""Steps per chunk of random actions."""

SMALLER = {"num_envs": 16, "rollout": 20}
"""Changes of the preset `many` in a quick run."""


def measure_battles(settings: BenchSettings) -> Iterator[Measurement]:
    """Random actions on all maps; training with the preset `many`, on a CPU for one algorithm."""
    on_cpu = jax.default_backend() == "cpu"
    names = settings.names("smac", MAPS_BY_DEFAULT[: 1 if settings.quick else None])
    count = (64 if settings.quick else 256) if on_cpu else 4096
    for name in names:
        yield from _random_actions(name, count, settings)
    usual = ("fp3o",) if on_cpu or settings.quick else ("fp3o", "mappo", "happo", "ippo")
    for name in names[: 1 if on_cpu else 3]:
        for algorithm in settings.algorithms or usual:
            yield from _training(name, algorithm, settings)


def _random_actions(name: str, num_envs: int, settings: BenchSettings) -> Iterator[Measurement]:
    env = get_task(f"smac/{name}").vec_env("paper", num_envs)
    case, peer = f"random actions, {name}, {num_envs} environments", "JaxMARL's SMAX"
    theirs = partial(jaxmarl_play_job, "HeuristicEnemySMAX", num_envs, BATTLE_STEPS, scenario=name)
    jobs = {case: random_play_job(env, BATTLE_STEPS), peer: optional_job("jaxmarl", theirs, EXTRA)}
    yield from SpeedComparison(jobs, [(case, peer)]).measure(settings)


def _training(name: str, algorithm: str, settings: BenchSettings) -> Iterator[Measurement]:
    changes = {"algorithm": algorithm, "seeds": settings.seeds}
    changes |= SMALLER if settings.quick else {}
    config = RunConfig.from_preset(f"smac/{name}", "many").with_settings(changes)
    training = training_job(config)
    title = f"training, {algorithm}, {name}, {config.learner.num_envs} environments"
    title += f", {settings.seeds} seeds" * (settings.seeds > 1)
    comparison = SpeedComparison({title: training.job}, [(title, "")], notes={title: training.note})
    yield from comparison.measure(settings, least=2)
