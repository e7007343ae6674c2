"""TODO."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from fp3o.algorithms.row import Algorithm, Stage

Schedule = Callable[[Array, Array, int, Algorithm], Stage]
"""Random key, each agent's mean absolute advantage, epochs and row -> the stages, one a row."""

SCHEDULES: dict[str, Schedule] = {}


def register_schedule(function: Schedule) -> Schedule:
    """Let rows name this function as their schedule."""
    return _entered(SCHEDULES, function)


def _entered(table: dict[str, Any], function: Any) -> Any:
    name = function.__name__
    if name in table and table[name].__module__ != function.__module__:
        raise ValueError(f"{name!r} is taken by {table[name].__module__}: choose another name")
    table[name] = function
    return function


@register_schedule
def simultaneous(key: Array, score: Array, epochs: int, row: Algorithm) -> Stage:
    """One stage: everyone at once, nobody coupled (IPPO, MAPPO)."""
    return whole_team_stages(np.zeros((1, score.size, score.size)), [epochs])


@register_schedule
def coupled(key: Array, score: Array, epochs: int, row: Algorithm) -> Stage:
    """One stage: everyone at once, each coupled to all others (CoPPO)."""
    return whole_team_stages(1.0 - np.eye(score.size)[None], [epochs])


@register_schedule
def pipelines(key: Array, score: Array, epochs: int, row: Algorithm) -> Stage:
    """The independent step, then the dependent step under its gate (Algorithm 1, lines 4-9)."""
    alone, coupled = np.zeros((score.size, score.size)), 1.0 - np.eye(score.size)
    if row.steps == "independent":
        return whole_team_stages(alone[None], [epochs])
    later = epochs if row.dependent_epochs is None else row.dependent_epochs
    return whole_team_stages(np.stack([alone, coupled]), [epochs, later], gated=row.gated)


@register_schedule
def sequential(key: Array, score: Array, epochs: int, row: Algorithm) -> Stage:
    """Blocks of agents one after another, each coupled to those who came before it."""
    keys = jax.random.split(key, row.rounds)
    rounds = [_round(k, score, row, later=j > 0) for j, k in enumerate(keys)]
    stages = jax.tree.map(lambda *parts: jnp.concatenate(parts), *rounds)
    return stages._replace(epochs=np.full(len(stages.gated), -(-epochs // row.rounds)))


def _round(key: Array, score: Array, row: Algorithm, later: bool) -> Stage:
    """One round of turns; in a later round everyone else has already been updated."""
    num_agents = score.size
    order = ORDERS[row.order](key, score)
    blocks = np.array_split(np.arange(num_agents), row.blocks or num_agents)
    widest = max(map(len, blocks))
    place = np.stack([np.pad(block, (0, widest - len(block)), mode="edge") for block in blocks])
    member = np.stack([np.arange(widest) < len(block) for block in blocks])
    agents = order[place]
    rank = jnp.zeros(num_agents, int).at[order].set(np.arange(num_agents))
    came_before = rank < np.array([block[0] for block in blocks])[:, None, None]
    others = agents[..., None] != np.arange(num_agents)
    slope = row.clip_slope * ((place + 1) / num_agents - 1.0) + 1.0
    return Stage(
        agents=agents,
        member=jnp.asarray(member, float),
        coupling=jnp.asarray(others & (came_before | later), float),
        clip_factor=jnp.asarray(slope, float),
        gated=jnp.zeros(len(blocks), bool),
        epochs=np.zeros(len(blocks), int),
    )


def whole_team_stages(coupling: np.ndarray, epochs: list[int], gated: bool = False) -> Stage:
    """Stages of the whole team; if gated, all but the first need the condition."""
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
    """What is known of a schedule before anything is compiled."""

    whole_team: bool
    """Every stage updates all agents, in their order."""
    gated: bool
    """Some stage runs only if the condition holds."""
    uneven: bool
    """Stages have unequal numbers of epochs."""


@cache
def stage_facts(row: Algorithm, num_agents: int, epochs: int) -> StageFacts:
    """Lay down a schedule once to see what kind it is, and whether it is well made."""
    with jax.ensure_compile_time_eval():
        key, score = jax.random.key(0), jnp.zeros(num_agents)
        stage = SCHEDULES[row.schedule](key, score, epochs, row)
        _check_stage(row.schedule, stage, num_agents)
        team = jnp.broadcast_to(jnp.arange(num_agents), (len(stage.gated), num_agents))
        whole = jnp.array_equal(stage.agents, team) and (stage.member == 1).all()
        return StageFacts(bool(whole), bool(stage.gated.any()), bool(np.ptp(stage.epochs)))


def _check_stage(name: str, stage: Stage, num_agents: int) -> None:
    """Refuse stages that do not fit together, with what would."""
    if np.ndim(stage.agents) != 2 or not np.size(stage.agents):
        raise ValueError(f"the schedule {name!r}: `agents` must be (stages, agents of a stage)")
    if not isinstance(stage.epochs, np.ndarray):
        raise ValueError(f"the schedule {name!r}: `epochs` must be a NumPy array, known in advance")
    num_stages, most = stage.agents.shape
    wanted = {"coupling": (num_stages, most, num_agents), "gated": (num_stages,)}
    wanted |= {
        "epochs": (num_stages,),
        "member": (num_stages, most),
        "clip_factor": (num_stages, most),
    }
    for part, shape in wanted.items():
        if (given := np.shape(getattr(stage, part))) != shape:
            raise ValueError(f"the schedule {name!r}: `{part}` must be {shape}, it is {given}")
    if stage.agents.min() < 0 or stage.agents.max() >= num_agents:
        raise ValueError(f"the schedule {name!r} names agents beyond 0 to {num_agents - 1}")


def random_order(key: PRNGKeyArray, score: Float[Array, " n"]) -> Int[Array, " n"]:
    """A uniform permutation of the agents."""
    return jax.random.permutation(key, score.size)


def semi_greedy_order(key: PRNGKeyArray, score: Float[Array, " n"]) -> Int[Array, " n"]:
    """Odd positions: the largest score left. Even positions: anyone left, uniformly."""

    def pick(taken: Array, draw: tuple[Array, Array]) -> tuple[Array, Array]:
        noise, greedy = draw
        wish = jnp.where(taken, -jnp.inf, jnp.where(greedy, score, noise))
        return taken.at[wish.argmax()].set(True), wish.argmax()

    noise = jax.random.uniform(key, (score.size, score.size))
    greedy = np.arange(score.size) % 2 == 0
    return jax.lax.scan(pick, jnp.zeros(score.size, bool), (noise, greedy))[1]


ORDERS = {"random": random_order, "semi_greedy": semi_greedy_order}
