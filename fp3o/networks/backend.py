"""What the programs need to know about the device that runs them."""

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

KERNEL_TOLERANCE = {jnp.dtype("float32"): 0.01, jnp.dtype("bfloat16"): 0.06}
"""Precisions that kernels have, and the largest difference between their results and XLA's,
relative to the norm.

Products on a GPU have a mantissa of ten bits, or of seven with bfloat16; where a sum is close to 0,
the slope of a ReLU may differ."""


ROW_TOLERANCE = 0.5
"""The same for every row of the output, so that one wrong block does not go unnoticed."""

_FOR_CPU: ContextVar[bool] = ContextVar("for_cpu", default=False)


@contextmanager
def traced_for_cpu() -> Iterator[None]:
    """Context for tracing a program that runs on the CPU even if there is a GPU."""
    token = _FOR_CPU.set(True)
    try:
        yield
    finally:
        _FOR_CPU.reset(token)


def on_gpu() -> bool:
    """Whether programs that are traced now run on a GPU."""
    device: Any = jax.config.jax_default_device  # type: ignore[attr-defined]
    platform = getattr(device, "platform", device) or jax.default_backend()
    return platform == "gpu" and not _FOR_CPU.get()


def use_kernels() -> bool:
    """Whether kernels for GPUs may be used: on a GPU, unless `FP3O_KERNELS=0` is set."""
    return on_gpu() and os.environ.get("FP3O_KERNELS", "1") != "0"


def scan_unroll(steps: int = 25) -> int:
    """Steps per turn of a `lax.scan` over small arrays.

    On accelerators, starting small kernels costs most: several steps share them. On a CPU it would
    only take longer to compile.
    """
    return 1 if jax.default_backend() == "cpu" else steps


def materialised(x: Any) -> Any:
    """The same array, on a GPU computed before everything that depends on it, as is its gradient.

    For small arrays between large computations, which XLA would try for seconds to fuse.
    """
    return jax.lax.optimization_barrier(x) if on_gpu() else x


def kernel_agrees(
    kernel: Callable[..., Any], plain: Callable[..., Any], dtype: Any, *shapes: Any
) -> bool:
    """Whether a kernel compiles for this device, and computes the same as XLA.

    Values and gradients for random arrays of these shapes are compared; products are of this
    precision. A kernel of which this is not true is not used.
    """
    random = np.random.default_rng(0)
    arrays = [random.normal(size=shape).astype(np.float32) / 2 for shape in shapes]

    def results(function: Callable[..., Any], arrays: Any) -> Any:
        def loss(*arrays: Any) -> Any:
            out = function(*arrays)
            rows = 1.5 + jnp.sin(jnp.arange(out.size // out.shape[-1])).reshape(*out.shape[:-1], 1)
            # The same sign in all rows: sums that cancel would be sums of rounding errors.
            return (out * rows * jnp.sin(1.0 + jnp.arange(out.shape[-1]))).sum(), out

        numbers = tuple(range(len(arrays)))
        (_, out), gradients = jax.value_and_grad(loss, numbers, has_aux=True)(*arrays)
        return out, *gradients

    both = jax.jit(lambda *arrays: (results(kernel, arrays), results(plain, arrays)))
    try:
        # Compiled ahead of time, because this may run while a program that uses the kernel is
        # traced; without a search for the fastest products, because it runs once.
        program = both.lower(*arrays).compile({"xla_gpu_autotune_level": "0"})
        pairs = [*zip(*program(*arrays), strict=True)]
        close = all(_relative_error(*pair) <= KERNEL_TOLERANCE[dtype] for pair in pairs)
        if close and _worst_row(*pairs[0]) <= ROW_TOLERANCE:
            return True
        reason = "its results differ from those of XLA"
    except Exception as error:  # compilers of kernels raise errors of many classes
        reason = str(error)
    message = f"networks are computed without a kernel for GPUs, more slowly: {reason}"
    warnings.warn(message, RuntimeWarning, stacklevel=2)
    return False


def _worst_row(x: Any, y: Any) -> float:
    """Largest norm of the difference of a row, relative to the mean square of rows of `y`."""
    x, y = (np.asarray(array, np.float64).reshape(-1, array.shape[-1]) for array in (x, y))
    error, size = (np.square(array).sum(1) for array in (x - y, y))
    return float(np.sqrt(error.max() / size.mean()))


def _relative_error(x: Any, y: Any) -> float:
    """Norm of the difference, relative to that of `y`."""
    x, y = (np.asarray(array, np.float64).ravel() for array in (x, y))
    return float(np.linalg.norm(x - y) / (np.linalg.norm(y) or 1.0))
