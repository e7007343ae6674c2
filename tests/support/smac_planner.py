"""A planner that looks for victories: at every step it tries plans in the simulator itself.

It shows what is possible under the rules of a battle, without learning. It knows the simulator and
the state of the battle, but not the noise to come.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from optimised import optimised_jit
from smac_tactics import DODGES, NUM_OPTIONS, SHOOT, option_actions

from fp3o.envs.smac.env import SmacEnv, SmacState

CANDIDATES, HORIZON, LATEST_CHANGE = 32, 12, 6
"""Number of plans tried per step, their length in steps, and the latest step of their change."""
MUTATION, LARGE_MUTATION, LARGE_SHARE = 0.3, 0.5, 0.25
"""Probabilities that an option of the last plan is replaced, and the share of large mutations."""
OWN_HEALTH, OWN_UNIT, ENEMY_UNIT, VICTORY = 2.0, 60.0, 50.0, 500.0
"""Values in points of the enemies' health and shields."""


class Plans(NamedTuple):
    """Plans of some battles `b`, any number `k` of each."""

    options: np.ndarray
    """(b, k, 2, a): the first and the second option of every agent."""
    change: np.ndarray
    """(b, k): number of steps after which the second options replace the first."""

    def at(self, step: int) -> np.ndarray:
        """(b, k, a): options at a step."""
        return np.where((step < self.change)[..., None], *np.moveaxis(self.options, 2, 0))

    def later(self) -> "Plans":
        """The same plans seen one step later."""
        return self._replace(change=np.maximum(self.change - 1, 0))

    def best(self, value: np.ndarray) -> "Plans":
        """The plan with the highest value of every battle."""
        chosen = np.arange(len(value)), value.argmax(1)
        return Plans(self.options[chosen][:, None], self.change[chosen][:, None])


def mutated(plans: Plans, rng: np.random.Generator) -> Plans:
    """Candidates: the last plan, variants of it, and all agents with the same option."""
    battles, _, _, agents = plans.options.shape
    many = (battles, CANDIDATES)
    large = np.arange(CANDIDATES) >= (1 - LARGE_SHARE) * CANDIDATES
    rate = np.where(large, LARGE_MUTATION, MUTATION)[:, None, None]
    replaced = rng.random((*many, 2, agents)) < rate
    random = rng.integers(NUM_OPTIONS, size=replaced.shape)
    options = np.where(replaced, random, plans.options)
    change = rng.integers(1, LATEST_CHANGE + 1, size=many)
    change = np.where((rng.random(many) < 0.5) & (plans.change > 0), plans.change, change)
    options[:, :1], change[:, :1] = plans
    for candidate, option in enumerate((SHOOT, *DODGES), start=1):
        options[:, candidate] = option
    return Plans(options, change)


def value_of(env: SmacEnv, state: SmacState) -> Float[Array, ""]:
    """How good a state is for the allies."""
    units, n = state.units, env.battle.num_allies
    alive = units.hp > 0
    theirs = (units.hp + units.shield)[n:].sum() + ENEMY_UNIT * alive[n:].sum()
    ours = OWN_HEALTH * units.hp[:n].sum() + OWN_UNIT * alive[:n].sum()
    return ours - theirs + VICTORY * ~alive[n:].any()


class Planner:
    """Plays some battles at the same time."""

    def __init__(self, env: SmacEnv, battles: int, seed: int):
        self.env, self.battles = env, battles
        self._rng, self._key = np.random.default_rng(seed), jax.random.key(seed)
        self._advance = optimised_jit(self._simulate)

    def play(self, max_steps: int) -> list[SmacState]:
        """The states of the battles, which end when a side is dead or after `max_steps`."""
        first = jax.device_get(self.env.reset(self._key))
        states = [jax.tree.map(lambda x: np.repeat(x[None], self.battles, 0), first)]
        shape = self.battles, 1, 2, self.env.battle.num_allies
        plan = Plans(np.full(shape, SHOOT), np.zeros(shape[:2], int))
        while len(states) <= max_steps and not self._over(states[-1]).all():
            plan = self._search(states[-1], plan)
            states.append(self._step(states[-1], plan.at(0)))
            plan = plan.later()
        return states

    def _search(self, state: SmacState, last: Plans) -> Plans:
        """The best of some variants of the last plan."""
        plans, many = mutated(last, self._rng), _spread(state)
        value = None
        for step in range(HORIZON):
            many, value = self._advance(many, plans.at(step), self._next_key())
        return plans.best(np.asarray(value))

    def _step(self, state: SmacState, options: np.ndarray) -> SmacState:
        """One step of the battles that are not over, by the program of the candidates."""
        everyone = np.repeat(options, CANDIDATES, 1)
        new = self._advance(_spread(state), everyone, self._next_key())[0]
        over = self._over(state)
        keep = lambda old, new: np.where(_like(over, old), old, np.asarray(new)[:, 0])  # noqa: E731
        return jax.tree.map(keep, state, new)

    def _simulate(
        self, states: SmacState, options: Array, key: PRNGKeyArray
    ) -> tuple[SmacState, Array]:
        """One step of all candidates, and the values of their states.

        The candidates of a battle have the same noise, so that only their plans differ.
        """

        def one(state: SmacState, options: Array, key: PRNGKeyArray) -> tuple[SmacState, Array]:
            action = jnp.take_along_axis(option_actions(self.env, state), options[:, None], 1)
            new = self.env.step(state, action, key)[0]
            return new, value_of(self.env, new)

        keys = jax.random.split(key, self.battles)
        return jax.vmap(jax.vmap(one, (0, 0, None)))(states, options, keys)

    def _next_key(self) -> PRNGKeyArray:
        self._key, key = jax.random.split(self._key)
        return key

    def _over(self, state: SmacState) -> np.ndarray:
        """(b,): whether a side is dead."""
        n, alive = self.env.battle.num_allies, np.asarray(state.units.hp) > 0
        return np.array([not (x[:n].any() and x[n:].any()) for x in alive])


def _spread(state: SmacState) -> SmacState:
    """The state of every battle, repeated for all candidates."""
    return jax.tree.map(lambda x: np.repeat(x[:, None], CANDIDATES, 1), state)


def _like(mask: np.ndarray, array: Any) -> np.ndarray:
    """A mask over battles in the dimensions of an array."""
    return mask.reshape(-1, *[1] * (array.ndim - 1))
