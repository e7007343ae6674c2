"""GRU whose parameters are shared in groups of agents.

There are two implementations of its recurrence: a scan, and on a GPU a kernel in which the hidden
states of a block of sequences stay in registers over all steps.
"""

from functools import cache, partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from fp3o.networks.backend import kernel_agrees, scan_unroll, use_kernels
from fp3o.networks.layers import (
    Agents,
    Grouped,
    GroupedLinear,
    GroupedNorm,
    grouped_product,
    product_without_bias,
    rounded_like,
)
from fp3o.sharing.maps import Groups

BLOCK = 16
"""Sequences that the kernel computes at a time, the least that tensor cores multiply. It can be
used if the number of sequences is a multiple of this."""

KERNEL_SIZES = {jnp.dtype("float32"): (16, 32, 64), jnp.dtype("bfloat16"): (16, 32, 64, 128)}
"""Hidden sizes of the kernel: powers of two for which the weights fit into registers."""


class GroupedGRU(Grouped):
    """GRU with gates r, z, n; the reset gate acts on the affine map of the hidden state."""

    input: GroupedLinear
    weight: Float[Array, "g h h3"]
    bias: Float[Array, "g h3"]
    groups: Groups = eqx.field(static=True)

    def __call__(
        self,
        x: Float[Array, "*rows i"],
        norm: GroupedNorm | None,
        hidden_state: Float[Array, "k c h"],
        episode_start: Bool[Array, "k r"],
        agents: Agents,
    ) -> Float[Array, "k r h"]:
        """Hidden state after every step; it is reset to 0 before a step that starts an episode.

        The input's side of the gates and the factors of all products have the precision of `x`,
        hidden states that of the parameters.
        """
        weight, bias = self.of(self.weight, agents), self.of(self.bias, agents)
        shape = (*hidden_state.shape[:2], episode_start.shape[1] // hidden_state.shape[1])
        starts = episode_start.reshape(shape)
        # The input side does not depend on the hidden state: one product for all steps.
        input_weight, input_bias = self.input.fold_norm(norm, agents)
        inputs = product_without_bias(x, input_weight, round_result=True).reshape(*shape, -1)
        recurrence = scan_states
        if use_kernel(hidden_state, x.dtype):
            from fp3o.networks.gru_kernel import gru_states as recurrence
        states = recurrence(inputs, hidden_state, starts, weight, (input_bias, bias))
        return states.reshape(*episode_start.shape, hidden_state.shape[2])


def scan_states(
    inputs: Float[Array, "k c t h3"],
    first: Float[Array, "k c h"],
    starts: Bool[Array, "k c t"],
    weight: Float[Array, "g h h3"],
    biases: tuple[Float[Array, "g2 h3"], Float[Array, "g h3"]],
) -> Float[Array, "k c t h"]:
    """Hidden states after every step of sequences that begin with the hidden state `first`.

    `inputs` is the input side of the gates without its bias; `biases` are those of the input side
    and of the hidden side.
    """
    input_bias, bias = biases
    dtype, inputs = inputs.dtype, inputs + input_bias[:, None, None]

    def step(h: Array, step_input: tuple[Array, Array]) -> tuple[Array, Array]:
        x_gates, starts = step_input
        h = jnp.where(starts[..., None], 0.0, h)
        xr, xz, xn = jnp.split(x_gates, 3, axis=-1)
        hr, hz, hn = jnp.split(grouped_product(rounded_like(h, dtype), weight, bias), 3, axis=-1)
        update = jax.nn.sigmoid(xz + hz)
        new = jnp.tanh(xn + jax.nn.sigmoid(xr + hr) * hn)
        h = (1.0 - update) * new + update * h
        return h, h

    steps = jnp.moveaxis(inputs, 2, 0), jnp.moveaxis(starts, 2, 0)
    return jnp.moveaxis(jax.lax.scan(step, first, steps, unroll=scan_unroll(10))[1], 0, 2)


def use_kernel(first: Float[Array, "k c h"], dtype: Any) -> bool:
    """Whether the recurrence runs in one kernel: on a GPU, for sizes that the kernel has."""
    sequences, size = first.shape[1:]
    if not use_kernels() or first.dtype != jnp.float32 or sequences % BLOCK:
        return False
    return size in KERNEL_SIZES.get(dtype, ()) and kernel_works(size, dtype)


@cache
def kernel_works(size: int, dtype: Any) -> bool:
    """Whether the kernel does on this GPU what the scan does; if not, the scan is used."""
    from fp3o.networks.gru_kernel import gru_states

    starts = np.arange(2 * BLOCK * 3).reshape(1, 2 * BLOCK, 3) % 5 == 0

    def states(recurrence: Any, inputs: Array, *arrays: Array) -> Array:
        first, weight, input_bias, bias = arrays
        inputs = inputs.astype(dtype)
        return recurrence(inputs, first, jnp.asarray(starts), weight, (input_bias, bias))

    bias = (1, 3 * size)
    shapes = (1, 2 * BLOCK, 3, 3 * size), (1, 2 * BLOCK, size), (1, size, 3 * size), bias, bias
    return kernel_agrees(partial(states, gru_states), partial(states, scan_states), dtype, *shapes)
