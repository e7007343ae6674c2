"""Particle tasks: training and random actions, beside JaxMARL's.

`ippo, feed-forward` has the sizes of JaxMARL's IPPO script on simple_spread: 64 environments x 128
steps, 4 epochs x 4 minibatches, two layers of 64 with tanh and no LayerNorm, shared, no agent id.
The others are the paper's recurrent presets.
"""

from collections.abc import Iterator
from functools import partial

from fp3o.bench.compiled_jobs import random_play_job, training_job
from fp3o.bench.jaxmarl_jobs import EXTRA, jaxmarl_play_job, jaxmarl_training_job
from fp3o.bench.measurement import BenchSettings, Measurement, SpeedComparison, optional_job
from fp3o.envs.registry import get_task
from fp3o.runs.run_config import RunConfig

FEED_FORWARD = {
    "algorithm": "ippo", "sharing": "full", "num_envs": 64, "rollout": 128, "epochs": 4,
    "minibatches": 4, "hidden": (64, 64), "gru_size": 0, "sequence_length": None,
    "activation": "tanh", "layer_norm": False, "agent_id": False, "actor_lr": 2.5e-4,
    "critic_lr": 2.5e-4, "max_grad_norm": 0.5, "seeds": 1, "variant": "mpe2",
}  # fmt: skip
"""Settings of JaxMARL's script."""

PLAY_STEPS = 100
"""Steps per chunk of random actions."""

TASKS_BY_DEFAULT = ("simple_spread", "simple_reference", "simple_speaker_listener")


def measure_particles(settings: BenchSettings) -> Iterator[Measurement]:
    """Random actions, JaxMARL's IPPO sizes, and the paper's presets."""
    names = settings.names("mpe", TASKS_BY_DEFAULT[: 1 if settings.quick else None])
    for name in names:
        yield from _random_actions(name, settings)
    if "simple_spread" in names:
        yield from _feed_forward(settings)
    for algorithm in settings.algorithms or (() if settings.quick else ("ippo", "mappo", "fp3o")):
        for name in names:
            changes = {"algorithm": algorithm, "seeds": settings.seeds}
            config = RunConfig.from_preset(f"mpe/{name}", "paper").with_settings(changes)
            training, title = training_job(config), f"training, GRU, {algorithm}, {name}"
            jobs, notes = {title: training.job}, {title: training.note}
            yield from SpeedComparison(jobs, [(title, "")], notes=notes).measure(settings)


def _random_actions(name: str, settings: BenchSettings) -> Iterator[Measurement]:
    env = get_task(f"mpe/{name}").vec_env("mpe2", 64)
    case, peer = f"random actions, {name}, 64 environments", "JaxMARL"
    theirs = partial(jaxmarl_play_job, f"MPE_{name}_v3", 64, PLAY_STEPS)
    jobs = {case: random_play_job(env, PLAY_STEPS), peer: optional_job("jaxmarl", theirs, EXTRA)}
    yield from SpeedComparison(jobs, [(case, peer)]).measure(settings)


def _feed_forward(settings: BenchSettings) -> Iterator[Measurement]:
    config = RunConfig.from_preset("mpe/simple_spread", "paper").with_settings(FEED_FORWARD)
    case, peer = "training, feed-forward, ippo, simple_spread", "JaxMARL's training script"
    ours, script = training_job(config), partial(jaxmarl_training_job, config)
    jobs = {case: ours.job, peer: optional_job("jaxmarl", script, EXTRA)}
    yield from SpeedComparison(jobs, [(case, peer)], notes={case: ours.note}).measure(settings)
