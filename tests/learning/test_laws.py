"""Laws that must hold whatever the numbers are."""

import dataclasses
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from fp3o.algorithms.table import ALGORITHMS, REGISTERED_IN
from fp3o.envs.api import Env
from fp3o.envs.toys.matrix import matrix_game
from fp3o.envs.toys.probe import PROBES
from fp3o.envs.vectorise import VmapEnv
from fp3o.learning.config import Config
from fp3o.learning.optim import StepSize, adam_step, init_adam
from fp3o.learning.setup import Setup
from fp3o.networks.layers import GroupedLinear, GroupedNorm, normalise
from fp3o.sharing.maps import components
from fp3o.sharing.schemes import layer_groups
from fp3o.spec import Discrete, EnvSpec
from fp3o.training.host_rollout import HostRollout
from fp3o.training.program import Program, TrainState, split_keys, update_learner
from fp3o.training.rollout import collect_rollout
from fp3o.types import TimeStep, Trajectory

OWN = "custom_algorithm:gentle"
"""The custom algorithm of the examples satisfies the laws, too."""
TINY = Config(num_envs=4, rollout=6, hidden=(8,), epochs=2, minibatches=2, sequence_length=1)
TINY = TINY.replace(actor_lr=1e-2, critic_lr=1e-2)


def credit(num_envs: int = 4) -> VmapEnv:
    return VmapEnv(PROBES["credit"], num_envs)


def rolled(
    config: Config, env: VmapEnv | None = None
) -> tuple[Program, TrainState, Trajectory, Any]:
    """A program, its initial state, a rollout of it, and the state after the rollout."""
    program = Program(env or credit(), config)
    state = program.init(0)
    keys = split_keys(program.setup, state.key)[1]
    collect = jax.jit(partial(collect_rollout, program.setup, program.env))
    rollout, trajectory = collect(state.learner.actor, state.rollout, keys)
    return program, state, trajectory, rollout


def close(a: Any, b: Any, atol: float = 1e-5) -> None:
    """Every array of two trees is equal."""
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, atol=atol, rtol=1e-4)


# One agent ----------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Alone(Env):
    """One agent of the credit probe as an environment."""

    @property
    def spec(self) -> EnvSpec:
        return EnvSpec("alone", Discrete(((2,),)), 2, 2, (0,))

    def reset(self, key: Any) -> Any:
        return PROBES["credit"].reset(key)

    def step(self, state: Any, action: Any, key: Any) -> Any:
        actions = jnp.tile(action, (3, 1))
        state, reward, terminated, truncated = PROBES["credit"].step(state, actions, key)
        return state, reward[:1], terminated, truncated

    def observe(self, state: Any) -> Any:
        obs, _, action_mask, alive = PROBES["credit"].observe(state)
        return type(PROBES["credit"].observe(state))(obs[:1], obs[:1], action_mask[:1], alive[:1])


def test_with_one_agent_all_algorithms_are_ppo() -> None:
    """With n = 1 there is no coupling, and what remains is PPO on the same minibatches."""
    learned = {}
    for name, row in ALGORITHMS.items():
        if name in REGISTERED_IN:
            continue  # the example's own surrogate is another one
        # What a row adds beside coupling is set aside: the second step, the second critic pass,
        # the tighter clip of early turns (an only agent is the last one, so there is none).
        row = dataclasses.replace(row, steps="independent", critic_passes=1)
        program, state, trajectory, rollout = rolled(
            TINY.replace(algorithm=row), VmapEnv(Alone(), 4)
        )
        run = jax.jit(partial(update_learner, program.setup))
        learned[name] = run(
            program.hyperparameters(), state.learner, trajectory, rollout._replace(env_state=None),
            jax.random.key(1),
        )[0]  # fmt: skip
    for name in learned:
        close(learned[name], learned["ippo"])


# Sharing ------------------------------------------------------------------------------------------


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
    parts = {  # every group of every matrix is a parameter vector with an optimiser of its own
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
                    parts[j, g] = parts[j, g] + step
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


def test_critic_always_moves_no_idle_agent() -> None:
    """Agents of sequential algorithms are updated in their own stage only: no momentum between."""
    learned = []
    for critic_always in (False, True):
        row = dataclasses.replace(ALGORITHMS["happo"], critic_always=critic_always)
        program = Program(credit(), TINY.replace(algorithm=row, sharing="none"))
        learned.append(program.iterate(program.init(0))[0].learner)
    close(learned[0], learned[1], atol=0.0)


def test_components_join_chains() -> None:
    """Agents are joined through any layer, directly or in a chain."""
    assert components(((0, 0, 1, 2), (0, 1, 1, 2))) == (0, 0, 0, 1)
    assert components(layer_groups("partial", (0, 0, 0), 3)) == (0, 0, 0)
    assert components(layer_groups("none", (0, 0, 0), 3)) == (0, 1, 2)
    assert layer_groups("by_type", (5, 2, 5), 2) == ((0, 1, 0), (0, 1, 0))


@pytest.mark.parametrize("algorithm", ["coppo", "fp3o", OWN])
def test_tied_agents_learn_alike_with_and_without_sharing(algorithm: str) -> None:
    """Full sharing equals none when all agents have the same weights and the same data."""
    learned = {}
    for sharing in ("full", "none"):
        config = TINY.replace(algorithm=algorithm, sharing=sharing, agent_id=False)
        program, _, trajectory, rollout = rolled(config)
        setup = program.setup
        one = Setup(program.env.spec, config.replace(sharing="full")).init(0)
        copies = setup.num_critics
        tied = jax.tree.map(lambda x, n=copies: jnp.tile(x, (n, *(1,) * (x.ndim - 1))), one)
        # Agent 0's data for all agents; the log-probabilities are those of the tied policy.
        first = lambda x: jnp.repeat(x[:, :, :1], 3, axis=2)  # noqa: E731
        same = {
            k: first(getattr(trajectory, k))
            for k in ("obs", "critic_input", "action", "action_mask")
        }
        trajectory = trajectory._replace(
            **same,
            final_critic_input=first(trajectory.final_critic_input),
            log_prob=jnp.full((6, 4, 3), -0.69),
        )
        rollout = rollout._replace(env_state=None)
        run = jax.jit(partial(update_learner, setup))
        learner, _, _ = run(program.hyperparameters(), tied, trajectory, rollout, jax.random.key(3))
        learned[sharing] = learner
    for part in ("actor", "critic"):
        shared, own = getattr(learned["full"], part)[0], getattr(learned["none"], part)[0]
        for agent in range(3):
            np.testing.assert_allclose(own[agent], shared[0], atol=2e-5)


@pytest.mark.parametrize("algorithm", ["coppo", "fp3o", OWN])
def test_permuting_agents_permutes_the_result(algorithm: str) -> None:
    """Names of agents carry no meaning: another order gives the same networks in that order."""
    order = np.array([2, 0, 1])
    config = TINY.replace(algorithm=algorithm, sharing="none", agent_id=False)
    program, state, trajectory, rollout = rolled(config)
    rollout = rollout._replace(env_state=None)
    run = jax.jit(partial(update_learner, program.setup))
    learner, _, metrics = run(
        program.hyperparameters(), state.learner, trajectory, rollout, jax.random.key(3)
    )
    parts = ("obs", "critic_input", "final_critic_input", "action_mask", "alive", "actor_hidden")
    parts = (*parts, "action", "log_prob", "reward")
    turned = {name: getattr(trajectory, name)[:, :, order] for name in parts}
    start = jax.tree.map(lambda x: x[order], state.learner)
    learner2, _, metrics2 = run(
        program.hyperparameters(), start, trajectory._replace(**turned), rollout, jax.random.key(3)
    )
    close(jax.tree.map(lambda x: x[order], learner), learner2)
    np.testing.assert_allclose(metrics["kl"][:, order], metrics2["kl"], atol=1e-6)


# Seeds and scans ----------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["fp3o", "a2po", pytest.param(OWN, marks=pytest.mark.slow)])
def test_five_seeds_in_one_program_are_five_runs(algorithm: str) -> None:
    """Seeds share a program and nothing else; hyperparameters may differ between seeds."""
    config = TINY.replace(algorithm=algorithm, sharing="partial")
    many, one = Program(credit(), config, num_seeds=5), Program(credit(), config)
    together = many.init(10)
    hparams = eqx.tree_at(lambda r: r.clip_range, many.hyperparameters(), jnp.linspace(0.1, 0.3, 5))
    for _ in range(2):
        together, metrics = many.iterate(together, hparams)
    for seed in range(5):
        alone = one.init(10 + seed)
        for _ in range(2):
            own = jax.tree.map(lambda x, i=seed: x[i], hparams)
            alone, single = one.iterate(alone, own)
        close(jax.tree.map(lambda x, i=seed: x[i], together.learner), alone.learner, atol=2e-5)
        np.testing.assert_allclose(metrics["kl"][seed], single["kl"], atol=1e-5)


def test_a_rollout_on_the_host_is_one_on_the_device() -> None:
    """Stepped from Python, the same environment gives the same trajectory."""
    program, state, trajectory, rollout = rolled(TINY)

    class OnHost(VmapEnv):
        jittable = False

        def step(self, state: Any, action: Any) -> tuple[Any, TimeStep]:
            return super().step(state, jnp.asarray(action))

    keys = split_keys(program.setup, state.key)[1]
    host, env = HostRollout(program.setup, None), OnHost(PROBES["credit"], 4)
    after, looped = host.collect(env, state.learner.actor, state.rollout, keys)
    close(jax.tree.leaves(trajectory), jax.tree.leaves(looped))
    close(rollout.timestep, after.timestep)


@pytest.mark.parametrize("sharing", ["full", "partial", "none", (0, 0, 1)])
@pytest.mark.parametrize(("gru_size", "layer_norm"), [(0, True), (5, True), (5, False)])
def test_a_folded_policy_is_the_same_policy(sharing: Any, gru_size: int, layer_norm: bool) -> None:
    """Scales and shifts taken into the layers behind them change nothing but the work."""
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
    whole, folded = (one(x, action_mask, hidden_state, start) for one in (actor, actor.folded()))
    close(jax.tree.leaves(whole), jax.tree.leaves(folded), atol=1e-5)


def test_same_seed_same_numbers() -> None:
    """Two runs from one seed are equal to the last bit."""
    program = Program(credit(), TINY)
    runs = [program.iterate(program.init(3))[0].learner for _ in range(2)]
    assert all(np.array_equal(a, b) for a, b in zip(*map(jax.tree.leaves, runs), strict=True))


# FP3O's gate --------------------------------------------------------------------------------------


def test_a_shadow_step_is_measured_and_discarded() -> None:
    """Behind a closed gate it changes nothing; behind an open one it is the step itself."""
    config = TINY.replace(
        sharing="none", output_gain=3.0, rollout=1, num_envs=8, minibatches=1, clip_range=1.0
    )
    programs = [
        Program(
            VmapEnv(matrix_game("climbing"), 8),
            config.replace(algorithm=dataclasses.replace(ALGORITHMS["fp3o"], shadow=shadow)),
        )
        for shadow in (False, True)
    ]
    gates = set()
    for seed in range(20):
        (plain, known), (shadowed, shadow) = (p.iterate(p.init(seed)) for p in programs)
        close(plain.learner, shadowed.learner, atol=0.0)
        gate = bool(shadow["gate"][1])
        assert gate == known["gate"][1] and shadow["actor_steps"] == known["actor_steps"]
        if not gate:  # the step itself would have moved the policies
            assert known["condition_matches"] and (shadow["kl"][1] != known["kl"][1]).any()
        gates.add(gate)
    assert gates == {False, True}
