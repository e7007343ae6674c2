"""The SMAC tasks and their presets."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from fp3o.envs.api import Env
from fp3o.envs.smac.maps import LAYOUTS, MAPS, SMAC, SMACV2, map_summary, num_agents
from fp3o.envs.smac.random_teams import PUBLISHED_TEAMS, RandomTeams
from fp3o.envs.task import Baseline, Family, Preset, Task


def _task(name: str) -> Task | None:
    """The task of a published map."""
    if name not in MAPS:
        return None
    return Task(
        f"{SMAC}/{name}", map_summary(name), partial(_env, name), LAYOUTS, _baselines,
        smac_presets(name), takes_options=True,
    )  # fmt: skip


def _random_teams_task(name: str) -> Task | None:
    """The task of random teams."""
    teams = RandomTeams.parse(name)
    if teams is None:
        return None
    return Task(
        f"{SMACV2}/{name}", teams.summary, partial(_random_teams_env, name), LAYOUTS, _baselines,
        smac_presets(name, teams.num_allies), takes_options=True,
    )  # fmt: skip


def _random_teams_env(name: str, variant: str) -> Env:
    from fp3o.envs.smac.random_env import random_teams_env

    return random_teams_env(name, variant)


def _env(name: str, variant: str) -> Env:
    from fp3o.envs.smac.env import smac_env

    return smac_env(name, variant)


def _baselines(env: Any) -> Sequence[Baseline]:
    from fp3o.envs.smac.scripted import smac_baselines

    return smac_baselines(env)


_COMMON: Preset = {
    "variant": "paper",
    "num_envs": 8,
    "rollout": 400,
    "epochs": 5,
    "minibatches": 1,
    "hidden": (64, 64),
    "gru_size": 64,
    "sequence_length": 10,
    "output_gain": 0.01,
    # The paper's observations end in the agent's one-hot index.
    "agent_id": False,
    "actor_lr": 5e-4,
    "critic_lr": 5e-4,
    "clip_range": 0.2,
    "entropy_coef": 0.01,
    "gamma": 0.99,
    "gae_lambda": 0.95,
    "huber_delta": 10.0,
    "max_grad_norm": 10.0,
    "time_limit": "terminate",
    "seeds": 5,
    "eval_every": 25,
    "eval_episodes": 32,
}
"""Settings common to all maps."""

_MILLION_STEPS: Mapping[str, tuple[int, int, int]] = {
    "bane_vs_bane": (2, 2, 2),
    "2c_vs_64zg": (5, 5, 5),
    "3s5z": (5, 5, 5),
    "5m_vs_6m": (8, 10, 10),
    "corridor": (8, 10, 10),
    "6h_vs_8z": (10, 15, 20),
    # Published for full sharing only.
    "10m_vs_11m": (8, 8, 8),
    "3s5z_vs_3s6z": (12, 12, 12),
}
"""Map -> the paper's millions of steps under full, partial and no sharing; 10 for other maps."""

_FEED_FORWARD_MAPS = ("corridor", "6h_vs_8z")
"""Maps on which the paper's networks have no GRU."""

_SMALL_CLIP_MAPS = ("5m_vs_6m", "3s5z_vs_3s6z")
"""Maps on which ratios are clipped at 0.05 instead of 0.2."""

_MANY_ENVS: Preset = {"num_envs": 256, "rollout": 50, "minibatches": 4, "eval_every": 10}
"""For accelerators: short rollouts of many environments. Minibatches are as large as the paper's
batches, and so are as many gradient steps per environment step."""

_QUICK: Preset = {
    "num_envs": 32, "rollout": 50, "minibatches": 1, "seeds": 1, "eval_every": 25,
    "final_episodes": 100,
}  # fmt: skip
"""For minutes on two cores."""


def smac_presets(name: str, agents: int | None = None) -> Mapping[str, Preset]:
    """The presets of a map: a quick one, those of the paper, and the same with many environments.

    Random teams, which are no map, say how many agents they have.
    """
    settings = {**_COMMON, "clip_range": 0.05 if name in _SMALL_CLIP_MAPS else 0.2}
    if name in _FEED_FORWARD_MAPS:
        settings |= {"gru_size": 0, "sequence_length": 1}
    team = agents or num_agents(name)
    sharings = {"full": {}, "partial": {"head_lr_factor": float(team)}, "none": {}}
    # Large teams are slower.
    presets = {"quick": {**settings, **_QUICK, "sharing": "full", "steps": 300_000 // team}}
    for preset, scale in (("paper", {}), ("many", _MANY_ENVS)):
        for millions, (sharing, extra) in zip(
            _MILLION_STEPS.get(name, (10, 10, 10)), sharings.items(), strict=True
        ):
            presets[preset if sharing == "full" else f"{preset}-{sharing}"] = {
                **settings, **extra, **scale, "sharing": sharing, "steps": millions * 1_000_000,
            }  # fmt: skip
    return presets


FAMILIES = (
    Family(SMAC, "SMAC-style battles", _task, (*MAPS,)),
    Family(SMACV2, "SMACv2-style battles of random teams", _random_teams_task, PUBLISHED_TEAMS),
)
