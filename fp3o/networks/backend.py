"""What the programs need to know about the device that runs them."""

import jax


def on_gpu() -> bool:
    """Whether programs run on a GPU."""
    return jax.default_backend() == "gpu"


def scan_unroll(steps: int = 25) -> int:
    """Steps per turn of a `lax.scan` over small arrays.

    On accelerators, starting small kernels costs most: several steps share them. On a CPU it would
    only take longer to compile.
    """
    return 1 if jax.default_backend() == "cpu" else steps
