"""The SMAC-style tasks and their presets."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from fp3o.envs.api import Env
from fp3o.envs.smac import maps as battles
from fp3o.envs.task import Family, Baseline, Preset, Task


def _skirmish(name: str) -> Task | None:
    """A battle of the published maps in the simulator."""
    if name not in battles.MAPS:
        return None
    return Task(
        f"{battles.FAMILY}/{name}", battles.summary(name), partial(_battle, name),
        battles.LAYOUTS, _rules, battle(name, battles.agents(name)),
    )  # fmt: skip


def _battle(name: str, variant: str) -> Env:
    from fp3o.envs.smac.env import smac_env

    return smac_env(name, variant)


def _rules(game: Any) -> Sequence[Baseline]:
    from fp3o.envs.smac.scripted import baselines

    return baselines(game)


BATTLES: Preset = {
    "variant": "paper",
    "num_envs": 8,
    "rollout": 400,
    "epochs": 5,
    "minibatches": 1,
    "hidden": (64, 64),
    "gru_size": 64,
    "sequence_length": 10,
    "output_gain": 0.01,
    # The paper's observations end in the agent's one-hot.
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
"""What battles have in common."""

MILLIONS: Mapping[str, tuple[int, int, int]] = {
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

WITHOUT_MEMORY = ("corridor", "6h_vs_8z")
"""Maps on which the paper's networks have no GRU."""

CAREFUL = ("5m_vs_6m", "3s5z_vs_3s6z")
"""Maps on which ratios are clipped at 0.05 instead of 0.2."""

MANY: Preset = {"num_envs": 256, "rollout": 50, "minibatches": 2, "eval_every": 10}
"""Battles on an accelerator: short rollouts of many environments, four times the paper's batch."""


def battle(name: str, agents: int) -> Mapping[str, Preset]:
    """The presets of a map: the paper's, and the same for many environments at once."""
    clip = 0.05 if name in CAREFUL else 0.2
    memory = {"gru_size": 0, "sequence_length": 1} if name in WITHOUT_MEMORY else {}
    sharings = {"full": {}, "partial": {"head_lr_factor": float(agents)}, "none": {}}
    presets = {}
    for kind, more in (("paper", {}), ("many", MANY)):
        for millions, (sharing, extra) in zip(
            MILLIONS.get(name, (10, 10, 10)), sharings.items(), strict=True
        ):
            presets[kind if sharing == "full" else f"{kind}-{sharing}"] = {
                **BATTLES, "clip_range": clip, **memory, **extra, **more, "sharing": sharing,
                "steps": millions * 1_000_000,
            }  # fmt: skip
    return presets


FAMILIES = (Family(battles.FAMILY, "SMAC-style battles", _skirmish, (*battles.MAPS,)),)
