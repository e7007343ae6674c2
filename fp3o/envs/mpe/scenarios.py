"""Particle tasks: cooperative games of points in the plane (multi-agent particle environments).

| task                    | agents              | must                                           |
|-------------------------|---------------------|------------------------------------------------|
| simple_reference        | 2, both move, talk  | go where only the other one knows to go        |
| simple_speaker_listener | 1 talks, 1 moves    | lead the listener to where the speaker knows   |
| simple_spread           | 3, all move, silent | cover three landmarks without touching anybody |

Each exists in two versions that are not the same task, `VARIANTS`: "paper", on-policy's, on which
MAPPO and its successors report, and "mpe2", the maintained package. `mpe_world.Rules` holds what
differs. A word said in a step is heard in the observation after it.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from fp3o.envs.mpe.particles import (
    LANDMARKS,
    MOVES,
    MPE2,
    NONE,
    PAPER,
    Choices,
    Particle,
    Particles,
    around,
    contact,
    length,
    square,
    targets,
)
from fp3o.errors import nearest

VARIANTS = ("paper", "mpe2")
"""The versions of every task."""


@dataclass(frozen=True)
class Reference(Particle):
    """Two agents move and talk; each knows only the landmark that the other is to reach.

    r_i = -|x_j - goal_j|² of the other agent j (mpe2: not squared).
    Seen: velocity, landmarks, colour of the other's goal, the other's word (2 + 6 + 3 + 10).
    """

    name = "simple_reference"
    versions: ClassVar = {"paper": PAPER, "mpe2": replace(MPE2, team=0.25)}
    choices = ((MOVES, 10),) * 2
    obs_sizes = (21, 21)
    kinds = (0, 0)
    seekers = (True, True)
    radius = 0.05

    def read(self, action: Int[Array, "n d"]) -> Choices:
        """Two sub-actions, or both in one number."""
        if self.rules.joint:
            return action[:, 0] % MOVES, action[:, 0] // MOVES
        return action[:, 0], action[:, 1]

    def write(self, move: Int[Array, " n"], word: Int[Array, " n"]) -> Int[Array, "n d"]:
        """Two sub-actions, or both in one number."""
        return (move + MOVES * word)[:, None] if self.rules.joint else jnp.stack([move, word], 1)

    def judge(self, state: Particles) -> Float[Array, " n"]:
        """How far the other is from where this one wants it."""
        away = (state.position - targets(state))[::-1]
        return -(square(away) if self.rules.squared else length(away))

    def observations(self, state: Particles) -> Float[Array, "n f"]:
        """Own motion, the landmarks, the other's goal and word."""
        colour = 0.25 + 0.5 * jax.nn.one_hot(state.goal[::-1], LANDMARKS)
        heard = jax.nn.one_hot(state.message[::-1], 10)
        return jnp.concatenate([state.velocity, around(state), colour, heard], axis=1)


@dataclass(frozen=True)
class SpeakerListener(Particle):
    """The speaker stands still, sees the goal's colour and talks; the listener moves and hears.

    r_i = -|x - goal|² of the listener, for both.
    Seen: colour of the goal (3, padded to 11); velocity, landmarks, the word (2 + 6 + 3).
    """

    name = "simple_speaker_listener"
    versions: ClassVar = {
        "paper": replace(PAPER, reach=1.0),
        "mpe2": replace(MPE2, squared=True, own=1.0),
    }
    choices = ((3,), (MOVES,))
    obs_sizes = (3, 11)
    kinds = (0, 1)
    seekers = (False, True)
    radius = 0.075

    def read(self, action: Int[Array, "n d"]) -> Choices:
        """The speaker's choice is a word, the listener's a move."""
        speaks = jnp.asarray([True, False])
        return jnp.where(speaks, 0, action[:, 0]), jnp.where(speaks, action[:, 0], NONE)

    def write(self, move: Int[Array, " n"], word: Int[Array, " n"]) -> Int[Array, "n d"]:
        """The speaker's word, the listener's move."""
        return jnp.stack([word[:1], move[1:]])

    def judge(self, state: Particles) -> Float[Array, " n"]:
        """How far the listener is from the goal."""
        return jnp.broadcast_to(-square(state.position[1] - targets(state)[1]), (2,))

    def observations(self, state: Particles) -> Float[Array, "n f"]:
        """The goal for one; own motion, the landmarks and the word for the other."""
        colour = 0.15 + 0.5 * jax.nn.one_hot(state.goal[1], LANDMARKS)
        heard = jax.nn.one_hot(state.message[0], 3)
        listener = jnp.concatenate([state.velocity[1], around(state)[1], heard])
        return jnp.stack([jnp.pad(colour, (0, 8)), listener])


@dataclass(frozen=True)
class Spread(Particle):
    """Three agents cover three landmarks; they push each other apart and are fined for touching.

    r_i = -Σ_landmarks min_j |x_j - landmark| - agents that i touches (paper: itself included).
    Seen: velocity, position, landmarks, the others, their words: silence (2 + 2 + 6 + 4 + 4).
    """

    name = "simple_spread"
    versions: ClassVar = {"paper": replace(PAPER, squared=False), "mpe2": MPE2}
    choices = ((MOVES,),) * 3
    obs_sizes = (18,) * 3
    kinds = (0,) * 3
    seekers = (False,) * 3
    radius = 0.15
    solid = True

    def read(self, action: Int[Array, "n d"]) -> Choices:
        """Moves; nobody speaks."""
        return action[:, 0], jnp.full(3, NONE)

    def write(self, move: Int[Array, " n"], word: Int[Array, " n"]) -> Int[Array, "n d"]:
        """The moves."""
        return move[:, None]

    def gaps(self, state: Particles) -> tuple[Float[Array, " 2"], ...]:
        """From the second agent of each pair to the first: of (0, 1), (0, 2), (1, 2)."""
        first, second, third = state.position
        return first - second, first - third, second - third

    def contacts(self, state: Particles) -> Float[Array, "n 2"]:
        """Agents that touch drive each other apart."""
        a, b, c = (contact(gap, 2 * self.radius) for gap in self.gaps(state))
        return jnp.stack([a + b, c - a, -b - c])

    def judge(self, state: Particles) -> Float[Array, " n"]:
        """Landmarks left uncovered, and touches."""
        first, second, third = (length(state.landmarks - x) for x in state.position)
        uncovered = jnp.minimum(jnp.minimum(first, second), third).sum()
        a, b, c = (jnp.where(length(gap) < 2 * self.radius, 1.0, 0.0) for gap in self.gaps(state))
        return -uncovered - self.rules.self_touch - jnp.stack([a + b, a + c, b + c])

    def observations(self, state: Particles) -> Float[Array, "n f"]:
        """Own motion and place, the landmarks, the others in order, silence."""
        x, agent = state.position, jnp.arange(3)[:, None]
        one = jnp.where(agent == 0, x[1], x[0]) - x
        two = jnp.where(agent == 2, x[1], x[2]) - x
        seen = [state.velocity, x, around(state), one, two, jnp.zeros((3, 4))]
        return jnp.concatenate(seen, axis=1)


SCENARIOS = {game.name: game for game in (Reference, SpeakerListener, Spread)}
"""The tasks by name."""


def particle(name: str, variant: str = "paper") -> Particle:
    """A task by its name, in one of its versions."""
    if name not in SCENARIOS:
        raise ValueError(f"unknown particle task {name!r}: {nearest(name, SCENARIOS)}")
    if variant not in VARIANTS:
        raise ValueError(f"unknown variant {variant!r}: {nearest(variant, VARIANTS)}")
    return SCENARIOS[name](variant)
