"""Battles between random teams, as in SMACv2."""

from dataclasses import dataclass
from functools import cache

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from fp3o.envs.smac.env import SmacEnv, SmacState
from fp3o.envs.smac.maps import SMACV2
from fp3o.envs.smac.random_teams import RandomTeams
from fp3o.envs.smac.rules import Rules
from fp3o.envs.smac.simulator.random_start import draw_units


@dataclass(frozen=True)
class RandomTeamsEnv(SmacEnv):
    """A battle whose unit types and initial positions are drawn for every episode."""

    family = SMACV2

    @property
    def agent_types(self) -> tuple[int, ...]:
        """The same for all agents: any of them can be a unit of any type."""
        return (0,) * self.battle.num_allies

    @property
    def agent_names(self) -> tuple[str, ...]:
        """None: their unit types change with the episode."""
        return ()

    @property
    def enemy_health(self) -> float:
        """Health and shields of all enemies on average, so that rewards have one scale."""
        stats, teams = self.battle.type_stats, self.battle.map.teams
        assert isinstance(teams, RandomTeams)
        return teams.num_enemies * float(np.dot(stats.hp + stats.shield, teams.race.weights))

    def reset(self, key: PRNGKeyArray) -> SmacState:
        """An initial state with random teams at random positions."""
        none = jnp.full(self.battle.num_allies, -1, jnp.int32)
        return SmacState(draw_units(self.battle, key), none, jnp.zeros((), jnp.int32))

    def positive(self, reward: Float[Array, ""]) -> Float[Array, ""]:
        """The reward where it is negative because enemies regenerate. As in SMACv2, none."""
        return jnp.maximum(reward, 0.0)


@cache
def random_teams_env(name: str, variant: str) -> RandomTeamsEnv:
    """The environment of random teams, by name; a variant is a layout with options of the rules."""
    return RandomTeamsEnv(name, *Rules.parse(variant))
