"""Validation of the settings before anything is compiled or run."""

import dataclasses
import math
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

import numpy as np

from fp3o.algorithms.row import Algorithm
from fp3o.algorithms.schedules import SCHEDULES
from fp3o.algorithms.surrogates import SURROGATES
from fp3o.algorithms.table import FIELDS, read_field
from fp3o.errors import SettingError, nearest
from fp3o.learning.check_networks import MAX_UNITS, check_networks
from fp3o.learning.config import Config
from fp3o.learning.value_schedules import ValueSchedule
from fp3o.networks.actor import STD_PARAM_INIT
from fp3o.networks.mlp import ACTIVATIONS
from fp3o.spec import MAX_LAYERS, EnvSpec

Range = tuple[Callable[[float], bool], str]

_NOT_NEGATIVE: Range = (lambda x: x >= 0, "at least 0")
_POSITIVE: Range = (lambda x: x > 0, "above 0")
_FRACTION: Range = (lambda x: 0 <= x <= 1, "between 0 and 1")
_ANY: Range = (lambda x: True, "a finite number")

NEARBY = 100_000
"""How far from a number its nearest divisors are searched."""

MAX_REPEATS = 1000
"""Largest number of rounds of sequential updates, and of passes of the critic per epoch."""

MAX_SAMPLES = 2**31 - 1
"""Largest number of samples of a rollout, and of epochs: indices are 32-bit integers."""

_REPEATS: Range = (lambda x: 1 <= x <= MAX_REPEATS, f"between 1 and {MAX_REPEATS}")

RANGES: dict[str, Range] = {
    "actor_lr": _NOT_NEGATIVE,
    "critic_lr": _NOT_NEGATIVE,
    "clip_range": _POSITIVE,
    "value_clip": _POSITIVE,
    "entropy_coef": _NOT_NEGATIVE,
    "gamma": _FRACTION,
    "gae_lambda": _FRACTION,
    "save_every": _NOT_NEGATIVE,
    "max_grad_norm": _POSITIVE,
    "huber_delta": _POSITIVE,
    "output_gain": _NOT_NEGATIVE,
    "head_lr_factor": _NOT_NEGATIVE,
    "inner_clip": _NOT_NEGATIVE,
    "clip_slope": _FRACTION,
    "rounds": _REPEATS,
    "critic_passes": _REPEATS,
    "dependent_epochs": (lambda x: 0 <= x <= MAX_SAMPLES, f"between 0 and {MAX_SAMPLES}"),
}
"""Allowed range of the numbers among the settings and the fields of algorithms."""


def check_config(config: Config, spec: EnvSpec) -> None:
    """Reject settings that are incompatible with each other or with the task."""
    _check_counts(config)
    check_numbers(config.hyperparameters)
    check_numbers(config)
    _one_of("activation", config.activation, ACTIVATIONS)
    _one_of("std_param", config.std_param, STD_PARAM_INIT)
    for name in ("time_limit", "advantage_norm", "precision"):
        _one_of(name, getattr(config, name), _choices(Config, name))
    check_networks(config, spec)
    _check_minibatches(config)
    _check_row(config, spec)
    _check_frozen(config.frozen_agents, spec.num_agents)


def _check_frozen(agents: tuple[int, ...], num_agents: int) -> None:
    for agent in agents:
        if not 0 <= agent < num_agents:
            raise SettingError(
                f"frozen_agents: there is no agent {agent}, only 0 to {num_agents - 1}"
            )
    if len({*agents}) < len(agents):
        raise SettingError(f"frozen_agents names an agent twice: {agents}")
    if len(agents) == num_agents:
        raise SettingError(f"frozen_agents has all {num_agents} agents: one at least must learn")


def _check_row(config: Config, spec: EnvSpec) -> None:
    row = config.row
    for name in FIELDS:
        read_field(name, getattr(row, name))
    check_numbers(row)
    _one_of("schedule", row.schedule, SCHEDULES)
    _one_of("surrogate", row.surrogate, SURROGATES)
    for name in ("critic_input", "order", "split", "steps", "on_failed_condition"):
        _one_of(name, getattr(row, name), _choices(Algorithm, name))
    if row.blocks is not None and not 1 <= row.blocks <= spec.num_agents:
        raise SettingError(f"blocks of agents must be 1 to {spec.num_agents}, got {row.blocks}")
    if row.shadow and row.critic_always:
        raise SettingError(
            "shadow discards gated steps, including those of the critic: it cannot be combined "
            "with critic_always"
        )
    needs_team = row.refresh_ratios or SURROGATES[row.surrogate].differentiates_others
    if needs_team and not config.stage_facts(spec).whole_team:
        raise SettingError(
            f"refresh_ratios and the surrogate {row.surrogate!r} need a schedule that updates the "
            "whole team in every stage"
        )


def _check_minibatches(config: Config) -> None:
    if config.rollout % config.sequence_steps:
        raise SettingError(
            f"sequence_length {config.sequence_steps} does not divide the rollout of "
            f"{config.rollout} steps: {_divisors(config.rollout, config.sequence_steps)}"
        )
    sequences = config.num_envs * config.rollout // config.sequence_steps
    if config.num_envs % config.blocks:
        raise SettingError(
            f"{config.blocks} blocks do not divide the {config.num_envs} environments: "
            f"{_divisors(config.num_envs, config.blocks)}"
        )
    if (block := sequences // config.blocks) % config.minibatches and config.blocks > 1:
        raise SettingError(
            f"{config.minibatches} minibatches do not divide the {block} sequences of each of the "
            f"{config.blocks} blocks of environments: {_divisors(block, config.minibatches)}"
        )
    if sequences % config.minibatches:
        raise SettingError(
            f"{config.minibatches} minibatches do not divide the {sequences} sequences of "
            f"{config.num_envs} environments x {config.rollout} steps: "
            f"{_divisors(sequences, config.minibatches)}"
        )


def _check_counts(config: Config) -> None:
    for name in ("num_envs", "blocks", "rollout", "epochs", "minibatches", "sequence_length"):
        value = getattr(config, name)
        if value is not None and value < 1:
            raise SettingError(f"{name} must be at least 1, got {value}")
    if (samples := config.num_envs * config.rollout) > MAX_SAMPLES:
        raise SettingError(
            f"a rollout has at most {MAX_SAMPLES} samples, got {config.num_envs} environments x "
            f"{config.rollout} steps = {samples}: lower num_envs or rollout"
        )
    if config.epochs > MAX_SAMPLES:
        raise SettingError(f"epochs must be at most {MAX_SAMPLES}, got {config.epochs}")
    units = max([config.gru_size, *config.hidden])
    if len(config.hidden) > MAX_LAYERS or units > MAX_UNITS:
        raise SettingError(
            f"networks have at most {MAX_LAYERS} hidden layers of {MAX_UNITS} units, got "
            f"{len(config.hidden)} of up to {units}"
        )
    if config.gru_size < 0 or not config.hidden or min(config.hidden) < 1:
        raise SettingError(
            f"layers need positive sizes, got hidden {config.hidden}, gru_size {config.gru_size}"
        )


def check_numbers(owner: Any) -> None:
    """Reject numbers of a dataclass that are out of range or that float32 cannot hold."""
    for name in (field.name for field in dataclasses.fields(owner)):
        value = getattr(owner, name)
        allowed, description = RANGES.get(name, _ANY)
        if value is None or not (name in RANGES or isinstance(value, float)):
            continue
        scheduled = isinstance(value, ValueSchedule)
        source = f" in its schedule {value.text!r}" if scheduled else ""
        for number in value.values if scheduled else np.ravel(value).tolist():
            if not (math.isfinite(number) and allowed(number)):
                raise SettingError(f"{name} must be {description}, got {number}{source}")
            if not (math.isfinite(single := _float32(number)) and allowed(single)):
                raise SettingError(
                    f"{name} must be {description} as a number of 32 bits, of about 1e-38 to 3e38, "
                    f"got {number}{source}"
                )


def _float32(number: float | int) -> float | int:
    """The number in a program: too large ones become infinite, and tiny ones 0."""
    limits, size = np.finfo(np.float32), abs(number)
    return math.inf if size > float(limits.max) else 0.0 if size < float(limits.tiny) else number


def _one_of(name: str, value: str, allowed: Iterable[str]) -> None:
    options = tuple(allowed)
    if value not in options:
        raise SettingError(f"unknown {name} {value!r}: {nearest(str(value), options)}")


def _choices(owner: type, name: str) -> tuple[str, ...]:
    return owner.__annotations__[name].__args__


def _divisors(number: int, wanted: int) -> str:
    """The divisors of a number nearest to a wanted one, below and above it."""
    below = range(min(wanted, number) - 1, max(0, wanted - NEARBY), -1)
    above = range(wanted + 1, min(number, wanted + NEARBY) + 1)
    near = [[*islice((d for d in side if number % d == 0), 4)] for side in (below, above)]
    found = sorted({1, *near[0], *near[1]})
    return f"its divisors near {wanted} are {', '.join(map(str, found))}"
