"""Both implementations of layers: XLA's operations, and the kernel (interpreted)."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from fp3o.networks import mlp
from fp3o.networks.layers import layer_norm, linear
from fp3o.networks.mlp import MLPStyle, apply_layers

SIZES = {"small input": (18, 32, 16, 5), "large input": (70, 16, 16, 192), "one output": (64, 1),
         "hidden input": (32, 16, 5)}
SHARINGS = {
    "full": ((0, 0, 0),) * 4,
    "none": ((0, 1, 2),) * 4,
    "partial": ((0, 0, 0), (0, 0, 0), (0, 0, 0), (0, 1, 2)),
    "custom": ((0, 0, 1), (0, 1, 0), (0, 0, 1), (0, 1, 1)),
}


def make_layers(sizes: tuple[int, ...], sharing: Any, norm: bool) -> Any:
    """Random layers, each with the norm before it."""
    random = np.random.default_rng(0)
    groups = sharing[-(len(sizes) - 1) :]
    before = (groups[0], *groups[:-1])
    layers = [
        (layer_norm(i, b) if norm else None, linear(random, i, o, g))
        for i, o, g, b in zip(sizes, sizes[1:], groups, before, strict=False)
    ]
    return jax.tree.map(lambda x: x + 0.3 * random.normal(size=x.shape), layers)


def results(layers: Any, style: MLPStyle, entry: Any, agents: Array | None) -> Any:
    """Outputs of two seeds, and gradients of everything they depend on."""
    random = np.random.default_rng(1)
    count = 3 if agents is None else len(agents)
    x = jnp.asarray(random.normal(size=(2, count, 41, layers[0][1].weight.shape[1])))
    wanted = random.normal(size=(2, count, 41, layers[-1][1].weight.shape[2]))

    def loss(layers: Any, x: Array) -> tuple[Array, Array]:
        out = jax.vmap(lambda x: apply_layers(x, layers, style, agents, entry))(x)
        return (out * wanted).sum(), out

    numbers = (0,) if entry == "none" else (0, 1)
    (_, out), gradients = jax.value_and_grad(loss, numbers, has_aux=True)(layers, x)
    return out, gradients


@pytest.mark.parametrize(
    ("sizes", "sharing", "style", "entry", "agents"),
    [
        ("small input", "full", MLPStyle("relu", True), "none", None),
        ("small input", "none", MLPStyle("tanh", True), "none", None),
        ("small input", "partial", MLPStyle("relu", False), "none", None),
        ("large input", "custom", MLPStyle("relu", True), "none", None),
        ("large input", "full", MLPStyle("tanh", False), "none", None),
        ("one output", "partial", MLPStyle("relu", True), "normalise", None),
        ("hidden input", "none", MLPStyle("relu", True), "activation", jnp.array([2])),
    ],
)
def test_the_kernel_equals_the_layers(sizes, sharing, style, entry, agents, monkeypatch):
    layers = make_layers(SIZES[sizes], SHARINGS[sharing], style.layer_norm)
    plain = results(layers, style, entry, agents)
    used = []
    monkeypatch.setattr(mlp, "use_mlp_kernel", lambda *_: used.append(True) or True)
    monkeypatch.setattr("fp3o.networks.mlp_kernel.PROGRAMS", 2)
    kernel = results(layers, style, entry, agents)
    assert used
    for one, other in zip(jax.tree.leaves(plain), jax.tree.leaves(kernel), strict=True):
        assert np.abs(one - other).max() < 1e-5 * np.abs(one).max()
