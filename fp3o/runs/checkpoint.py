"""TODO."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fp3o.runs.directory import RunError


def to_arrays(tree: Any) -> dict[str, np.ndarray]:
    """The leaves of a tree by their path, random keys as numbers."""
    named = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {
        jax.tree_util.keystr(path): np.asarray(_numbers(leaf), order="C") for path, leaf in named
    }


def from_arrays(template: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """The tree of this shape whose leaves are these arrays."""
    named, structure = jax.tree_util.tree_flatten_with_path(template)
    names = [jax.tree_util.keystr(path) for path, _ in named]
    if unknown := {*names} ^ {*arrays}:
        raise RunError(f"the checkpoint does not fit the settings: {sorted(unknown)[0]}")
    leaves = []
    for name, (_, old) in zip(names, named, strict=True):
        new, numbers = arrays[name], _numbers(old)
        if new.shape != numbers.shape or new.dtype != numbers.dtype:
            raise RunError(
                f"the checkpoint does not fit the settings: {name} is {new.dtype}{new.shape}, "
                f"expected {numbers.dtype}{numbers.shape}"
            )
        leaves.append(_like(old, new))
    return jax.tree.unflatten(structure, leaves)


def _like(old: Any, new: np.ndarray) -> Any:
    if isinstance(old, np.ndarray):
        return new
    return jax.random.wrap_key_data(jnp.asarray(new)) if _is_key(old) else jnp.asarray(new)


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _numbers(leaf: Any) -> Any:
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf
