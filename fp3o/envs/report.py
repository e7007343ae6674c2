"""What one environment of a batch on the host tells after a step or a reset. Needs NumPy only."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fp3o.envs.slate import Field, Form, Reply
from fp3o.spaces import Discrete, EnvSpec


class Report(NamedTuple):
    """What one environment shows after a step or a reset; of many, with an axis in front."""

    obs: np.ndarray
    state: np.ndarray
    legal: np.ndarray
    alive: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    outcome: np.ndarray


def form(spec: EnvSpec) -> Form:
    """What actions and reports have to be."""
    n, choices = spec.actions.mask.shape
    action = Field("action", (n, choices), np.float32)
    if isinstance(spec.actions, Discrete):
        action = Field("action", (n, len(spec.actions.widths)), np.int32)
    shapes = {
        "obs": (n, spec.obs_size), "state": (n, spec.state_size), "legal": (n, choices),
        "alive": (n,), "reward": (n,), "terminated": (), "truncated": (),
        "outcome": (len(spec.outcomes),),
    }  # fmt: skip
    flags = {"legal", "alive", "terminated", "truncated"}
    report = [
        Field(name, shapes[name], np.bool_ if name in flags else np.float32)
        for name in Report._fields
    ]
    return Form(action, tuple(report))


def stack(reports: Sequence[Reply]) -> Report:
    """The reports of all environments, `(e, ...)`."""
    return Report._make(map(np.stack, zip(*reports, strict=True)))
