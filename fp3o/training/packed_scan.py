"""Loops over small arrays that copy one array per step instead of many.

On a GPU, each array that a step passes on or returns costs a kernel that does little, and programs
that share the GPU take turns with their kernels.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from fp3o.networks.backend import on_gpu

MAX_PACKED = 2**15
"""Numbers that a step passes on and returns at most, if they are packed: copying more than this
costs as much as starting kernels."""

UNROLL = 4
"""Steps per turn of a packed loop: the arrays between them are not copied."""

PACKABLE = (jnp.float32, jnp.int32, jnp.uint32, jnp.bool_)


def packed_scan(step: Callable[[Any, Any], tuple[Any, Any]], carry: Any, xs: Any) -> Any:
    """The same as `lax.scan`; on a GPU, what a step passes on and returns is packed if it is small.

    Numbers are moved, not changed.
    """
    first = jax.tree.map(lambda x: x[0], xs)
    shapes = jax.eval_shape(step, carry, first)
    if not on_gpu() or _size(shapes) > MAX_PACKED:
        return jax.lax.scan(step, carry, xs)
    (_, returned), rest = shapes, _others(carry)

    def packed_step(packed: tuple[Array, list[Any]], x: Any) -> Any:
        new, y = step(unpack_arrays(packed[0], carry, packed[1]), x)
        return (pack_arrays(new), _others(new)), (pack_arrays(y), _others(y))

    start = pack_arrays(carry), rest
    (last, rest), (ys, more) = jax.lax.scan(packed_step, start, xs, unroll=UNROLL)
    return unpack_arrays(last, carry, rest), jax.vmap(
        lambda y, more: unpack_arrays(y, returned, more)
    )(ys, more)


def packed_while(condition: Callable[[Any], Array], step: Callable[[Any], Any], start: Any) -> Any:
    """The same as `lax.while_loop`; on a GPU, what a step passes on is packed if it is small."""
    if not on_gpu() or _size(start) > MAX_PACKED:
        return jax.lax.while_loop(condition, step, start)
    whole = lambda packed: unpack_arrays(packed[0], start, packed[1])  # noqa: E731

    def packed_step(packed: tuple[Array, list[Any]]) -> tuple[Array, list[Any]]:
        new = step(whole(packed))
        return pack_arrays(new), _others(new)

    return whole(
        jax.lax.while_loop(
            lambda packed: condition(whole(packed)),
            packed_step,
            (pack_arrays(start), _others(start)),
        )
    )


def pack_arrays(tree: Any) -> Float[Array, " k"]:
    """All packable arrays of a tree as one vector."""
    parts = [_as_float(x).ravel() for x in jax.tree.leaves(tree) if _packable(x)]
    return jnp.concatenate([jnp.zeros(0, jnp.float32), *parts])


def unpack_arrays(packed: Float[Array, " k"], like: Any, others: list[Any]) -> Any:
    """A tree with the shapes and types of `like` from what `pack_arrays` and `_others` made of it."""
    leaves, structure = jax.tree.flatten(like)
    remaining, start, arrays = iter(others), 0, []
    for leaf in leaves:
        if _packable(leaf):
            part = packed[start : start + leaf.size].reshape(leaf.shape)
            arrays.append(_from_float(part, leaf.dtype))
            start += leaf.size
        else:
            arrays.append(next(remaining))
    return jax.tree.unflatten(structure, arrays)


def _others(tree: Any) -> list[Any]:
    """The arrays that are not packed, such as random keys."""
    return [x for x in jax.tree.leaves(tree) if not _packable(x)]


def _packable(x: Any) -> bool:
    return x.dtype in PACKABLE


def _as_float(x: Array) -> Array:
    if x.dtype == jnp.bool_:
        return x.astype(jnp.float32)
    return x if x.dtype == jnp.float32 else jax.lax.bitcast_convert_type(x, jnp.float32)


def _from_float(x: Array, dtype: Any) -> Array:
    if dtype == jnp.bool_:
        return x != 0
    return x if dtype == jnp.float32 else jax.lax.bitcast_convert_type(x, dtype)


def _size(shapes: Any) -> int:
    return sum(x.size for x in jax.tree.leaves(shapes) if _packable(x))
