"""Both implementations of the GRU's recurrence: the scan, and the kernel (interpreted)."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from fp3o.networks import gru, gru_kernel
from fp3o.networks.gru import GroupedGRU
from fp3o.networks.layers import layer_norm, linear

SIZE, STEPS = 16, 5
SINGLE, HALF = jnp.dtype("float32"), jnp.dtype("bfloat16")


def network(random: np.random.Generator, groups: tuple[int, ...], norm_groups: tuple[int, ...]):
    """A GRU, and a norm before it with random scale and shift."""
    side, inner = (linear(random, SIZE, 3 * SIZE, groups) for _ in range(2))
    layer = GroupedGRU(input=side, weight=inner.weight, bias=inner.bias, groups=groups)
    parameters = layer, layer_norm(SIZE, norm_groups)
    return jax.tree.map(lambda x: x + 0.3 * random.normal(size=x.shape), parameters)


def results(
    parameters: Any, seeds: int, sequences: int, agents: Array | None, dtype: Any = SINGLE
) -> Any:
    """Hidden states of several seeds, and gradients of everything they depend on."""
    random = np.random.default_rng(1)
    count = len(parameters[0].groups) if agents is None else len(agents)
    draw = lambda *shape: jnp.asarray(random.normal(size=(seeds, count, *shape)))  # noqa: E731
    x, first = draw(sequences * STEPS, SIZE), draw(sequences, SIZE)
    starts, wanted = draw(sequences * STEPS) > 0.8, draw(sequences * STEPS, SIZE)

    def loss(parameters: Any, x: Array, first: Array) -> tuple[Array, Array]:
        layer, norm = parameters
        states = jax.vmap(lambda x, h, s: layer(x.astype(dtype), norm, h, s, agents))(
            x, first, starts
        )
        return (states * wanted).sum(), states

    (_, states), gradients = jax.value_and_grad(loss, (0, 1, 2), has_aux=True)(parameters, x, first)
    return states, gradients


@pytest.mark.parametrize(
    ("groups", "norm_groups", "agents", "sequences"),
    [
        ((0, 0, 0), (0, 0, 0), None, 48),
        ((0, 1, 2), (0, 1, 2), None, 32),
        ((0, 0, 0), (0, 1, 2), None, 32),
        ((0, 1, 0), (0, 0, 0), None, 48),
        ((0, 1, 1), (0, 1, 1), jnp.array([2]), 32),
    ],
    ids=["full", "none", "partial", "custom", "one agent"],
)
def test_the_kernel_equals_the_scan(groups, norm_groups, agents, sequences, monkeypatch):
    parameters = network(np.random.default_rng(0), groups, norm_groups)
    scan = results(parameters, 2, sequences, agents)
    used = []
    monkeypatch.setattr(gru, "use_kernel", lambda *_: used.append(True) or True)
    kernel = results(parameters, 2, sequences, agents)
    assert used
    for one, other in zip(jax.tree.leaves(scan), jax.tree.leaves(kernel), strict=True):
        assert np.abs(one - other).max() < 1e-5 * np.abs(one).max()


@pytest.mark.filterwarnings("ignore:networks are computed without a kernel")
def test_a_kernel_that_is_wrong_or_does_not_compile_is_noticed(monkeypatch):
    works = gru.kernel_works.__wrapped__  # without its cache
    assert works(16, SINGLE) and works(16, HALF)
    correct = gru_kernel.gru_states
    monkeypatch.setattr(gru_kernel, "gru_states", lambda *x: 1.1 * correct(*x))
    assert not works(16, SINGLE) and not works(16, HALF)
    # 0, with a gradient that is not a number.
    nothing = lambda x: jnp.sqrt(0.0 * jnp.abs(x))  # noqa: E731
    with_nan = lambda i, f, s, w, b: correct(i, f, s, w + nothing(w), b)  # noqa: E731
    monkeypatch.setattr(gru_kernel, "gru_states", with_nan)
    assert not works(16, SINGLE)
    monkeypatch.setattr(gru_kernel, "gru_states", lambda *x: 1 / 0)
    with pytest.warns(RuntimeWarning, match="more slowly: division by zero"):
        assert not works(16, SINGLE)


def test_when_the_kernel_is_used(monkeypatch):
    def used(sequences: int, size: int, dtype: Any = SINGLE) -> bool:
        return gru.use_kernel(jnp.zeros((2, sequences, size)), dtype)

    assert not used(32, 64), "there is no GPU"
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(gru, "kernel_works", lambda *_: True)
    assert used(48, 64) and used(48, 64, HALF)
    assert not used(40, 64), "no whole number of blocks"
    assert not used(32, 48), "not a power of two"
    assert not used(32, 128), "too large for registers"
    assert used(32, 128, HALF)
    assert not used(32, 64, jnp.dtype("float16"))
    monkeypatch.setattr(gru, "kernel_works", lambda *_: False)
    assert not used(32, 64), "another kind of GPU"


@pytest.mark.parametrize("groups", [(0, 0, 0), (0, 1, 2)], ids=["full", "none"])
def test_in_half_precision_the_kernel_is_close_to_the_scan(groups, monkeypatch):
    """And both are close to single precision, but do round."""
    parameters = network(np.random.default_rng(0), groups, groups)
    exact = results(parameters, 2, 32, None)
    scan = results(parameters, 2, 32, None, HALF)
    monkeypatch.setattr(gru, "use_kernel", lambda *_: True)
    kernel = results(parameters, 2, 32, None, HALF)
    for a, b, c in zip(*map(jax.tree.leaves, (exact, scan, kernel)), strict=True):
        assert a.dtype == b.dtype == c.dtype == SINGLE
        size = np.linalg.norm(a)
        assert np.linalg.norm(b - c) < 0.01 * size
        assert 1e-4 * size < np.linalg.norm(a - b) < 0.02 * size
