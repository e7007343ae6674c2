"""Grouped layers and optimisers equal separate ones, agent by agent."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from tiny_programs import TINY, close, credit

from fp3o.envs.toys.probe import PROBES
from fp3o.learning.optim import StepSize, adam_step, init_adam
from fp3o.learning.setup import Setup
from fp3o.networks.layers import GroupedLinear, GroupedNorm, normalise
from fp3o.sharing.maps import components
from fp3o.sharing.schemes import layer_groups


@pytest.mark.parametrize("agents", [None, (2, 0)])
@pytest.mark.parametrize("groups", [(0, 0, 0), (0, 1, 2), (0, 1, 0)])
def test_grouped_layer_is_a_loop_over_agents(groups: tuple[int, ...], agents: Any) -> None:
    """LayerNorm, then each agent's own matrix: folding changes no number."""
    random, num = np.random.default_rng(0), max(groups) + 1
    draw = lambda *shape: jnp.asarray(random.normal(size=shape), jnp.float32)  # noqa: E731
    layer = GroupedLinear(weight=draw(num, 5, 4), bias=draw(num, 4), groups=groups)
    norm = GroupedNorm(scale=draw(3, 5), shift=draw(3, 5), groups=(0, 1, 2))
    members = range(3) if agents is None else agents
    x = draw(len(members), 7, 5)
    out = layer(normalise(x), norm, None if agents is None else jnp.asarray(agents))
    for row, agent in enumerate(members):
        mean, var = x[row].mean(1, keepdims=True), x[row].var(1, keepdims=True)
        y = (x[row] - mean) / jnp.sqrt(var + 1e-5) * norm.scale[agent] + norm.shift[agent]
        wanted = y @ layer.weight[groups[agent]] + layer.bias[groups[agent]]
        np.testing.assert_allclose(out[row], wanted, atol=1e-5)


def test_normalise_has_the_gradient_of_layer_norm() -> None:
    """The hand-written gradient equals that of the plain formula."""

    def plain(x: Any) -> Any:
        return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)

    x, w = jax.random.normal(jax.random.key(0), (2, 5, 6))
    grads = [jax.grad(lambda x, f=f: (f(x) * w).sum())(x) for f in (normalise, plain)]
    np.testing.assert_allclose(*grads, atol=1e-5)


@pytest.mark.parametrize("sharing", ["full", "partial", "none", ((0, 0, 1), (0, 1, 1))])
def test_grouped_optimiser_is_separate_optax_chains(sharing: Any) -> None:
    """Each component clips its own norm, each group keeps its own Adam and its own step count."""
    setup = Setup(credit().spec, TINY.replace(sharing=sharing, hidden=(4,)))
    layout, rows = setup.actor_layout, setup.init(0).actor
    state, agents = init_adam(rows), range(3)
    parts = {  # every group of every matrix is a parameter vector with a separate optimiser
        (j, g): rows[j][g] for j, groups in enumerate(layout.maps) for g in range(max(groups) + 1)
    }
    chains = {k: optax.adam(1e-2, eps=1e-5) for k in parts}
    states = {k: chains[k].init(v) for k, v in parts.items()}
    for turn in (None, 0, 2, 0, 1):
        grads = jax.tree.map(lambda x: jax.random.normal(jax.random.key(x.size), x.shape) * 3, rows)
        moving = [a for a in agents if turn is None or a == turn]
        moves = None if turn is None else jnp.arange(3) == turn
        rows, state, _ = adam_step(layout, rows, state, grads, moves, StepSize(1e-2, 1.0))
        for component in set(layout.component):
            team = [a for a in agents if layout.component[a] == component]
            keys = {(j, layout.maps[j][a]) for j in range(len(layout.maps)) for a in team}
            total = jnp.sqrt(sum(jnp.square(grads[j][g]).sum() for j, g in keys))
            for j, g in keys:
                if any(layout.maps[j][a] == g for a in moving):
                    clipped = grads[j][g] * jnp.minimum(1.0, 1.0 / (total + 1e-6))
                    step, states[j, g] = chains[j, g].update(clipped, states[j, g])
                    parts[j, g] = jnp.asarray(optax.apply_updates(parts[j, g], step))
        for (j, g), wanted in parts.items():
            np.testing.assert_allclose(rows[j][g], wanted, atol=1e-6)


def test_idle_groups_never_move() -> None:
    """A turn of agent 1 leaves the numbers, moments and counts of the others untouched."""
    setup = Setup(credit().spec, TINY.replace(sharing="none"))
    learner = setup.init(0)
    grads = jax.tree.map(jnp.ones_like, learner.actor)
    rows, state, _ = adam_step(
        setup.actor_layout,
        learner.actor,
        learner.actor_adam,
        grads,
        jnp.arange(3) == 1,
        StepSize(0.1, 10.0),
    )
    before = jax.tree.leaves((learner.actor, learner.actor_adam))
    for a, b in zip(jax.tree.leaves((rows, state)), before, strict=True):
        assert np.array_equal(np.delete(a, 1, 0), np.delete(b, 1, 0))
        assert not np.array_equal(a[1], b[1])


def test_components_join_chains() -> None:
    """Agents are joined through any layer, directly or in a chain."""
    assert components(((0, 0, 1, 2), (0, 1, 1, 2))) == (0, 0, 0, 1)
    assert components(layer_groups("partial", (0, 0, 0), 3)) == (0, 0, 0)
    assert components(layer_groups("none", (0, 0, 0), 3)) == (0, 1, 2)
    assert layer_groups("by_type", (5, 2, 5), 2) == ((0, 1, 0), (0, 1, 0))


@pytest.mark.parametrize("sharing", ["full", "partial", "none", (0, 0, 1)])
@pytest.mark.parametrize(("gru_size", "layer_norm"), [(0, True), (5, True), (5, False)])
def test_a_folded_policy_is_the_same_policy(sharing: Any, gru_size: int, layer_norm: bool) -> None:
    """Folding scales and shifts into the following layers does not change the outputs."""
    config = TINY.replace(
        sharing=sharing, gru_size=gru_size, layer_norm=layer_norm, sequence_length=1
    )
    setup = Setup(PROBES["unequal"].spec, config)
    shaken = [x + 0.3 * np.random.default_rng(1).normal(size=x.shape) for x in setup.init(0).actor]
    actor = setup.actor(tuple(jnp.asarray(x, jnp.float32) for x in shaken))
    random = np.random.default_rng(0)
    x = jnp.asarray(random.normal(size=(3, 4, setup.spec.obs_size + 3)), jnp.float32)
    action_mask = jnp.ones((3, 4, setup.spec.actions.mask.shape[1]), bool)
    hidden_state, start = jnp.ones((3, 4, gru_size)), jnp.zeros((3, 4), bool)
    run = eqx.filter_jit(lambda actor: actor(x, action_mask, hidden_state, start))
    whole, folded = run(actor), run(actor.folded())
    close(jax.tree.leaves(whole), jax.tree.leaves(folded), atol=1e-5)
