"""Scripted teams for SMAC, the baselines of learned policies. Healers attend to allies alike."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from fp3o.envs.smac.actions import FIRST_ATTACK, FIRST_MOVE, MOVE_DIRECTIONS, distances, targets
from fp3o.envs.smac.env import SmacEnv, SmacState
from fp3o.envs.task import Baseline

STOP_ACTION = 1

KITE_COOLDOWN, KITE_DISTANCE = 4, 3.5
"""Kiting steps back while the cooldown is above this and an enemy is closer than this."""


def smac_baselines(env: SmacEnv) -> tuple[Baseline, ...]:
    """The scripted policies of an environment."""
    return (
        Baseline(
            "random", "random actions", "any available action, all equally likely",
            lambda state, key: random_actions(env, state, key), role="random",
        ),
        Baseline(
            "nearest", "attack the nearest", "every unit attacks the nearest enemy",
            lambda state, key: _attack(env, state, _distances(env, state)),
        ),
        Baseline(
            "focus", "focus fire", "every unit attacks the weakest enemy in range",
            lambda state, key: _attack(env, state, _remaining_health(env, state)),
        ),
        Baseline(
            "kite", "kiting", "attacks, and steps back while the weapon is not ready",
            lambda state, key: _kite(env, state),
        ),
    )  # fmt: skip


def random_actions(env: SmacEnv, state: SmacState, key: PRNGKeyArray) -> Int[Array, "a 1"]:
    """Sample available actions uniformly."""
    action_mask = env.observations.action_mask(state.units)
    return jax.random.categorical(key, jnp.where(action_mask, 0.0, -jnp.inf))[:, None]


def _attack(env: SmacEnv, state: SmacState, cost: Float[Array, "a v"]) -> Int[Array, "a 1"]:
    """Attack the enemy in range with the lowest cost; without one, approach the nearest."""
    action_mask = env.observations.action_mask(state.units)
    in_range = action_mask[:, FIRST_ATTACK:] & jnp.isfinite(cost)
    target = jnp.where(in_range, cost, jnp.inf).argmin(1)
    walk = _walk(env, state, action_mask, towards=True)
    return _only_alive(action_mask, jnp.where(in_range.any(1), FIRST_ATTACK + target, walk))


def _kite(env: SmacEnv, state: SmacState) -> Int[Array, "a 1"]:
    """Attack the nearest enemy, and step back from close ones while the weapon is not ready."""
    action_mask = env.observations.action_mask(state.units)
    n = env.battle.num_allies
    waits = state.units.cooldown[:n] > KITE_COOLDOWN
    pressed = _distances(env, state).min(1) < KITE_DISTANCE
    back = _walk(env, state, action_mask, towards=False)
    attack = _attack(env, state, _distances(env, state))[:, 0]
    return _only_alive(action_mask, jnp.where(waits & pressed, back, attack))


def _only_alive(action_mask: Bool[Array, "a c"], action: Int[Array, " a"]) -> Int[Array, "a 1"]:
    """Dead agents do nothing, action 0."""
    return jnp.where(action_mask[:, 0], 0, action)[:, None]


def _distances(env: SmacEnv, state: SmacState) -> Float[Array, "a c"]:
    """Distances to all targets of attacks; infinite for dead ones and those that cannot be hit."""
    units, battle = state.units, env.battle.of(state.units)
    n = battle.num_allies
    gap = jnp.where(units.hp > 0, distances(battle, units), jnp.inf)
    if battle.attackable is not None:
        gap = jnp.where(battle.attackable[:n] | ~battle.opponents[:n], gap, jnp.inf)
    return targets(battle, gap, jnp.inf)


def _remaining_health(env: SmacEnv, state: SmacState) -> Float[Array, "a c"]:
    """Remaining health and shield of every target; ties go to the nearer one."""
    left = jnp.broadcast_to(
        state.units.hp + state.units.shield, (env.battle.num_allies, env.battle.num_units)
    )
    return targets(env.battle.of(state.units), left, jnp.inf) + 1e-2 * _distances(env, state)


def _walk(
    env: SmacEnv, state: SmacState, action_mask: Bool[Array, "a c"], towards: bool
) -> Int[Array, " a"]:
    """The available move that leads most towards or away from the nearest target, or stop."""
    n, units, battle = env.battle.num_allies, state.units, env.battle.of(state.units)
    nearest = _distances(env, state).argmin(1)[:, None]
    to_x, to_y = (
        jnp.take_along_axis(targets(battle, part[None] - part[:n, None], 0.0), nearest, 1)
        for part in (units.x, units.y)
    )
    way = jnp.concatenate([to_x, to_y], -1)
    gain = way @ jnp.asarray(MOVE_DIRECTIONS.T, way.dtype) * (1.0 if towards else -1.0)
    moves = action_mask[:, FIRST_MOVE:FIRST_ATTACK]
    best = jnp.where(moves, gain, -jnp.inf).argmax(1)
    return jnp.where(moves.any(1), FIRST_MOVE + best, STOP_ACTION)
