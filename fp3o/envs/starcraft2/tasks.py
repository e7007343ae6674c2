"""The tasks in StarCraft II itself."""

from functools import partial

from fp3o.envs.api import HostEnv
from fp3o.envs.smac import maps as battles
from fp3o.envs.smac.tasks import battle
from fp3o.envs.task import Family, Task


def _real(name: str) -> Task | None:
    """A map of SMAC; StarCraft II is installed by the user."""
    if name not in battles.MAPS:
        return None
    presets = {
        kind: {**settings, "eval_episodes": 8, "final_episodes": 32}
        for kind, settings in battle(name, battles.agents(name)).items()
        if kind.startswith("paper")
    }
    return Task(
        f"{battles.REAL}/{name}", f"StarCraft II: {battles.summary(name)}",
        partial(_starcraft, name), battles.LAYOUTS, presets=presets,
        max_parallel=8,
    )  # fmt: skip


def _starcraft(name: str, variant: str) -> HostEnv:
    from fp3o.envs.starcraft2.env import starcraft2_env

    return starcraft2_env(name, variant)


FAMILIES = (Family(battles.REAL, "StarCraft II through SMAC", _real),)
