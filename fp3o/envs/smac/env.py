"""A battle as a game: actions become orders, wounds become rewards."""

from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from fp3o.envs.api import Env, Observation
from fp3o.envs.smac.maps import FAMILY, MAPS, kinds
from fp3o.envs.smac.observations import FIRST, HEADINGS, STILL, Eyes
from fp3o.envs.smac.simulator import (
    ATTACK,
    LOOPS,
    MOVE,
    NOBODY,
    STOP,
    SWEEP,
    Battle,
    Orders,
    Units,
    battle,
)
from fp3o.envs.smac.units import LOOPS_PER_SECOND
from fp3o.spec import Discrete, EnvSpec

STRIDE = 2.0
"""How far away the point is that a move is ordered to."""

KILL, WIN, WHOLE = 10.0, 200.0, 20.0
"""Paid for a kill and for a victory; a faultless episode is scaled to `WHOLE`."""

OUTCOMES = ("won", "dead_allies", "dead_enemies")


class State(NamedTuple):
    """A battle that is going on."""

    units: Units
    last: Int[Array, " a"]
    """The last actions, -1 before the first."""
    time: Int[Array, ""]


@dataclass(frozen=True)
class SmacEnv(Env):
    """One map under one layout of observations."""

    name: str
    layout: str = "paper"
    renderable = True

    @property
    def max_episode_steps(self) -> int:
        """The map's time limit."""
        return MAPS[self.name].limit

    def render(self, state: State, caption: str) -> np.ndarray:
        """The battle from above."""
        from fp3o.envs.smac.render.battle import picture  # imports pillow

        return picture(self, state, caption)

    @property
    def step_seconds(self) -> float:
        """Seconds a step lasts, as long as the game runs at its normal speed."""
        return LOOPS / LOOPS_PER_SECOND

    @cached_property
    def battle(self) -> Battle:
        """The simulator."""
        return battle(self.name)

    @cached_property
    def eyes(self) -> Eyes:
        """What is seen."""
        return Eyes(self.battle, self.layout)

    @property
    def spec(self) -> EnvSpec:
        """The task's facts."""
        own = kinds(self.battle.map.allies)
        order = list(dict.fromkeys(own))
        obs, state = self.eyes.sizes
        return EnvSpec(
            f"{FAMILY}/{self.name}:{self.layout}",
            Discrete(((self.eyes.num_actions,),) * len(own)),
            obs,
            state,
            tuple(map(order.index, own)),
            truncates=True,
            episode_metrics=OUTCOMES,
        )

    @cached_property
    def scale(self) -> float:
        """What a reward of 1 stands for: the most that can be earned without any healing, / 20."""
        n, own = self.battle.num_allies, self.battle.facts
        health = float((own.hp + own.shield)[n:].sum())
        return (KILL * (len(self.battle.units) - n) + WIN + health) / WHOLE

    def reset(self, key: PRNGKeyArray) -> State:
        """Every episode begins alike; only the waits between attacks are random."""
        nothing = jnp.full(self.battle.num_allies, -1, jnp.int32)
        return State(self.battle.start(), nothing, jnp.zeros((), jnp.int32))

    def step(
        self, state: State, action: Int[Array, "a 1"], key: PRNGKeyArray
    ) -> tuple[State, Array, Array, Array]:
        """Half a second of the game."""
        chosen = action[:, 0].astype(jnp.int32)
        units = self.battle.advance(state.units, self.orders(state.units, chosen), key)
        new = State(units, chosen, state.time + 1)
        ours, theirs = self.alive(units)
        over, won = ~(ours & theirs), ours & ~theirs
        earned = (self._worth(state.units, units) + WIN * won) / self.scale
        late = ~over & (new.time >= self.battle.map.limit)
        return new, jnp.full(self.battle.num_allies, earned), over, late

    def observe(self, state: State) -> Observation:
        """What the agents see."""
        obs, team = self.eyes.look(state.units, state.last)
        alive = state.units.hp[: self.battle.num_allies] > 0
        return Observation(obs, team, self.eyes.action_mask(state.units), alive)

    def episode_metrics(self, state: State) -> Float[Array, " o"]:
        """Whether it is won, and how many have fallen on each side."""
        n, fallen = self.battle.num_allies, state.units.hp <= 0
        ours, theirs = fallen[:n], fallen[n:]
        return jnp.stack([theirs.all() & ~ours.all(), ours.sum(), theirs.sum()]).astype(float)

    def orders(self, units: Units, action: Int[Array, " a"]) -> Orders:
        """The agents' actions, and what the enemies are told."""
        n, count = self.battle.num_allies, len(self.battle.units)
        moves = (action >= STILL) & (action < FIRST)
        kind = jnp.where(moves, MOVE, jnp.where(action >= FIRST, ATTACK, STOP))
        step = jnp.asarray(STRIDE * HEADINGS, jnp.float32)[jnp.clip(action - STILL, 0, 3)]
        goal = np.array(self.battle.map.goal or (0.0, 0.0), np.float32)
        enemies = lambda value: jnp.full(count - n, value)  # noqa: E731
        return Orders(
            jnp.concatenate([kind, enemies(SWEEP)]).astype(jnp.int32),
            jnp.concatenate([units.x[:n] + step[:, 0], enemies(goal[0])]),
            jnp.concatenate([units.y[:n] + step[:, 1], enemies(goal[1])]),
            jnp.concatenate([action - FIRST, enemies(NOBODY)]).astype(jnp.int32),
        )

    def alive(self, units: Units) -> tuple[Bool[Array, ""], Bool[Array, ""]]:
        """Whether anyone of ours, and of theirs, is alive."""
        n, lives = self.battle.num_allies, units.hp > 0
        return lives[:n].any(), lives[n:].any()

    def _worth(self, before: Units, after: Units) -> Float[Array, ""]:
        """Damage done and units killed. As in SMAC, what enemies heal is paid for as well."""
        n = self.battle.num_allies
        lived, lives = before.hp[n:] > 0, after.hp[n:] > 0
        was, now = ((units.hp + units.shield)[n:] for units in (before, after))
        lost = jnp.where(lived, was - jnp.where(lives, now, 0.0), 0.0).sum()
        return jnp.abs(lost + KILL * (lived & ~lives).sum())


@cache
def smac_env(name: str, layout: str) -> SmacEnv:
    """A game by the name of its map."""
    return SmacEnv(name, layout)
