"""Checkpoints of training: conversion of trees of arrays to named arrays and back."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from safetensors.numpy import load as from_bytes
from safetensors.numpy import save as to_bytes

from fp3o.runs.best import BestPolicies
from fp3o.runs.checkpoint_files import Checkpoint
from fp3o.runs.directory import RunError
from fp3o.runs.processes import is_leader, num_processes, share_bytes
from fp3o.training.state import TrainState


class TrainCheckpoint(NamedTuple):
    """Content of a checkpoint: the training state and the best policies so far."""

    state: TrainState
    best: BestPolicies


def to_arrays(tree: Any) -> dict[str, np.ndarray]:
    """The leaves of a tree by their paths; random keys as integers."""
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {
        jax.tree_util.keystr(path): np.asarray(_key_data(leaf), order="C") for path, leaf in leaves
    }


def from_arrays(template: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """The tree with the structure of `template` and these arrays as leaves."""
    leaves, structure = jax.tree_util.tree_flatten_with_path(template)
    names = [jax.tree_util.keystr(path) for path, _ in leaves]
    if unknown := {*names} ^ {*arrays}:
        raise RunError(f"the checkpoint does not fit the settings: {sorted(unknown)[0]}")
    restored = []
    for name, (_, old) in zip(names, leaves, strict=True):
        new, numbers = arrays[name], _key_data(old)
        if new.shape != numbers.shape or new.dtype != numbers.dtype:
            raise RunError(
                f"the checkpoint does not fit the settings: {name} is {new.dtype}{new.shape}, "
                f"expected {numbers.dtype}{numbers.shape}"
            )
        restored.append(_like(old, new))
    return jax.tree.unflatten(structure, restored)


def shared_checkpoint(stored: Checkpoint | None) -> Checkpoint | None:
    """The checkpoint that the first of several processes has read, in all of them."""
    if num_processes() == 1:
        return stored
    content = b""
    if is_leader() and stored is not None:
        numbers = {name: np.array(getattr(stored, name)) for name in ("iteration", "cursor")}
        changes = np.frombuffer(json.dumps(stored.changes).encode(), np.uint8)
        content = to_bytes({**stored.arrays, **numbers, "changes": changes})
    if not (content := share_bytes(content)):
        return None
    arrays = from_bytes(content)
    changes = json.loads(arrays.pop("changes").tobytes())
    numbers = int(arrays.pop("iteration")), int(arrays.pop("cursor"))
    return Checkpoint(*numbers, arrays, changes=changes)


def _like(old: Any, new: np.ndarray) -> Any:
    """An array of the same kind as `old`: NumPy, JAX or random key."""
    if isinstance(old, np.ndarray):
        return new
    return jax.random.wrap_key_data(jnp.asarray(new)) if _is_key(old) else jnp.asarray(new)


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _key_data(leaf: Any) -> Any:
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf
