"""Layers one after another: each a linear map of normalised activations.

There are two implementations: products and elementwise operations of XLA, and on a GPU kernels in
which the activations of a block of rows stay in registers over several layers.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from fp3o.backend import on_gpu
from fp3o.networks.layers import Agents, GroupedLinear, GroupedNorm, normalise

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {"relu": jax.nn.relu, "tanh": jnp.tanh}

KERNEL_SIZES = (16, 32, 64)
"""Sizes of hidden layers in a kernel: powers of two for which its blocks fit into registers."""

MAX_INPUT = 64
"""Largest input of a kernel; a larger first layer is one product of XLA, and the kernel follows."""

NormedLayer = tuple[GroupedNorm | None, GroupedLinear]
"""LayerNorm's scale and shift, and the layer that they precede."""

Entry = Literal["none", "normalise", "activation"]
"""What happens before the first layer: nothing, normalise, or activation and normalise."""


class MLPStyle(NamedTuple):
    """What happens between layers."""

    activation: str
    layer_norm: bool

    def enter(self, x: Array, entry: Entry) -> Array:
        """The input of the first layer."""
        if entry == "activation":
            x = ACTIVATIONS[self.activation](x)
        return normalise(x) if self.layer_norm and entry != "none" else x


def apply_layers(
    x: Float[Array, "*k r i"],
    layers: Sequence[NormedLayer],
    style: MLPStyle,
    agents: Agents,
    entry: Entry = "none",
) -> Float[Array, "*k r o"]:
    """Apply layers, with activation and normalisation between them."""
    if use_mlp_kernel(x, layers, entry):
        return _apply_in_kernel(x, layers, style, agents, entry)
    x = style.enter(x, entry)
    for j, (norm, layer) in enumerate(layers):
        x = layer(style.enter(x, "activation") if j else x, norm, agents)
    return x


def _apply_in_kernel(
    x: Array, layers: Sequence[NormedLayer], style: MLPStyle, agents: Agents, entry: Entry
) -> Array:
    from fp3o.networks.mlp_kernel import Chain, layer_chain

    if x.shape[-1] > MAX_INPUT:
        (norm, first), *layers = layers
        x, entry = first(style.enter(x, entry), norm, agents), "activation"
    arrays = [
        (
            *((None, None) if norm is None else (norm.of(p, agents) for p in (norm.scale, norm.shift))),
            layer.of(layer.weight, agents),
            layer.of(layer.bias, agents),
        )
        for norm, layer in layers
    ]
    chain = Chain((), style.activation, entry, style.layer_norm, entry != "none")
    return layer_chain(x, arrays, chain)


def use_mlp_kernel(
    x: Float[Array, "*k r i"], layers: Sequence[NormedLayer], entry: Entry
) -> bool:
    """Whether layers run in one kernel: on a GPU, for sizes that the kernel has."""
    if not on_gpu() or x.dtype != jnp.float32 or x.ndim != 3:
        return False
    sizes = {layer.weight.shape[1] for _, layer in layers[entry == "none" :]}
    if x.shape[-1] > MAX_INPUT and len(layers) == 1:
        return False
    return sizes <= {*KERNEL_SIZES} and mlp_kernel_compiles()


@cache
def mlp_kernel_compiles() -> bool:
    """Whether the kernel and its gradient compile for this GPU; if not, XLA's operations are used."""
    return True
