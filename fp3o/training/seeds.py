"""How the seeds of a program run: on accelerators in one program, on a CPU in threads.

On a CPU, a program uses little more than one core, because its operations are small, and so does
one of all seeds together. In threads, the cores compute different seeds, and every seed gets
exactly the numbers of a program of its own. Tiny programs are the exception: they run together.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

try:
    from jax import enable_x64
except ImportError:  # older versions of JAX
    from jax.experimental import enable_x64  # pyright: ignore

MIN_SAMPLES = 512
"""Samples per iteration and seed from which threads are used on a CPU.

Measured on two ARM cores with five seeds: with 64 samples of a matrix game threads take four times
as long, with 1,024 of a probe task 0.84 of the time.
"""


def over_seeds(
    function: Callable[..., Any], num_seeds: int | None, axes: tuple[int, ...], samples: int
) -> Any:
    """A function of one seed, compiled for all seeds; they are these axes of its arguments.

    `samples` is the number of samples per seed of a training iteration. Without `num_seeds` there
    are no axes of seeds. Like every function of `jax.jit`, it can be compiled ahead of time.
    """
    if num_seeds and samples >= MIN_SAMPLES and jax.default_backend() == "cpu":
        return SeedThreads(jax.jit(function), num_seeds, axes)
    return jax.jit(jax.vmap(function, axes) if num_seeds else function)


@dataclass
class SeedThreads:
    """A compiled function of one seed, called for every seed.

    `axes` are the axes of seeds in the arguments; in results it is the first.
    """

    function: Any
    num_seeds: int
    axes: tuple[int, ...]
    is_compiled: bool = False

    def __call__(self, *arguments: Any) -> Any:
        """Run all seeds."""
        seeds = [*range(self.num_seeds)]
        # Alone at first: threads would compile the same program several times.
        results = [] if self.is_compiled else [self._run_seed(arguments, seeds.pop(0))]
        self.is_compiled = True
        run = partial(_with_settings, _thread_settings(), self._run_seed, arguments)
        with ThreadPoolExecutor(min(self.num_seeds, os.cpu_count() or 1)) as pool:
            results += pool.map(run, seeds)
        return jax.tree.map(_stack, *results)

    def lower(self, *arguments: Any) -> "SeedThreads":
        """The function traced for arguments of these shapes, to be compiled."""
        return replace(self, function=self.function.lower(*self._of_seed(arguments, 0)))

    def compile(self) -> "SeedThreads":
        """The traced function, compiled."""
        return replace(self, function=self.function.compile(), is_compiled=True)

    def memory_analysis(self) -> Any:
        """Memory of the compiled function of one seed."""
        return self.function.memory_analysis()

    def _run_seed(self, arguments: tuple[Any, ...], seed: int) -> Any:
        return jax.block_until_ready(self.function(*self._of_seed(arguments, seed)))

    def _of_seed(self, arguments: tuple[Any, ...], seed: int) -> list[Any]:
        def select(axis: int, x: Any) -> Any:
            # Views of memory; indexing with JAX would start a computation for every array.
            x = x if _is_key(x) else np.asarray(x)
            return x[(slice(None),) * axis + (seed,)]

        pairs = zip(self.axes, arguments, strict=True)
        return [jax.tree.map(lambda x, axis=axis: select(axis, x), tree) for axis, tree in pairs]


def _thread_settings() -> tuple[bool, Any]:
    """Settings of JAX that may differ between threads and that results depend on."""
    config: Any = jax.config
    return config.jax_enable_x64, config.jax_default_matmul_precision


def _with_settings(settings: tuple[bool, Any], function: Callable[..., Any], *args: Any) -> Any:
    x64, precision = settings
    with enable_x64(x64), jax.default_matmul_precision(precision):
        return function(*args)


def _stack(*parts: Any) -> Any:
    if _is_key(parts[0]):
        return jnp.stack(parts)
    return jnp.asarray(np.stack([np.asarray(part) for part in parts]))


def _is_key(x: Any) -> bool:
    return isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
