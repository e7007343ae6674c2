"""Convolutions whose parameters are shared in groups of agents.

A convolution is a linear layer of all patches of an image, so that groups, precision and folding
are those of `layers`. On a CPU this is also the fastest form: with one kernel per agent, XLA's own
convolution and its gradient take ten times as long.
"""

from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array, Float

from fp3o.networks.conv_layers import ConvStack
from fp3o.networks.layers import Agents, GroupedLinear, rounded_like
from fp3o.networks.mlp import ACTIVATIONS


def image_patches(x: Float[Array, "b h w c"], kernel: int, stride: int) -> Float[Array, "b y x p"]:
    """All patches that a kernel is applied to; a patch is ordered by row, column, channel."""
    height, width = ((side - kernel) // stride * stride + 1 for side in x.shape[1:3])
    corners = [(row, column) for row in range(kernel) for column in range(kernel)]
    pixels = [x[:, i : i + height : stride, j : j + width : stride] for i, j in corners]
    return jnp.concatenate(pixels, axis=-1)


def apply_convolutions(
    x: Float[Array, "*rows i"],
    layers: Sequence[GroupedLinear],
    stack: ConvStack,
    activation: str,
    agents: Agents,
) -> Float[Array, "*rows f"]:
    """Replace the image at the start of every sample by its features.

    Samples of all agents may be one axis, `(k r)`, or two, `(k, r)`.
    """
    dtype, others = x.dtype, x[..., stack.image_size :]
    image = x[..., : stack.image_size].reshape(-1, *stack.image)
    for layer, (_, kernel, stride), shape in zip(layers, stack.layers, stack.outputs, strict=True):
        patches = image_patches(image, kernel, stride)
        out = layer(patches.reshape(-1, patches.shape[-1]), None, agents)
        image = rounded_like(ACTIVATIONS[activation](out), dtype).reshape(-1, *shape)
    return jnp.concatenate([image.reshape(*x.shape[:-1], -1), others], axis=-1)
