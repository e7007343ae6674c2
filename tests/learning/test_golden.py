"""One policy iteration of the library against the golden reference, `tests/support/golden`."""

import dataclasses
from collections.abc import Callable
from itertools import permutations, product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from golden.data import Learner
from golden.iteration import iterate
from golden.iteration import prepare as prepare_agents
from golden.losses import actor_loss, critic_loss
from golden.network import Params
from golden.stages import stages_of
from golden_cases.cases import AGENTS, ENVS, STEPS, Case, setup_of
from golden_cases.comparison import close, draws_of, prepare

from fp3o.algorithms.schedules import ORDERS
from fp3o.algorithms.table import ALGORITHMS

SHARINGS = ("full", "partial", "none", "custom")
VARIETY: dict[str, dict[str, Any]] = {
    "full": {},
    "partial": {"time_limit": "terminate"},
    "none": {"activation": "tanh"},
    "custom": {},
}
"""Settings that every algorithm is tested with, under one of the sharings."""

ROUGH = {
    "happo-full-gru", "happo-partial-mlp", "happo-partial-gru", "a2po-partial-mlp",
    "a2po-partial-gru", "a2po-custom-mlp", "a2po-custom-gru", "fp3o-partial-mlp",
    "mappo-custom-gru", "coppo-custom-gru", "fp3o-custom-gru",
}  # fmt: skip
"""Cases with nearly equal activations, where LayerNorm amplifies rounding by 1/sqrt(ε)."""

GATES = {"fp3o-full-mlp": [True, True], "fp3o-none-mlp": [True, False]}
"""FP3O's condition in two of the cases: both answers occur."""


DEFAULT = {
    "fp3o-full-mlp", "fp3o-partial-gru", "fp3o-none-mlp", "mappo-custom-mlp", "ippo-none-mlp",
    "happo-partial-mlp", "a2po-full-mlp", "coppo-none-mlp",
}  # fmt: skip
"""Cases of the default run; the others are left to `make test-exhaustive`."""

GRID = [
    pytest.param(name, marks=[pytest.mark.slow] * (name not in DEFAULT))
    for name in map("-".join, product(ALGORITHMS, SHARINGS, ("mlp", "gru")))
]


@pytest.mark.parametrize("name", GRID)
def test_iteration(name: str) -> None:
    """Float32 to 1e-5; float64 to 1e-9 where rounding is amplified."""
    algorithm, sharing, net = name.split("-")
    x64, gate = name in ROUGH, GATES.get(name)
    with jax.enable_x64(x64):
        close(Case(algorithm, sharing, net == "gru", config=VARIETY[sharing], x64=x64, gate=gate))


def variant(algorithm: str, sharing: str, actions: str = "discrete", **changes: Any) -> Case:
    """A case in float64, from the first iteration of training on."""
    case = {k: changes.pop(k) for k in ("recurrent", "seed", "gate", "ghost") if k in changes}
    rows = {f.name for f in dataclasses.fields(ALGORITHMS[algorithm])}
    options = {k: v for k, v in changes.items() if k in rows}
    config = {k: v for k, v in changes.items() if k not in rows}
    return Case(
        algorithm, sharing, actions=actions, options=options, config=config, x64=True, fresh=True,
        **case,
    )  # fmt: skip


OPEN, SHUT = [True, True], [True, False]
VARIANTS = [
    variant("mappo", "partial", "box", head_lr_factor=3.0),
    variant("fp3o", "custom", "box", std_param="exp", gate=OPEN),
    variant("fp3o", "partial", "mixed", std_param="exp"),
    variant("mappo", "islands", mask_value_loss=True, advantage_norm="team", minibatches=1),
    variant("coppo", "custom", surrogate="joint", advantage_norm="none", value_clip=None),
    variant("happo", "full", "multi", rounds=2),
    variant("a2po", "islands", blocks=2),
    variant("happo", "none", ghost=True),
    variant("fp3o", "islands", split="random", inner_clip=0.5, seed=3, gate=OPEN),
    variant("fp3o", "partial", refresh_ratios=True, seed=3, gate=OPEN),
    variant("fp3o", "full", refresh_ratios=True, seed=5, gate=SHUT),  # after one epoch
    variant("fp3o", "custom", steps="independent", seed=3),
    variant("fp3o", "partial", on_failed_condition="revert", gate=SHUT),
    variant("fp3o", "full", critic_always=True, gate=SHUT),
    variant("fp3o", "none", dependent_epochs=1, seed=3, gate=OPEN),
    variant("fp3o", "full", gated=False, dependent_epochs=3, gate=OPEN),
]


@pytest.mark.parametrize("case", VARIANTS, ids=str)
def test_variant(case: Case) -> None:
    """Options of the algorithms and settings, each under one sharing; none is without effect."""
    with jax.enable_x64(True):
        learner = close(case)
        plain = prepare(dataclasses.replace(case, options={}, config={}, ghost=False))
        assert distance(learner, plain.expected()[0]) > 1e-4


def distance(x: Learner, y: Learner) -> float:
    """The largest difference of a parameter."""
    return max(
        float(np.abs(a[key][name] - b[key][name]).max())
        for a, b in ((x.actor, y.actor), (x.critic, y.critic))
        for key in a
        for name in a[key]
    )


# The data and the reference themselves -----------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_masks_clips_and_deaths_matter(algorithm: str) -> None:
    run = prepare(Case(algorithm, "custom"))
    draws, s, rollout = run.draws(), run.settings, run.rollout
    expected = run.expected()[0]
    everything = np.broadcast_to(run.setup.spec.actions.mask, rollout.action_mask.shape)
    for other_s, other in (
        (s, rollout._replace(alive=np.ones_like(rollout.alive))),
        (s, rollout._replace(action_mask=everything)),
        (s, rollout._replace(truncated=np.zeros_like(rollout.truncated))),
        (s, rollout._replace(terminated=np.zeros_like(rollout.terminated))),
        (dataclasses.replace(s, clip_range=1e9), rollout),
        (dataclasses.replace(s, value_clip=1e9), rollout),
        (dataclasses.replace(s, max_grad_norm=1e9), rollout),
        (dataclasses.replace(s, huber_delta=1e9), rollout),
    ):
        found = iterate(other_s, run.reference, other, draws)[0]
        assert distance(found, expected) > 1e-4


def slopes(
    loss: Callable[[Params], tuple[float, Params]],
    params: Params,
    rng: np.random.Generator,
) -> None:
    """Compare the gradient of every array with a central difference in a random direction."""
    _, grads = loss(params)
    for key in params:
        for name, array in params[key].items():
            direction = rng.normal(size=array.shape)
            ends = []
            for step in (1e-6, -1e-6):
                moved = params | {key: params[key] | {name: array + step * direction}}
                ends.append(loss(moved)[0])
            slope = (ends[0] - ends[1]) / 2e-6
            np.testing.assert_allclose((grads[key][name] * direction).sum(), slope, atol=1e-8)


FINITE = [
    Case("fp3o", "custom", True),
    Case("mappo", "islands", True, "box", config={"std_param": "exp", "activation": "tanh"}),
    Case("a2po", "partial", False, "multi", config={"activation": "tanh"}),
    Case("coppo", "custom", True, "box", options={"surrogate": "joint"}),
    Case("coppo", "none", False, "discrete", options={"surrogate": "joint"}),
]


@pytest.mark.parametrize("case", FINITE, ids=str)
def test_gradients_by_hand_equal_finite_differences(case: Case) -> None:
    run, rng = prepare(case), np.random.default_rng(0)
    s, learner = run.settings, run.reference
    agents = prepare_agents(s, learner, run.rollout)[0]
    stage = stages_of(s, [[2, 0, 1]])[-1]
    others = {i: np.exp(rng.normal(0.0, 0.1, len(agents[i].value))) for i in stage.agents}
    moved = [
        {key: {name: a + rng.normal(0.0, 0.05, a.shape) for name, a in layer.items()}
         for key, layer in params.items()}
        for params in (learner.actor, learner.critic)
    ]  # fmt: skip
    slopes(lambda p: actor_loss(s, p, agents, stage, others), moved[0], rng)
    slopes(lambda p: critic_loss(s, p, agents, stage, learner.norm), moved[1], rng)


# Random orders, shuffles and splits -------------------------------------------------------------


def test_semi_greedy_order_takes_the_largest_remaining_score_every_other_time() -> None:
    score = np.array([0.3, 2.0, 0.1, 1.5, 0.7, 1.1])
    orders = [
        ORDERS["semi_greedy"](jax.random.key(k), jnp.asarray(score)).tolist() for k in range(30)
    ]
    for order in orders:
        assert sorted(order) == list(range(6))
        for place in (0, 2, 4):
            assert score[order[place]] == score[order[place:]].max()
    assert len({order[1] for order in orders}) == 5
    assert len({tuple(order) for order in orders}) > 10


def test_orders_shuffles_and_splits_are_what_they_say() -> None:
    orders = [tuple(ORDERS["random"](jax.random.key(k), jnp.ones(3)).tolist()) for k in range(40)]
    assert set(orders) == set(permutations(range(3)))
    draws = draws_of(
        setup_of(Case("fp3o", options={"split": "random"})), jax.random.key(0), np.ones(3)
    )
    for parts in draws.minibatches[0] + draws.minibatches[1]:
        assert sorted(sequence for part in parts for sequence in part) == list(range(STEPS * ENVS))
    assert len({str(parts) for stage in draws.minibatches for parts in stage}) == 4
    assert draws.split is not None and draws.split.min() > 0
    np.testing.assert_allclose(draws.split.sum(0), AGENTS, rtol=1e-6)
    assert all(i != j for i, j in enumerate(draws.partner))
    assert sorted(draws.partner) == list(range(AGENTS))
