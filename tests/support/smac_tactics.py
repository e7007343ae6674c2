"""Options of units in battles: rules that choose an action in any state."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from fp3o.envs.smac.env import SmacEnv, SmacState
from fp3o.envs.smac.observations import FIRST_ATTACK, FIRST_MOVE, MOVE_DIRECTIONS
from fp3o.envs.smac.scripted import STOP_ACTION
from fp3o.envs.smac.simulator.state import LOOPS_PER_STEP

NUM_OPTIONS = 12
SHOOT, DODGES = 0, (2, 3, 4)
"""Options that are good for a whole team: to shoot, and to shoot unless one is chased."""

CHASED = 3.0
"""A unit that has a pursuer within this distance, centre to centre, is chased."""
READY = 4.0
"""A weapon whose cooldown is at most this number of loops shoots within the step."""
GATHERED = 2.0
"""Distance from the centre of the map at which units that gather there stay."""


class Situation(NamedTuple):
    """What the options of the agents depend on."""

    moves: Bool[Array, "a 4"]
    """Available moves."""
    attacks: Bool[Array, "a v"]
    """Available targets."""
    position: Float[Array, "a 2"]
    opponents: Float[Array, "v 2"]
    """Positions of the enemies."""
    distance: Float[Array, "a v"]
    """To all enemies; infinite for dead ones."""


def situation(env: SmacEnv, state: SmacState) -> Situation:
    """Describe a state."""
    units, n = state.units, env.battle.num_allies
    action_mask = env.observations.action_mask(units)
    place = jnp.stack([units.x, units.y], -1)
    distance = jnp.linalg.norm(place[:n, None] - place[None, n:], axis=-1)
    distance = jnp.where(units.hp[None, n:] > 0, distance, jnp.inf)
    moves, attacks = action_mask[:, FIRST_MOVE:FIRST_ATTACK], action_mask[:, FIRST_ATTACK:]
    return Situation(moves, attacks, place[:n], place[n:], distance)


def option_actions(env: SmacEnv, state: SmacState) -> Int[Array, "a o"]:
    """The actions of all agents under all options.

    0: shoot the weakest enemy in range. 1: the same, and gather at the centre between two shots.
    2 to 4: shoot, but run if chased, around the centre on either side, or away from the nearest
    enemy. 5 to 7: run so in any case. 8 to 11: walk in one direction, and shoot at the wall.
    """
    units, n, now = state.units, env.battle.num_allies, situation(env, state)
    shoot = _shoot(now, (units.hp + units.shield)[n:])
    pursued = units.target[None, n:] == np.arange(n)[:, None]
    chased = (pursued & (now.distance < CHASED)).any(1)
    runs = [*_circle(env, now), _flee(env, now)]
    straight = [jnp.where(now.moves[:, i], FIRST_MOVE + i, shoot) for i in range(4)]
    careful = [jnp.where(chased, run, shoot) for run in runs]
    to_centre = jnp.asarray(_middle(env)[0]) - now.position
    waits = (units.cooldown[:n] > READY) & (jnp.linalg.norm(to_centre, axis=1) > GATHERED)
    gather = jnp.where(waits, _walk(now, _along(to_centre)), shoot)
    actions = jnp.stack([shoot, gather, *careful, *runs, *straight], 1)
    return jnp.where(units.hp[:n, None] > 0, actions, 0)


def _middle(env: SmacEnv) -> tuple[np.ndarray, np.ndarray]:
    """The centre of the walkable cells, and half of their width and height."""
    cells = np.argwhere(env.battle.terrain.walkable)
    low, high = cells.min(0), cells.max(0) + 1
    return (low + high) / 2, (high - low) / 2


def _along(way: Array) -> Float[Array, "a 4"]:
    """How far the four moves lead along a vector."""
    return way @ jnp.asarray(MOVE_DIRECTIONS.T, jnp.float32)


def _walk(now: Situation, score: Float[Array, "a 4"]) -> Int[Array, " a"]:
    """The available move with the highest score, or stop."""
    best = jnp.where(now.moves, score, -jnp.inf).argmax(1)
    return jnp.where(now.moves.any(1), FIRST_MOVE + best, STOP_ACTION)


def _shoot(now: Situation, health: Float[Array, " v"]) -> Int[Array, " a"]:
    """Attack the weakest enemy in range, the nearer one of equals; without one, approach."""
    cost = jnp.where(now.attacks, health + 0.01 * now.distance, jnp.inf)
    approach = _walk(now, _along(now.opponents[now.distance.argmin(1)] - now.position))
    return jnp.where(now.attacks.any(1), FIRST_ATTACK + cost.argmin(1), approach)


def _circle(env: SmacEnv, now: Situation) -> list[Int[Array, " a"]]:
    """Run around the centre on a rectangle, anticlockwise and clockwise."""
    centre, size = _middle(env)
    out = (now.position - centre) / size
    x, y = jnp.sign(out).T
    beside = (jnp.abs(out[:, 0]) > jnp.abs(out[:, 1]))[:, None]
    tangent = jnp.where(beside, jnp.stack([0 * x, x], -1), jnp.stack([-y, 0 * y], -1))
    outward = jnp.where(beside, jnp.stack([x, 0 * x], -1), jnp.stack([0 * y, y], -1))
    return [_walk(now, _along(side * tangent - 0.1 * outward)) for side in (1, -1)]


def _flee(env: SmacEnv, now: Situation) -> Int[Array, " a"]:
    """The move after which the nearest enemy is farthest away."""
    n = env.battle.num_allies
    stride = env.battle.stats.speed[:n, None, None] * LOOPS_PER_STEP * MOVE_DIRECTIONS
    after = now.position[:, None] + stride
    distance = jnp.linalg.norm(after[:, :, None] - now.opponents, axis=-1)
    living = jnp.isfinite(now.distance)[:, None]
    return _walk(now, jnp.where(living, distance, jnp.inf).min(-1))
