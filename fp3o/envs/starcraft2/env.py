"""StarCraft II through SMAC: a batch of games in worker processes.

A game takes its random seed when it is started: at the first reset, and after a worker failed.
"""

from dataclasses import dataclass, replace
from functools import cache

from fp3o.envs.api import HostEnv
from fp3o.envs.smac.env import smac_env
from fp3o.envs.smac.maps import LAYOUTS, MAPS, STARCRAFT2
from fp3o.envs.starcraft2.install import require_starcraft2
from fp3o.envs.starcraft2.worker import MakeSmac
from fp3o.envs.workers.pool import WorkerPool
from fp3o.envs.workers.protocol import buffer_spec
from fp3o.envs.workers.vec_env import PooledVecEnv
from fp3o.errors import SettingError, nearest
from fp3o.spec import EnvSpec


@dataclass(frozen=True)
class StarCraft2(HostEnv):
    """A map of StarCraft II with one layout of observations."""

    name: str
    layout: str = LAYOUTS[0]

    @property
    def spec(self) -> EnvSpec:
        """The sizes of the simulator's map, which are the same."""
        if self.name not in MAPS:
            raise SettingError(f"unknown map {self.name!r}: {nearest(self.name, MAPS)}")
        if self.layout not in LAYOUTS:
            raise SettingError(f"unknown layout {self.layout!r}: {nearest(self.layout, LAYOUTS)}")
        simulated = smac_env(self.name, self.layout).spec
        return replace(simulated, name=f"{STARCRAFT2}/{self.name}:{self.layout}")

    @property
    def max_episode_steps(self) -> int:
        """Upper bound on the length of an episode."""
        return smac_env(self.name, self.layout).max_episode_steps

    @property
    def num_enemies(self) -> int:
        """The largest number of kills."""
        return smac_env(self.name, self.layout).num_enemies

    def vectorise(self, num_envs: int) -> PooledVecEnv:
        """Make a batch of games; they are started at the first reset."""
        spec = self.spec
        require_starcraft2(self.name)
        make = MakeSmac(self.name, self.layout)
        return PooledVecEnv(spec, WorkerPool(make, buffer_spec(spec), num_envs))


@cache
def starcraft2_env(name: str, layout: str) -> StarCraft2:
    """A task by the name of its map."""
    return StarCraft2(name, layout)
