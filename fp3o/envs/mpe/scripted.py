"""Scripted players of the particle tasks: what a learned return is to be compared with.

| policy  | looks at        | does                                                      |
|---------|-----------------|-----------------------------------------------------------|
| random  | nothing         | any legal action, all equally likely                      |
| still   | nothing         | stands still and says the first word                      |
| blind   | all but goals   | goes where it is best to be for agents that know no goal  |
| planner | the whole state | goes to its goal by the best of all plans of four steps   |

`blind` goes to the centre of the landmarks: the least squared distance from a goal that may be any
of them. In simple_spread it takes a formation that does not depend on where the landmarks are.
The planner is exact but for its horizon where agents do not touch; in simple_spread it is within
0.5 of the return of agents that could pass through each other free of charge.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from fp3o.envs.mpe.particles import (
    LANDMARKS,
    LENGTH,
    MOVES,
    PUSH,
    Particle,
    Particles,
    Rules,
    advance,
    targets,
)
from fp3o.envs.task import Baseline
from fp3o.spec import Discrete

Policy = Callable[[Particles, PRNGKeyArray], Int[Array, "n d"]]
"""The team's action in a state."""

HORIZON = 4
"""Steps a plan looks ahead. Three lose up to 0.3 % of the return, five gain less than 0.1 %;
counting the steps after the plan as well, as if the agent coasted, gains nothing."""

ORDERS = np.array([*itertools.permutations(range(LANDMARKS))])

TRIANGLE = np.array([(-0.583, 0.0), (0.381, 0.531), (0.381, -0.531)])
"""The three points nearest to a random one of [-1, 1]²: a mean distance of 0.471."""

TURNED = [TRIANGLE, -TRIANGLE, TRIANGLE[:, ::-1], -TRIANGLE[:, ::-1]]

FORMATIONS = np.concatenate([turn[ORDERS] for turn in TURNED])
"""Every way to stand on the triangle, turned four ways."""


def plans(rules: Rules) -> Float[np.ndarray, "t 2 a"]:
    """How far each of the 5^t plans of t moves carries an agent at rest in each of t steps.

    Away from contacts the dynamics are linear: a plan adds this to the motion without pushes.
    """
    moves = np.array([*itertools.product(range(MOVES), repeat=HORIZON)])
    choice = np.arange(MOVES)[:, None]
    force = PUSH * (1.0 * (choice == rules.forth) - 1.0 * (choice == rules.back))
    x = v = np.zeros((len(moves), 2))
    steps = []
    for t in range(HORIZON):
        x, v = advance(x, v, force[moves[:, t]], rules.lagged)
        steps.append(x.T)
    return np.stack(steps).astype(np.float32)


def apart(paths: Float[Array, "t 2 a"], point: Float[Array, "*t 2 1"]) -> Float[Array, "t a"]:
    """Squared distance of each place of each path from a point, or from another path."""
    gap = paths - point
    return jnp.square(gap[:, 0]) + jnp.square(gap[:, 1])


def plan(game: Particle, state: Particles, aims: Float[Array, "n 2"]) -> Int[Array, " n"]:
    """The first move of each agent's best plan: least Σ_t |x_t - aim|, or the squares of it.

    Solid agents plan one after another: a plan is fined for touching those already chosen.
    """
    table, x, v, coasting = jnp.asarray(plans(game.rules)), state.position, state.velocity, []
    for _ in range(HORIZON):
        x, v = advance(x, v, 0.0, game.rules.lagged)
        coasting.append(x)
    drift = jnp.stack(coasting)
    counts = (jnp.arange(HORIZON) < LENGTH - state.time)[:, None]
    chosen, moves = [], []
    for i in range(len(aims)):
        paths = drift[:, i, :, None] + table
        cost = apart(paths, aims[i, :, None])
        cost = cost if game.rules.squared else jnp.sqrt(cost)
        for other in chosen:  # a touch is paid by two of the n agents
            cost += (2 / len(aims)) * (apart(paths, other) < (2 * game.radius) ** 2)
        best = jnp.where(counts, cost, 0.0).sum(0).argmin()
        chosen += [paths[:, :, best, None]] if game.solid else []
        moves.append(best // MOVES ** (HORIZON - 1))
    return jnp.stack(moves)


def assign(state: Particles, places: Float[Array, "a n 2"]) -> Float[Array, "n 2"]:
    """The places with the least Σ_i |way of i|²: a longer way costs more, and for more steps."""
    ways = jnp.square(places - state.position).sum((1, 2))
    return places[ways.argmin()]


def informed(game: Particle, state: Particles) -> Float[Array, "n 2"]:
    """The goal of each agent; without goals of their own, a landmark for each."""
    return targets(state) if any(game.seekers) else assign(state, state.landmarks[ORDERS])


def blind(game: Particle, state: Particles) -> Float[Array, "n 2"]:
    """The centre of the landmarks; without goals, the triangle."""
    if any(game.seekers):
        return jnp.broadcast_to(state.landmarks.mean(0), state.position.shape)
    return assign(state, jnp.asarray(game.rules.reach * FORMATIONS, jnp.float32))


@dataclass(frozen=True)
class Random:
    """Any legal action, all equally likely."""

    game: Particle

    def __call__(self, state: Particles, key: PRNGKeyArray) -> Int[Array, "n d"]:
        """Draw one for each sub-action of each agent."""
        actions = self.game.spec.actions
        assert isinstance(actions, Discrete)
        sizes = jnp.asarray(actions.sizes)
        return jax.random.randint(key, sizes.shape, 0, sizes)


@dataclass(frozen=True)
class Still:
    """No push, and the first word."""

    game: Particle

    def __call__(self, state: Particles, key: PRNGKeyArray) -> Int[Array, "n d"]:
        """The first choice of every sub-action."""
        none = jnp.zeros(len(self.game.kinds), int)
        return self.game.write(none, none)


@dataclass(frozen=True)
class Mover:
    """Go to a place by the best plan; those who talk say which landmark the other is to reach."""

    game: Particle
    place: Callable[[Particle, Particles], Float[Array, "n 2"]]
    talks: bool

    def __call__(self, state: Particles, key: PRNGKeyArray) -> Int[Array, "n d"]:
        """One move and one word each."""
        move = plan(self.game, state, self.place(self.game, state))
        return self.game.write(move, jnp.where(self.talks, state.goal[::-1], 0))


def baselines(env: Particle) -> tuple[Baseline, ...]:
    """The scripted policies of a particle task."""
    return (
        Baseline(
            "random", "random actions", "any available action, all equally likely", Random(env)
        ),
        Baseline(
            "still", "standing still", "no agent moves; speakers always send the first message",
            Still(env),
        ),
        Baseline(
            "blind", "best blind policy", "takes the best positions without knowing any goal",
            Mover(env, blind, talks=False),
        ),
        Baseline(
            "planner", "planner", "observes the full state and plans four steps ahead",
            Mover(env, informed, talks=True),
        ),
    )  # fmt: skip
