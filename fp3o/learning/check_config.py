"""TODO."""

import math
from collections.abc import Callable

import numpy as np

from fp3o.algorithms.row import Algorithm
from fp3o.algorithms.schedules import SCHEDULES
from fp3o.algorithms.surrogates import SURROGATES
from fp3o.errors import nearest
from fp3o.learning.config import Config, Hyperparameters
from fp3o.networks.actor import STD_PARAM_INIT
from fp3o.networks.network import ACTIVATIONS
from fp3o.spec import EnvSpec


def check_config(config: Config, spec: EnvSpec) -> None:
    """Refuse settings that cannot work, before anything is compiled or run."""
    row = config.row
    _check_counts(config)
    _check_rates(config.hyperparameters)
    _one_of("activation", config.activation, ACTIVATIONS)
    _one_of("std_param", config.std_param, STD_PARAM_INIT)
    for name in ("time_limit", "advantage_norm"):
        _one_of(name, getattr(config, name), _choices(Config, name))
    _one_of("schedule", row.schedule, SCHEDULES)
    _one_of("surrogate", row.surrogate, SURROGATES)
    for name in ("critic_input", "order", "split", "steps", "on_failed_condition"):
        _one_of(name, getattr(row, name), _choices(Algorithm, name))
    if config.rollout % config.sequence_steps:
        raise ValueError(
            f"chunk length {config.sequence_steps} does not divide the rollout of {config.rollout} "
            f"steps: {_divisors(config.rollout)}"
        )
    sequences = config.num_envs * config.rollout // config.sequence_steps
    if sequences % config.minibatches:
        raise ValueError(
            f"{config.minibatches} minibatches do not divide the {sequences} chunks of "
            f"{config.num_envs} environments x {config.rollout} steps: {_divisors(sequences)}"
        )
    if row.blocks is not None and not 1 <= row.blocks <= spec.num_agents:
        raise ValueError(f"blocks must be 1 to {spec.num_agents} (agents), got {row.blocks}")
    if row.shadow and row.critic_always:
        raise ValueError(
            "a shadow step is forgotten, critic and all: critic_always needs a real one"
        )
    if (row.surrogate == "joint" or row.refresh_ratios) and not config.stage_facts(spec).whole_team:
        raise ValueError("live coupling and the joint surrogate need a schedule of the whole team")


def _check_counts(config: Config) -> None:
    for name in ("num_envs", "rollout", "epochs", "minibatches"):
        if getattr(config, name) < 1:
            raise ValueError(f"{name} must be at least 1, got {getattr(config, name)}")
    if config.sequence_length is not None and config.sequence_length < 1:
        raise ValueError(f"chunk must be at least 1, got {config.sequence_length}")
    if config.gru_size < 0 or not config.hidden or min(config.hidden) < 1:
        raise ValueError(
            f"layers need positive sizes, got hidden {config.hidden}, recurrent {config.gru_size}"
        )


RANGES: dict[str, tuple[Callable[[float], bool], str]] = {
    "actor_lr": (lambda x: x >= 0, "at least 0"),
    "critic_lr": (lambda x: x >= 0, "at least 0"),
    "clip_range": (lambda x: x > 0, "above 0"),
    "value_clip": (lambda x: x > 0, "above 0"),
    "entropy_coef": (lambda x: x >= 0, "at least 0"),
    "gamma": (lambda x: 0 <= x <= 1, "between 0 and 1"),
    "gae_lambda": (lambda x: 0 <= x <= 1, "between 0 and 1"),
    "max_grad_norm": (lambda x: x > 0, "above 0"),
    "huber_delta": (lambda x: x > 0, "above 0"),
}
"""What each rate must satisfy."""


def _check_rates(hparams: Hyperparameters) -> None:
    for name, (holds, words) in RANGES.items():
        value = getattr(hparams, name)
        for number in () if value is None else np.ravel(value).tolist():
            if not (math.isfinite(number) and holds(number)):
                raise ValueError(f"{name} must be {words}, got {number}")


def _one_of(name: str, value: str, allowed: object) -> None:
    options = tuple(allowed)  # pyright: ignore[reportArgumentType]
    if value not in options:
        raise ValueError(f"unknown {name} {value!r}: {nearest(str(value), options)}")


def _choices(owner: type, name: str) -> tuple[str, ...]:
    return owner.__annotations__[name].__args__


def _divisors(number: int) -> str:
    divisors = [d for d in range(1, number + 1) if number % d == 0]
    return f"it has the divisors {', '.join(map(str, divisors[:12]))}" + (
        ", ..." if len(divisors) > 12 else ""
    )
