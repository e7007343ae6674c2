"""Algorithms as rows and as text; properties of registered schedules and surrogates."""

import dataclasses
import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fp3o
from fp3o.algorithms.registry import SCHEDULES
from fp3o.algorithms.row import Algorithm
from fp3o.algorithms.schedules import pipelines, register_schedule
from fp3o.algorithms.surrogates import joint, register_surrogate
from fp3o.algorithms.table import ALGORITHMS, algorithm_name, parse_algorithm
from fp3o.envs.toys.probe import PROBES
from fp3o.envs.vectorise import VmapEnv
from fp3o.errors import SettingError
from fp3o.learning.config import Config
from fp3o.learning.setup import Setup
from fp3o.training.program import Program

TINY = Config(num_envs=4, rollout=6, hidden=(8,), epochs=1)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_rows_describe_themselves(name: str) -> None:
    row = ALGORITHMS[name]
    assert row.title.lower() == name
    assert row.summary and not row.summary.endswith(".")
    assert all(len(colour) == 7 and colour.startswith("#") for colour in row.colour)


def test_descriptions_are_not_behaviour() -> None:
    """Title, summary and colour count neither for equality nor in the text form."""
    row = dataclasses.replace(ALGORITHMS["fp3o"], title="X", summary="Y", colour=("#000000",) * 2)
    assert row == ALGORITHMS["fp3o"] and hash(row) == hash(ALGORITHMS["fp3o"])
    assert algorithm_name(row) == "fp3o"
    with pytest.raises(SettingError, match="no field 'title'"):
        parse_algorithm("fp3o:title=X")


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("fp3o", {}),
        ("fp3o:", {}),
        ("fp3o:gated=false", {"gated": False}),
        ("fp3o:on_failed_condition=revert,inner_clip=0.5", {"inner_clip": 0.5}),
        ("a2po:inner_clip=none,blocks=2", {"inner_clip": None, "blocks": 2}),
        ("a2po:inner_clip=null", {"inner_clip": None}),
    ],
)
def test_text_and_back(text: str, changes: dict[str, Any]) -> None:
    row = parse_algorithm(text)
    assert {name: getattr(row, name) for name in changes} == changes
    assert parse_algorithm(algorithm_name(row)) == row


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fp3p", "did you mean 'fp3o'"),
        ("fp3o:gatet=false", "did you mean 'gated'"),
        ("fp3o:gated", "field=value"),
        ("no_such_module:row", "cannot be imported"),
        ("fp3o.errors:row", "does not register an algorithm 'row'"),
    ],
)
def test_unreadable_text_is_rejected(text: str, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        parse_algorithm(text)


@pytest.mark.usefixtures("registries")
def test_properties_belong_to_what_is_registered() -> None:
    """A custom schedule and surrogate under other names behave like the built-in ones."""

    @register_schedule(condition_stage=0)
    def my_pipelines(*args: Any) -> Any:
        return pipelines(*args)

    @register_surrogate(differentiates_others=True)
    def my_joint(*args: Any) -> Any:
        return joint(*args)

    def learned(schedule: str, surrogate: str) -> Any:
        row = Algorithm(schedule, surrogate, refresh_ratios=True, on_failed_condition="revert")
        program = Program(VmapEnv(PROBES["credit"], 4), TINY.replace(algorithm=row))
        state, metrics = program.iterate(program.init(0))
        return state.learner, metrics

    built_in, custom = learned("pipelines", "joint"), learned("my_pipelines", "my_joint")
    for x, y in zip(jax.tree.leaves(built_in), jax.tree.leaves(custom), strict=True):
        assert np.array_equal(x, y)
    row = Algorithm("sequential", "my_joint")
    with pytest.raises(SettingError, match="whole team"):
        Setup(PROBES["credit"].spec, TINY.replace(algorithm=row))


@pytest.mark.usefixtures("registries")
def test_the_condition_is_evaluated_after_the_registered_stage() -> None:
    """Stage 0 of FP3O's schedule; the last stage unless a schedule says otherwise."""
    assert SCHEDULES["pipelines"].condition_stage == 0
    assert {SCHEDULES[name].condition_stage for name in ("coupled", "sequential")} == {-1}

    @register_schedule
    def late_condition(key: Any, score: Any, epochs: int, row: Algorithm) -> Any:
        return pipelines(key, score, epochs, row)

    for schedule, stage in (("pipelines", 0), ("late_condition", 1)):
        row = Algorithm(schedule, gated=False)
        config = TINY.replace(algorithm=row, actor_lr=0.5, sharing="none", output_gain=1.0)
        program = Program(VmapEnv(PROBES["credit"], 4), config)
        for seed in range(5):
            _, metrics = program.iterate(program.init(seed))
            gap = metrics["condition_gap"][stage]
            assert bool(metrics["condition_holds"]) == bool(gap >= -1e-5)


def test_titles_need_no_jax() -> None:
    """Reports read titles, colours and sharings without importing JAX."""
    code = (
        "import sys, fp3o; fp3o.ALGORITHMS, fp3o.SHARINGS, fp3o.register_sharing; "
        "import fp3o.sharing.schemes; sys.exit('jax' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_version_is_known() -> None:
    assert fp3o.__version__.count(".") == 2


def test_a_stage_of_one_agent_has_no_coupling() -> None:
    stage = SCHEDULES["coupled"](jax.random.key(0), jnp.zeros(1), 2, ALGORITHMS["coppo"])
    assert stage.coupling.tolist() == [[[0.0]]]
