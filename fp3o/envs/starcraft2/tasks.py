"""The tasks in StarCraft II itself."""

from functools import partial

from fp3o.envs.api import HostEnv
from fp3o.envs.smac.maps import LAYOUTS, MAPS, STARCRAFT2, map_summary
from fp3o.envs.smac.random_teams import PUBLISHED_TEAMS, RandomTeams
from fp3o.envs.smac.tasks import smac_presets
from fp3o.envs.task import Family, Preset, Task
from fp3o.errors import SettingError, nearest

_EVALUATIONS: Preset = {"eval_episodes": 8, "final_episodes": 32}
"""Games are slow, and each has a process."""

_QUICK: Preset = {"num_envs": 8, "rollout": 200, "steps": 50_000}


def _real(name: str) -> Task | None:
    """A map of SMAC or random teams of SMACv2; StarCraft II is installed by the user."""
    teams = RandomTeams.parse(name)
    if teams is None and name not in MAPS:
        known = [f"{STARCRAFT2}/{other}" for other in (*MAPS, *PUBLISHED_TEAMS)]
        task = f"{STARCRAFT2}/{name}"
        raise SettingError(f"unknown task {task!r}: {nearest(task, known)}")
    summary = teams.summary if teams else map_summary(name)
    presets = {
        kind: {**settings, **(_QUICK if kind == "quick" else {}), **_EVALUATIONS}
        for kind, settings in smac_presets(name, teams.num_allies if teams else None).items()
        if not kind.startswith("many")
    }
    return Task(
        f"{STARCRAFT2}/{name}", f"StarCraft II: {summary}",
        partial(_starcraft, name), LAYOUTS, presets=presets,
        max_parallel=8,
    )  # fmt: skip


def _starcraft(name: str, variant: str) -> HostEnv:
    from fp3o.envs.starcraft2.env import starcraft2_env

    return starcraft2_env(name, variant)


FAMILIES = (Family(STARCRAFT2, "StarCraft II through SMAC and SMACv2", _real),)
