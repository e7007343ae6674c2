"""SMACv2's environment in StarCraft II: the published settings, and random numbers from a seed."""

import random
from dataclasses import dataclass
from typing import Any

import numpy as np

from fp3o.envs.smac.random_teams import SURROUNDED, RandomTeams
from fp3o.envs.smac.terrain import MAP_SIZE
from fp3o.envs.starcraft2.worker import SmacWorker


@dataclass(frozen=True)
class MakeSmacV2:
    """Makes the environment of a worker."""

    teams: RandomTeams
    layout: str

    def __call__(self, seed: int) -> SmacWorker:
        """A new environment; the game itself is started with the first episode."""
        return SmacWorker(lambda: self._smac(seed), self.layout)

    def _smac(self, seed: int) -> Any:
        from smacv2.env.starcraft2 import distributions  # pyright: ignore
        from smacv2.env.starcraft2.wrapper import (  # pyright: ignore
            StarCraftCapabilityEnvWrapper,
        )

        # SMACv2 draws teams and positions from generators without a seed, and shuffles by `random`.
        generator = np.random.default_rng(seed)
        distributions.default_rng = lambda: generator
        random.seed(seed)
        return StarCraftCapabilityEnvWrapper(
            capability_config=capability_config(self.teams),
            map_name=self.teams.map_name, seed=seed, continuing_episode=True,
            conic_fov=False, obs_own_pos=True, use_unit_ranges=True, min_attack_range=2,
        )  # fmt: skip


def capability_config(teams: RandomTeams) -> dict[str, Any]:
    """SMACv2's description of the teams and positions to draw; it adds entries of its own."""
    return {
        "n_units": teams.num_allies,
        "n_enemies": teams.num_enemies,
        "team_gen": {
            "dist_type": "weighted_teams",
            "unit_types": list(teams.race.unit_types),
            "exception_unit_types": list(teams.race.not_alone),
            "weights": list(teams.race.weights),
            "observe": True,
        },
        "start_positions": {
            "dist_type": "surrounded_and_reflect",
            # Above this number, enemies surround the allies.
            "p": 1.0 - SURROUNDED,
            "map_x": MAP_SIZE,
            "map_y": MAP_SIZE,
        },
    }
