"""Ratios of any size: surrogates and their gradients stay finite, ordinary ones stay exact."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from campaigns import Campaign
from hypothesis import given
from hypothesis import strategies as st

from fp3o.algorithms.schedules import SCHEDULES
from fp3o.algorithms.surrogates import LARGEST_LOG_RATIO, SURROGATES, ratio_of
from fp3o.algorithms.table import ALGORITHMS
from fp3o.learning.stage_data import coupling_weights

AGENTS, SAMPLES = 3, 4
LOG_RATIO = st.floats(-300, 300, width=32)
ADVANTAGE = st.floats(-1e4, 1e4, width=32)
ROWS = [*ALGORITHMS.values()]


def couplings() -> dict[str, np.ndarray]:
    """The coupling matrices of every stage of every algorithm."""
    found = {}
    for row in ROWS:
        stages = SCHEDULES[row.schedule](jax.random.key(0), jnp.arange(3.0), 2, row)
        for number, (coupling, agents) in enumerate(
            zip(stages.coupling, stages.agents, strict=True)
        ):
            whole = np.zeros((AGENTS, AGENTS), np.float32)
            whole[np.asarray(agents)] = coupling
            found[f"{row.title} {number}"] = whole
    return found


@jax.jit
def gradients(log_ratio: Any, advantage: Any, coupling: Any, inner: Any) -> dict[str, Any]:
    """Sum and gradient of every surrogate, with others fixed or differentiated."""

    def objective(name: str, inner: Any, x: Any) -> Any:
        surrogate = SURROGATES[name]
        others = x if surrogate.differentiates_others else jax.lax.stop_gradient(x)
        weights = coupling_weights(coupling, others)
        return surrogate(ratio_of(x), weights, advantage, jnp.full((AGENTS, 1), 0.2), inner).mean()

    return {
        f"{name} {kind}": jax.value_and_grad(lambda x, n=name, i=i: objective(n, i, x))(log_ratio)
        for name in ("clip_own", "clip_product", "joint")
        for kind, i in (("without inner clip", None), ("with inner clip", inner))
    }


def test_surrogates_are_finite(campaign: Campaign) -> None:
    """For log-ratios of up to 300, in every coupling of every algorithm."""
    matrices = couplings()

    @given(
        st.lists(LOG_RATIO, min_size=AGENTS * SAMPLES, max_size=AGENTS * SAMPLES),
        st.lists(ADVANTAGE, min_size=AGENTS * SAMPLES, max_size=AGENTS * SAMPLES),
        st.sampled_from(sorted(matrices)),
        st.floats(0.01, 2.0),
    )
    def attack(log_ratios: Any, advantages: Any, coupling: str, inner: float) -> None:
        pair = np.array([log_ratios, advantages], np.float32).reshape(2, AGENTS, SAMPLES)
        found = gradients(*pair, matrices[coupling], inner)
        for name, numbers in jax.device_get(found).items():
            assert all(np.isfinite(x).all() for x in numbers), (name, coupling)
        campaign.count("finite")

    campaign.attack(attack, small=200, medium=3_000, whole=20_000)


def test_ordinary_ratios_are_exact() -> None:
    """Bit for bit those of exp, with its gradient, up to the bound."""
    x = jnp.concatenate([jnp.linspace(-100.0, LARGEST_LOG_RATIO, 5_001), jnp.linspace(-1, 1, 999)])
    np.testing.assert_array_equal(jax.jit(ratio_of)(x), jax.jit(jnp.exp)(x))
    each = lambda f: jax.jit(jax.vmap(jax.grad(f)))(x[x < LARGEST_LOG_RATIO])  # noqa: E731
    np.testing.assert_array_equal(each(ratio_of), each(jnp.exp))


@pytest.mark.parametrize("size", [25.0, 300.0, 1e4])
def test_a_huge_ratio_is_still_pushed_back(size: float) -> None:
    """The gradient beyond the bound is finite and positive, and the ratio grows."""
    value, slope = jax.value_and_grad(ratio_of)(jnp.float32(size))
    assert np.isfinite(value)
    assert slope == pytest.approx(np.exp(LARGEST_LOG_RATIO), rel=1e-4)
    assert value > ratio_of(jnp.float32(LARGEST_LOG_RATIO))


def test_one_sample_does_not_spoil_the_others() -> None:
    """CoPPO's joint surrogate: one agent's huge ratio leaves all gradients finite."""
    log_ratio = jnp.zeros((AGENTS, SAMPLES)).at[0, 0].set(300.0).at[1, 0].set(-300.0)
    coupling = jnp.ones((AGENTS, AGENTS)) - jnp.eye(AGENTS)
    found = gradients(log_ratio, jnp.ones_like(log_ratio), coupling, 0.1)
    assert all(np.isfinite(x).all() for pair in found.values() for x in pair)
