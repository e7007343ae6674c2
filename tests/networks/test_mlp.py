"""Both implementations of layers: XLA's operations, and the kernel (interpreted)."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from fp3o.networks import mlp, mlp_kernel
from fp3o.networks.layers import layer_norm, linear, pad_features
from fp3o.networks.mlp import MLPStyle, apply_layers

SINGLE, HALF = jnp.dtype("float32"), jnp.dtype("bfloat16")
SIZES = {"small input": (18, 32, 16, 5), "large input": (70, 16, 32, 16), "one output": (64, 1)}
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


def results(layers: Any, style: MLPStyle, agents: Array | None, dtype: Any = SINGLE) -> Any:
    """Outputs of two seeds, and gradients of everything they depend on."""
    random = np.random.default_rng(1)
    count = 3 if agents is None else len(agents)
    x = jnp.asarray(random.normal(size=(2, count, 41, layers[0][1].weight.shape[1])))
    # The same sign in all rows: sums that cancel would be sums of rounding errors.
    wanted = random.normal(size=layers[-1][1].weight.shape[2])
    wanted = wanted * random.uniform(0.5, 1.5, (2, count, 41, 1))

    def loss(layers: Any, x: Array) -> tuple[Array, Array]:
        out = jax.vmap(lambda x: apply_layers(x.astype(dtype), layers, style, agents))(x)
        return (out * wanted).sum(), out

    numbers = (0, 1) if style.normalise_input else (0,)
    (_, out), gradients = jax.value_and_grad(loss, numbers, has_aux=True)(layers, x)
    return out, gradients


@pytest.mark.parametrize(
    ("sizes", "sharing", "style", "agents"),
    [
        ("small input", "full", MLPStyle("relu", norm=True), None),
        ("small input", "none", MLPStyle("tanh", norm=True), None),
        ("small input", "partial", MLPStyle("relu", norm=False), None),
        ("large input", "custom", MLPStyle("relu", norm=True, activate_output=True), None),
        ("large input", "full", MLPStyle("tanh", norm=False), None),
        ("one output", "partial", MLPStyle("relu", norm=True, normalise_input=True), None),
        ("large input", "none", MLPStyle("relu", norm=True), jnp.array([2])),
    ],
)
def test_the_kernel_equals_the_layers(sizes, sharing, style, agents, monkeypatch):
    layers = make_layers(SIZES[sizes], SHARINGS[sharing], style.norm)
    plain = results(layers, style, agents)
    used = []
    monkeypatch.setattr(mlp, "use_mlp_kernel", lambda *_: used.append(True) or True)
    monkeypatch.setattr(mlp_kernel, "PROGRAMS", 2)
    kernel = results(layers, style, agents)
    assert used
    for one, other in zip(jax.tree.leaves(plain), jax.tree.leaves(kernel), strict=True):
        assert np.abs(one - other).max() < 1e-5 * np.abs(one).max()


@pytest.mark.parametrize(
    ("sizes", "sharing", "style"),
    [
        ("small input", "partial", MLPStyle("relu", norm=True)),
        ("large input", "none", MLPStyle("tanh", norm=True)),
        ("large input", "full", MLPStyle("relu", norm=True, activate_output=True)),
    ],
)
def test_in_half_precision_the_kernel_is_close_to_the_layers(sizes, sharing, style, monkeypatch):
    """And both are close to single precision, but do round."""
    layers = make_layers(SIZES[sizes], SHARINGS[sharing], style.norm)
    exact, plain = (results(layers, style, None, dtype) for dtype in (SINGLE, HALF))
    monkeypatch.setattr(mlp, "use_mlp_kernel", lambda *_: True)
    kernel = results(layers, style, None, HALF)
    assert plain[0].dtype == kernel[0].dtype == (HALF if style.activate_output else SINGLE)
    for a, b, c in zip(*map(jax.tree.leaves, (exact, plain, kernel)), strict=True):
        assert np.linalg.norm(b - c) < 0.05 * np.linalg.norm(a)
        assert np.linalg.norm(a - b) < 0.1 * np.linalg.norm(a)
    assert np.abs(exact[0] - plain[0]).max() > 1e-3 * np.abs(exact[0]).max()


def test_large_inputs_are_padded_on_gpus(monkeypatch):
    layers = make_layers(SIZES["large input"], SHARINGS["full"], norm=True)
    x, style = jnp.asarray(np.random.default_rng(0).normal(size=(3, 5, 70))), MLPStyle("relu", True)
    plain = apply_layers(x, layers, style, None)
    assert pad_features(x).shape == x.shape
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    padded = pad_features(x)
    assert padded.shape == (3, 5, 80) and pad_features(x[..., :18]).shape == (3, 5, 18)
    monkeypatch.undo()
    np.testing.assert_allclose(apply_layers(padded, layers, style, None), plain, atol=1e-5)


@pytest.mark.filterwarnings("ignore:networks are computed without a kernel")
@pytest.mark.parametrize("style", [MLPStyle("tanh", norm=False), MLPStyle("relu", norm=True)])
def test_a_kernel_that_is_wrong_is_noticed(style, monkeypatch):
    works = mlp.mlp_kernel_works.__wrapped__  # without its cache
    assert works(style, (20, 16, 3), SINGLE)
    correct = mlp_kernel.layer_chain
    monkeypatch.setattr(mlp_kernel, "layer_chain", lambda *x: 1.1 * correct(*x))
    assert not works(style, (20, 16, 3), SINGLE) and not works(style, (20, 16, 3), HALF)
    monkeypatch.setattr(mlp_kernel, "layer_chain", lambda *x: correct(*x).at[0, -4:].set(0.0))
    assert not works(style, (20, 16, 3), SINGLE) and not works(style, (20, 16, 3), HALF)


def test_when_the_kernel_is_used(monkeypatch):
    monkeypatch.setattr(mlp, "mlp_kernel_works", lambda *_: True)
    style = MLPStyle("relu", norm=True)

    def used(*sizes: int, style: MLPStyle = style, dtype: str = "float32") -> bool:
        x = jnp.zeros((3, 10, sizes[0]), dtype)
        return mlp.use_mlp_kernel(x, make_layers(sizes, SHARINGS["full"], norm=True), style)

    assert not used(18, 64, 64, 1), "there is no GPU"
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert used(18, 64, 64, 1) and used(300, 64, 1) and used(18, 64, 1, dtype="bfloat16")
    assert not used(18, 48, 1), "not a power of two"
    assert not used(18, 64, 192), "XLA is faster"
    assert not used(300, 14), "XLA is faster"
    assert not used(18, 1, style=style._replace(normalise_input=True))
    assert not used(18, 64, 1, dtype="float16")
    monkeypatch.setenv("FP3O_KERNELS", "0")
    assert not used(18, 64, 64, 1), "switched off"
    monkeypatch.delenv("FP3O_KERNELS")
    monkeypatch.setattr(mlp, "mlp_kernel_works", lambda *_: False)
    assert not used(18, 64, 64, 1), "another kind of GPU"
