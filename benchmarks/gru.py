"""Speed of the GRU's two implementations: a scan, and one kernel for the whole recurrence.

    python benchmarks/gru.py                       # gradients and times
    python benchmarks/gru.py --train smac/3s5z     # an iteration of training with either of them

Both run in turn; the fastest run counts. Gradients of the two are compared first, and the program
fails if they differ. It needs a GPU: on a CPU the kernel is not used.
"""

import argparse
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from timing import Job, rates

from fp3o.networks import gru
from fp3o.networks.gru import GroupedGRU
from fp3o.networks.layers import linear
from fp3o.runs.evaluation import make_program
from fp3o.runs.run_config import RunConfig

SIZES = {"full sharing": (5, 8, 1, 320), "no sharing": (5, 8, 8, 320), "one agent": (5, 1, 1, 320)}
"""Seeds, agents, groups and sequences of a minibatch of the preset `many` on 3s5z."""

STEPS, HIDDEN = 10, 64

TOLERANCE = 0.01
"""Allowed difference of gradients; products on a GPU are in TF32, with a mantissa of ten bits."""


VERSIONS = {"scan": lambda *_: False, "kernel": gru.use_kernel}
"""Implementations by name: the decision that leads to it."""


def gradients(version: str, seeds: int, agents: int, groups: int, count: int):
    """A function without arguments that computes the gradients of all parameters and inputs."""
    gru.use_kernel = VERSIONS[version]
    random = np.random.default_rng(0)
    group_of = tuple(j % groups for j in range(agents))
    inner = linear(random, HIDDEN, 3 * HIDDEN, group_of)
    side = linear(random, HIDDEN, 3 * HIDDEN, group_of)
    layer = GroupedGRU(input=side, weight=inner.weight, bias=inner.bias, groups=group_of)
    draw = lambda *shape: jnp.asarray(random.normal(size=(seeds, *shape)), jnp.float32)  # noqa: E731
    x, first = draw(agents, count * STEPS, HIDDEN), draw(agents, count, HIDDEN)
    wanted, starts = draw(agents, count * STEPS, HIDDEN), draw(agents, count * STEPS) > 1.5

    def loss(layer: GroupedGRU, x: Array, first: Array) -> Array:
        each = jax.vmap(lambda x, h, s: layer(x, None, h, s, None))
        return (each(x, first, starts) * wanted).mean()

    compiled = jax.jit(jax.grad(loss, (0, 1, 2))).lower(layer, x, first).compile()
    return lambda: jax.block_until_ready(compiled(layer, x, first))


def iteration(version: str, task: str, algorithm: str, seeds: int):
    """A function without arguments that runs a training iteration of the preset `many`."""
    config = RunConfig.from_preset(task, "many").with_settings(
        {"algorithm": algorithm, "seeds": seeds}
    )
    gru.use_kernel = VERSIONS[version]
    program = make_program(config.resolve())
    state = program.init(0)
    program.compile(state)
    return lambda: jax.block_until_ready(program.iterate(state)[0])


def difference(one: Any, other: Any) -> float:
    """Largest difference of two gradients relative to the largest entry of each array."""
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return max(float(jnp.abs(a - b).max() / jnp.abs(a).max()) for a, b in pairs)


def compare(name: str, runs: dict[str, Callable[[], Any]], seconds: float) -> None:
    """Time both versions in turn and print their fastest runs."""
    per_second = rates([Job(1, run) for run in runs.values()], seconds)
    times = dict(zip(runs, (1e3 / rate for rate in per_second), strict=True))
    text = ", ".join(f"{version} {time:.3f} ms" for version, time in times.items())
    print(f"{name}: {text}, ratio {times['scan'] / times['kernel']:.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of the GRU.")
    parser.add_argument("--train", nargs="*", default=[], help="tasks whose training is timed")
    parser.add_argument("--algorithms", nargs="*", default=["fp3o", "mappo", "happo"])
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    if jax.default_backend() != "gpu":
        raise SystemExit("there is no GPU: the kernel is not used")
    for name, sizes in SIZES.items():
        runs = {version: gradients(version, *sizes) for version in VERSIONS}
        found = difference(runs["scan"](), runs["kernel"]())
        print(f"{name}: gradients differ by {found:.1e}", flush=True)
        if found > TOLERANCE:
            raise SystemExit("the gradients of the two versions differ")
        compare(name, runs, 1.0)
    for task in options.train:
        for algorithm in options.algorithms:
            runs = {
                version: iteration(version, task, algorithm, options.seeds) for version in VERSIONS
            }
            compare(f"{task} {algorithm}", runs, 3.0)


if __name__ == "__main__":
    main()
