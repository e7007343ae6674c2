"""Cooperative multi-agent PPO that works with any parameter sharing.

import fp3o

run = fp3o.train("mpe/simple_speaker_listener", algorithm="fp3o", sharing="partial")
policy = fp3o.Policy.load(run.path)
actions, memory = policy.act(observations, memory)

Names are loaded when they are first used, so a program that only plays a saved policy never
imports JAX.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fp3o.algorithms import (
        ALGORITHMS,
        Algorithm,
        Stage,
        everyone,
        register,
        schedule,
        surrogate,
    )
    from fp3o.check import check_env
    from fp3o.config import Config, Rates, paper_time_limits
    from fp3o.envs.base import Env, Game, Vectorised
    from fp3o.envs.probe import PROBES, probe
    from fp3o.errors import MissingExtraError, NonFiniteError
    from fp3o.evaluation import evaluate
    from fp3o.film import render
    from fp3o.grouping import auto_sharing
    from fp3o.nets import Blueprint, Network, linear
    from fp3o.plan import Plan
    from fp3o.policy import Policy, PolicyError
    from fp3o.program import Program, State
    from fp3o.reports import report
    from fp3o.run import Run, resume, train
    from fp3o.setup import Learner, Setup
    from fp3o.sharing import SHARINGS, share
    from fp3o.spaces import Box, Discrete, EnvSpec
    from fp3o.storage import RunError
    from fp3o.tasks import TASKS, adopt, make
    from fp3o.types import TimeStep

_ROOMS = {
    "algorithms": (
        "ALGORITHMS",
        "Algorithm",
        "Stage",
        "everyone",
        "register",
        "schedule",
        "surrogate",
    ),
    "check": ("check_env",),
    "config": ("Config", "Rates", "paper_time_limits"),
    "envs.base": ("Env", "Game", "Vectorised"),
    "envs.probe": ("PROBES", "probe"),
    "errors": ("MissingExtraError", "NonFiniteError"),
    "evaluation": ("evaluate",),
    "grouping": ("auto_sharing",),
    "nets": ("Blueprint", "Network", "linear"),
    "plan": ("Plan",),
    "policy": ("Policy", "PolicyError"),
    "film": ("render",),
    "reports": ("report",),
    "run": ("Run", "resume", "train"),
    "setup": ("Learner", "Setup"),
    "sharing": ("SHARINGS", "share"),
    "spaces": ("Box", "Discrete", "EnvSpec"),
    "storage": ("RunError",),
    "tasks": ("TASKS", "adopt", "make"),
    "program": ("Program", "State"),
    "types": ("TimeStep",),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = [  # noqa: PLE0604, RUF100
    "ALGORITHMS",
    "PROBES",
    "SHARINGS",
    "TASKS",
    "Algorithm",
    "Blueprint",
    "Box",
    "Config",
    "Discrete",
    "Env",
    "EnvSpec",
    "Game",
    "Learner",
    "MissingExtraError",
    "Network",
    "NonFiniteError",
    "Plan",
    "Policy",
    "PolicyError",
    "Program",
    "Rates",
    "Run",
    "RunError",
    "Setup",
    "Stage",
    "State",
    "TimeStep",
    "Vectorised",
    "adopt",
    "auto_sharing",
    "check_env",
    "evaluate",
    "everyone",
    "linear",
    "make",
    "paper_time_limits",
    "probe",
    "register",
    "render",
    "report",
    "resume",
    "schedule",
    "share",
    "surrogate",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'fp3o' has no attribute {name!r}")
    return getattr(import_module(f"fp3o.{_ROOM_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
