"""StarCraft II itself, through SMAC: a batch of games in worker processes.

A game takes its random seed when it starts: at the first reset, and in a worker's place.
"""

from dataclasses import dataclass, replace
from functools import cache

from fp3o.envs.api import HostEnv
from fp3o.envs.smac.env import smac_env
from fp3o.envs.smac.maps import LAYOUTS, MAPS, REAL
from fp3o.envs.starcraft2.install import require
from fp3o.envs.starcraft2.worker import Launch
from fp3o.envs.workers.vec_env import PooledVecEnv, WorkerPool, buffer_spec
from fp3o.errors import nearest
from fp3o.spec import EnvSpec


@dataclass(frozen=True)
class StarCraft2(HostEnv):
    """A map of the real game under one layout of observations."""

    name: str
    layout: str = LAYOUTS[0]

    @property
    def spec(self) -> EnvSpec:
        """The task's facts; they are those of the simulator's map."""
        if self.name not in MAPS:
            raise ValueError(f"unknown map {self.name!r}: {nearest(self.name, MAPS)}")
        if self.layout not in LAYOUTS:
            raise ValueError(f"unknown layout {self.layout!r}: {nearest(self.layout, LAYOUTS)}")
        known = smac_env(self.name, self.layout).spec
        return replace(known, name=f"{REAL}/{self.name}:{self.layout}")

    @property
    def max_episode_steps(self) -> int:
        """The longest an episode can be."""
        return MAPS[self.name].limit

    def vectorise(self, num_envs: int) -> PooledVecEnv:
        """Games that are stepped together; they start at the first reset."""
        spec = self.spec
        require(self.name)
        return PooledVecEnv(
            spec, WorkerPool(Launch(self.name, self.layout), buffer_spec(spec), num_envs)
        )


@cache
def starcraft2(name: str, layout: str) -> StarCraft2:
    """A task by the name of its map."""
    return StarCraft2(name, layout)
