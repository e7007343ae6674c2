"""Compilation of programs that run longer than they compile, unlike the others under test."""

from collections.abc import Callable
from typing import Any

import jax

_OPTIONS = {"xla_backend_optimization_level": 2, "xla_llvm_disable_expensive_passes": False}
"""What `conftest.py` switches off. Battles of many units run four times as fast with it."""


def optimised_jit(function: Callable[..., Any]) -> Any:
    """`jax.jit` with the compiler's usual optimisations."""
    return jax.jit(function, compiler_options=_OPTIONS)
