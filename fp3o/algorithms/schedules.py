"""Schedules: which agents each stage updates, with which coupling and clip range."""

from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from fp3o.algorithms.registry import SCHEDULES as SCHEDULES
from fp3o.algorithms.registry import register_schedule
from fp3o.algorithms.row import Algorithm
from fp3o.errors import SettingError


class Stage(NamedTuple):
    """Stages of an iteration, one per entry of the leading axis (inside a stage: without it)."""

    agents: Int[Array, "*s k"]
    """The agents that are updated."""
    member: Float[Array, "*s k"]
    """1 for an agent of the stage, 0 for the padding of a smaller block."""
    coupling: Float[Array, "*s k n"]
    """C of the weights W_i = exp(Σ_j C_ij log r_j)."""
    clip_factor: Float[Array, "*s k"]
    """Factor of the clip range ε."""
    gated: Bool[Array, "*s"]
    """Whether the stage runs only if the condition holds."""
    epochs: Int[np.ndarray, "*s"]
    """Passes over the data; known before tracing, like the number of stages."""


@register_schedule
def simultaneous(key: Array, score: Array, epochs: int, row: Algorithm) -> Stage:
    """One stage: all agents at once, uncoupled (IPPO, MAPPO)."""
    return whole_team_stages(np.zeros((1, score.size, score.size)), [epochs])


@register_schedule
def coupled(key: Array, score: Array, epochs: int, row: Algorithm) -> Stage:
    """One stage: all agents at once, each coupled to all others (CoPPO)."""
    return whole_team_stages(1.0 - np.eye(score.size)[None], [epochs])


@register_schedule(condition_stage=0)
def pipelines(key: Array, score: Array, epochs: int, row: Algorithm) -> Stage:
    """The independent step, then the gated dependent step (Algorithm 1, lines 4-9).

    The condition is about the policies after the independent step (line 7).
    """
    uncoupled, fully_coupled = np.zeros((score.size, score.size)), 1.0 - np.eye(score.size)
    if row.steps == "independent":
        return whole_team_stages(uncoupled[None], [epochs])
    dependent = epochs if row.dependent_epochs is None else row.dependent_epochs
    coupling = np.stack([uncoupled, fully_coupled])
    return whole_team_stages(coupling, [epochs, dependent], gated=row.gated)


@register_schedule
def sequential(key: Array, score: Array, epochs: int, row: Algorithm) -> Stage:
    """Blocks of agents one after another, each coupled to the blocks before it (HAPPO, A2PO)."""
    keys = jax.random.split(key, row.rounds)
    rounds = [_round(k, score, row, later=j > 0) for j, k in enumerate(keys)]
    stages = jax.tree.map(lambda *parts: jnp.concatenate(parts), *rounds)
    return stages._replace(epochs=np.full(len(stages.gated), -(-epochs // row.rounds)))


def _round(key: Array, score: Array, row: Algorithm, later: bool) -> Stage:
    """One round of sequential updates; in later rounds all other agents have been updated."""
    num_agents = score.size
    order = ORDERS[row.order](key, score)
    blocks = np.array_split(np.arange(num_agents), row.blocks or num_agents)
    width = max(map(len, blocks))
    position = np.stack([np.pad(block, (0, width - len(block)), mode="edge") for block in blocks])
    member = np.stack([np.arange(width) < len(block) for block in blocks])
    agents = order[position]
    rank = jnp.zeros(num_agents, int).at[order].set(np.arange(num_agents))
    before = rank < np.array([block[0] for block in blocks])[:, None, None]
    others = agents[..., None] != np.arange(num_agents)
    clip_factor = row.clip_slope * ((position + 1) / num_agents - 1.0) + 1.0
    return Stage(
        agents=agents,
        member=jnp.asarray(member, float),
        coupling=jnp.asarray(others & (before | later), float),
        clip_factor=jnp.asarray(clip_factor, float),
        gated=jnp.zeros(len(blocks), bool),
        epochs=np.zeros(len(blocks), int),
    )


def whole_team_stages(coupling: np.ndarray, epochs: list[int], gated: bool = False) -> Stage:
    """Stages that update the whole team; if gated, all but the first require the condition.

    `coupling` has the shape (stages, agents, agents); `epochs` has one number per stage.
    """
    num_stages, num_agents, _ = coupling.shape
    ones = jnp.ones((num_stages, num_agents))
    return Stage(
        agents=jnp.tile(jnp.arange(num_agents), (num_stages, 1)),
        member=ones,
        coupling=jnp.asarray(coupling, float),
        clip_factor=ones,
        gated=jnp.asarray(np.arange(num_stages) > 0) & gated,
        epochs=np.array(epochs),
    )


class StageFacts(NamedTuple):
    """Static properties of a schedule, known before anything is compiled."""

    whole_team: bool
    """Whether every stage updates all agents, in their order."""
    gated: bool
    """Whether some stage runs only if the condition holds."""
    uneven: bool
    """Whether stages differ in their numbers of epochs."""
    max_epochs: int
    """Largest number of epochs of a stage."""


@cache
def stage_facts(row: Algorithm, num_agents: int, epochs: int) -> StageFacts:
    """Evaluate a schedule once, check its shapes and return its static properties."""
    with jax.ensure_compile_time_eval():
        key, score = jax.random.key(0), jnp.zeros(num_agents)
        stage = SCHEDULES[row.schedule](key, score, epochs, row)
        _check_stage(row.schedule, stage, num_agents)
        team = jnp.broadcast_to(jnp.arange(num_agents), (len(stage.gated), num_agents))
        whole_team = jnp.array_equal(stage.agents, team) and (stage.member == 1).all()
        uneven, max_epochs = bool(np.ptp(stage.epochs)), int(stage.epochs.max())
        return StageFacts(bool(whole_team), bool(stage.gated.any()), uneven, max_epochs)


def _check_stage(name: str, stage: Stage, num_agents: int) -> None:
    """Reject stages whose arrays do not fit together."""
    if np.ndim(stage.agents) != 2 or not np.size(stage.agents):
        raise SettingError(f"schedule {name!r}: `agents` must be (stages, agents of a stage)")
    if not isinstance(stage.epochs, np.ndarray):
        raise SettingError(f"schedule {name!r}: `epochs` must be a NumPy array, known in advance")
    num_stages, width = stage.agents.shape
    shapes = {
        "coupling": (num_stages, width, num_agents),
        "gated": (num_stages,),
        "epochs": (num_stages,),
        "member": (num_stages, width),
        "clip_factor": (num_stages, width),
    }
    for part, shape in shapes.items():
        if (actual := np.shape(getattr(stage, part))) != shape:
            raise SettingError(f"schedule {name!r}: `{part}` must have shape {shape}, not {actual}")
    if stage.agents.min() < 0 or stage.agents.max() >= num_agents:
        raise SettingError(f"schedule {name!r} names agents outside 0 to {num_agents - 1}")


def random_order(key: PRNGKeyArray, score: Float[Array, " n"]) -> Int[Array, " n"]:
    """A uniformly random permutation of the agents."""
    return jax.random.permutation(key, score.size)


def semi_greedy_order(key: PRNGKeyArray, score: Float[Array, " n"]) -> Int[Array, " n"]:
    """Alternate between the remaining agent with the largest score and a random one."""

    def pick(taken: Array, draw: tuple[Array, Array]) -> tuple[Array, Array]:
        noise, greedy = draw
        priority = jnp.where(taken, -jnp.inf, jnp.where(greedy, score, noise))
        return taken.at[priority.argmax()].set(True), priority.argmax()

    noise = jax.random.uniform(key, (score.size, score.size))
    greedy = np.arange(score.size) % 2 == 0
    return jax.lax.scan(pick, jnp.zeros(score.size, bool), (noise, greedy))[1]


ORDERS = {"random": random_order, "semi_greedy": semi_greedy_order}
"""Orders of sequential updates, by the value of `Algorithm.order`."""
