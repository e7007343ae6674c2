"""Several devices: the cost of the divided program, and the time that each share would take.

What a device of several does in an iteration is what one device does with a share of the
environments, and sums over the devices. Both can be measured on one device, apart from the sums.
"""

from collections.abc import Iterator

import jax

from fp3o.bench.compiled_jobs import training_job
from fp3o.bench.measurement import ITERATION, BenchSettings, Measurement, SpeedComparison
from fp3o.bench.timing import TimedJob
from fp3o.runs.run_config import RunConfig

SHARES = (1, 2, 4, 8)
"""Numbers of devices whose shares are measured."""

SMALL = {"num_envs": 16, "rollout": 20}
"""Changes of the preset in a quick run."""


def measure_devices(settings: BenchSettings) -> Iterator[Measurement]:
    """Training with the preset `many`: undivided, divided on one device, and with fewer envs."""
    for name in settings.names("smac", ["3s5z"]):
        for algorithm in settings.algorithms or ("fp3o",):
            changes = {"algorithm": algorithm, "seeds": settings.seeds}
            changes |= SMALL if settings.quick else {}
            config = RunConfig.from_preset(f"smac/{name}", "many").with_settings(changes)
            yield from _cost_of_division(f"{algorithm}, {name}", config, settings)
            for share in SHARES[1:2] if settings.quick else SHARES[1:]:
                yield from _share(f"{algorithm}, {name}", config, share, settings)


def _cost_of_division(
    title: str, config: RunConfig, settings: BenchSettings
) -> Iterator[Measurement]:
    """The program on a grid of one device beside the one without a grid."""
    case, peer = f"{title}, divided program on one device", "the same, not divided"
    jobs = {
        case: _iteration(config, jax.local_devices()[:1]),
        peer: _iteration(config),
    }
    yield from SpeedComparison(jobs, [(case, peer)], ITERATION).measure(settings)


def _share(
    title: str, config: RunConfig, share: int, settings: BenchSettings
) -> Iterator[Measurement]:
    """One device's share of the environments; with as many devices as there are, the whole."""
    envs = config.learner.num_envs
    case = f"{title}, {envs // share} environments: the share of one of {share} devices"
    jobs = {case: _iteration(config.with_settings({"num_envs": envs // share}))}
    pairs, together = [(case, "")], f"{title}, {envs} environments on {share} devices"
    if len(jax.local_devices()) >= share:
        blocks = config.with_settings({"blocks": share})
        jobs[together] = _iteration(blocks, jax.local_devices()[:share])
        pairs.append((together, case))
    yield from SpeedComparison(jobs, pairs, ITERATION).measure(settings)


def _iteration(config: RunConfig, devices: list[jax.Device] | None = None) -> TimedJob:
    return TimedJob(1, training_job(config, devices).job.run)
