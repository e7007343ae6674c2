"""SMAC battles as an environment: actions, rewards, ends of episodes."""

from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from fp3o.envs.api import Env, Observation
from fp3o.envs.smac.actions import (
    FIRST_ATTACK,
    FIRST_MOVE,
    MOVE_DIRECTIONS,
    smac_action_names,
)
from fp3o.envs.smac.maps import SMAC, find_map, unit_names
from fp3o.envs.smac.observations import ObservationBuilder
from fp3o.envs.smac.rules import DEFAULT_RULES, Rules
from fp3o.envs.smac.simulator.battle import Battle, battle_on
from fp3o.envs.smac.simulator.loop import simulate_step
from fp3o.envs.smac.simulator.state import (
    ATTACK,
    ATTACK_MOVE,
    LOOPS_PER_STEP,
    MOVE,
    NO_TARGET,
    STOP,
    Orders,
    Units,
)
from fp3o.envs.smac.units import LOOPS_PER_SECOND
from fp3o.spec import Discrete, EnvSpec

MOVE_DISTANCE = 2.0
"""Distance of the destination of a move action."""

KILL_REWARD, WIN_REWARD, MAX_RETURN = 10.0, 200.0, 20.0
"""Rewards before scaling; the largest return without regeneration is scaled to `MAX_RETURN`."""

EPISODE_METRICS = ("won", "dead_allies", "dead_enemies", "damage_dealt", "healed")
"""Victory, deaths per side, and the points of health and shields that enemies lost and got back."""


class SmacState(NamedTuple):
    """The state of a battle."""

    units: Units
    last_actions: Int[Array, " a"]
    """Last actions of the agents, -1 before the first step."""
    time: Int[Array, ""]


@dataclass(frozen=True)
class SmacEnv(Env):
    """A battle on one map under one layout of observations and one set of rules."""

    name: str
    layout: str = "paper"
    rules: Rules = DEFAULT_RULES
    renderable = True
    family = SMAC

    @property
    def max_episode_steps(self) -> int:
        """The time limit of the map."""
        return find_map(self.name).max_episode_steps

    def render(self, state: SmacState, caption: str) -> np.ndarray:
        """Draw the battle from above."""
        from fp3o.envs.smac.render.battle import render_battle  # imports Pillow

        return render_battle(self, state, caption)

    @property
    def num_enemies(self) -> int:
        """The largest number of kills."""
        return self.battle.num_units - self.battle.num_allies

    @property
    def step_seconds(self) -> float:
        """Game time per step, in seconds at normal speed."""
        return LOOPS_PER_STEP / LOOPS_PER_SECOND

    @cached_property
    def battle(self) -> Battle:
        """The static description of the battle."""
        return battle_on(self.name, self.rules)

    @cached_property
    def observations(self) -> ObservationBuilder:
        """Computes observations, states and action masks."""
        return ObservationBuilder(self.battle, self.layout)

    @property
    def spec(self) -> EnvSpec:
        """Number and types of agents, sizes of observations and actions."""
        obs, state = self.observations.sizes
        return EnvSpec(
            f"{self.family}/{self.name}:{self.rules.variant(self.layout)}",
            Discrete(((self.observations.num_actions,),) * self.battle.num_allies),
            obs,
            state,
            self.agent_types,
            truncates=True,
            episode_metrics=EPISODE_METRICS,
            adjacency=self.observations.observed_allies,
            agents=self.agent_names,
            action_names=(smac_action_names(self.battle),) * self.battle.num_allies,
        )

    @property
    def agent_names(self) -> tuple[str, ...]:
        """The unit type and the index of every agent, `marine_0`."""
        units = unit_names(self.battle.map.allies)
        return tuple(f"{unit.lower()}_{i}" for i, unit in enumerate(units))

    @property
    def agent_types(self) -> tuple[int, ...]:
        """The unit type of every agent, in order of appearance."""
        units = unit_names(self.battle.map.allies)
        return tuple(map(list(dict.fromkeys(units)).index, units))

    @property
    def enemy_health(self) -> float:
        """Health and shields of all enemies."""
        stats = self.battle.stats
        return float((stats.hp + stats.shield)[self.battle.num_allies :].sum())

    @cached_property
    def reward_scale(self) -> float:
        """Divisor of rewards: the largest return without regeneration over `MAX_RETURN`."""
        enemies = self.battle.num_units - self.battle.num_allies
        return (KILL_REWARD * enemies + WIN_REWARD + self.enemy_health) / MAX_RETURN

    def reset(self, key: PRNGKeyArray) -> SmacState:
        """The initial state, always the same; only times between attacks are random."""
        none = jnp.full(self.battle.num_allies, -1, jnp.int32)
        return SmacState(self.battle.initial_units(), none, jnp.zeros((), jnp.int32))

    def step(
        self, state: SmacState, action: Int[Array, "a 1"], key: PRNGKeyArray
    ) -> tuple[SmacState, Array, Array, Array]:
        """Simulate half a second of game time."""
        chosen = action[:, 0].astype(jnp.int32)
        units = simulate_step(self.battle, state.units, self.orders(state.units, chosen), key)
        new = SmacState(units, chosen, state.time + 1)
        ours, theirs = self.any_alive(units)
        over, won = ~(ours & theirs), ours & ~theirs
        reward = (self._damage_reward(state.units, units) + WIN_REWARD * won) / self.reward_scale
        late = ~over & (new.time >= self.battle.map.max_episode_steps)
        return new, jnp.full(self.battle.num_allies, reward), over, late

    def observe(self, state: SmacState) -> Observation:
        """Observations, states and action masks of the agents."""
        obs, team = self.observations.build(state.units, state.last_actions)
        alive = state.units.hp[: self.battle.num_allies] > 0
        return Observation(obs, team, self.observations.action_mask(state.units), alive)

    def episode_metrics(self, state: SmacState) -> Float[Array, " o"]:
        """The numbers named by `EPISODE_METRICS`, from the beginning of the battle."""
        n, units = self.battle.num_allies, state.units
        (ours, theirs), dead = self.any_alive(units), units.hp <= 0
        points = units.damage_taken[n:].sum(), units.healed[n:].sum()
        return jnp.stack([ours & ~theirs, dead[:n].sum(), dead[n:].sum(), *points]).astype(float)

    def orders(self, units: Units, action: Int[Array, " a"]) -> Orders:
        """The orders of all units: the agents' actions, and attack-move for the enemies."""
        n, count = self.battle.num_allies, self.battle.num_units
        moves = (action >= FIRST_MOVE) & (action < FIRST_ATTACK)
        kind = jnp.where(moves, MOVE, jnp.where(action >= FIRST_ATTACK, ATTACK, STOP))
        steps = jnp.asarray(MOVE_DISTANCE * MOVE_DIRECTIONS, jnp.float32)
        step = steps[jnp.clip(action - FIRST_MOVE, 0, 3)]
        goal = np.array(self.battle.map.goal or (0.0, 0.0), np.float32)
        enemies = lambda value: jnp.full(count - n, value)  # noqa: E731
        return Orders(
            jnp.concatenate([kind, enemies(ATTACK_MOVE)]).astype(jnp.int32),
            jnp.concatenate([units.x[:n] + step[:, 0], enemies(goal[0])]),
            jnp.concatenate([units.y[:n] + step[:, 1], enemies(goal[1])]),
            jnp.concatenate([action - FIRST_ATTACK, enemies(NO_TARGET)]).astype(jnp.int32),
        )

    def any_alive(self, units: Units) -> tuple[Bool[Array, ""], Bool[Array, ""]]:
        """Whether any ally, and any enemy, is alive. As in SMAC, healers alone do not count."""
        n, alive = self.battle.num_allies, units.hp > 0
        if self.battle.heals:
            alive = alive & (self.battle.of(units).stats.heal == 0)
        return alive[:n].any(), alive[n:].any()

    def _damage_reward(self, before: Units, after: Units) -> Float[Array, ""]:
        """Damage done and units killed."""
        n = self.battle.num_allies
        lived, lives = before.hp[n:] > 0, after.hp[n:] > 0
        was, now = ((units.hp + units.shield)[n:] for units in (before, after))
        lost = jnp.where(lived, was - jnp.where(lives, now, 0.0), 0.0).sum()
        return self.positive(lost + KILL_REWARD * (lived & ~lives).sum())

    def positive(self, reward: Float[Array, ""]) -> Float[Array, ""]:
        """The reward where it is negative because enemies regenerate: in SMAC, its size."""
        return jnp.abs(reward) if self.battle.rules.paid_healing else jnp.maximum(reward, 0.0)


@cache
def smac_env(name: str, variant: str) -> SmacEnv:
    """The environment of a map, by name; a variant is a layout with options of the rules."""
    return SmacEnv(name, *Rules.parse(variant))
