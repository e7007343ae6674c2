"""The six algorithms as rows of one table, and how to add one's own.

Every algorithm maximises a clipped surrogate of each agent's ratio `r_i = π_i / π_i,rollout`,
weighted by what other agents have become. Rows differ in who is updated in which *stage*, coupled
to whom, how tightly clipped, and whether the stage must pass the condition:

    W_i = exp(Σ_j C_ij log r_j)          C: the stage's coupling, with a zero diagonal
    maximise  ⟨ W_i min(r_i A_i, clip(r_i, 1 ± ε) A_i) ⟩          (surrogate `clip_own`)

FP3O's dependent objective, ((r_i Π_{-{i,j}} h - 1) h_j) A_i, is this one with C = 1 - I: the term
-h_j A_i has no gradient, whatever agent j the non-overlapping selection pairs with i (D3).
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Array, Bool, Float, Int


class Stage(NamedTuple):
    """One row a stage: who is updated, coupled to whom, how tightly clipped, under which gate."""

    agents: Int[Array, "*s k"]
    member: Float[Array, "*s k"]
    """1 for an agent of the stage, 0 for padding of a smaller block."""
    coupling: Float[Array, "*s k n"]
    clip_factor: Float[Array, "*s k"]
    """Factor of the clip range ε."""
    gated: Bool[Array, "*s"]
    """Run only if the condition holds."""
    epochs: Int[np.ndarray, "*s"]
    """Passes over the data; known before tracing, like the number of stages."""


@dataclass(frozen=True)
class Algorithm:
    """A row of the table; `dataclasses.replace` makes a variant."""

    schedule: str = "simultaneous"
    """Stages, one of `SCHEDULES`: all at once (`together`); all at once and coupled (`jointly`);
    FP3O's two steps (`pipelines`); one block after another (`in_turn`); or one's own."""
    surrogate: str = "clip_own"
    """What the clip bounds, one of `SURROGATES`: the agent's own ratio (`clip_own`); its product
    with the others' (`clip_product`: A2PO, CoPPO); the joint ratio with gradients through every
    agent (`joint`: CoPPO's own code); or one's own."""
    critic_input: Literal["state", "obs"] = "state"
    """What the critic sees: the global state, or the agent's observation (IPPO)."""
    refresh_ratios: bool = False
    """Couple to the others as they change at every minibatch, not as they were at the start."""
    inner_clip: float | None = None
    """Clip the others' product to 1 ± inner_clip·ε (the double clip); None: not at all."""

    order: Literal["random", "semi_greedy"] = "random"
    """Order of the turns: random, or by turns the largest advantage left and a random agent."""
    blocks: int | None = None
    """Number of near-equal blocks that take turns; None: every agent alone."""
    rounds: int = 1
    """Rounds of turns in an iteration; the epochs are dealt out over the rounds."""
    clip_slope: float = 0.0
    """w of ε_k = ε (w k/n + 1 - w): agents early in the order are clipped tighter."""
    correct_advantages: bool = False
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
    on_failed_condition: Literal["keep", "revert"] = "keep"
    """When the condition fails: keep the intermediate policies (the paper) or go back."""
    critic_always: bool = False
    """Train the critic in the dependent step even when its gate is shut (D2)."""
    shadow: bool = False
    """Take gated steps behind a shut gate too, measure what they do, and forget them: whether the
    condition foretells the constraint is then known in every iteration."""
