"""The GRU's two implementations: a scan, and one kernel for the whole recurrence (on GPUs).

Gradients of both are compared first. Sizes: a minibatch of the preset `many` on 3s5z.
"""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from fp3o.bench.compiled_jobs import training_job
from fp3o.bench.measurement import ITERATION, BenchSettings, Measurement, SpeedComparison
from fp3o.bench.timing import TimedJob
from fp3o.networks import gru
from fp3o.networks.gru import GroupedGRU
from fp3o.networks.layers import linear
from fp3o.runs.run_config import RunConfig

GROUPS = {"full": (8, 1), "none": (8, 8), "one agent": (1, 1)}
"""Agents and groups."""

SEQUENCES, SEQUENCE_STEPS, HIDDEN = 320, 10, 64

GRADIENT_TOLERANCE = 0.01
"""Allowed difference of gradients; products on a GPU are in TF32, with a mantissa of ten bits."""

DECISIONS = {"scan": lambda *_: False, "kernel": gru.use_kernel}
"""Implementations by name: the decision that leads to each."""


def measure_gru(settings: BenchSettings) -> Iterator[Measurement]:
    """Gradients of one layer, and training of battles."""
    if jax.default_backend() != "gpu":
        note = f"the kernel needs a GPU, this is a {jax.default_backend()}"
        yield Measurement("gradients of a GRU", None, ITERATION, "scan", None, note)
        return
    try:
        for name in GROUPS:
            yield from _gradients(name, settings)
        for task in settings.names("smac", ("3s5z",)):
            for algorithm in settings.algorithms or ("fp3o",):
                yield from _training(task, algorithm, settings)
    finally:
        gru.use_kernel = DECISIONS["kernel"]


def _gradients(name: str, settings: BenchSettings) -> Iterator[Measurement]:
    agents, groups = GROUPS[name]
    jobs = {version: gradient_job(version, settings.seeds, agents, groups) for version in DECISIONS}
    pair = [jax.tree.leaves(job.run()) for job in jobs.values()]
    error = max(float(jnp.abs(a - b).max() / jnp.abs(a).max()) for a, b in zip(*pair, strict=True))
    case, peer = f"gradients, kernel, {name}", f"scan, {name}"
    named = {case: jobs["kernel"], peer: jobs["scan"]}
    wrong = "WRONG: " if error > GRADIENT_TOLERANCE else ""
    notes = {case: lambda: f"{wrong}gradients differ by {error:.1e}"}
    yield from SpeedComparison(named, [(case, peer)], ITERATION, notes).measure(settings)


def gradient_job(version: str, seeds: int, agents: int, groups: int) -> TimedJob:
    """Gradients of all parameters and inputs of a layer."""
    gru.use_kernel = DECISIONS[version]
    random = np.random.default_rng(0)
    group_of = tuple(j % groups for j in range(agents))
    inner = linear(random, HIDDEN, 3 * HIDDEN, group_of)
    side = linear(random, HIDDEN, 3 * HIDDEN, group_of)
    layer = GroupedGRU(input=side, weight=inner.weight, bias=inner.bias, groups=group_of)
    draw = lambda *shape: jnp.asarray(random.normal(size=(seeds, *shape)), jnp.float32)  # noqa: E731
    steps = SEQUENCES * SEQUENCE_STEPS
    x, first = draw(agents, steps, HIDDEN), draw(agents, SEQUENCES, HIDDEN)
    wanted, starts = draw(agents, steps, HIDDEN), draw(agents, steps) > 1.5

    def loss(layer: GroupedGRU, x: Array, first: Array) -> Array:
        each = jax.vmap(lambda x, h, s: layer(x, None, h, s, None))
        return (each(x, first, starts) * wanted).mean()

    compiled: Any = jax.jit(jax.grad(loss, (0, 1, 2))).lower(layer, x, first).compile()
    return TimedJob(1, lambda: jax.block_until_ready(compiled(layer, x, first)))


def _training(task: str, algorithm: str, settings: BenchSettings) -> Iterator[Measurement]:
    changes = {"algorithm": algorithm, "seeds": settings.seeds}
    config = RunConfig.from_preset(f"smac/{task}", "many").with_settings(changes)
    jobs, case = {}, f"training, kernel, {algorithm}, {task}"
    for version, title in {"scan": "scan", "kernel": case}.items():
        gru.use_kernel = DECISIONS[version]
        jobs[title] = training_job(config).job
    yield from SpeedComparison(jobs, [(case, "scan")]).measure(settings)
