"""Settings, data and parameters of the golden reference."""

from dataclasses import dataclass
from typing import NamedTuple

from golden.network import Array, Mask, Network, Params
from golden.optimiser import Adam


@dataclass(frozen=True)
class Options:
    """How an algorithm differs from plain PPO of the whole team."""

    surrogate: str = "clip_own"
    refresh_ratios: bool = False
    inner_clip: float | None = None
    blocks: int | None = None
    rounds: int = 1
    clip_slope: float = 0.0
    critic_passes: int = 1
    correct_advantages: bool = False
    steps: str = "both"
    gated: bool = True
    dependent_epochs: int | None = None
    on_failed_condition: str = "keep"
    critic_always: bool = False


TABLE = {
    "ippo": Options(),
    "mappo": Options(),
    "coppo": Options(surrogate="clip_product", refresh_ratios=True, inner_clip=0.5),
    "happo": Options(),
    "a2po": Options(
        surrogate="clip_product",
        inner_clip=0.5,
        clip_slope=0.5,
        critic_passes=2,
        correct_advantages=True,
    ),
    "fp3o": Options(),
}


@dataclass(frozen=True)
class Settings:
    """Everything the formulas depend on besides data."""

    algorithm: str
    actor: Network
    critic: Network
    widths: tuple[int, ...]
    """Choices of every sub-action; empty: actions are vectors."""
    num_dimensions: int
    """Length of the vectors; 0: there are choices only."""
    options: Options
    num_envs: int
    std_param: str = "sigmoid"
    sequence_length: int = 1
    epochs: int = 2
    bootstrap: bool = True
    head_lr_factor: float = 1.0
    mask_value_loss: bool = False
    advantage_norm: str = "agent"
    actor_lr: float = 1e-2
    critic_lr: float = 1e-2
    clip_range: float = 0.2
    value_clip: float | None = None
    entropy_coef: float = 0.01
    gamma: float = 0.99
    gae_lambda: float = 0.95
    max_grad_norm: float = 10.0
    huber_delta: float = 10.0

    @property
    def num_agents(self) -> int:
        """The size of the team."""
        return len(self.actor.groups["output"])


class Draws(NamedTuple):
    """Random numbers of an iteration."""

    orders: list[list[int]]
    """Order of sequential updates, one per round."""
    minibatches: list[list[list[list[int]]]]
    """Sequences of minibatch b in epoch k of stage s: `minibatches[s][k][b]`."""
    split: Array | None
    """Weight of every agent's advantage at every row, (n, r); None: 1."""
    partner: list[int]
    """The agent whose pipeline updates agent i in FP3O's dependent step."""


@dataclass
class Learner:
    """Parameters, optimisers, and [mean, square, weight] of every critic's value normaliser."""

    actor: Params
    critic: Params
    actor_adam: dict[tuple[str, int], Adam]
    critic_adam: dict[tuple[str, int], Adam]
    norm: list[list[float]]


class Rollout(NamedTuple):
    """A trajectory, (t, e, n, ...), with features before any normalisation."""

    features: Array
    critic_input: Array
    final_critic_input: Array
    action_mask: Mask
    alive: Array
    episode_start: Array
    hidden_state: Array
    critic_hidden: Array
    """Before the first step, (e, n, h)."""
    action: Array
    log_prob: Array
    reward: Array
    terminated: Array
    truncated: Array


@dataclass
class Agent:
    """Samples of one agent (hidden states: one per sequence)."""

    features: Array
    critic_input: Array
    action_mask: Mask
    alive: Array
    episode_start: Array
    hidden_state: Array
    critic_hidden: Array
    action: Array
    log_prob: Array
    value: Array
    """The critic's prediction at the rollout, in normalised units."""
    units: Array
    """The same in the units of the reward."""
    delta: Array
    decay: Array
    advantage: Array
    target: Array

    def part(self, sequences: list[int], length: int) -> "Agent":
        """The samples of these sequences."""
        rows = [c * length + step for c in sequences for step in range(length)]
        by_sequence = ("hidden_state", "critic_hidden")
        return Agent(
            **{k: x[sequences if k in by_sequence else rows] for k, x in vars(self).items()}
        )
