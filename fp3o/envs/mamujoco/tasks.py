"""The MuJoCo tasks and their presets."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from fp3o.envs.api import Env, HostEnv
from fp3o.envs.mamujoco.catalogue import (
    MAMUJOCO,
    body_entry,
    canonical_name,
    listed_names,
    split_name,
    team_size,
)
from fp3o.envs.mamujoco.variant import canonical_variant
from fp3o.envs.task import Baseline, Family, Preset, Task


def _task(name: str) -> Task | None:
    """A task by name; the partition is checked when the environment is made."""
    entry = body_entry(name)
    if entry is None:
        return None
    name = canonical_name(name)
    return Task(
        f"{MAMUJOCO}/{name}", entry.summary, partial(_env, name), entry.profiles,
        baselines=_baselines, presets=_presets(name, "paper" in entry.profiles),
        takes_options=True, canonical=canonical_variant,
    )  # fmt: skip


def _env(name: str, variant: str) -> Env | HostEnv:
    from fp3o.envs.mamujoco.env import mamujoco_env  # importing MuJoCo is slow

    return mamujoco_env(name, variant)


def _baselines(env: Any) -> Sequence[Baseline]:
    """A robot that does not move: an Ant is paid for not falling, and receives that for nothing."""
    return (Baseline("still", "motors at 0", "no torques", role="uninformed", still=True),)


_COMMON: Preset = {
    "variant": "paper",
    "num_envs": 4,
    "rollout": 1000,
    "epochs": 5,
    "minibatches": 32,
    "hidden": (64, 64),
    "output_gain": 0.01,
    # The task appends the one-hot index itself, before it standardises observations.
    "agent_id": False,
    "actor_lr": 1e-5,
    "critic_lr": 3e-4,
    "entropy_coef": 1e-3,
    "gamma": 0.99,
    "gae_lambda": 0.95,
    "huber_delta": 10.0,
    "max_grad_norm": 10.0,
    "time_limit": "terminate",
    "steps": 10_000_000,
    "seeds": 5,
    "eval_every": 25,
    "eval_episodes": 32,
    "final_episodes": 100,
}
"""Settings common to all bodies."""

_QUICK: Preset = {
    "num_envs": 8, "rollout": 250, "minibatches": 4, "actor_lr": 3e-4, "critic_lr": 1e-3,
    "steps": 200_000, "seeds": 1, "eval_every": 20, "eval_episodes": 4, "final_episodes": 20,
}  # fmt: skip
"""For minutes on two cores: larger learning rates, because there are fewer steps."""

_SMALL_CLIP_BODIES = ("Walker2d", "Hopper")
"""Bodies whose ratios are clipped at 0.05 instead of 0.2."""


def _presets(name: str, in_paper: bool) -> Mapping[str, Preset]:
    """The presets of a task.

    Under partial sharing the authors' release multiplies the learning rate of the actor's last
    layer by the number of agents, and so does `paper-partial`.
    """
    clip = 0.05 if split_name(name)[0] in _SMALL_CLIP_BODIES else 0.2
    # Unlike the paper: bootstrapping at time limits, and a one-hot index after raw observations.
    farama = {
        **_COMMON, "clip_range": clip, "variant": "farama", "agent_id": True,
        "time_limit": "bootstrap",
    }  # fmt: skip
    if not in_paper:
        return {"quick": {**farama, **_QUICK}, "farama": farama}
    paper = {**_COMMON, "clip_range": clip}
    return {
        "quick": {**paper, **_QUICK},
        "paper": paper,
        "paper-partial": {**paper, "sharing": "partial", "head_lr_factor": float(team_size(name))},
        "paper-none": {**paper, "sharing": "none"},
        "farama": farama,
    }


FAMILIES = (Family(MAMUJOCO, "Multi-Agent MuJoCo", _task, tuple(listed_names())),)
