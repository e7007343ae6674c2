"""Loops over small arrays that copy one array per step instead of many.

On a GPU, each array that a step passes on or returns costs a kernel that does little.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from fp3o.networks.backend import on_gpu

MAX_PACKED = 2**15
"""Numbers that a step of one seed passes on and returns at most, if they are packed, so that copies
stay small beside the kernels that they save. Not tuned."""

UNROLL = 4
"""Steps per turn of a packed loop: the arrays between them are not copied."""

PACKABLE = (jnp.float32, jnp.int32, jnp.uint32, jnp.bool_)


class Packed(NamedTuple):
    """The arrays of a tree."""

    numbers: Float[Array, " k"]
    """All that can be packed, one after another."""
    others: list[Any]
    """The rest, such as random keys."""


def packed_scan(step: Callable[[Any, Any], tuple[Any, Any]], carry: Any, xs: Any) -> Any:
    """The same as `lax.scan`; on a GPU, what a step passes on and returns is packed if it is small.

    Numbers are moved, not changed.
    """
    if not on_gpu():
        return jax.lax.scan(step, carry, xs)
    start = jax.eval_shape(lambda x: x, carry)
    new, result = jax.eval_shape(step, carry, jax.tree.map(lambda x: x[0], xs))
    if not _can_pack(start, new, result):
        return jax.lax.scan(step, carry, xs)

    def packed_step(packed: Packed, x: Any) -> tuple[Packed, Packed]:
        new, y = step(unpack_arrays(packed, start), x)
        return pack_arrays(new), pack_arrays(y)

    last, ys = jax.lax.scan(packed_step, pack_arrays(carry), xs, unroll=UNROLL)
    return unpack_arrays(last, start), jax.vmap(partial(unpack_arrays, like=result))(ys)


def packed_while(condition: Callable[[Any], Array], step: Callable[[Any], Any], carry: Any) -> Any:
    """The same as `lax.while_loop`; on a GPU, what a step passes on is packed if it is small."""
    if not on_gpu():
        return jax.lax.while_loop(condition, step, carry)
    start = jax.eval_shape(lambda x: x, carry)
    if not _can_pack(start, jax.eval_shape(step, carry)):
        return jax.lax.while_loop(condition, step, carry)
    whole = partial(unpack_arrays, like=start)
    last = jax.lax.while_loop(
        lambda packed: condition(whole(packed)),
        lambda packed: pack_arrays(step(whole(packed))),
        pack_arrays(carry),
    )
    return whole(last)


def _can_pack(start: Any, new: Any, result: Any = ()) -> bool:
    """Whether the arrays are small, and a step passes on what it is given.

    If it does not, JAX's own loops know what to do: promote a number, or say what is wrong.
    """
    (leaves, tree), (new_leaves, new_tree) = map(jax.tree.flatten, (start, new))
    same = tree == new_tree and all(
        (x.shape, x.dtype) == (y.shape, y.dtype) for x, y in zip(leaves, new_leaves, strict=True)
    )
    return same and _size((new, result)) <= MAX_PACKED


def pack_arrays(tree: Any) -> Packed:
    """The arrays of a tree, as few as possible."""
    leaves = [jnp.asarray(x) for x in jax.tree.leaves(tree)]
    parts = [_as_float(x).ravel() for x in leaves if _packable(x)]
    numbers = jnp.concatenate([jnp.zeros(0, jnp.float32), *parts])
    return Packed(numbers, [x for x in leaves if not _packable(x)])


def unpack_arrays(packed: Packed, like: Any) -> Any:
    """What `pack_arrays` was given, a tree with the shapes and types of `like`."""
    leaves, structure = jax.tree.flatten(like)
    others, start, arrays = iter(packed.others), 0, []
    for leaf in leaves:
        if _packable(leaf):
            part = packed.numbers[start : start + leaf.size].reshape(leaf.shape)
            arrays.append(_from_float(part, leaf.dtype))
            start += leaf.size
        else:
            arrays.append(next(others))
    return jax.tree.unflatten(structure, arrays)


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
