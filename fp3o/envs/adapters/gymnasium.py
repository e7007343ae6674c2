"""Gymnasium environments as tasks: with one agent, for which every algorithm is PPO, or a team.

A team is an environment whose spaces of actions and of observations are Tuples of equal length, one
entry per agent, as in `lbforaging` and `rware`. The options are those of PettingZoo's environments.
The seed of an episode depends only on the key, the index of the environment and the index of the
episode, so runs can be repeated.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from fp3o.envs.adapters.gymnasium_team import MakeGymTeam
from fp3o.envs.adapters.pettingzoo import PettingZoo, PettingZooOptions
from fp3o.envs.adapters.variants import VARIANT
from fp3o.envs.workers.vec_env import PooledVecEnv
from fp3o.errors import SettingError, printable

FAMILY = "gymnasium"


class GymVecEnv(PooledVecEnv):
    """Gymnasium environments stepped together."""

    def env_seed(self, key: tuple[int, ...], index: int) -> tuple[int, ...]:
        """The numbers from which the seeds of the episodes are computed."""
        return *key, index


class Gymnasium(PettingZoo):
    """An environment by its id, `CartPole-v1` or `module:Name-v0`, made with `kwargs`."""

    batch_type = GymVecEnv

    def __init__(self, env_id: str, kwargs: Mapping[str, Any] | None = None, **options: Any):
        super().__init__(MakeGymTeam(env_id), kwargs, **options)
        self.env_id = env_id

    @property
    def name(self) -> str:
        """The name of the task."""
        return f"{FAMILY}/{self.env_id}:{self.variant}"

    @property
    def _source(self) -> str:
        return self.env_id


@cache
def make_env(name: str, variant: str = VARIANT) -> Gymnasium:
    """A task by its id and options, as in `default:env.g=9.81`."""
    if name.count(":") > 1:
        raise SettingError(
            f"{printable(name)} is no id: it has at most one colon, module:Name-v0. Options follow "
            "the variant default, as in module:Name-v0:default:reward=sum"
        )
    options, kwargs = PettingZooOptions.read(variant)
    env = Gymnasium(name, kwargs)
    env.options = options
    return env
