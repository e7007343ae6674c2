"""StarCraft II through SMAC or SMACv2: a batch of games in worker processes.

A game takes its random seed when it is started: at the first reset, and after a worker failed.
"""

from dataclasses import dataclass, replace
from functools import cache

from fp3o.envs.api import HostEnv
from fp3o.envs.smac.env import EPISODE_METRICS, smac_env
from fp3o.envs.smac.maps import LAYOUTS, MAPS, STARCRAFT2
from fp3o.envs.smac.random_teams import MAX_EPISODE_STEPS, PUBLISHED_TEAMS, RandomTeams
from fp3o.envs.starcraft2.install import require_starcraft2
from fp3o.envs.starcraft2.smacv2 import MakeSmacV2
from fp3o.envs.starcraft2.worker import MakeSmac
from fp3o.envs.workers.pool import WorkerPool
from fp3o.envs.workers.protocol import buffer_spec
from fp3o.envs.workers.vec_env import PooledVecEnv
from fp3o.errors import SettingError, nearest
from fp3o.spec import Discrete, EnvSpec

NAMES = (*MAPS, *PUBLISHED_TEAMS)
"""Names of maps and of the published random teams."""


@dataclass(frozen=True)
class StarCraft2(HostEnv):
    """A map of SMAC, or random teams of SMACv2, with one layout of observations."""

    name: str
    layout: str = LAYOUTS[0]

    @property
    def teams(self) -> RandomTeams | None:
        """The random teams; None on a map of SMAC."""
        return RandomTeams.parse(self.name)

    @property
    def spec(self) -> EnvSpec:
        """The sizes of the simulator's map, which are the same, or those of SMACv2's task."""
        if self.layout not in LAYOUTS:
            raise SettingError(f"unknown layout {self.layout!r}: {nearest(self.layout, LAYOUTS)}")
        name = f"{STARCRAFT2}/{self.name}:{self.layout}"
        if self.teams is not None:
            return _random_teams_spec(name, self.teams, self.layout)
        if self.name not in MAPS:
            raise SettingError(f"unknown map {self.name!r}: {nearest(self.name, NAMES)}")
        return replace(smac_env(self.name, self.layout).spec, name=name)

    @property
    def max_episode_steps(self) -> int:
        """Upper bound on the length of an episode."""
        return MAX_EPISODE_STEPS if self.teams else MAPS[self.name].max_episode_steps

    @property
    def num_enemies(self) -> int:
        """The largest number of kills."""
        return smac_env(self.name, self.layout).num_enemies

    def vectorise(self, num_envs: int) -> PooledVecEnv:
        """Make a batch of games; they are started at the first reset."""
        spec, teams = self.spec, self.teams
        require_starcraft2(self.name)
        make = MakeSmacV2(teams, self.layout) if teams else MakeSmac(self.name, self.layout)
        return PooledVecEnv(spec, WorkerPool(make, buffer_spec(spec), num_envs))


def _random_teams_spec(name: str, teams: RandomTeams, layout: str) -> EnvSpec:
    """Agents have one type, since their unit types change with the episode."""
    n, (obs, state) = teams.num_allies, teams.sizes(layout)
    actions = Discrete(((teams.num_actions,),) * n)
    return EnvSpec(
        name, actions, obs, state, (0,) * n, truncates=True, episode_metrics=EPISODE_METRICS
    )


@cache
def starcraft2_env(name: str, layout: str) -> StarCraft2:
    """A task by the name of its map or of its teams."""
    return StarCraft2(name, layout)
