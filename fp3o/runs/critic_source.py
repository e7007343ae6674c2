"""The critic and the value normaliser in a run's newest checkpoint, as the start of others."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError

from fp3o.algorithms.row import Algorithm
from fp3o.errors import SettingError
from fp3o.learning.config import Config
from fp3o.learning.returns import ValueNorm
from fp3o.learning.setup import Learner, Setup
from fp3o.policy import Card, TrustError
from fp3o.policy.transfer import GroupedArrays
from fp3o.runs.atomic import RunError
from fp3o.runs.checkpoint import from_arrays, to_arrays
from fp3o.runs.checkpoint_files import Checkpoint, arrays_digest, checkpoint_paths, read_checkpoint
from fp3o.runs.directory import RunDirectory
from fp3o.runs.run_config import RunConfig
from fp3o.runs.settings import setting_types
from fp3o.runs.trust import require_trust_in_settings
from fp3o.spec import EnvSpec


class CriticSource(NamedTuple):
    """The critic of one seed of a run."""

    run: Path
    spec: EnvSpec
    critic: GroupedArrays
    value_norm: GroupedArrays
    record: dict[str, Any]
    """What `config.json` keeps of it."""


def read_critic(config: RunConfig, folder: Path, card: Card) -> CriticSource:
    """The critic that was trained with a run's policy, of the seed of that policy."""
    folder = folder.resolve()
    run, seed = folder.parents[2], re.fullmatch("seed-([0-9]+)", folder.parent.name)
    directory = RunDirectory(run)
    if seed is None or not directory.exists():
        raise SettingError(
            f"start_critic needs a run directory: {folder} is a policy alone, which has no critic"
        )
    settings = directory.read_settings()
    learner = _learner(config, settings, run)
    require_same_critic(learner, config.learner, str(run))
    setup = Setup(card.spec, learner)
    checkpoint = _newest(run)
    template = setup.init(0)._replace(actor=(), actor_adam=(), critic_adam=())
    names = {name: f".state.learner{name}" for name in to_arrays(template)}
    row = int(seed[1]) - settings["seed"] if settings["seeds"] > 1 else ...
    try:
        stored = {name: checkpoint.arrays[whole][row] for name, whole in names.items()}
        learner = from_arrays(template, stored)
    except (RunError, LookupError):
        raise SettingError(
            f"the critic of {run} has other inputs or sizes than one of this run: start_critic "
            "needs the same critic, and an algorithm whose critic has the same input"
        ) from None
    record = {"iteration": checkpoint.iteration, "sha256": arrays_digest(stored, {})}
    return CriticSource(run, card.spec, *critic_arrays(setup, learner), record)


def require_same_critic(theirs: Config, ours: Config, owner: str) -> None:
    """Raise unless the critics of two learners are networks of the same class."""
    old, new = (x.critic or x.network for x in (theirs, ours))
    if old != new:
        raise SettingError(f"{owner} has critic={old}, this run critic={new}: set critic={old}")


def critic_arrays(setup: Setup, learner: Learner) -> tuple[GroupedArrays, GroupedArrays]:
    """The arrays of the critic and of the value normaliser of one seed."""
    groups = dict.fromkeys(ValueNorm._fields, setup.critic_sharing[-1])
    moments = {name: np.asarray(x) for name, x in learner.value_norm._asdict().items()}
    critic = GroupedArrays.of(setup, "critic", learner.critic)
    return critic, GroupedArrays(moments, groups, {})


def _learner(config: RunConfig, settings: Mapping[str, Any], run: Path) -> Config:
    """The learner's settings in a run, with the input of the critic of this one."""
    names = {*setting_types(Config)} - {"algorithm"}
    known = {name: x for name, x in settings.items() if name in names}
    try:
        require_trust_in_settings(known, False, run / "config.json", named=config.settings)
    except TrustError:
        raise SettingError(
            f"{run} names a custom network or sharing that this run does not name: import its "
            "module first, or start without its critic"
        ) from None
    row = Algorithm(critic_input=config.learner.row.critic_input)
    return RunConfig().with_settings({**known, "algorithm": row}).learner


def _newest(run: Path) -> Checkpoint:
    """The newest checkpoint that can be read; nothing is changed."""
    for path in reversed(checkpoint_paths(run / "checkpoints")):
        try:
            return read_checkpoint(path)
        except (SafetensorError, ValueError, LookupError, TypeError, OSError):
            continue
    raise RunError(f"{run} has no checkpoint that can be read, and so no critic to start from")
