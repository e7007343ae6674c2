"""Teams that follow a rule: what learning is compared with."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from fp3o.envs.smac.env import SmacEnv, State
from fp3o.envs.smac.observations import FIRST, HEADINGS, STILL
from fp3o.envs.task import Baseline


def baselines(game: SmacEnv) -> tuple[Baseline, ...]:
    """The scripted policies of an environment."""
    return (
        Baseline(
            "random", "random actions", "any available action, all equally likely",
            lambda state, key: at_random(game, state, key),
        ),
        Baseline(
            "nearest", "attack the nearest", "every unit attacks the nearest enemy",
            lambda state, key: attack(game, state, _away(game, state)),
        ),
        Baseline(
            "focus", "focus fire", "every unit attacks the weakest enemy in range",
            lambda state, key: attack(game, state, _weakness(game, state)),
        ),
        Baseline(
            "kite", "kiting", "attacks, and steps back while the weapon is not ready",
            lambda state, key: kite(game, state),
        ),
    )  # fmt: skip


def at_random(game: SmacEnv, state: State, key: PRNGKeyArray) -> Int[Array, "a 1"]:
    """Any legal action."""
    action_mask = game.eyes.action_mask(state.units)
    return jax.random.categorical(key, jnp.where(action_mask, 0.0, -jnp.inf))[:, None]


def attack(game: SmacEnv, state: State, dislike: Float[Array, "a v"]) -> Int[Array, "a 1"]:
    """The least disliked enemy in range; without one, towards the nearest."""
    action_mask = game.eyes.action_mask(state.units)
    shots = action_mask[:, FIRST:]
    target = jnp.where(shots, dislike, jnp.inf).argmin(1)
    walk = _walk(game, state, action_mask, towards=True)
    return _alive(action_mask, jnp.where(shots.any(1), FIRST + target, walk))


def kite(game: SmacEnv, state: State) -> Int[Array, "a 1"]:
    """Shoot what is near, and step back while the weapon is not ready."""
    action_mask = game.eyes.action_mask(state.units)
    n = game.battle.num_allies
    waits = state.units.cooldown[:n] > 4
    pressed = _away(game, state).min(1) < 3.5
    back = _walk(game, state, action_mask, towards=False)
    shoot = attack(game, state, _away(game, state))[:, 0]
    return _alive(action_mask, jnp.where(waits & pressed, back, shoot))


def _alive(action_mask: Bool[Array, "a c"], action: Any) -> Int[Array, "a 1"]:
    return jnp.where(action_mask[:, 0], 0, action)[:, None]


def _away(game: SmacEnv, state: State) -> Float[Array, "a v"]:
    """Distances to the living enemies."""
    n, units = game.battle.num_allies, state.units
    gap = jnp.hypot(units.x[:n, None] - units.x[None, n:], units.y[:n, None] - units.y[None, n:])
    return jnp.where(units.hp[None, n:] > 0, gap, jnp.inf)


def _weakness(game: SmacEnv, state: State) -> Float[Array, "a v"]:
    """What is left of each enemy; of equals the nearer one."""
    left = (state.units.hp + state.units.shield)[game.battle.num_allies :]
    return left[None] + 1e-2 * _away(game, state)


def _walk(
    game: SmacEnv, state: State, action_mask: Bool[Array, "a c"], towards: bool
) -> Int[Array, " a"]:
    """The legal move that leads most towards the nearest enemy, or away from it; else stop."""
    n, units = game.battle.num_allies, state.units
    nearest = n + _away(game, state).argmin(1)
    way = jnp.stack([units.x[nearest] - units.x[:n], units.y[nearest] - units.y[:n]], -1)
    gain = way @ jnp.asarray(HEADINGS.T, way.dtype) * (1.0 if towards else -1.0)
    moves = action_mask[:, STILL:FIRST]
    best = jnp.where(moves, gain, -jnp.inf).argmax(1)
    return jnp.where(moves.any(1), STILL + best, 1)
