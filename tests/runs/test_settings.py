"""`RunConfig` and its flat form: complete, reversible and validated."""

import json
import math
import os
import re
from dataclasses import fields, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from fp3o.algorithms.table import ALGORITHMS, algorithm_name, parse_algorithm
from fp3o.envs.registry import TASKS
from fp3o.errors import SettingError
from fp3o.learning.config import Config, Hyperparameters
from fp3o.runs.run_config import SETTING_TYPES, RunConfig
from fp3o.runs.settings import read_settings


def test_every_field_is_a_setting() -> None:
    """The flat form has every field of the three dataclasses, under one name each."""
    owners = (RunConfig, Config, Hyperparameters)
    names = [item.name for owner in owners for item in fields(owner)]
    assert len(names) == len({*names})
    assert {*SETTING_TYPES} == {*names} - {"learner", "hyperparameters"}


LARGE = {"mamujoco": "HalfCheetah-6x1", "smac": "3s5z"}
"""One task of a family of many."""
SOME = [name for name in TASKS if name.split("/")[1] in LARGE.get(name.split("/")[0], name)]


@pytest.mark.parametrize("task", SOME)
def test_flat_form_is_complete(task: str) -> None:
    """A configuration round-trips through JSON, for every preset and with unusual values."""
    for preset in TASKS[task].presets or [None]:
        plan = RunConfig.from_preset(task, preset)
        num_agents = TASKS[task].spec().num_agents
        odd = {
            "sharing": list(range(num_agents)), "critic_sharing": "full", "value_clip": 0.3,
            "algorithm": "fp3o:inner_clip=0.5,on_failed_condition=revert", "steps": 1e3,
        }  # fmt: skip
        for one in (plan, plan.with_settings(odd)):
            settings = json.loads(json.dumps(one.settings))
            back = RunConfig().with_settings(settings)
            assert back.settings == settings
            assert back.learner.row == one.learner.row
            assert replace(back.learner, algorithm=one.learner.row) == replace(
                one.learner, algorithm=one.learner.row
            )
            back.check()


@pytest.mark.parametrize("name", ALGORITHMS)
def test_algorithms_are_spelled(name: str) -> None:
    """A row and its text are one to one, changed fields included."""
    assert algorithm_name(ALGORITHMS[name]) == name
    row = replace(ALGORITHMS[name], rounds=2, refresh_ratios=True, inner_clip=0.25)
    assert parse_algorithm(algorithm_name(row)) == row


def test_presets_hold_the_published_numbers() -> None:
    """The paper's settings for the particle tasks."""
    for task, steps, epochs in (
        ("mpe/simple_reference", 3_000_000, 15),
        ("mpe/simple_speaker_listener", 2_000_000, 15),
        ("mpe/simple_spread", 20_000_000, 10),
    ):
        plan = RunConfig.from_preset(task, "paper")
        hparams = plan.learner.hyperparameters
        assert (plan.steps, plan.learner.epochs) == (steps, epochs)
        assert (hparams.actor_lr, hparams.critic_lr, hparams.clip_range, hparams.entropy_coef) == (
            7e-4, 7e-4, 0.2, 0.01,
        )  # fmt: skip
        assert (plan.learner.num_envs, plan.learner.rollout, plan.learner.gru_size) == (128, 25, 64)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"algoritm": "fp3o"}, "did you mean 'algorithm'"),
        ({"algorithm": "fp30"}, "did you mean 'fp3o'"),
        ({"algorithm": "fp3o:gatd=false"}, "did you mean 'gated'"),
        ({"num_envs": "8"}, "num_envs must be an integer, got '8'"),
        ({"num_envs": 8.5}, "integer"),
        ({"agent_id": 1}, "true or false"),
        ({"hidden": [64, "x"]}, "list of integers"),
        ({"sharing": "partal"}, "did you mean 'partial'"),
        ({"sharing": [0, 1, 2]}, "the task has 2"),
        ({"variant": "papr"}, "did you mean 'paper'"),
        ({"task": "mpe/simple_referense"}, "did you mean 'mpe/simple_reference'"),
        ({"steps": 0}, "steps must be at least 1"),
        ({"keep_checkpoints": 0}, "keep_checkpoints must be at least 1"),
        ({"minibatches": 7}, "minibatches do not divide"),
        ({"actor_lr": -1}, "actor_lr"),
        ({"num_envs": 2**63}, "num_envs must be an integer of at most 9223372036854775807"),
        ({"num_envs": 10**5000}, "num_envs must be an integer .* a value of type int"),
        ({"num_envs": float("nan")}, "num_envs must be an integer, got nan"),
        ({"num_envs": [4]}, "num_envs must be an integer, got"),
        ({"num_envs": None}, "num_envs must be an integer, got None"),
        ({"actor_lr": Decimal(1)}, "actor_lr must be a number, got Decimal"),
        ({"actor_lr": 10**400}, "actor_lr must be a number"),
        ({"task": b"x"}, "task must be a string"),
        ({"time_limit": "bootstap"}, "unknown time_limit 'bootstap': did you mean 'bootstrap'"),
        ({"network": ":"}, "is not an import path"),
        ({"seed": 2**32}, "seeds must be integers from 0 to 4294967295, got 4294967296"),
        ({"seed": 2**32 - 1, "seeds": 2}, "got 4294967295 to 4294967296"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"variant": "paper:obsk=1"}, "has no variant 'paper:obsk=1': did you mean 'paper'"),
    ],
    ids=lambda value: ascii(str(value)[:40]) if not isinstance(value, dict) else "-".join(value),
)
def test_bad_settings_are_rejected(settings: dict[str, object], message: str) -> None:
    """The message says what was wrong, what is allowed, and the nearest match."""
    with pytest.raises(ValueError, match=message):
        RunConfig.from_preset("mpe/simple_reference").with_settings(settings).check()


FLOATS = [name for name, hint in SETTING_TYPES.items() if float in (hint, *get_args(hint))]


@pytest.mark.parametrize("name", FLOATS)
def test_numbers_fit_into_32_bits(name: str) -> None:
    """Every number among the settings; one that must be above 0 must not vanish either."""

    def check(value: float) -> None:
        RunConfig.from_preset("probe/credit").with_settings({name: value}).check()

    for value in (math.nan, math.inf, -math.inf, 1e39, 1e300):
        with pytest.raises(SettingError, match=f"{name} must be .* got {re.escape(str(value))}"):
            check(value)
    try:
        check(0.0)
    except SettingError:
        for value in (1e-60, 1e-42):
            with pytest.raises(SettingError, match=f"{name} must be above 0 as a number of 32"):
                check(value)


def test_numbers_of_numpy_are_converted() -> None:
    """Scalars, arrays without axes, and arrays of integers, to plain numbers."""
    given = {
        "num_envs": np.int64(4), "rollout": np.float32(6), "actor_lr": np.array(0.5),
        "agent_id": np.bool_(False), "hidden": np.array([4, 8]), "sharing": np.array([0, 0, 1]),
        "critic_sharing": [np.int64(0)] * 3, "critic_lr": Fraction(1, 2),
    }  # fmt: skip
    settings = RunConfig.from_preset("probe/credit").with_settings(given).check().settings
    assert {name: settings[name] for name in given} == {
        "num_envs": 4, "rollout": 6, "actor_lr": 0.5, "agent_id": False, "hidden": [4, 8],
        "sharing": [0, 0, 1], "critic_sharing": [0, 0, 0], "critic_lr": 0.5,
    }  # fmt: skip


def test_arguments_of_the_wrong_type_are_rejected() -> None:
    with pytest.raises(SettingError, match="task must be a string, got 3"):
        RunConfig.from_preset(3)
    with pytest.raises(SettingError, match="preset must be a string"):
        RunConfig.from_preset("mpe/simple_spread", ["demo"])
    with pytest.raises(SettingError, match="given by its path, got 3"):
        read_settings(3)


def test_odd_settings_files(tmp_path: Path) -> None:
    """Files that are no settings are rejected by name; a pipe is not waited for."""
    contents = {
        "latin.json": b'{"task": "\xe9"}', "deep.json": b"[" * 100_000,
        "twice.json": b'{"a":1,"a":2}',
        "twice.toml": b"a = 1\na = 2", "number.json": b"9" * 5000, "text.json": b'"x"',
        "settings.json": b'{"settings": 3}', "huge.json": b" " * 1_000_001,
        "deep.toml": b"a=" + b"[" * 100_000,
    }  # fmt: skip
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder.json").mkdir()
    os.mkfifo(tmp_path / "pipe.json")
    for name in (*contents, "folder.json", "pipe.json", "missing.json"):
        with pytest.raises(SettingError, match=name):
            read_settings(tmp_path / name)


def test_settings_files(tmp_path: Path) -> None:
    """JSON, TOML, YAML and a run's `config.json`; any other file is rejected by name."""
    (tmp_path / "a.json").write_text('{"seeds": 3}')
    (tmp_path / "a.toml").write_text('seeds = 3\nsharing = "none"')
    (tmp_path / "a.yaml").write_text("seeds: 3\nsharing: none")
    (tmp_path / "a.yml").write_text("settings: {seeds: 3}")
    (tmp_path / "config.json").write_text('{"format": 1, "settings": {"seeds": 3}}')
    (tmp_path / "bad.json").write_text("seeds: 3")
    (tmp_path / "list.json").write_text("[3]")
    for name in ("a.json", "a.toml", "a.yaml", "a.yml", "config.json"):
        assert read_settings(tmp_path / name)["seeds"] == 3
    (tmp_path / "bad.yaml").write_text("seeds: [3")
    (tmp_path / "list.yaml").write_text("- seeds")
    for name in ("bad.json", "list.json", "bad.yaml", "list.yaml"):
        with pytest.raises(ValueError, match=name):
            read_settings(tmp_path / name)
