"""The cooperative particle tasks: points in the plane that move and communicate.

| task                    | agents                   | goal                                        |
|-------------------------|--------------------------|---------------------------------------------|
| simple_reference        | 2, both move and speak   | reach the landmark only the other one knows |
| simple_speaker_listener | 1 speaks, 1 moves        | lead the listener to the speaker's landmark |
| simple_spread           | 3, all move, none speaks | cover three landmarks without collisions    |

Each exists in two versions that are not the same task, `VARIANTS`: "paper", on which MAPPO
and its successors report, and "mpe2", the maintained package. `ParticleRules` holds the
differences. A message sent in a step is part of the observation after it.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from fp3o.envs.mpe.particles import (
    LANDMARKS,
    MOVES,
    MPE2_RULES,
    NONE,
    PAPER_RULES,
    MovesAndMessages,
    ParticleEnv,
    ParticleState,
    contact_force,
    goal_positions,
    norm,
    relative_landmarks,
    squared_norm,
)
from fp3o.errors import SettingError, nearest

VARIANTS = ("paper", "mpe2")
"""The variants of every task."""


@dataclass(frozen=True)
class SimpleReference(ParticleEnv):
    """Two agents move and speak; each observes only the landmark that the other has to reach.

    r_i = -|x_j - goal_j|² of the other agent j (mpe2: not squared).
    Observed: velocity, landmarks, colour of the other's goal, its message (2 + 6 + 3 + 10).
    """

    name = "simple_reference"
    rules_of: ClassVar = {"paper": PAPER_RULES, "mpe2": replace(MPE2_RULES, team=0.25)}
    choices = ((MOVES, 10),) * 2
    obs_sizes = (21, 21)
    moving = (True, True)
    agent_types = (0, 0)
    has_goal = (True, True)
    radius = 0.05

    def split_action(self, action: Int[Array, "n d"]) -> MovesAndMessages:
        """Two sub-actions, or both in one number."""
        if self.rules.joint:
            return action[:, 0] % MOVES, action[:, 0] // MOVES
        return action[:, 0], action[:, 1]

    def join_action(self, move: Int[Array, " n"], message: Int[Array, " n"]) -> Int[Array, "n d"]:
        """Two sub-actions, or both in one number."""
        if self.rules.joint:
            return (move + MOVES * message)[:, None]
        return jnp.stack([move, message], 1)

    def own_rewards(self, state: ParticleState) -> Float[Array, " n"]:
        """Minus the distance of the other agent from its goal."""
        away = (state.position - goal_positions(state))[::-1]
        return -(squared_norm(away) if self.rules.squared else norm(away))

    def observations(self, state: ParticleState) -> Float[Array, "n f"]:
        """Velocity, landmarks, the other's goal and message."""
        colour = 0.25 + 0.5 * jax.nn.one_hot(state.goal[::-1], LANDMARKS)
        heard = jax.nn.one_hot(state.message[::-1], 10)
        return jnp.concatenate([state.velocity, relative_landmarks(state), colour, heard], axis=1)


@dataclass(frozen=True)
class SimpleSpeakerListener(ParticleEnv):
    """The speaker stands still, observes the goal and speaks; the listener moves and hears.

    r_i = -|x - goal|² of the listener, for both.
    Observed: colour of the goal (3, padded to 11); velocity, landmarks, message (2 + 6 + 3).
    """

    name = "simple_speaker_listener"
    rules_of: ClassVar = {
        "paper": replace(PAPER_RULES, reach=1.0),
        "mpe2": replace(MPE2_RULES, squared=True, own=1.0),
    }
    choices = ((3,), (MOVES,))
    obs_sizes = (3, 11)
    agents = ("speaker_0", "listener_0")  # as in the original environment
    moving = (False, True)
    agent_types = (0, 1)
    has_goal = (False, True)
    observed = ((), (0,))
    radius = 0.075

    def split_action(self, action: Int[Array, "n d"]) -> MovesAndMessages:
        """The speaker's choice is a message, the listener's a move."""
        speaks = jnp.asarray([True, False])
        return jnp.where(speaks, 0, action[:, 0]), jnp.where(speaks, action[:, 0], NONE)

    def join_action(self, move: Int[Array, " n"], message: Int[Array, " n"]) -> Int[Array, "n d"]:
        """The speaker's message, the listener's move."""
        return jnp.stack([message[:1], move[1:]])

    def own_rewards(self, state: ParticleState) -> Float[Array, " n"]:
        """Minus the squared distance of the listener from the goal."""
        return jnp.broadcast_to(-squared_norm(state.position[1] - goal_positions(state)[1]), (2,))

    def observations(self, state: ParticleState) -> Float[Array, "n f"]:
        """The goal for the speaker; velocity, landmarks and message for the listener."""
        colour = 0.15 + 0.5 * jax.nn.one_hot(state.goal[1], LANDMARKS)
        heard = jax.nn.one_hot(state.message[0], 3)
        listener = jnp.concatenate([state.velocity[1], relative_landmarks(state)[1], heard])
        return jnp.stack([jnp.pad(colour, (0, 8)), listener])


@dataclass(frozen=True)
class SimpleSpread(ParticleEnv):
    """Three agents cover three landmarks; they repel each other, and collisions are penalised.

    r_i = -Σ_landmarks min_j |x_j - landmark| - collisions of i (paper: itself included).
    Observed: velocity, position, landmarks, the others, their empty messages (2 + 2 + 6 + 4 + 4).
    """

    name = "simple_spread"
    rules_of: ClassVar = {"paper": replace(PAPER_RULES, squared=False), "mpe2": MPE2_RULES}
    choices = ((MOVES,),) * 3
    obs_sizes = (18,) * 3
    moving = (True,) * 3
    agent_types = (0,) * 3
    has_goal = (False,) * 3
    radius = 0.15
    solid = True

    def split_action(self, action: Int[Array, "n d"]) -> MovesAndMessages:
        """Moves; no agent speaks."""
        return action[:, 0], jnp.full(3, NONE)

    def join_action(self, move: Int[Array, " n"], message: Int[Array, " n"]) -> Int[Array, "n d"]:
        """The moves."""
        return move[:, None]

    def gaps(self, state: ParticleState) -> tuple[Float[Array, " 2"], ...]:
        """Vectors from the second to the first agent of the pairs (0, 1), (0, 2), (1, 2)."""
        first, second, third = state.position
        return first - second, first - third, second - third

    def contact_forces(self, state: ParticleState) -> Float[Array, "n 2"]:
        """Colliding agents repel each other."""
        a, b, c = (contact_force(gap, 2 * self.radius) for gap in self.gaps(state))
        return jnp.stack([a + b, c - a, -b - c])

    def own_rewards(self, state: ParticleState) -> Float[Array, " n"]:
        """Minus the distances of landmarks from the nearest agent, minus collisions."""
        first, second, third = (norm(state.landmarks - x) for x in state.position)
        uncovered = jnp.minimum(jnp.minimum(first, second), third).sum()
        a, b, c = (jnp.where(norm(gap) < 2 * self.radius, 1.0, 0.0) for gap in self.gaps(state))
        return -uncovered - self.rules.self_touch - jnp.stack([a + b, a + c, b + c])

    def observations(self, state: ParticleState) -> Float[Array, "n f"]:
        """Velocity, position, landmarks, the other agents in order, empty messages."""
        x, agent = state.position, jnp.arange(3)[:, None]
        one = jnp.where(agent == 0, x[1], x[0]) - x
        two = jnp.where(agent == 2, x[1], x[2]) - x
        parts = [state.velocity, x, relative_landmarks(state), one, two, jnp.zeros((3, 4))]
        return jnp.concatenate(parts, axis=1)


SCENARIOS = {env.name: env for env in (SimpleReference, SimpleSpeakerListener, SimpleSpread)}
"""The tasks by name."""


def particle_env(name: str, variant: str = "paper") -> ParticleEnv:
    """A task by its name, in one of its variants."""
    if name not in SCENARIOS:
        raise SettingError(f"unknown particle task {name!r}: {nearest(name, SCENARIOS)}")
    if variant not in VARIANTS:
        raise SettingError(f"unknown variant {variant!r}: {nearest(variant, VARIANTS)}")
    return SCENARIOS[name](variant)
