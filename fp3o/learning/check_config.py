"""Validation of the settings before anything is compiled or run."""

import math
from collections.abc import Callable, Iterable

import numpy as np

from fp3o.algorithms.row import Algorithm
from fp3o.algorithms.schedules import SCHEDULES
from fp3o.algorithms.surrogates import SURROGATES
from fp3o.errors import SettingError, nearest
from fp3o.learning.config import Config, Hyperparameters
from fp3o.networks.actor import STD_PARAM_INIT
from fp3o.networks.network import ACTIVATIONS
from fp3o.spec import EnvSpec

Range = tuple[Callable[[float], bool], str]

_NOT_NEGATIVE: Range = (lambda x: x >= 0, "at least 0")
_POSITIVE: Range = (lambda x: x > 0, "above 0")
_FRACTION: Range = (lambda x: 0 <= x <= 1, "between 0 and 1")

RANGES: dict[str, Range] = {
    "actor_lr": _NOT_NEGATIVE,
    "critic_lr": _NOT_NEGATIVE,
    "clip_range": _POSITIVE,
    "value_clip": _POSITIVE,
    "entropy_coef": _NOT_NEGATIVE,
    "gamma": _FRACTION,
    "gae_lambda": _FRACTION,
    "max_grad_norm": _POSITIVE,
    "huber_delta": _POSITIVE,
}
"""Allowed range of each hyperparameter."""


def check_config(config: Config, spec: EnvSpec) -> None:
    """Reject settings that are incompatible with each other or with the task."""
    _check_counts(config)
    _check_hyperparameters(config.hyperparameters)
    _one_of("activation", config.activation, ACTIVATIONS)
    _one_of("std_param", config.std_param, STD_PARAM_INIT)
    for name in ("time_limit", "advantage_norm"):
        _one_of(name, getattr(config, name), _choices(Config, name))
    _check_minibatches(config)
    _check_row(config, spec)


def _check_row(config: Config, spec: EnvSpec) -> None:
    row = config.row
    _one_of("schedule", row.schedule, SCHEDULES)
    _one_of("surrogate", row.surrogate, SURROGATES)
    for name in ("critic_input", "order", "split", "steps", "on_failed_condition"):
        _one_of(name, getattr(row, name), _choices(Algorithm, name))
    if row.blocks is not None and not 1 <= row.blocks <= spec.num_agents:
        raise SettingError(f"blocks must be 1 to {spec.num_agents} (agents), got {row.blocks}")
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
            f"{config.rollout} steps: {_divisors(config.rollout)}"
        )
    sequences = config.num_envs * config.rollout // config.sequence_steps
    if sequences % config.minibatches:
        raise SettingError(
            f"{config.minibatches} minibatches do not divide the {sequences} sequences of "
            f"{config.num_envs} environments x {config.rollout} steps: {_divisors(sequences)}"
        )


def _check_counts(config: Config) -> None:
    for name in ("num_envs", "rollout", "epochs", "minibatches", "sequence_length"):
        value = getattr(config, name)
        if value is not None and value < 1:
            raise SettingError(f"{name} must be at least 1, got {value}")
    if config.gru_size < 0 or not config.hidden or min(config.hidden) < 1:
        raise SettingError(
            f"layers need positive sizes, got hidden {config.hidden}, gru_size {config.gru_size}"
        )


def _check_hyperparameters(hparams: Hyperparameters) -> None:
    for name, (allowed, description) in RANGES.items():
        value = getattr(hparams, name)
        for number in () if value is None else np.ravel(value).tolist():
            if not (math.isfinite(number) and allowed(number)):
                raise SettingError(f"{name} must be {description}, got {number}")


def _one_of(name: str, value: str, allowed: Iterable[str]) -> None:
    options = tuple(allowed)
    if value not in options:
        raise SettingError(f"unknown {name} {value!r}: {nearest(str(value), options)}")


def _choices(owner: type, name: str) -> tuple[str, ...]:
    return owner.__annotations__[name].__args__


def _divisors(number: int) -> str:
    divisors = [d for d in range(1, number + 1) if number % d == 0]
    return f"its divisors are {', '.join(map(str, divisors[:12]))}" + ", ..." * (len(divisors) > 12)
