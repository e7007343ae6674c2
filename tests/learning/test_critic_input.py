"""Inputs of critics that look across agents: features, links, ends of episodes, stages."""

import dataclasses
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mortal_env import AGENTS, LENGTH, MortalEnv

from fp3o.algorithms.schedules import Stage
from fp3o.envs.vectorise import VmapEnv
from fp3o.learning.config import Config
from fp3o.learning.critic_input import critic_input
from fp3o.learning.setup import Setup
from fp3o.learning.stage_data import stage_batch
from fp3o.training.rollout import Decision, make_trajectory
from fp3o.types import Batch, TimeStep

ENVS = 2
SETUPS = {
    name: Setup(MortalEnv.spec, Config(critic=name, num_envs=ENVS, algorithm="happo"))
    for name in ("attention", "graph", "mlp_gru")
}


def episode() -> list[Any]:
    """The time steps of an episode and of the first step of the next one."""
    env, steps = VmapEnv(MortalEnv(), ENVS), []
    state, now = env.reset(jax.random.key(0))
    step = jax.jit(env.step)
    for _ in range(LENGTH + 1):
        steps.append(now)
        state, now = step(state, jnp.ones((ENVS, AGENTS, 1), int))
    return steps


STEPS = episode()


def expected(critic: str, obs: Any, alive: Any) -> np.ndarray:
    """Observations and links, in loops."""
    rows = np.zeros((ENVS, AGENTS, AGENTS))
    for e, i, j in np.ndindex(rows.shape):
        near = abs(obs[e, i, 1] - obs[e, j, 1]) < 1.0
        rows[e, i, j] = alive[e, j] if critic == "attention" else i == j or (alive[e, j] and near)
    return np.concatenate([obs, rows], -1)


@pytest.mark.parametrize("critic", ["attention", "graph"])
def test_links_are_the_living_agents(critic: str) -> None:
    """All of them, or the living neighbours and the agent itself."""
    for now in STEPS:
        found = critic_input(SETUPS[critic], now.obs, now.state, now.alive)
        np.testing.assert_allclose(found, expected(critic, now.obs, now.alive))


@pytest.mark.parametrize("critic", ["attention", "graph"])
def test_links_after_a_step_are_those_before_the_reset(critic: str) -> None:
    """At a time limit, those who took the last step count as alive, not the next episode's team."""
    setup = SETUPS[critic]
    decision = Decision(np.ones((ENVS, AGENTS, 1), int), np.zeros((ENVS, AGENTS)), ())  # pyright: ignore
    for now, after in pairwise(STEPS):
        alive = np.where(after.truncated[:, None], now.alive, after.alive)
        for change in (lambda x: x, np.asarray):  # a compiled rollout, one on the host
            one, two = (TimeStep._make(map(change, step)) for step in (now, after))
            found = make_trajectory(setup, one, two, (), decision).final_critic_input
            np.testing.assert_allclose(found, expected(critic, after.final_obs, alive))
    before, last = STEPS[-2:]
    assert last.truncated.all() and last.alive.all() and not before.alive.all()


@pytest.mark.parametrize("critic", ["attention", "graph"])
def test_links_are_not_standardised(critic: str) -> None:
    """Features get the agent's index and are standardised; links stay 0 and 1."""
    setup, now = SETUPS[critic], STEPS[1]
    raw = critic_input(setup, now.obs, now.state, now.alive)
    inputs = setup.inputs(raw, "critic")
    np.testing.assert_array_equal(inputs[..., :-AGENTS], setup.inputs(now.obs))
    np.testing.assert_array_equal(inputs[..., -AGENTS:], raw[..., -AGENTS:])
    assert setup.network_spec("critic").num_in == inputs.shape[-1] - AGENTS


def test_other_critics_get_what_they_got() -> None:
    """The state, or the observation, as the algorithm says."""
    setup, now = SETUPS["mlp_gru"], STEPS[1]
    assert critic_input(setup, now.obs, now.state, now.alive) is now.state
    local = Setup(MortalEnv.spec, dataclasses.replace(setup.config, algorithm="ippo"))
    assert critic_input(local, now.obs, now.state, now.alive) is now.obs


@pytest.mark.parametrize("critic", SETUPS)
def test_a_stage_keeps_the_inputs_of_the_whole_team(critic: str) -> None:
    """Of all that a critic across agents needs; everything else is that of the stage's agents."""
    setup, rows = SETUPS[critic], jnp.arange(AGENTS)[:, None]
    team = Batch(**dict.fromkeys(Batch._fields, rows))
    same: Any = dict.fromkeys(Stage._fields, jnp.array([2]))
    batch = stage_batch(setup, team, Stage(**same))
    assert batch.critic_input.shape[0] == (1 if critic == "mlp_gru" else AGENTS)
    assert all((x == 2).all() for name, x in batch._asdict().items() if name != "critic_input")
