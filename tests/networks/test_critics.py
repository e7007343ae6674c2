"""Critics that look across agents: golden values, invariances, gradients, refusals."""

import dataclasses
import math
from typing import Any

import broken_networks
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fp3o.envs.adjacency import adjacency_matrix
from fp3o.envs.check_rules import spec_problems
from fp3o.errors import EnvError, SettingError
from fp3o.learning.config import Config
from fp3o.learning.setup import Setup
from fp3o.spec import Discrete, EnvSpec

AGENTS, SAMPLES, FEATURES = 4, 5, 3
RING = ((1,), (2,), (3,), (0,))
SPEC = EnvSpec("any", Discrete(((2,),) * AGENTS), FEATURES, 7, (0, 0, 1, 1), adjacency=RING)
NOTHING = jnp.zeros((AGENTS, SAMPLES, 0)), jnp.zeros((AGENTS, SAMPLES), bool)


def make(critic: str, sharing: Any = "full", **settings: Any) -> tuple[Any, Any]:
    """A critic with random parameters, and inputs in which everybody is linked to everybody."""
    config = Config(critic=critic, critic_sharing=sharing, hidden=(6, 8), **settings)
    setup, random = Setup(SPEC, config.replace(agent_id=False)), np.random.default_rng(0)
    params = [x + 0.3 * random.normal(size=x.shape) for x in setup.init(0).critic]
    x = random.normal(size=(AGENTS, SAMPLES, FEATURES))
    x = np.concatenate([x, np.ones((AGENTS, SAMPLES, AGENTS))], -1)
    return setup.critic(tuple(map(jnp.asarray, params))).network, x  # pyright: ignore


@eqx.filter_jit
def outputs(critic: Any, x: Any, agents: Any = None) -> Any:
    hidden_state, episode_start = (y if agents is None else y[: len(agents)] for y in NOTHING)
    return critic(x, hidden_state, episode_start, agents)[0]


@eqx.filter_jit
def gradients(critic: Any, x: Any, agents: tuple[int, ...]) -> Any:
    return eqx.filter_grad(lambda critic: critic(x, *NOTHING)[0][np.array(agents)].sum())(critic)


def values(critic: Any, x: Any) -> np.ndarray:
    return np.asarray(outputs(critic, jnp.asarray(x))[..., 0])


def layer(part: Any, x: np.ndarray, agent: int) -> np.ndarray:
    """A layer of the critic of one agent."""
    group = part.linear.groups[agent]
    if part.norm is not None:
        g = part.norm.groups[agent]
        x = x * np.asarray(part.norm.scale[g]) + np.asarray(part.norm.shift[g])
    return x @ np.asarray(part.linear.weight[group]) + np.asarray(part.linear.bias[group])


def norm(critic: Any, x: np.ndarray) -> np.ndarray:
    if not critic.style.norm:
        return x
    return (x - x.mean()) / math.sqrt(x.var() + 1e-5)


def activate(critic: Any, x: np.ndarray) -> np.ndarray:
    return np.tanh(x) if critic.style.activation == "tanh" else np.maximum(x, 0.0)


def encode(critic: Any, row: np.ndarray, agent: int) -> np.ndarray:
    for part in critic.encoder:
        row = norm(critic, activate(critic, layer(part, row, agent)))
    return row


def attention_value(critic: Any, rows: np.ndarray, links: np.ndarray, i: int) -> float:
    """The value of agent i, head by head and agent by agent."""
    encoded = [encode(critic, row, i) for row in rows]
    parts = np.stack([layer(critic.attention, x, i) for x in encoded]).reshape(AGENTS, 3, 4, 2)
    attended = np.zeros((4, 2))
    for head in range(4):
        others = [j for j in range(AGENTS) if links[i, j]]
        scores = np.array([parts[i, 0, head] @ parts[j, 1, head] / math.sqrt(2) for j in others])
        weights = np.exp(scores) / np.exp(scores).sum()
        for weight, j in zip(weights, others, strict=True):
            attended[head] += weight * parts[j, 2, head]
    x = encoded[i] + layer(critic.projection, attended.reshape(-1), i)
    x = x + layer(critic.contraction, activate(critic, layer(critic.hidden, norm(critic, x), i)), i)
    return layer(critic.output, norm(critic, x), i).item()


def graph_value(critic: Any, rows: np.ndarray, links: np.ndarray, i: int) -> float:
    """The value of agent i after all rounds."""
    encoded = [encode(critic, row, i) for row in rows]
    for part in critic.rounds:
        means = [np.mean([encoded[j] for j in np.flatnonzero(links[k])], 0) for k in range(AGENTS)]
        both = [np.concatenate([x, mean]) for x, mean in zip(encoded, means, strict=True)]
        changes = [activate(critic, layer(part, norm(critic, x), i)) for x in both]
        encoded = [x + change for x, change in zip(encoded, changes, strict=True)]
    return layer(critic.output, norm(critic, encoded[i]), i).item()


@pytest.mark.parametrize(
    ("sharing", "settings"),
    [
        ("full", {}),
        ("none", {"activation": "tanh"}),
        ("by_type", {"layer_norm": False}),
        (((0, 0, 0, 0), (0, 0, 1, 1), (0, 0, 0, 0), (0, 1, 2, 3), (0, 1, 0, 1)), {}),
    ],
)
@pytest.mark.parametrize("critic", ["attention", "graph"])
def test_values_equal_those_of_loops(critic: str, sharing: Any, settings: Any) -> None:
    """Every sharing, with links between some agents only."""
    network, x = make(critic, sharing, **settings)
    links = np.random.default_rng(1).random((AGENTS, SAMPLES, AGENTS)) < 0.5
    links |= np.eye(AGENTS, dtype=bool)[:, None]
    x[..., FEATURES:] = links
    reference = attention_value if critic == "attention" else graph_value
    expected = [
        [reference(network, x[:, s, :FEATURES], links[:, s], i) for s in range(SAMPLES)]
        for i in range(AGENTS)
    ]
    np.testing.assert_allclose(values(network, x), expected, atol=1e-5)


@pytest.mark.parametrize("critic", ["attention", "graph"])
def test_permuting_agents_permutes_values(critic: str) -> None:
    """With one critic and no agent index, nothing depends on the order of the agents."""
    network, x = make(critic)
    x[..., FEATURES:] = np.random.default_rng(1).random((AGENTS, SAMPLES, AGENTS)) < 0.7
    order = [2, 0, 3, 1]
    turned = x[order]
    turned[..., FEATURES:] = turned[..., FEATURES:][..., order]
    np.testing.assert_allclose(values(network, turned), values(network, x)[order], atol=1e-5)


@pytest.mark.parametrize("sharing", ["full", "none"])
@pytest.mark.parametrize("critic", ["attention", "graph"])
def test_dead_agents_have_no_influence(critic: str, sharing: str) -> None:
    """Their observation is irrelevant to others; a team of dead agents has finite values."""
    network, x = make(critic, sharing)
    x[..., FEATURES + 1] = 0.0  # agent 1 is dead
    x[1, :, FEATURES + 1] = critic == "graph"  # on a graph it is linked to itself
    other = x.copy()
    other[1, :, :FEATURES] += 3.0
    living = [0, 2, 3]
    one, two = values(network, x), values(network, other)
    np.testing.assert_array_equal(one[living], two[living])
    assert (one[1] != two[1]).all()
    other = x.copy()
    other[2, :, :FEATURES] += 3.0
    assert (values(network, other)[[0, 1, 3]] != one[[0, 1, 3]]).all()  # the living have
    x[..., FEATURES:] = 0.0
    dead = values(network, x)
    grads = gradients(network, jnp.asarray(x), (0, 1, 2, 3))
    assert np.isfinite(dead).all()
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(grads))


@pytest.mark.parametrize("sharing", ["full", "none", (0, 0, 0, 1)])
@pytest.mark.parametrize("critic", ["attention", "graph"])
def test_agents_of_a_stage_have_the_values_of_the_team(critic: str, sharing: Any) -> None:
    """A stage asks for some agents, from the inputs of all."""
    network, x = make(critic, sharing)
    agents = jnp.array([3, 1])
    some = outputs(network, jnp.asarray(x), agents)
    np.testing.assert_allclose(some[..., 0], values(network, x)[[3, 1]], atol=1e-6)


@pytest.mark.parametrize("critic", ["attention", "graph"])
def test_no_gradient_crosses_separate_critics(critic: str) -> None:
    """The value of agent 2 depends on the parameters of its critic, and on all of them."""
    network, x = make(critic, "none")
    for leaf in jax.tree.leaves(gradients(network, jnp.asarray(x), (2,))):
        size = np.abs(np.asarray(leaf)).reshape(AGENTS, -1).max(1)
        np.testing.assert_array_equal(size > 0, [False, False, True, False])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"critic": "atention"}, "unknown critic 'atention': did you mean 'attention'"),
        ({"network": "attention"}, "looks across agents, which an actor must not"),
        ({"critic": "attention", "precision": "bfloat16"}, "the network attention gets float32"),
        ({"critic": "broken_networks:Gossip"}, "input of another that it is not linked"),
        ({"critic": "broken_networks:Indifferent"}, "alone gets other outputs than within"),
        ({"network": "broken_networks:Gossip"}, "looks across agents"),
        ({"critic": "attention", "critic_sharing": ((0,) * 4,) * 2}, "the network has 5"),
    ],
)
def test_what_cannot_work_is_refused(settings: Any, message: str) -> None:
    """Before anything is compiled."""
    with pytest.raises(SettingError, match=message):
        Setup(SPEC, Config(**settings))


def test_a_custom_critic_is_accepted() -> None:
    """A class with another scope than the agent, by import path."""
    setup = Setup(SPEC, Config(critic="broken_networks:Sound", gru_size=4, sequence_length=4))
    assert isinstance(setup.critic(setup.init(0).critic).network, broken_networks.Sound)
    assert setup.crosses_agents and setup.trunks["critic"].gru_size == 0


def test_a_graph_has_to_exist() -> None:
    """The message says where to give one, and what needs none."""
    spec = EnvSpec("no/graph", Discrete(((2,),)), 3, 3, (0,))
    with pytest.raises(SettingError, match=r"no/graph has none: give one in EnvSpec\.adjacency"):
        Setup(spec, Config(critic="graph"))
    assert Setup(spec, Config(critic="attention")).crosses_agents
    listed = dataclasses.replace(spec)
    object.__setattr__(listed, "adjacency", [[0]])  # as without the checks of types in tests
    with pytest.raises(EnvError, match="adjacency is a list: give a tuple"):
        adjacency_matrix(listed, np.zeros((1, 3)), None)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"agents": ("a",)}, "agents is for 1 agents, agent_types for 4"),
        ({"agents": ("a", "b", "c", "a")}, "the same name twice"),
        ({"obs_sizes": (1, 2, 99, 1)}, "obs_sizes has 99"),
        ({"action_names": (("left",),)}, "action_names is for 1 agents"),
    ],
)
def test_names_and_sizes_fit_the_agents(wrong: Any, message: str) -> None:
    """Before training, whose policies could not be loaded; and in the check of environments."""
    spec = dataclasses.replace(SPEC, **wrong)
    with pytest.raises(EnvError, match=message):
        Setup(spec, Config())
    assert any(message in problem.what for problem in spec_problems(spec))
