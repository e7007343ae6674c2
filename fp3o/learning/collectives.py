"""Sums over all environments of a seed, also those on other devices.

A program may divide the environments of a seed among devices, each of which runs the same functions
on its share. Means, maxima and quantiles must then be those of all shares: all devices compute the
same update, and it is the one of a single device. Where nothing is divided, these functions return
what they are given.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Key, PRNGKeyArray, Shaped

ENV_AXIS = "env"
"""Axis of the devices that share the environments of a seed."""


def num_shares() -> int:
    """Number of devices that share the environments, in the program that is traced now."""
    try:
        return jax.lax.axis_size(ENV_AXIS)
    except NameError:  # no such axis: nothing is divided
        return 1


def share_index() -> Any:
    """Index of this device among those that share the environments."""
    return jax.lax.axis_index(ENV_AXIS) if num_shares() > 1 else 0


def total(tree: Any) -> Any:
    """Sum of every array over the devices, in one message."""
    return jax.lax.psum(tree, ENV_AXIS) if num_shares() > 1 else tree


def average(tree: Any) -> Any:
    """Mean over the devices of every array: of means over equal shares, the mean of all."""
    return jax.lax.pmean(tree, ENV_AXIS) if num_shares() > 1 else tree


def gather(x: Shaped[Array, "..."]) -> Shaped[Array, "..."]:
    """The arrays of all devices, joined along their first axis in the order of environments."""
    return jax.lax.all_gather(x, ENV_AXIS, tiled=True) if num_shares() > 1 else x


def maxima(x: Shaped[Array, " *m"]) -> Shaped[Array, " *m"]:
    """The largest of every number over the devices; NaN if one is NaN.

    Gathered first: a reduction by the library of a GPU may ignore NaN.
    """
    return gather(x[None]).max(0)


def block_keys(key: PRNGKeyArray, blocks: int) -> Key[Array, " b"]:
    """One random key for each of this device's blocks; `blocks` is the number on all devices.

    Numbers drawn per block do not depend on how many devices share the blocks. A single block has
    the key itself.
    """
    if blocks == 1:
        return key[None]
    here = blocks // num_shares()
    return jax.vmap(lambda block: jax.random.fold_in(key, block))(
        share_index() * here + jnp.arange(here)
    )
