"""The six algorithms as rows of one table, and how to add one's own.

Every algorithm maximises a clipped surrogate of each agent's ratio `r_i = π_i / π_i,rollout`,
weighted by what other agents have become. Rows differ in who is updated in which *stage*, coupled
to whom, how tightly clipped, and whether the stage must pass the condition:

    W_i = exp(Σ_j C_ij log r_j)          C: the stage's coupling, with a zero diagonal
    maximise  ⟨ W_i min(r_i A_i, clip(r_i, 1 ± ε) A_i) ⟩          (surrogate `clip_own`)

FP3O's dependent objective, ((r_i Π_{-{i,j}} h - 1) h_j) A_i, is this one with C = 1 - I: the term
-h_j A_i has no gradient, whatever agent j the non-overlapping selection pairs with i (D3).
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from fp3o.errors import nearest
from fp3o.paths import load
from fp3o.types import Scalar


class Stage(NamedTuple):
    """One row a stage: who is updated, coupled to whom, how tightly clipped, under which gate."""

    agents: Int[Array, "*s k"]
    member: Float[Array, "*s k"]
    """1 for an agent of the stage, 0 for padding of a smaller block."""
    coupling: Float[Array, "*s k n"]
    clip: Float[Array, "*s k"]
    """Factor of the clip range ε."""
    gated: Bool[Array, "*s"]
    """Run only if the condition holds."""
    epochs: Int[np.ndarray, "*s"]
    """Passes over the data; known before tracing, like the number of stages."""


@dataclass(frozen=True)
class Algorithm:
    """A row of the table; `dataclasses.replace` makes a variant."""

    schedule: str = "together"
    """Stages, one of `SCHEDULES`: all at once (`together`); all at once and coupled (`jointly`);
    FP3O's two steps (`pipelines`); one block after another (`in_turn`); or one's own."""
    surrogate: str = "clip_own"
    """What the clip bounds, one of `SURROGATES`: the agent's own ratio (`clip_own`); its product
    with the others' (`clip_product`: A2PO, CoPPO); the joint ratio with gradients through every
    agent (`joint`: CoPPO's own code); or one's own."""
    view: Literal["state", "obs"] = "state"
    """What the critic sees: the global state, or the agent's observation (IPPO)."""
    live: bool = False
    """Couple to the others as they change at every minibatch, not as they were at the start."""
    inner_clip: float | None = None
    """Clip the others' product to 1 ± inner_clip·ε (the double clip); None: not at all."""

    order: Literal["random", "semi_greedy"] = "random"
    """Order of the turns: random, or by turns the largest advantage left and a random agent."""
    blocks: int | None = None
    """Number of near-equal blocks that take turns; None: every agent alone."""
    sweeps: int = 1
    """Rounds of turns in an iteration; the epochs are dealt out over the rounds."""
    clip_slope: float = 0.0
    """w of ε_k = ε (w k/n + 1 - w): agents early in the order are clipped tighter."""
    traced: bool = False
    """Re-estimate advantages and targets under the agents updated before (A2PO)."""
    critic_passes: int = 1
    """Passes of the critic over the data in an epoch."""

    split: Literal["average", "random"] = "average"
    """How FP3O splits the advantage over agents; random: Dirichlet weights at every step."""
    steps: Literal["both", "independent"] = "both"
    """FP3O's two steps, or its independent step alone."""
    gated: bool = True
    """Whether the dependent step needs the condition."""
    dependent_epochs: int | None = None
    """Epochs of the dependent step; None: as many as the independent step's (D1)."""
    uncertified: Literal["keep", "revert"] = "keep"
    """When the condition fails: keep the intermediate policies (the paper) or go back."""
    critic_always: bool = False
    """Train the critic in the dependent step even when its gate is shut (D2)."""
    shadow: bool = False
    """Take gated steps behind a shut gate too, measure what they do, and forget them: whether the
    condition foretells the constraint is then known in every iteration."""


ALGORITHMS: dict[str, Algorithm] = {
    "ippo": Algorithm(view="obs"),
    "mappo": Algorithm(),
    "coppo": Algorithm("jointly", "clip_product", live=True, inner_clip=0.5),
    "happo": Algorithm("in_turn"),
    "a2po": Algorithm(
        "in_turn", "clip_product", inner_clip=0.5, order="semi_greedy", clip_slope=0.5,
        traced=True, critic_passes=2,
    ),
    "fp3o": Algorithm("pipelines"),
}  # fmt: skip
"""The table."""

HOMES: dict[str, str] = {}
"""Where rows of one's own come from: name -> the module that registers it."""


def register(name: str, row: Algorithm, home: str) -> Algorithm:
    """Add a row of one's own to the table: from then on it has a name like the others.

    `home` is the module that does so, its `__name__`: a run keeps `my_module:careful`, and imports
    the module to go on.
    """
    if not name.isidentifier():
        raise ValueError(f"an algorithm's name is a word of letters, digits and _, got {name!r}")
    if name in ALGORITHMS and name not in HOMES:
        raise ValueError(f"{name!r} is one of fp3o's own algorithms: choose another name")
    HOMES[name], ALGORITHMS[name] = home, row
    return row


def algorithm(text: str) -> Algorithm:
    """A row by its name, with fields changed if asked: `fp3o` or `fp3o:uncertified=revert`.

    `my_module:careful` is a row that this module registers.
    """
    name, _, changes = text.partition(":")
    if name not in ALGORITHMS and changes:
        home = load(name)
        name, _, changes = changes.partition(":")
        if name not in ALGORITHMS:
            raise ValueError(f"{home.__name__} does not register an algorithm {name!r}")
    if name not in ALGORITHMS:
        raise ValueError(
            f"unknown algorithm {name!r}: {nearest(name, ALGORITHMS)}; one of your own is named "
            "with the module that registers it, my_module:my_algorithm"
        )
    return replace(ALGORITHMS[name], **dict(map(_change, filter(None, changes.split(",")))))


def _change(text: str) -> tuple[str, Any]:
    """`gated=false` as a field and its value."""
    name, _, value = text.partition("=")
    known = {item.name: item.default for item in fields(Algorithm)}
    if name not in known:
        raise ValueError(f"an algorithm has no field {name!r}: {nearest(name, known)}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def spell(row: Algorithm) -> str:
    """The shortest text from which `algorithm` makes this row, in any process."""
    ways = sorted(_spellings(row))
    if not ways:
        raise ValueError(
            f"a row with the schedule {row.schedule!r} and the surrogate {row.surrogate!r} has no "
            'name by which a run could find it again: `fp3o.register("my_name", row, __name__)`'
        )
    return ways[0][1]


def _spellings(row: Algorithm) -> Iterator[tuple[int, str]]:
    """Ways to write a row as a change of another one, and how many changes each takes."""
    own = asdict(row)
    for name, base in ALGORITHMS.items():
        changed = {key: own[key] for key, value in asdict(base).items() if own[key] != value}
        # A function of one's own is only known where the module that has it is named, too.
        parts = (
            SCHEDULES.get(changed.get("schedule", "")),
            SURROGATES.get(changed.get("surrogate", "")),
        )
        if any(part and part.__module__ != __name__ for part in parts):
            continue
        words = (v if isinstance(v, str) else json.dumps(v) for v in changed.values())
        pairs = map("=".join, zip(changed, words, strict=True))
        home = f"{HOMES[name]}:" if name in HOMES else ""
        yield len(changed), home + name + ":" * bool(changed) + ",".join(pairs)


# Schedules: who is updated when ------------------------------------------------------------------

Schedule = Callable[[Array, Array, int, Algorithm], Stage]
"""Random key, each agent's mean absolute advantage, epochs and row -> the stages, one a row."""

SCHEDULES: dict[str, Schedule] = {}


def schedule(function: Schedule) -> Schedule:
    """Let rows name this function as their schedule."""
    return _entered(SCHEDULES, function)


def _entered(table: dict[str, Any], function: Any) -> Any:
    name = function.__name__
    if name in table and table[name].__module__ != function.__module__:
        raise ValueError(f"{name!r} is taken by {table[name].__module__}: choose another name")
    table[name] = function
    return function


@schedule
def together(key: Array, score: Array, epochs: int, row: Algorithm) -> Stage:
    """One stage: everyone at once, nobody coupled (IPPO, MAPPO)."""
    return everyone(np.zeros((1, score.size, score.size)), [epochs])


@schedule
def jointly(key: Array, score: Array, epochs: int, row: Algorithm) -> Stage:
    """One stage: everyone at once, each coupled to all others (CoPPO)."""
    return everyone(1.0 - np.eye(score.size)[None], [epochs])


@schedule
def pipelines(key: Array, score: Array, epochs: int, row: Algorithm) -> Stage:
    """The independent step, then the dependent step under its gate (Algorithm 1, lines 4-9)."""
    alone, coupled = np.zeros((score.size, score.size)), 1.0 - np.eye(score.size)
    if row.steps == "independent":
        return everyone(alone[None], [epochs])
    later = epochs if row.dependent_epochs is None else row.dependent_epochs
    return everyone(np.stack([alone, coupled]), [epochs, later], gated=row.gated)


@schedule
def in_turn(key: Array, score: Array, epochs: int, row: Algorithm) -> Stage:
    """Blocks of agents one after another, each coupled to those who came before it."""
    keys = jax.random.split(key, row.sweeps)
    rounds = [_round(k, score, row, later=j > 0) for j, k in enumerate(keys)]
    stages = jax.tree.map(lambda *parts: jnp.concatenate(parts), *rounds)
    return stages._replace(epochs=np.full(len(stages.gated), -(-epochs // row.sweeps)))


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
        clip=jnp.asarray(slope, float),
        gated=jnp.zeros(len(blocks), bool),
        epochs=np.zeros(len(blocks), int),
    )


def everyone(coupling: np.ndarray, epochs: list[int], gated: bool = False) -> Stage:
    """Stages of the whole team; if gated, all but the first need the condition."""
    num_stages, num_agents, _ = coupling.shape
    ones = jnp.ones((num_stages, num_agents))
    return Stage(
        agents=jnp.tile(jnp.arange(num_agents), (num_stages, 1)),
        member=ones,
        coupling=jnp.asarray(coupling, float),
        clip=ones,
        gated=jnp.asarray(np.arange(num_stages) > 0) & gated,
        epochs=np.array(epochs),
    )


class Timetable(NamedTuple):
    """What is known of a schedule before anything is compiled."""

    whole_team: bool
    """Every stage updates all agents, in their order."""
    gated: bool
    """Some stage runs only if the condition holds."""
    uneven: bool
    """Stages have unequal numbers of epochs."""


@cache
def timetable(row: Algorithm, num_agents: int, epochs: int) -> Timetable:
    """Lay down a schedule once to see what kind it is, and whether it is well made."""
    with jax.ensure_compile_time_eval():
        key, score = jax.random.key(0), jnp.zeros(num_agents)
        stage = SCHEDULES[row.schedule](key, score, epochs, row)
        _check_stage(row.schedule, stage, num_agents)
        team = jnp.broadcast_to(jnp.arange(num_agents), (len(stage.gated), num_agents))
        whole = jnp.array_equal(stage.agents, team) and (stage.member == 1).all()
        return Timetable(bool(whole), bool(stage.gated.any()), bool(np.ptp(stage.epochs)))


def _check_stage(name: str, stage: Stage, num_agents: int) -> None:
    """Refuse stages that do not fit together, with what would."""
    if np.ndim(stage.agents) != 2 or not np.size(stage.agents):
        raise ValueError(f"the schedule {name!r}: `agents` must be (stages, agents of a stage)")
    if not isinstance(stage.epochs, np.ndarray):
        raise ValueError(f"the schedule {name!r}: `epochs` must be a NumPy array, known in advance")
    num_stages, most = stage.agents.shape
    wanted = {"coupling": (num_stages, most, num_agents), "gated": (num_stages,)}
    wanted |= {"epochs": (num_stages,), "member": (num_stages, most), "clip": (num_stages, most)}
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


# Surrogates: what a stage maximises --------------------------------------------------------------

Surrogate = Callable[[Array, Array, Array, Array, Scalar | None], Array]
"""Ratios, the others' product, advantages, clip and inner clip -> the gain of every sample."""

SURROGATES: dict[str, Surrogate] = {}


def surrogate(function: Surrogate) -> Surrogate:
    """Let rows name this function as their surrogate."""
    return _entered(SURROGATES, function)


def bounded(x: Float[Array, "*b"], width: Array | Scalar | None) -> Float[Array, "*b"]:
    """Clip to 1 ± width; None: as it is."""
    return x if width is None else jnp.clip(x, 1.0 - width, 1.0 + width)


@surrogate
def clip_own(
    ratio: Array, others: Array, advantage: Array, clip: Array, inner: Scalar | None
) -> Array:
    """W min(r A, clip(r) A), the weight W = clip(Π_j r_j) outside the clip (HAPPO, FP3O)."""
    weighted = bounded(others, inner) * advantage
    return jnp.minimum(ratio * weighted, bounded(ratio, clip) * weighted)


@surrogate
def clip_product(
    ratio: Array, others: Array, advantage: Array, clip: Array, inner: Scalar | None
) -> Array:
    """min(r W A, clip(r W) A): the product itself is clipped (A2PO, CoPPO)."""
    product = ratio * bounded(others, inner)
    return jnp.minimum(product * advantage, bounded(product, clip) * advantage)


@surrogate
def joint(
    ratio: Array, others: Array, advantage: Array, clip: Array, inner: Scalar | None
) -> Array:
    """min(r Π r_j A, clip(r clip(Π r_j)) A), differentiated through all agents (CoPPO's code)."""
    clipped = bounded(ratio * bounded(others, inner), clip)
    return jnp.minimum(ratio * others * advantage, clipped * advantage)


# FP3O's own pieces -------------------------------------------------------------------------------


def random_split(key: PRNGKeyArray, advantage: Float[Array, "n *b"]) -> Float[Array, "n *b"]:
    """A^i = n w_i A with w ~ Dirichlet(1) at every step: mean weight 1, the team's sum kept."""
    weights = jax.random.exponential(key, advantage.shape, advantage.dtype)
    return advantage.shape[0] * weights / weights.sum(0) * advantage


def condition_gap(
    own: Float[Array, "n *b"],
    others: Float[Array, "n *b"],
    advantage: Float[Array, "n *b"],
    alive: Float[Array, "n *b"],
) -> Float[Array, ""]:
    """Σ_i μ(others) - Σ_i μ(rollout): Σ_i Σ alive A^i h_i (Π_{j≠i} r_j - 1).

    `own` is log h_i and `others` is Σ_{j≠i} log r_j. Taken as one sum of small terms, because the
    difference of two large sums would be lost in rounding.
    """
    return (alive * advantage * jnp.exp(own) * jnp.expm1(others)).sum()


TOLERANCE = 1e-5
"""How far below zero the gap may be; a guard against rounding only (D5)."""


def non_overlapping(key: PRNGKeyArray, num_agents: int) -> Int[Array, " n"]:
    """f⁻¹ of the selection: the agent j whose pipeline updates agent i in the dependent step.

    Pipelines in random order, shifted by one place (Eq. 9): nobody meets itself (if n > 1).
    """
    order = jax.random.permutation(key, num_agents)
    return jnp.zeros(num_agents, int).at[jnp.roll(order, -1)].set(order)


def pipeline_objectives(
    now: Float[Array, "n *b"],
    before: Float[Array, "n *b"],
    advantage: Float[Array, "n *b"],
    alive: Float[Array, "n *b"],
    partner: Int[Array, " n"],
) -> Float[Array, " n"]:
    """⟨((r_i Π_{-{i,j}} h - 1) h_j) A^i⟩ with j = f⁻¹(i): what a pipeline reports (Eq. 11)."""
    axes = tuple(range(1, now.ndim))
    others = before.sum(0) - before
    objective = (jnp.exp(now + others) - jnp.exp(before[partner])) * advantage
    return (alive * objective).sum(axes) / jnp.maximum(alive.sum(axes), 1.0)
