"""Speed of the GRU: that of the package beside one kernel for the whole recurrence.

    python benchmarks/gru.py                       # gradients and times
    python benchmarks/gru.py --train smac/3s5z     # an iteration of training with either of them

Both run in turn; the fastest run counts. Gradients of the two are compared first, and the program
fails if they differ. On a CPU the kernel is interpreted: small sizes, no times.
"""

import argparse
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gru_kernel import block_size, gru_states
from jaxtyping import Array
from timing import Job, rates

from fp3o.networks.layers import Agents, GroupedGRU, GroupedNorm, grouped_product, linear
from fp3o.runs.evaluation import make_program
from fp3o.runs.run_config import RunConfig

SIZES = {"full sharing": (5, 8, 1, 320), "no sharing": (5, 8, 8, 320), "one agent": (5, 1, 1, 320)}
"""Seeds, agents, groups and sequences of a minibatch of the preset `many` on 3s5z."""

STEPS, HIDDEN = 10, 64

TOLERANCE = {"cpu": 1e-5, "gpu": 0.01}
"""Allowed difference of gradients; products on a GPU are in TF32, with a mantissa of ten bits."""


def gru_in_one_kernel(
    gru: GroupedGRU,
    x: Array,
    norm: GroupedNorm | None,
    hidden_state: Array,
    episode_start: Array,
    agents: Agents,
) -> Array:
    """`GroupedGRU.__call__` with the kernel, where it can be used and there is a sequence."""
    shape = (*hidden_state.shape[:2], episode_start.shape[1] // hidden_state.shape[1])
    if shape[2] == 1 or block_size(shape[1]) is None:
        return _package_gru(gru, x, norm, hidden_state, episode_start, agents)
    weight, bias = gru.of(gru.weight, agents), gru.of(gru.bias, agents)
    input_weight, input_bias = gru.input.fold_norm(norm, agents)
    inputs = grouped_product(x, input_weight, jnp.zeros_like(input_bias))
    inputs = inputs.reshape(*shape, bias.shape[1])
    starts = episode_start.reshape(shape)
    states = gru_states(inputs, hidden_state, starts, weight, (input_bias, bias))
    return states.reshape(*episode_start.shape, hidden_state.shape[2])


_package_gru = GroupedGRU.__call__
VERSIONS: dict[str, Callable[..., Array]] = {"package": _package_gru, "kernel": gru_in_one_kernel}


def gradients(version: Callable[..., Array], seeds: int, agents: int, groups: int, count: int):
    """A function without arguments that computes the gradients of all parameters and inputs."""
    random = np.random.default_rng(0)
    group_of = tuple(j % groups for j in range(agents))
    inner = linear(random, HIDDEN, 3 * HIDDEN, group_of)
    side = linear(random, HIDDEN, 3 * HIDDEN, group_of)
    gru = GroupedGRU(input=side, weight=inner.weight, bias=inner.bias, groups=group_of)
    draw = lambda *shape: jnp.asarray(random.normal(size=(seeds, *shape)), jnp.float32)  # noqa: E731
    x, first = draw(agents, count * STEPS, HIDDEN), draw(agents, count, HIDDEN)
    wanted, starts = draw(agents, count * STEPS, HIDDEN), draw(agents, count * STEPS) > 1.5

    def loss(gru: GroupedGRU, x: Array, first: Array) -> Array:
        each = jax.vmap(lambda x, h, s: version(gru, x, None, h, s, None))
        return (each(x, first, starts) * wanted).mean()

    compiled = jax.jit(jax.grad(loss, (0, 1, 2)))
    return lambda: jax.block_until_ready(compiled(gru, x, first))


def iteration(version: Callable[..., Array], task: str, algorithm: str, seeds: int):
    """A function without arguments that runs a training iteration of the preset `many`."""
    config = RunConfig.from_preset(task, "many").with_settings(
        {"algorithm": algorithm, "seeds": seeds}
    )
    GroupedGRU.__call__ = version
    program = make_program(config.resolve())
    state = program.init(0)
    program.compile(state)
    GroupedGRU.__call__ = _package_gru
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
    print(f"{name}: {text}, ratio {times['package'] / times['kernel']:.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of the GRU.")
    parser.add_argument("--train", nargs="*", default=[], help="tasks whose training is timed")
    parser.add_argument("--algorithms", nargs="*", default=["fp3o", "mappo", "happo"])
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    backend = jax.default_backend()
    on_cpu = backend == "cpu"
    for name, sizes in SIZES.items():
        sizes = (2, *sizes[1:3], 16) if on_cpu else sizes
        runs = {version: gradients(call, *sizes) for version, call in VERSIONS.items()}
        found = difference(runs["package"](), runs["kernel"]())
        print(f"{name}: gradients differ by {found:.1e}", flush=True)
        if found > TOLERANCE[backend]:
            raise SystemExit("the gradients of the two versions differ")
        if not on_cpu:
            compare(name, runs, 1.0)
    for task in options.train:
        for algorithm in options.algorithms:
            runs = {
                version: iteration(call, task, algorithm, options.seeds)
                for version, call in VERSIONS.items()
            }
            compare(f"{task} {algorithm}", runs, 3.0)


if __name__ == "__main__":
    main()
