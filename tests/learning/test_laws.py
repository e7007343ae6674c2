"""Invariances of an iteration: seeds, relabelled agents, tied agents, idle agents."""

import dataclasses
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tiny_programs import CUSTOM_ALGORITHM, TINY, close, credit, rolled

from fp3o.algorithms.table import ALGORITHMS, REGISTERED_IN
from fp3o.envs.api import Env
from fp3o.envs.toys.matrix import matrix_game
from fp3o.envs.toys.probe import PROBES
from fp3o.envs.vectorise import VmapEnv
from fp3o.learning.setup import Setup
from fp3o.spec import Discrete, EnvSpec
from fp3o.training.host_rollout import HostRollout
from fp3o.training.program import Program, update_learner
from fp3o.training.state import split_keys
from fp3o.types import TimeStep


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


def test_critic_always_moves_no_idle_agent() -> None:
    """Agents of sequential algorithms are updated in their own stage only: no momentum between."""
    learned = []
    for critic_always in (False, True):
        row = dataclasses.replace(ALGORITHMS["happo"], critic_always=critic_always)
        program = Program(credit(), TINY.replace(algorithm=row, sharing="none"))
        learned.append(program.iterate(program.init(0))[0].learner)
    close(learned[0], learned[1], atol=0.0)


@pytest.mark.parametrize("algorithm", ["coppo", "fp3o", CUSTOM_ALGORITHM])
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


@pytest.mark.parametrize("algorithm", ["coppo", "fp3o", CUSTOM_ALGORITHM])
def test_permuting_agents_permutes_the_result(algorithm: str) -> None:
    """Indices of agents are arbitrary: another order gives the same networks in that order."""
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


@pytest.mark.parametrize(
    "algorithm", ["mappo", "fp3o", "a2po", pytest.param(CUSTOM_ALGORITHM, marks=pytest.mark.slow)]
)
def test_five_seeds_in_one_program_are_five_runs(algorithm: str) -> None:
    """Seeds share a program and nothing else; hyperparameters may differ between seeds."""
    config = TINY.replace(algorithm=algorithm, sharing="partial")
    many, one = Program(credit(), config, num_seeds=5), Program(credit(), config)
    together = many.init(10)
    hparams = eqx.tree_at(lambda r: r.clip_range, many.hyperparameters(), jnp.linspace(0.1, 0.3, 5))
    together, _ = many.iterate(together, hparams)
    together, metrics = many.iterate(together, hparams)
    for seed in range(5):
        alone = one.init(10 + seed)
        own = jax.tree.map(lambda x, i=seed: x[i], hparams)
        alone, _ = one.iterate(alone, own)
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


def test_same_seed_same_numbers() -> None:
    """Two runs from one seed are equal to the last bit."""
    program = Program(credit(), TINY)
    runs = [program.iterate(program.init(3))[0].learner for _ in range(2)]
    assert all(np.array_equal(a, b) for a, b in zip(*map(jax.tree.leaves, runs), strict=True))


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
