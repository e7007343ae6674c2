"""Scripted policies of the particle tasks: baselines for learned returns.

| policy  | observes        | does                                                           |
|---------|-----------------|----------------------------------------------------------------|
| random  | nothing         | any available action, all equally likely                       |
| still   | nothing         | stands still and sends the first message                       |
| blind   | all but goals   | moves where it is best to be for agents that know no goal      |
| planner | the full state  | moves to its goal by the best of all plans of four steps       |

`blind` moves to the centre of the landmarks: the least squared distance from a goal that may be any
of them. In simple_spread it takes a formation that does not depend on the landmarks. The planner is
exact except for its horizon where agents do not collide; in simple_spread it is within 0.5 of the
return of agents that could pass through each other without penalty.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from fp3o.envs.mpe.particles import (
    EPISODE_STEPS,
    LANDMARKS,
    MOVES,
    PUSH,
    ParticleEnv,
    ParticleRules,
    ParticleState,
    advance,
    goal_positions,
)
from fp3o.envs.task import Baseline
from fp3o.spec import Discrete

PLAN_STEPS = 4
"""Planning horizon in steps. Three lose up to 0.3 % of the return, five gain less than 0.1 %;
counting the steps after the plan as well, as if the agent coasted, gains nothing."""

PERMUTATIONS = np.array([*itertools.permutations(range(LANDMARKS))])

TRIANGLE = np.array([(-0.583, 0.0), (0.381, 0.531), (0.381, -0.531)])
"""The three points nearest to a random one of [-1, 1]²: a mean distance of 0.471."""

TURNED = [TRIANGLE, -TRIANGLE, TRIANGLE[:, ::-1], -TRIANGLE[:, ::-1]]

FORMATIONS = np.concatenate([turn[PERMUTATIONS] for turn in TURNED])
"""Every assignment of agents to the corners of the triangle, in four orientations."""


def plan_offsets(rules: ParticleRules) -> Float[np.ndarray, "t 2 a"]:
    """Displacements by each of the 5^t plans of t moves, of an agent at rest, after each step.

    Away from contacts the dynamics are linear: a plan adds this to the motion without pushes.
    """
    moves = np.array([*itertools.product(range(MOVES), repeat=PLAN_STEPS)])
    choice = np.arange(MOVES)[:, None]
    force = PUSH * (1.0 * (choice == rules.forward) - 1.0 * (choice == rules.backward))
    x = v = np.zeros((len(moves), 2))
    steps = []
    for t in range(PLAN_STEPS):
        x, v = advance(x, v, force[moves[:, t]], rules.lagged)
        steps.append(x.T)
    return np.stack(steps).astype(np.float32)


def squared_distance(
    paths: Float[Array, "t 2 a"], point: Float[Array, "*t 2 1"]
) -> Float[Array, "t a"]:
    """Squared distance of all positions of all paths from a point, or from another path."""
    gap = paths - point
    return jnp.square(gap[:, 0]) + jnp.square(gap[:, 1])


def planned_moves(
    env: ParticleEnv, state: ParticleState, targets: Float[Array, "n 2"]
) -> Int[Array, " n"]:
    """The first move of each agent's best plan: least Σ_t |x_t - target|, or of its squares.

    Solid agents plan one after another: a plan is penalised for colliding with earlier ones.
    """
    offsets = jnp.asarray(plan_offsets(env.rules))
    x, v, coasting = state.position, state.velocity, []
    for _ in range(PLAN_STEPS):
        x, v = advance(x, v, 0.0, env.rules.lagged)
        coasting.append(x)
    drift = jnp.stack(coasting)
    counts = (jnp.arange(PLAN_STEPS) < EPISODE_STEPS - state.time)[:, None]
    chosen, moves = [], []
    for i in range(len(targets)):
        paths = drift[:, i, :, None] + offsets
        cost = squared_distance(paths, targets[i, :, None])
        cost = cost if env.rules.squared else jnp.sqrt(cost)
        for other in chosen:  # two of the n agents pay for a collision
            near = squared_distance(paths, other) < (2 * env.radius) ** 2
            cost += (2 / len(targets)) * near
        best = jnp.where(counts, cost, 0.0).sum(0).argmin()
        chosen += [paths[:, :, best, None]] if env.solid else []
        moves.append(best // MOVES ** (PLAN_STEPS - 1))
    return jnp.stack(moves)


def nearest_assignment(
    state: ParticleState, positions: Float[Array, "a n 2"]
) -> Float[Array, "n 2"]:
    """The positions with the least Σ_i |path of i|²: a longer path costs more, for more steps."""
    cost = jnp.square(positions - state.position).sum((1, 2))
    return positions[cost.argmin()]


def informed_targets(env: ParticleEnv, state: ParticleState) -> Float[Array, "n 2"]:
    """The goal of each agent; in simple_spread, a landmark for each."""
    if any(env.has_goal):
        return goal_positions(state)
    return nearest_assignment(state, state.landmarks[PERMUTATIONS])


def blind_targets(env: ParticleEnv, state: ParticleState) -> Float[Array, "n 2"]:
    """The centre of the landmarks; in simple_spread, the triangle."""
    if any(env.has_goal):
        return jnp.broadcast_to(state.landmarks.mean(0), state.position.shape)
    return nearest_assignment(state, jnp.asarray(env.rules.reach * FORMATIONS, jnp.float32))


@dataclass(frozen=True)
class Random:
    """Any available action, all equally likely."""

    env: ParticleEnv

    def __call__(self, state: ParticleState, key: PRNGKeyArray) -> Int[Array, "n d"]:
        """Draw every sub-action of every agent."""
        actions = self.env.spec.actions
        assert isinstance(actions, Discrete)
        sizes = jnp.asarray(actions.sizes)
        return jax.random.randint(key, sizes.shape, 0, sizes)


@dataclass(frozen=True)
class Still:
    """No push, and the first message."""

    env: ParticleEnv

    def __call__(self, state: ParticleState, key: PRNGKeyArray) -> Int[Array, "n d"]:
        """The first choice of every sub-action."""
        none = jnp.zeros(len(self.env.agent_types), int)
        return self.env.join_action(none, none)


@dataclass(frozen=True)
class Mover:
    """Move to a target by the best plan; those that speak name the landmark of the other agent."""

    env: ParticleEnv
    targets: Callable[[ParticleEnv, ParticleState], Float[Array, "n 2"]]
    speaks: bool

    def __call__(self, state: ParticleState, key: PRNGKeyArray) -> Int[Array, "n d"]:
        """One move and one message per agent."""
        move = planned_moves(self.env, state, self.targets(self.env, state))
        return self.env.join_action(move, jnp.where(self.speaks, state.goal[::-1], 0))


def particle_baselines(env: ParticleEnv) -> tuple[Baseline, ...]:
    """The scripted policies of a particle task."""
    return (
        Baseline(
            "random", "random actions", "any available action, all equally likely",
            Random(env), role="random",
        ),
        Baseline(
            "still", "standing still", "no agent moves; speakers always send the first message",
            Still(env),
        ),
        Baseline(
            "blind", "best blind policy", "takes the best positions without knowing any goal",
            Mover(env, blind_targets, speaks=False), role="uninformed",
        ),
        Baseline(
            "planner", "planner", "observes the full state and plans four steps ahead",
            Mover(env, informed_targets, speaks=True), role="oracle",
        ),
    )  # fmt: skip
