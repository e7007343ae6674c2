"""Layers whose parameters are shared in groups of agents.

A layer takes samples of standardised features, `(k, r, f)`, of the agents of a stage, and applies
the parameters of each agent's group. In a recurrent network the samples are the steps of sequences,
one sequence after another, with the hidden state at the start of each sequence, `(k, c, h)`. A
feed-forward network has a hidden state of size 0.

LayerNorm precedes every product but belongs to the layer whose output it normalises. It has two
parts: `normalise` has no parameters; scale and shift are folded into the product that follows,
`(scale ∘ x + shift) W = x (scale ∘ W) + shift W`. The folded form has the same gradients and needs
neither another pass over the batch nor the gradient of the network's input.
"""

from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from fp3o.networks.backend import on_gpu
from fp3o.sharing.maps import Groups

EPSILON = 1e-5
"""Added to the variance by LayerNorm."""

FEATURE_MULTIPLE = 16
"""Large inputs are padded to a multiple of this on GPUs."""

MAX_KERNEL_WIDTH = 64
"""Largest input and output of a kernel of layers; it begins after a larger first layer."""

Agents = Int[Array, " k"] | None
"""Agents of a stage; None: the whole team in order."""


@jax.custom_vjp
def normalise(x: Float[Array, "*b f"]) -> Float[Array, "*b f"]:
    """The part of LayerNorm without parameters: (x - mean) / sqrt(var + ε) over the features."""
    return _normalise(x)[0]


def _normalise(x: Array) -> tuple[Array, tuple[Array, Array]]:
    centred = x - x.mean(-1, keepdims=True)
    inverse = jax.lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + EPSILON)
    y = centred * inverse
    return y, (y, inverse)


def _normalise_grad(saved: tuple[Array, Array], dy: Array) -> tuple[Array]:
    # dx = (dy - mean(dy) - y mean(dy y)) / std: two means, where autodiff takes four.
    y, inverse = saved
    means = dy.mean(-1, keepdims=True), (dy * y).mean(-1, keepdims=True)
    return ((dy - means[0] - y * means[1]) * inverse,)


normalise.defvjp(_normalise, _normalise_grad)


class Grouped(eqx.Module):
    """Arrays with a leading group axis, and the map from agent to group."""

    groups: eqx.AbstractVar[Groups]
    trained: ClassVar[bool] = True  # whether gradients change the arrays

    def of(self, array: Float[Array, " g *p"], agents: Agents) -> Float[Array, " _ *p"]:
        """Parameters of these agents; a leading axis of size 1 where all agents share them."""
        if array.shape[0] == 1:
            return array
        if agents is None and self.groups == tuple(range(array.shape[0])):
            return array
        group = np.asarray(self.groups)
        return array[group if agents is None else jnp.asarray(group)[agents]]


class GroupedNorm(Grouped):
    """The learned part of LayerNorm."""

    scale: Float[Array, "g i"]
    shift: Float[Array, "g i"]
    groups: Groups = eqx.field(static=True)


class GroupedLinear(Grouped):
    """A linear layer with one weight matrix and bias per group."""

    weight: Float[Array, "g i o"]
    bias: Float[Array, "g o"]
    groups: Groups = eqx.field(static=True)

    def __call__(
        self, x: Float[Array, "*rows i"], norm: GroupedNorm | None, agents: Agents
    ) -> Float[Array, "*rows2 o"]:
        """W (scale ∘ x + shift) + b, with the parameters of each agent's group."""
        return grouped_product(x, *self.fold_norm(norm, agents))

    def fold_norm(
        self, norm: GroupedNorm | None, agents: Agents
    ) -> tuple[Float[Array, "g i o"], Float[Array, "g2 o"]]:
        """Weight and bias with the scale and shift of the norm folded in."""
        weight, bias = self.of(self.weight, agents), self.of(self.bias, agents)
        if norm is None:
            return weight, bias
        scale, shift = norm.of(norm.scale, agents), norm.of(norm.shift, agents)
        bias = bias + jnp.einsum("ki,kio->ko", *_same_groups(shift, weight))
        scale, weight = _same_groups(scale, weight)
        # Two axes, because of the gradient of `scale`: 3 µs on a CPU, and 60 µs with (1, i, o).
        scaled = scale.reshape(-1, 1) * weight.reshape(-1, weight.shape[2])
        return scaled.reshape(weight.shape), bias

    def folded(self, norm: GroupedNorm | None) -> "GroupedLinear":
        """One layer for the whole team, equivalent to the norm followed by this layer."""
        weight, bias = self.fold_norm(norm, None)
        weight, bias = _same_groups(weight, bias)
        num_agents = len(self.groups)
        groups = tuple(range(num_agents)) if weight.shape[0] > 1 else (0,) * num_agents
        return GroupedLinear(weight=weight, bias=bias, groups=groups)


class GroupedVector(Grouped):
    """Input-independent parameters, one vector per group."""

    value: Float[Array, "g o"]
    groups: Groups = eqx.field(static=True)


def _same_groups(x: Array, y: Array) -> tuple[Array, Array]:
    """Broadcast both arrays to the same number of groups."""
    count = max(x.shape[0], y.shape[0])
    return (
        jnp.broadcast_to(x, (count, *x.shape[1:])),
        jnp.broadcast_to(y, (count, *y.shape[1:])),
    )


def grouped_product(
    x: Float[Array, "*rows f"], weight: Float[Array, "k i o"], bias: Float[Array, "k o"]
) -> Float[Array, "*rows2 o"]:
    """Product of each agent with its group's matrix, plus the bias.

    One product if all agents share the matrix. The samples of all agents may be one axis, `(k r)`,
    or two, `(k, r)`; with a matrix per agent, the result has two.
    """
    if weight.shape[0] > 1:
        return product_without_bias(x, weight) + bias[:, None]
    rows = product_without_bias(x.reshape(-1, x.shape[-1]), weight)
    return (rows + bias[0]).reshape(*x.shape[:-1], bias.shape[1])


def pad_features(x: Float[Array, "*b f"]) -> Float[Array, "*b f2"]:
    """Add zeros to large inputs, so that rows begin at multiples of 32 bytes, as GPUs read them."""
    padding = -x.shape[-1] % FEATURE_MULTIPLE
    if not on_gpu() or x.shape[-1] <= MAX_KERNEL_WIDTH or not padding:
        return x
    return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, padding)])


def product_without_bias(
    x: Float[Array, "*rows f"], weight: Float[Array, "k i o"], round_result: bool = False
) -> Float[Array, "*rows2 o"]:
    """Product of each agent with its group's matrix.

    If `x` has half precision, so have both factors, and with `round_result` also the result.
    Features beyond the rows of the matrix are zeros, see `pad_features`.
    """
    padding = x.shape[-1] - weight.shape[1]
    weight = jnp.pad(weight, ((0, 0), (0, padding), (0, 0))) if padding else weight
    if weight.shape[0] > 1:
        return _product(x.reshape(weight.shape[0], -1, x.shape[-1]), weight, round_result)
    return _product(x.reshape(-1, x.shape[-1]), weight[0], round_result).reshape(*x.shape[:-1], -1)


def rounded_like(y: Array, dtype: Any) -> Array:
    """The array in this precision, if that is half precision."""
    return y.astype(dtype) if jnp.finfo(dtype).bits < 32 else y


def _product(x: Array, weight: Array, round_result: bool) -> Array:
    if jnp.finfo(x.dtype).bits >= 32:
        return x @ weight
    return _rounded_product(x, weight, x.dtype if round_result else weight.dtype)


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def _rounded_product(x: Array, weight: Array, dtype: Any) -> Array:
    """Product of factors in the precision of `x`, stored as `dtype`; sums are not rounded.

    So are the products in its gradient.
    """
    return _dot(x, _rounded(weight, x.dtype), dtype)


def _round_and_save(x: Array, weight: Array, dtype: Any) -> tuple[Array, tuple[Array, Array]]:
    return _rounded_product(x, weight, dtype), (x, weight)


def _rounded_product_grad(dtype: Any, saved: tuple[Array, Array], d: Array) -> tuple[Array, Array]:
    x, weight = saved
    d, rounded = _rounded(d, x.dtype), _rounded(weight, x.dtype)
    return _dot(d, rounded.mT, x.dtype), _dot(x.mT, d, weight.dtype)


_rounded_product.defvjp(_round_and_save, _rounded_product_grad)


def _rounded(x: Array, dtype: Any) -> Array:
    """The array in this precision; on a CPU, numbers of this precision in a larger type.

    There, XLA has no products of bfloat16, and leaves out conversions to it and back.
    """
    if on_gpu():
        return x.astype(dtype)
    bits = jnp.finfo(dtype)
    return jax.lax.reduce_precision(_single(x), bits.nexp, bits.nmant)


def _dot(x: Array, y: Array, dtype: Any) -> Array:
    if on_gpu():
        return jnp.matmul(x, y, preferred_element_type=dtype)
    return (_single(x) @ _single(y)).astype(dtype)


def _single(x: Array) -> Array:
    """The array in single precision, if it has less."""
    return x.astype(jnp.promote_types(x.dtype, jnp.float32))


def linear(
    random: np.random.Generator, num_in: int, num_out: int, groups: Groups, gain: float = 1.0
) -> GroupedLinear:
    """Initialise a linear layer for agents in these groups: orthogonal weights, zero biases."""
    num_groups = max(groups) + 1
    weight = np.stack([gain * orthogonal(random, num_in, num_out) for _ in range(num_groups)])
    bias = jnp.zeros((num_groups, num_out))
    return GroupedLinear(weight=jnp.asarray(weight, float), bias=bias, groups=groups)


def orthogonal(random: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """A uniformly random matrix with orthonormal columns (or rows, if those are fewer)."""
    q, r = np.linalg.qr(random.normal(size=(max(rows, columns), min(rows, columns))))
    q = q * np.sign(np.diag(r))
    return q if rows >= columns else q.T


def layer_norm(size: int, groups: Groups) -> GroupedNorm:
    """Initialise the learned part of LayerNorm: scale 1, shift 0."""
    shape = (max(groups) + 1, size)
    return GroupedNorm(scale=jnp.ones(shape), shift=jnp.zeros(shape), groups=groups)
