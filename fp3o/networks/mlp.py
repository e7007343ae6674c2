"""Layers one after another: linear maps of normalised activations.

There are two implementations: products and elementwise operations of XLA, and on a GPU kernels in
which the activations of a block of rows stay in registers over several layers.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from fp3o.networks.backend import KERNEL_TOLERANCE, kernel_agrees, use_kernels
from fp3o.networks.layers import (
    MAX_KERNEL_WIDTH,
    Agents,
    GroupedLinear,
    GroupedNorm,
    normalise,
    product_without_bias,
    rounded_like,
)

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {"relu": jax.nn.relu, "tanh": jnp.tanh}

MLP_KERNEL_SIZES = (16, 32, 64)
"""Sizes of hidden layers in a kernel: powers of two for which its blocks fit into registers."""

NormedLayer = tuple[GroupedNorm | None, GroupedLinear]
"""LayerNorm's scale and shift, and the layer after it."""


class MLPStyle(NamedTuple):
    """What happens before, between and after layers."""

    activation: str
    norm: bool
    """Whether activations are normalised."""
    normalise_input: bool = False
    activate_output: bool = False
    """Whether the last layer is followed by activation and normalisation, like the others."""

    def activate(self, x: Array) -> Array:
        """Activation and normalisation."""
        return self.normalise(ACTIVATIONS[self.activation](x))

    def normalise(self, x: Array) -> Array:
        """Normalisation, if there is one."""
        return normalise(x) if self.norm else x


def apply_layers(
    x: Float[Array, "*rows i"], layers: Sequence[NormedLayer], style: MLPStyle, agents: Agents
) -> Float[Array, "*rows2 o"]:
    """Apply layers, with activation and normalisation between them.

    Inputs of half precision make the products of all layers ones of half precision. So is the
    output if it is activated, because layers follow; otherwise it has the parameters' precision.
    """
    if use_mlp_kernel(x, layers, style):
        return _apply_in_kernel(x, layers, style, agents)
    return _apply_plain(x, layers, style, agents)


def _apply_plain(x: Array, layers: Sequence[NormedLayer], style: MLPStyle, agents: Agents) -> Array:
    dtype = x.dtype
    x = style.normalise(x) if style.normalise_input else x
    for j, (norm, layer) in enumerate(layers):
        x = layer(rounded_like(style.activate(x), dtype) if j else x, norm, agents)
    return rounded_like(style.activate(x), dtype) if style.activate_output else x


def _apply_in_kernel(
    x: Array, layers: Sequence[NormedLayer], style: MLPStyle, agents: Agents
) -> Array:
    from fp3o.networks.mlp_kernel import layer_chain
    from fp3o.networks.mlp_kernel_body import Chain, LayerArrays

    enters, entry_bias = (False, style.normalise_input), None
    if x.shape[-1] > MAX_KERNEL_WIDTH:
        (norm, first), *layers = layers
        weight, entry_bias = first.fold_norm(norm, agents)
        x = product_without_bias(x, weight, round_result=True)  # the kernel adds the bias
        enters = (True, True)
    arrays = [
        LayerArrays(
            norm and norm.of(norm.scale, agents),
            norm and norm.of(norm.shift, agents),
            layer.of(layer.weight, agents),
            layer.of(layer.bias, agents),
        )
        for norm, layer in layers
    ]
    chain = Chain(style.activation, style.norm, enters, style.activate_output)
    return layer_chain(x, arrays, entry_bias, chain)


def use_mlp_kernel(
    x: Float[Array, "*rows i"], layers: Sequence[NormedLayer], style: MLPStyle
) -> bool:
    """Whether layers run in one kernel: on a GPU, for sizes that the kernel has."""
    if not use_kernels() or x.dtype not in KERNEL_TOLERANCE or x.ndim != 3:
        return False
    first, *others = (layer.weight.shape[1] for _, layer in layers)
    width = layers[-1][1].weight.shape[2]
    if style.normalise_input:
        others.append(first)
    if style.activate_output:
        others.append(width)
    few_layers = len(layers) == 1 and first > MAX_KERNEL_WIDTH
    if not {*others} <= {*MLP_KERNEL_SIZES} or width > MAX_KERNEL_WIDTH or few_layers:
        return False
    if not style.normalise_input:
        first = _representative(first)
    inner = (layer.weight.shape[1] for _, layer in layers[1:])
    last = width if style.activate_output else _representative(width)
    return mlp_kernel_works(style, (first, *inner, last), x.dtype)


def _representative(size: int) -> int:
    """One size for all that look alike to the kernel, so that they are compared only once."""
    return next((limit - 3 for limit in MLP_KERNEL_SIZES if size <= limit), MAX_KERNEL_WIDTH + 16)


@cache
def mlp_kernel_works(style: MLPStyle, sizes: tuple[int, ...], dtype: Any) -> bool:
    """Whether kernels do on this GPU what XLA's operations do; if not, those are used.

    Layers of these sizes are compared for two agents, with parameters of the first layers shared.
    """
    owners = [(0, 0)] * (len(sizes) - 2) + [(0, 1)]
    # Enough rows for programs of the gradient with several blocks, of which the last is ragged.
    shapes: list[tuple[int, ...]] = [(2, 4500, sizes[0])]
    for owner, num_in, num_out in zip(owners, sizes, sizes[1:], strict=False):
        groups = max(owner) + 1
        shapes += [(1, num_in), (1, num_in), (groups, num_in, num_out), (groups, num_out)]

    def result(apply: Callable[..., Array], x: Array, *arrays: Array) -> Array:
        layers = [
            (
                GroupedNorm(scale=scale, shift=shift, groups=(0, 0)) if style.norm else None,
                GroupedLinear(weight=weight, bias=bias, groups=owner),
            )
            for owner, scale, shift, weight, bias in zip(
                owners, *(arrays[j::4] for j in range(4)), strict=True
            )
        ]
        has_gradient = style.normalise_input or x.shape[-1] > MAX_KERNEL_WIDTH
        x = x.astype(dtype) if has_gradient else jax.lax.stop_gradient(x.astype(dtype))
        return apply(x, layers, style, None)

    return kernel_agrees(
        partial(result, _apply_in_kernel), partial(result, _apply_plain), dtype, *shapes
    )
