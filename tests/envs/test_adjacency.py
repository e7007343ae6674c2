"""Graphs of agents: those of the built-in tasks, and invalid ones."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from host_probe import HostProbe

from fp3o.envs.adjacency import ObservedAgents, adjacency_matrix, complete_graph
from fp3o.envs.check import check_env
from fp3o.envs.mamujoco.task import body_task
from fp3o.envs.registry import get_task
from fp3o.envs.smac.env import smac_env
from fp3o.envs.toys.probe import PROBES
from fp3o.errors import EnvError
from fp3o.spec import Discrete, EnvSpec

SPEC = EnvSpec("any", Discrete(((2,),) * 3), 4, 4, (0, 0, 0))
CREDIT: Any = PROBES["credit"]
ROWS = np.zeros((2, 3, 4), np.float32)


@pytest.mark.parametrize(
    ("task", "neighbours"),
    [
        ("HalfCheetah-2x3", ((1,), (0,))),
        ("HalfCheetah-6x1", ((1,), (0, 2), (1, 5), (4,), (3, 5), (2, 4))),
        ("Ant-4x2", ((1, 2, 3), (0, 2, 3), (0, 1, 3), (0, 1, 2))),
        ("ManySegmentSwimmer-3x2", ((1,), (0, 2), (1,))),
        ("Walker2d-1x6", ((),)),
    ],
)
def test_robots_have_the_graph_of_their_joints(task: str, neighbours: Any) -> None:
    """Agents are neighbours if joints of theirs are."""
    spec = body_task(task, "paper").spec
    assert spec.adjacency == neighbours
    assert all(i in neighbours[j] for i, row in enumerate(neighbours) for j in row)


@pytest.mark.parametrize("layout", ["smac", "paper"])
def test_battles_have_the_graph_of_who_sees_whom(layout: str) -> None:
    """As distances say, without the dead."""
    env = smac_env("5m_vs_6m", layout)
    state = env.reset(jax.random.key(0))
    units = state.units
    x = np.asarray(units.x).copy()
    x[:5] = [10.0, 14.0, 18.0, 22.0, 26.0]
    y = np.full_like(x, 16.0)
    hp = np.asarray(units.hp).copy()
    hp[1] = 0.0
    units = units._replace(x=jnp.asarray(x), y=jnp.asarray(y), hp=jnp.asarray(hp))
    shown = env.observe(state._replace(units=units))
    found = adjacency_matrix(env.spec, shown.obs, shown.state)
    away = np.abs(x[:5] - x[:5, None])
    expected = (away < 9) & (hp[:5] > 0) & (hp[:5, None] > 0) & ~np.eye(5, dtype=bool)
    assert expected.any() and not expected[0, 3]
    np.testing.assert_array_equal(found, expected)


def test_particles_have_the_graph_of_who_observes_whom() -> None:
    """All others, except that nobody hears the listener."""
    assert get_task("mpe/simple_spread").spec().adjacency == complete_graph(3)
    assert get_task("mpe/simple_speaker_listener").spec().adjacency == ((), (0,))


def test_blocks_of_observations() -> None:
    """One block per other agent, in their order; the first entry says whether it is observed."""
    obs = np.zeros((3, 5))
    obs[0, 3] = obs[1, 1] = obs[2, 3] = 1.0  # 0 sees 2, 1 sees 0, 2 sees 1
    found = ObservedAgents(start=1, width=2)(obs, None)
    np.testing.assert_array_equal(found, np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0]], bool))
    assert not ObservedAgents(0, 2)(np.ones((7, 1, 4)), None).any()


INVALID = {
    "too few": (((1,), (0,)), "has neighbours of 2 agents, the task has 3"),
    "unknown agent": (((1,), (3,), ()), "has agent 3 as a neighbour of agent 1"),
    "shape": (lambda obs, state: obs[..., 0] > 0, r"returns an array of \(2, 3\), it must be"),
    "none": (None, "has no graph of agents"),
}


@pytest.mark.parametrize("case", INVALID)
def test_invalid_graphs_are_refused(case: str) -> None:
    """The message says what is wrong with them."""
    adjacency, message = INVALID[case]
    spec = dataclasses.replace(SPEC, adjacency=adjacency)
    with pytest.raises(EnvError, match=f"any.*{message}"):
        adjacency_matrix(spec, jnp.asarray(ROWS), jnp.asarray(ROWS))


@pytest.mark.parametrize("adjacency", [((5,), (), ()), ((1,), (2,), (0,))])
def test_the_check_of_environments_finds_an_invalid_graph(adjacency: Any) -> None:
    """As an error of the task."""

    class WithGraph(HostProbe):
        @property
        def spec(self) -> EnvSpec:
            return dataclasses.replace(super().spec, adjacency=adjacency)

    problems = check_env(WithGraph(CREDIT, 4), steps=20).problems
    found = [problem for problem in problems if "adjacency" in problem.what]
    assert len(found) == (adjacency[0] == (5,)) and all(x.level == "error" for x in found)
