"""Does a network of one's own keep the rules? It is tried on before anything is compiled."""

from collections.abc import Iterator

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from fp3o.networks.layers import Grouped
from fp3o.networks.network import Network, NetworkSpec

CHUNKS, LENGTH = 3, 2
"""Chunks of the trial, and rows of each."""


def validate_network(network: Network, plan: NetworkSpec) -> None:
    """Refuse a network that mixes agents, chunks or episodes, or has numbers that are nobody's."""
    for complaint in _complaints(network, plan):
        raise ValueError(f"{type(network).__name__} ({plan.role}): {complaint}")


def _complaints(network: Network, plan: NetworkSpec) -> Iterator[str]:
    yield from _orphans(network)
    team, hidden, rows = plan.spec.num_agents, plan.trunk.gru_size, CHUNKS * LENGTH
    random = np.random.default_rng(0)
    draw = lambda *shape: jnp.asarray(random.normal(size=shape), float)  # noqa: E731
    x, hidden_state = draw(team, rows, plan.num_in), draw(team, CHUNKS if hidden else rows, hidden)
    episode_start = jnp.zeros((team, rows), bool)
    run = eqx.filter_jit(
        lambda x, hidden_state, episode_start, agents=None: network(
            x, hidden_state, episode_start, agents
        )
    )
    out, after = run(x, hidden_state, episode_start)
    for name, array, size in (("outputs", out, plan.num_out), ("memories", after, hidden)):
        if array.shape != (team, rows, size):
            yield (
                f"for inputs {x.shape} the {name} must have the shape {(team, rows, size)} "
                f"(agents, rows, numbers), they have {array.shape}"
                + "; a network without memory needs recurrent=0"
                * (name == "memories")
            )
    if not (jnp.isfinite(out).all() and jnp.isfinite(after).all()):
        yield "its outputs are not finite"
    last = jnp.array([team - 1])
    if not _same(run(x[-1:], hidden_state[-1:], episode_start[-1:], last), (out[-1:], after[-1:])):
        yield (
            "the last agent alone gets other numbers than in the team: an agent must act on what "
            "it sees itself, with the numbers of its own group (use `layer.of(array, agents)`)"
        )
    first = slice(0, LENGTH)
    other = run(x.at[:, LENGTH:].add(1.0), hidden_state, episode_start)
    if not _same([y[:, first] for y in other], (out[:, first], after[:, first])):
        yield "the first chunk's outputs change with another chunk's inputs: rows must not mix"
    if hidden:
        begins = episode_start.at[:, 0].set(True)
        fresh, emptied = run(x, hidden_state, begins), run(x, 0.0 * hidden_state, begins)
        if not _same([y[:, first] for y in fresh], [y[:, first] for y in emptied]):
            yield "memory survives the start of an episode: empty it where `start` is true"


def _orphans(network: Network) -> Iterator[str]:
    """Arrays that lie in no group."""
    parts = jax.tree_util.tree_leaves_with_path(
        network, is_leaf=lambda part: isinstance(part, Grouped)
    )
    for path, part in parts:
        name = jax.tree_util.keystr(path)
        if not isinstance(part, Grouped):
            yield f"network{name} lies in no grouped layer: nobody could say whose numbers it is"
        elif wrong := [a.shape for a in jax.tree.leaves(part) if len(a) != max(part.groups) + 1]:
            number = max(part.groups) + 1
            yield f"network{name} has {number} groups, but an array of the shape {wrong[0]}"


def _same(some: object, others: object) -> bool:
    return bool(eqx.tree_equal(tuple(some), tuple(others), rtol=1e-3, atol=1e-4))  # pyright: ignore
