"""`Algorithm`: one row of the table of algorithms. Needs no JAX.

Every algorithm maximises a clipped surrogate of each agent's probability ratio
`r_i = π_i / π_i,rollout`, weighted by how far other agents have changed. Rows differ in which
agents are updated in which *stage*, what they are coupled to, how tightly they are clipped, and
whether a stage requires the condition:

    W_i = exp(Σ_j C_ij log r_j)          C: coupling of the stage, zero on the diagonal
    maximise  ⟨ W_i min(r_i A_i, clip(r_i, 1 ± ε) A_i) ⟩          (surrogate `clip_own`)

FP3O's dependent objective, ((r_i Π_{-{i,j}} h - 1) h_j) A_i, is this one with C = 1 - I: the term
-h_j A_i has no gradient, whichever agent j the non-overlapping selection pairs with i (D3).
"""

from dataclasses import dataclass, field
from typing import Literal

Colour = tuple[str, str]
"""Hex colours on a light and on a dark background."""


@dataclass(frozen=True)
class Algorithm:
    """One algorithm; `dataclasses.replace` makes a variant.

    `title`, `summary` and `colour` are for display: they are ignored when rows are compared and
    are not part of an algorithm's name.
    """

    schedule: str = "simultaneous"
    """Name of the schedule: all agents at once (`simultaneous`), all at once and coupled
    (`coupled`), FP3O's two steps (`pipelines`), one block after another (`sequential`), or a
    registered one."""
    surrogate: str = "clip_own"
    """Name of the surrogate; the clip bounds the agent's own ratio (`clip_own`), its product with
    the others' ratios (`clip_product`), or the joint ratio with gradients through every agent
    (`joint`); or a registered one."""
    critic_input: Literal["state", "obs"] = "state"
    """Input of the critic: the global state, or the agent's observation (IPPO)."""
    refresh_ratios: bool = False
    """Recompute the coupling weights at every minibatch instead of once per stage."""
    inner_clip: float | None = None
    """Clip the others' product to 1 ± inner_clip·ε (the double clip); None: no inner clip."""

    order: Literal["random", "semi_greedy"] = "random"
    """Order of sequential updates: random, or alternately the remaining agent with the
    largest advantage and a random one."""
    blocks: int | None = None
    """Number of near-equal blocks of agents updated one after another; None: one agent each."""
    rounds: int = 1
    """Rounds of sequential updates per iteration; the epochs are divided among them."""
    clip_slope: float = 0.0
    """w of ε_k = ε (w k/n + 1 - w): agents early in the order are clipped more tightly."""
    correct_advantages: bool = False
    """Re-estimate advantages and targets under the agents updated before (A2PO)."""
    critic_passes: int = 1
    """Passes of the critic over the data per epoch."""

    split: Literal["average", "random"] = "average"
    """How FP3O splits the advantage over agents; random: Dirichlet weights at every step."""
    steps: Literal["both", "independent"] = "both"
    """FP3O's two steps, or its independent step alone."""
    gated: bool = True
    """Whether the dependent step requires the condition."""
    dependent_epochs: int | None = None
    """Epochs of the dependent step; None: as many as in the independent step."""
    on_failed_condition: Literal["keep", "revert"] = "keep"
    """When the condition fails: keep the intermediate policies (the paper) or revert to those of
    the rollout."""
    critic_always: bool = False
    """Train the critic in the dependent step even when its gate is closed."""
    shadow: bool = False
    """Take gated steps behind a closed gate as well, measure them, and discard them: this shows in
    every iteration whether the condition predicts the constraint."""

    title: str = field(default="", compare=False)
    """Name in tables and figures; empty: the registered name."""
    summary: str = field(default="", compare=False)
    """One sentence that describes the algorithm."""
    colour: Colour = field(default=("#7f5539", "#c39a7b"), compare=False)
    """Colour in figures."""
