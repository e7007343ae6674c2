"""The six algorithms as rows of one table.

Every algorithm maximises a clipped surrogate of each agent's ratio `r_i = π_i / π_i,rollout`,
weighted by what other agents have become. Rows differ in who is updated in which *stage*, coupled
to whom, how tightly clipped, and whether the stage must pass the condition:

    W_i = exp(Σ_j C_ij log r_j)          C: the stage's coupling, with a zero diagonal
    maximise  ⟨ W_i min(r_i A_i, clip(r_i, 1 ± ε) A_i) ⟩          (surrogate `clip_own`)

FP3O's dependent objective, ((r_i Π_{-{i,j}} h - 1) h_j) A_i, is this one with C = 1 - I: the term
-h_j A_i has no gradient, whatever agent j the non-overlapping selection pairs with i (D3).
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from fp3o.errors import nearest
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

    schedule: Literal["together", "jointly", "pipelines", "in_turn"] = "together"
    """Stages: all at once; all at once and coupled; FP3O's two steps; one block after another."""
    surrogate: Literal["clip_own", "clip_product", "joint"] = "clip_own"
    """What the clip bounds: the agent's own ratio; its product with the others' (A2PO, CoPPO); the
    joint ratio with gradients through every agent (CoPPO's own code)."""
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


def algorithm(text: str) -> Algorithm:
    """A row by its name, with fields changed if asked: `fp3o` or `fp3o:uncertified=revert`."""
    name, _, changes = text.partition(":")
    if name not in ALGORITHMS:
        raise ValueError(f"unknown algorithm {name!r}: {nearest(name, ALGORITHMS)}")
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
    """The shortest text from which `algorithm` makes this row."""
    own = asdict(row)
    ways = []
    for name, base in ALGORITHMS.items():
        changed = {key: own[key] for key, value in asdict(base).items() if own[key] != value}
        words = (v if isinstance(v, str) else json.dumps(v) for v in changed.values())
        pairs = map("=".join, zip(changed, words, strict=True))
        ways.append((len(changed), name + ":" * bool(changed) + ",".join(pairs)))
    return min(ways)[1]


# Schedules: who is updated when ------------------------------------------------------------------


def together(key: Array, score: Array, epochs: int, row: Algorithm) -> Stage:
    """One stage: everyone at once, nobody coupled (IPPO, MAPPO)."""
    return _everyone(np.zeros((1, score.size, score.size)), [epochs])


def jointly(key: Array, score: Array, epochs: int, row: Algorithm) -> Stage:
    """One stage: everyone at once, each coupled to all others (CoPPO)."""
    return _everyone(1.0 - np.eye(score.size)[None], [epochs])


def pipelines(key: Array, score: Array, epochs: int, row: Algorithm) -> Stage:
    """The independent step, then the dependent step under its gate (Algorithm 1, lines 4-9)."""
    alone, coupled = np.zeros((score.size, score.size)), 1.0 - np.eye(score.size)
    if row.steps == "independent":
        return _everyone(alone[None], [epochs])
    later = epochs if row.dependent_epochs is None else row.dependent_epochs
    return _everyone(np.stack([alone, coupled]), [epochs, later], gated=row.gated)


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


def _everyone(coupling: np.ndarray, epochs: list[int], gated: bool = False) -> Stage:
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


SCHEDULES: dict[str, Callable[[Array, Array, int, Algorithm], Stage]] = {
    f.__name__: f for f in (together, jointly, pipelines, in_turn)
}


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


def bounded(x: Float[Array, "*b"], width: Array | Scalar | None) -> Float[Array, "*b"]:
    """Clip to 1 ± width; None: as it is."""
    return x if width is None else jnp.clip(x, 1.0 - width, 1.0 + width)


def clip_own(
    ratio: Array, others: Array, advantage: Array, clip: Array, inner: Scalar | None
) -> Array:
    """W min(r A, clip(r) A), the weight W = clip(Π_j r_j) outside the clip (HAPPO, FP3O)."""
    weighted = bounded(others, inner) * advantage
    return jnp.minimum(ratio * weighted, bounded(ratio, clip) * weighted)


def clip_product(
    ratio: Array, others: Array, advantage: Array, clip: Array, inner: Scalar | None
) -> Array:
    """min(r W A, clip(r W) A): the product itself is clipped (A2PO, CoPPO)."""
    product = ratio * bounded(others, inner)
    return jnp.minimum(product * advantage, bounded(product, clip) * advantage)


def joint(
    ratio: Array, others: Array, advantage: Array, clip: Array, inner: Scalar | None
) -> Array:
    """min(r Π r_j A, clip(r clip(Π r_j)) A), differentiated through all agents (CoPPO's code)."""
    clipped = bounded(ratio * bounded(others, inner), clip)
    return jnp.minimum(ratio * others * advantage, clipped * advantage)


SURROGATES: dict[str, Callable[..., Array]] = {
    f.__name__: f for f in (clip_own, clip_product, joint)
}


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
