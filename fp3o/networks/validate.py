"""Validation of a custom network on random data before anything is compiled."""

from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from fp3o.errors import SettingError
from fp3o.networks.layers import Grouped
from fp3o.networks.network import Network, NetworkSpec

NUM_SEQUENCES, SEQUENCE_LENGTH = 3, 2
"""Size of the random data."""

FIRST_SEQUENCE = slice(0, SEQUENCE_LENGTH)


def validate_network(network: Network, spec: NetworkSpec) -> None:
    """Reject a network that mixes agents, sequences or episodes, or has arrays without a group."""
    for problem in _problems(network, spec):
        raise SettingError(f"{type(network).__name__} ({spec.role}): {problem}")


def _problems(network: Network, spec: NetworkSpec) -> Iterator[str]:
    yield from _ungrouped_arrays(network)
    team, gru_size = spec.env_spec.num_agents, spec.trunk.gru_size
    samples = NUM_SEQUENCES * SEQUENCE_LENGTH
    random = np.random.default_rng(0)
    normal = lambda *shape: jnp.asarray(random.normal(size=shape), float)  # noqa: E731
    x, crosses = normal(team, samples, spec.num_in), network.scope != "agent"
    if crosses:
        x = jnp.concatenate([x, jnp.ones((team, samples, team))], -1)
    hidden_state = normal(team, NUM_SEQUENCES if gru_size else samples, gru_size)
    episode_start = jnp.zeros((team, samples), bool)
    run = eqx.filter_jit(lambda x, state, start, agents=None: network(x, state, start, agents))
    out, after = run(x, hidden_state, episode_start)
    yield from _wrong_shapes(out, after, (team, samples, spec.num_out), (team, samples, gru_size))
    if not (jnp.isfinite(out).all() and jnp.isfinite(after).all()):
        yield "its outputs are not finite"
    last, inputs = jnp.array([team - 1]), x if crosses else x[-1:]
    if not _same(run(inputs, hidden_state[-1:], episode_start[-1:], last), (out[-1:], after[-1:])):
        yield (
            "the last agent alone gets other outputs than within the team: an agent must depend on "
            "its own input only, with the parameters of its group (use `layer.of(array, agents)`)"
        )
    other = run(x.at[:, SEQUENCE_LENGTH:].add(1.0), hidden_state, episode_start)
    if not _same_start(other, (out, after)):
        yield (
            "the outputs of the first sequence change with the inputs of another: samples must not "
            "mix"
        )
    if gru_size:
        yield from _surviving_state(run, x, hidden_state, episode_start)
    if crosses and team > 1:
        alone = x.at[..., -team:].set(jnp.eye(team)[:, None])
        outputs = [run(y, hidden_state, episode_start)[0][:1] for y in (alone, _moved(alone, team))]
        if not _same(*outputs):
            yield (
                "the output of an agent changes with the input of another that it is not linked "
                "to: the last numbers of its row are 0 for agents that it must not depend on"
            )


def _moved(x: Array, team: int) -> Array:
    """The inputs with other features of all agents but the first."""
    return x.at[1:, :, :-team].add(1.0)


def _wrong_shapes(
    out: Array, after: Array, out_shape: tuple[int, ...], state_shape: tuple[int, ...]
) -> Iterator[str]:
    if out.shape != out_shape:
        yield (
            f"the outputs must have the shape {out_shape} (agents, samples, outputs), they have "
            f"{out.shape}"
        )
    if after.shape != state_shape:
        yield (
            f"the hidden states must have the shape {state_shape} (agents, samples, size), they "
            f"have {after.shape}; a network without recurrence needs gru_size=0"
        )


def _surviving_state(
    run: Callable[..., Any], x: Array, hidden_state: Array, episode_start: Array
) -> Iterator[str]:
    starts = episode_start.at[:, 0].set(True)
    if not _same_start(run(x, hidden_state, starts), run(x, 0.0 * hidden_state, starts)):
        yield (
            "the hidden state survives the start of an episode: reset it to 0 where "
            "`episode_start` is true"
        )


def _ungrouped_arrays(network: Network) -> Iterator[str]:
    parts = jax.tree_util.tree_leaves_with_path(
        network, is_leaf=lambda part: isinstance(part, Grouped)
    )
    for path, part in parts:
        name = jax.tree_util.keystr(path)
        if not isinstance(part, Grouped):
            yield f"network{name} is not in a grouped layer, so it is unknown which agents share it"
        elif wrong := [a.shape for a in jax.tree.leaves(part) if len(a) != max(part.groups) + 1]:
            number = max(part.groups) + 1
            yield f"network{name} has {number} groups, but an array of the shape {wrong[0]}"


def _same_start(one: tuple[Array, Array], other: tuple[Array, Array]) -> bool:
    """Whether outputs and hidden states agree in the first sequence."""
    return _same([y[:, FIRST_SEQUENCE] for y in one], [y[:, FIRST_SEQUENCE] for y in other])


def _same(some: object, others: object) -> bool:
    return bool(eqx.tree_equal(tuple(some), tuple(others), rtol=1e-3, atol=1e-4))  # pyright: ignore
