"""Grouped layers, and the policy and value networks made of them, or of one's own.

A network reads rows of standardised features, `(k, r, f)`, for the agents of a stage, and gives
every agent the numbers of its group. For a recurrent network the rows are the steps of chunks, one
after another, and it is given the memory at the beginning of each chunk, `(k, c, h)`. A
feed-forward network is one whose memory is empty.

LayerNorm stands before every product but belongs to the layer whose output it normalises. It has
two halves: `normalise` has no parameters; the scale and shift are folded into the product that
follows, `(scale ∘ x + shift) W = x (scale ∘ W) + shift W`. The folded form has the same gradients
and needs neither another pass over the batch nor the gradient of the network's input.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from fp3o.distributions import Distribution, Gaussian, categorical
from fp3o.errors import nearest
from fp3o.paths import load
from fp3o.sharing import Groups, Sharing
from fp3o.spaces import Box, Discrete, EnvSpec

EPSILON = 1e-5
"""Added to the variance by LayerNorm."""

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {"relu": jax.nn.relu, "tanh": jnp.tanh}
GAINS = {"relu": math.sqrt(2.0), "tanh": 5.0 / 3.0}
"""Gain of the orthogonal initialisation that fits an activation."""

Agents = Int[Array, " k"] | None
"""The agents of a stage; None is the whole team in order."""


@jax.custom_vjp
def normalise(x: Float[Array, "*b f"]) -> Float[Array, "*b f"]:
    """The half of LayerNorm without parameters: (x - mean) / sqrt(var + ε) over the features."""
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
    """Arrays with a leading group axis, and the map that says whose is which."""

    groups: eqx.AbstractVar[Groups]

    def of(self, array: Float[Array, "g *p"], agents: Agents) -> Float[Array, "_ *p"]:
        """The rows of these agents; a single row where all agents share one."""
        if array.shape[0] == 1:
            return array
        if agents is None and self.groups == tuple(range(array.shape[0])):
            return array
        group = np.asarray(self.groups)
        return array[group if agents is None else jnp.asarray(group)[agents]]


class GroupedNorm(Grouped):
    """The learned half of LayerNorm."""

    scale: Float[Array, "g i"]
    shift: Float[Array, "g i"]
    groups: Groups = eqx.field(static=True)


class GroupedLinear(Grouped):
    """A linear layer with one weight and bias a group."""

    weight: Float[Array, "g i o"]
    bias: Float[Array, "g o"]
    groups: Groups = eqx.field(static=True)

    def __call__(
        self, x: Float[Array, "*k r i"], norm: GroupedNorm | None, agents: Agents
    ) -> Float[Array, "*k r o"]:
        """W (scale ∘ x + shift) + b, with the numbers of every agent's group."""
        return grouped_product(x, *self.behind(norm, agents))

    def behind(
        self, norm: GroupedNorm | None, agents: Agents
    ) -> tuple[Float[Array, "g i o"], Float[Array, "g2 o"]]:
        """Weight and bias with the norm's scale and shift taken in."""
        weight, bias = self.of(self.weight, agents), self.of(self.bias, agents)
        if norm is None:
            return weight, bias
        scale, shift = norm.of(norm.scale, agents), norm.of(norm.shift, agents)
        bias = bias + jnp.einsum("ki,kio->ko", *_same_rows(shift, weight))
        return scale[..., None] * weight, bias

    def folded(self, norm: GroupedNorm | None) -> "GroupedLinear":
        """The layer that does for the whole team what this one does behind the norm."""
        weight, bias = self.behind(norm, None)
        rows = max(weight.shape[0], bias.shape[0])
        weight, bias = (jnp.broadcast_to(x, (rows, *x.shape[1:])) for x in (weight, bias))
        team = len(self.groups)
        groups = tuple(range(team)) if rows > 1 else (0,) * team
        return GroupedLinear(weight=weight, bias=bias, groups=groups)


class GroupedVector(Grouped):
    """Free numbers that depend on no input, one vector a group."""

    value: Float[Array, "g o"]
    groups: Groups = eqx.field(static=True)


def _same_rows(x: Array, y: Array) -> tuple[Array, Array]:
    rows = max(x.shape[0], y.shape[0])
    return (
        jnp.broadcast_to(x, (rows, *x.shape[1:])),
        jnp.broadcast_to(y, (rows, *y.shape[1:])),
    )


def grouped_product(
    x: Float[Array, "*k r i"], weight: Float[Array, "k2 i o"], bias: Float[Array, "k2 o"]
) -> Float[Array, "*k r o"]:
    """Every agent's product with its own matrix; under full sharing agents are just more rows."""
    if weight.shape[0] > 1:
        return jnp.einsum("kri,kio->kro", x, weight) + bias[:, None]
    return (x.reshape(-1, x.shape[-1]) @ weight[0] + bias[0]).reshape(*x.shape[:-1], bias.shape[1])


class GroupedGRU(Grouped):
    """A gated recurrent layer: gates r, z, n; the reset gate acts on the hidden-side affine."""

    input: GroupedLinear
    weight: Float[Array, "g h h3"]
    bias: Float[Array, "g h3"]
    groups: Groups = eqx.field(static=True)

    def __call__(
        self,
        x: Float[Array, "*k r i"],
        norm: GroupedNorm | None,
        memory: Float[Array, "k c h"],
        start: Bool[Array, "k r"],
        agents: Agents,
    ) -> Float[Array, "k r h"]:
        """The memory after every step; it is emptied before a step that starts an episode."""
        weight, bias = self.of(self.weight, agents), self.of(self.bias, agents)

        def step(h: Array, step_input: tuple[Array, Array]) -> tuple[Array, Array]:
            x_gates, begins = step_input
            h = jnp.where(begins[..., None], 0.0, h)
            xr, xz, xn = jnp.split(x_gates, 3, axis=-1)
            hr, hz, hn = jnp.split(grouped_product(h, weight, bias), 3, axis=-1)
            update = jax.nn.sigmoid(xz + hz)
            new = jnp.tanh(xn + jax.nn.sigmoid(xr + hr) * hn)
            h = (1.0 - update) * new + update * h
            return h, h

        # The input side has no memory: one product for all steps, outside the loop.
        cut = (*memory.shape[:2], start.shape[1] // memory.shape[1])
        inputs = self.input(x, norm, agents).reshape(*cut, bias.shape[1])
        steps = jnp.moveaxis(inputs, 2, 0), jnp.moveaxis(start.reshape(cut), 2, 0)
        memories = jax.lax.scan(step, memory, steps)[1]
        return jnp.moveaxis(memories, 0, 2).reshape(*start.shape, memory.shape[2])


class Body(NamedTuple):
    """The sizes between a network's input and its output layer."""

    hidden: tuple[int, ...]
    recurrent: int
    activation: str
    layer_norm: bool = True


class Blueprint(NamedTuple):
    """What a network is asked to be."""

    role: Literal["actor", "critic"]
    spec: EnvSpec
    """The task: what its agents see, do, and how many they are."""
    num_in: int
    """Features of a row: the observation's (a critic's: the state's), then the agent's one-hot if
    the setting `agent_id` is on."""
    num_out: int
    body: Body
    sharing: Sharing
    """One map from agent to group a layer; as many as `num_layers` says."""
    gain: float
    """Gain of the output layer's initialisation."""


class Network(eqx.Module):
    """A network for a whole team; derive one's own from it.

    Every array lies in a `Grouped` layer, whose first axis is the group: so the learner knows whose
    numbers they are. The last layer is an attribute `output` (the setting `head_rate` is its own).
    """

    @classmethod
    def num_layers(cls, body: Body, role: str) -> int:
        """How many layers have a map of their own, in an actor or in a critic."""
        return len(body.hidden) + bool(body.recurrent) + 1

    @classmethod
    def make(cls, plan: Blueprint, random: np.random.Generator) -> "Network":
        """A fresh network; one of another class if that serves a role better."""
        raise NotImplementedError(f"{cls.__name__} has no `make`")

    def __call__(
        self,
        x: Float[Array, "k r f"],
        memory: Float[Array, "k c h"],
        start: Bool[Array, "k r"],
        agents: Agents = None,
    ) -> tuple[Float[Array, "k r o"], Float[Array, "k r h"]]:
        """The outputs, and the memories after every row, of the agents of a stage.

        `x` has mean 0 and variance 1 over the features of a row, unless `layer_norm` is off. Rows
        are the steps of `c` chunks, one chunk after another; `memory` is what each began with
        (`h` is the setting `recurrent`, 0 without memory) and `start` says where an episode begins.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot be called")

    def folded(self) -> "Network":
        """The same function for the whole team, made ready for many calls."""
        return self


class Layered(Network):
    """LayerNorm, then (linear, activation, LayerNorm) x depth, a GRU or none, a linear output."""

    norms: tuple[GroupedNorm | None, ...]
    """One for each layer, or none at all; None: its scale and shift are folded into the layer."""
    hidden: tuple[GroupedLinear, ...]
    recurrent: GroupedGRU | None
    output: GroupedLinear
    activation: str = eqx.field(static=True)

    @classmethod
    def make(cls, plan: Blueprint, random: np.random.Generator) -> "Layered":
        """The network of the settings `hidden`, `recurrent`, `activation` and `layer_norm`."""
        return make_network(plan.num_in, plan.num_out, plan.body, plan.sharing, plan.gain, random)

    def __call__(
        self,
        x: Float[Array, "k r f"],
        memory: Float[Array, "k c h"],
        start: Bool[Array, "k r"],
        agents: Agents = None,
    ) -> tuple[Float[Array, "k r o"], Float[Array, "k r h"]]:
        """The outputs and the memories after every step, for inputs that are `normalise`d.

        Without norms, inputs are taken and passed on as they are.
        """
        standard = normalise if self.norms else lambda x: x
        norms = self.norms or (None,) * (len(self.hidden) + 2)
        if x.shape[0] == 1:  # one agent's turn: an axis of size one costs a third of the speed
            x = x[0]
        for norm, layer in zip(norms, self.hidden, strict=False):
            x = standard(ACTIVATIONS[self.activation](layer(x, norm, agents)))
        memories = jnp.zeros((*start.shape, 0), x.dtype)
        if self.recurrent is not None:
            before = norms[len(self.hidden)]
            memories = self.recurrent(x, before, memory, start, agents)
            x = standard(memories)
        out = self.output(x, norms[-1], agents)
        return out.reshape(*start.shape, out.shape[-1]), memories

    def folded(self) -> "Layered":
        """The same function for the whole team, with less to do at every call."""
        norms = self.norms or (None,) * (len(self.hidden) + 2)
        hidden = tuple(layer.folded(norm) for layer, norm in zip(self.hidden, norms, strict=False))
        gru = self.recurrent
        if gru is not None:
            inner = gru.input.folded(norms[len(hidden)])
            gru = GroupedGRU(input=inner, weight=gru.weight, bias=gru.bias, groups=gru.groups)
        output = self.output.folded(norms[-1])
        return Layered((None,) * len(self.norms), hidden, gru, output, self.activation)


class Actor(eqx.Module):
    """A policy for the whole team: network -> action distribution."""

    network: Network
    log_std: GroupedVector | None
    actions: Discrete | Box = eqx.field(static=True)
    std: str = eqx.field(static=True)

    def __call__(
        self,
        x: Float[Array, "k r f"],
        legal: Bool[Array, "k r a"],
        memory: Float[Array, "k c h"],
        start: Bool[Array, "k r"],
        agents: Agents = None,
    ) -> tuple[Distribution, Float[Array, "k r h"]]:
        """The distribution of every agent's action at every step, and the memories after it."""
        out, memories = self.network(x, memory, start, agents)
        if isinstance(self.actions, Discrete):
            return categorical(out, legal, self.actions.widths), memories
        return Gaussian(out, self._std(agents), legal), memories

    def folded(self) -> "Actor":
        """The same policy, made ready for many decisions."""
        return Actor(self.network.folded(), self.log_std, self.actions, self.std)

    def _std(self, agents: Agents) -> Float[Array, "k 1 a"]:
        """σ = ½ sigmoid(v), at most ½ (the paper), or σ = exp(v)."""
        assert self.log_std is not None
        v = self.log_std.of(self.log_std.value, agents)[:, None]
        return 0.5 * jax.nn.sigmoid(v) if self.std == "sigmoid" else jnp.exp(v)


STD_INIT = {"sigmoid": 1.0, "exp": 0.0}
"""Initial free number of each parametrisation: σ = 0.3655 and σ = 1."""


NETWORKS: dict[str, type[Network]] = {"layered": Layered}


def network_class(name: str) -> type[Network]:
    """A network by its name, or one's own by its import path `my_module:MyNetwork`."""
    if name in NETWORKS:
        return NETWORKS[name]
    if ":" not in name:
        raise ValueError(
            f"unknown network {name!r}: {nearest(name, NETWORKS)}; one of your own is named with "
            "its module, my_module:MyNetwork"
        )
    found = load(name)
    if not (isinstance(found, type) and issubclass(found, Network)):
        raise ValueError(f"{name} is no network: derive a class from fp3o.Network")
    return found


def make_actor(
    kind: type[Network], plan: Blueprint, std: str, random: np.random.Generator
) -> Actor:
    """A fresh policy network."""
    network, log_std = kind.make(plan, random), None
    if isinstance(plan.spec.actions, Box):
        groups = plan.sharing[-1]
        value = jnp.full((max(groups) + 1, plan.num_out), STD_INIT[std])
        log_std = GroupedVector(value=value, groups=groups)
    return Actor(network, log_std, plan.spec.actions, std)


def make_network(
    num_in: int,
    num_out: int,
    body: Body,
    sharing: Sharing,
    gain: float,
    random: np.random.Generator,
) -> Layered:
    """Orthogonal weights, zero biases, unit norms; `gain` is that of the output layer.

    Drawn on the host: it happens once, and compiling a QR factorisation takes seconds.
    """
    depth, sizes = len(body.hidden), (num_in, *body.hidden)
    layer = partial(linear, random)
    hidden = tuple(
        layer(sizes[j], sizes[j + 1], sharing[j], GAINS[body.activation]) for j in range(depth)
    )
    norms = [_norm(num_in, sharing[0]), *map(_norm, body.hidden, sharing)]
    gru = None
    if body.recurrent:
        groups, gates = sharing[depth], 3 * body.recurrent
        inner = layer(body.recurrent, gates, groups)
        side = layer(sizes[-1], gates, groups)
        gru = GroupedGRU(input=side, weight=inner.weight, bias=inner.bias, groups=groups)
        norms.append(_norm(body.recurrent, groups))
    output = layer(body.recurrent or sizes[-1], num_out, sharing[-1], gain)
    chosen = tuple(norms) if body.layer_norm else ()
    return Layered(chosen, hidden, gru, output, body.activation)


def linear(
    random: np.random.Generator, num_in: int, num_out: int, groups: Groups, gain: float = 1.0
) -> GroupedLinear:
    """A fresh linear layer for agents in these groups: orthogonal weights, zero biases."""
    num_groups = max(groups) + 1
    weight = np.stack([gain * orthogonal(random, num_in, num_out) for _ in range(num_groups)])
    bias = jnp.zeros((num_groups, num_out))
    return GroupedLinear(weight=jnp.asarray(weight, float), bias=bias, groups=groups)


def orthogonal(random: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """A uniformly random matrix with orthonormal columns (or rows, if those are fewer)."""
    q, r = np.linalg.qr(random.normal(size=(max(rows, columns), min(rows, columns))))
    q = q * np.sign(np.diag(r))
    return q if rows >= columns else q.T


def _norm(size: int, groups: Groups) -> GroupedNorm:
    shape = (max(groups) + 1, size)
    return GroupedNorm(scale=jnp.ones(shape), shift=jnp.zeros(shape), groups=groups)
