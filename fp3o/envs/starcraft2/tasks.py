"""The tasks in StarCraft II itself."""

from functools import partial

from fp3o.envs.api import HostEnv
from fp3o.envs.smac.maps import LAYOUTS, MAPS, STARCRAFT2, map_summary
from fp3o.envs.smac.tasks import smac_presets
from fp3o.envs.task import Family, Task


def _real(name: str) -> Task | None:
    """A map of SMAC; StarCraft II is installed by the user."""
    if name not in MAPS:
        return None
    presets = {
        kind: {**settings, "eval_episodes": 8, "final_episodes": 32}
        for kind, settings in smac_presets(name).items()
        if kind.startswith("paper")
    }
    return Task(
        f"{STARCRAFT2}/{name}", f"StarCraft II: {map_summary(name)}",
        partial(_starcraft, name), LAYOUTS, presets=presets,
        max_parallel=8,
    )  # fmt: skip


def _starcraft(name: str, variant: str) -> HostEnv:
    from fp3o.envs.starcraft2.env import starcraft2_env

    return starcraft2_env(name, variant)


FAMILIES = (Family(STARCRAFT2, "StarCraft II through SMAC", _real),)
