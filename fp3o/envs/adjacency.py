"""Graphs of agents from `EnvSpec.adjacency`: fixed, or computed from what the agents observe."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from fp3o.errors import EnvError
from fp3o.spec import EnvSpec


@dataclass(frozen=True)
class ObservedAgents:
    """Adjacency by sight: an agent's neighbours are the agents that it observes.

    An observation has one block of entries for every other agent, in their order. The first entry
    of a block is not 0 if that agent is observed.
    """

    start: int
    """Index of the first block."""
    width: int
    """Length of a block."""

    def __call__(self, obs: Any, state: Any) -> Any:
        """Which agents each agent observes, `(..., n, n)`."""
        agents = np.arange(obs.shape[-2])
        blocks = obs[..., self.start :: self.width][..., : max(agents.size - 1, 1)]
        # Agent i has no block for itself: those of later agents come one place earlier.
        block = agents - (agents > agents[:, None])
        block[-1, -1] = 0  # any block: the diagonal has no meaning
        return (blocks[..., agents[:, None], block] != 0) & ~np.eye(agents.size, dtype=bool)


def complete_graph(num_agents: int) -> tuple[tuple[int, ...], ...]:
    """All other agents as the neighbours of every agent."""
    return tuple(tuple(j for j in range(num_agents) if j != i) for i in range(num_agents))


def adjacency_matrix(spec: EnvSpec, obs: Any, state: Any) -> Bool[Array, "*b n n"]:
    """Which agents (last axis) are neighbours of each agent; raises if the task's are invalid."""
    n, adjacency = spec.num_agents, spec.adjacency
    shape = (*obs.shape[:-1], n)
    if adjacency is None:
        raise EnvError(f"{spec.name} has no graph of agents: give one in EnvSpec.adjacency")
    if isinstance(adjacency, tuple):
        return jnp.broadcast_to(_fixed(spec.name, adjacency, n), shape)
    if not callable(adjacency):
        raise EnvError(
            f"{spec.name}: EnvSpec.adjacency is a {type(adjacency).__name__}: give a tuple with "
            "the neighbours of every agent, or a function"
        )
    result = jnp.asarray(adjacency(jnp.asarray(obs), jnp.asarray(state)))
    if result.shape != shape:
        raise EnvError(
            f"{spec.name}: EnvSpec.adjacency returns an array of {result.shape}, it must be "
            f"{shape}: one row per agent with one entry per agent"
        )
    return result != 0


def _fixed(name: str, neighbours: tuple[tuple[int, ...], ...], num_agents: int) -> np.ndarray:
    if len(neighbours) != num_agents:
        raise EnvError(
            f"{name}: EnvSpec.adjacency has neighbours of {len(neighbours)} agents, the task has "
            f"{num_agents}"
        )
    matrix = np.zeros((num_agents, num_agents), bool)
    for agent, others in enumerate(neighbours):
        if wrong := [j for j in others if j not in range(num_agents)]:
            raise EnvError(
                f"{name}: EnvSpec.adjacency has agent {wrong[0]} as a neighbour of agent {agent}; "
                f"the agents are 0 to {num_agents - 1}"
            )
        matrix[agent, [*others]] = True
    return matrix
