"""A plan and its flat form: complete, reversible, and strict about what it is given."""

import json
from dataclasses import fields, replace
from pathlib import Path

import pytest

from fp3o.algorithms.table import ALGORITHMS, algorithm, spell
from fp3o.envs.registry import TASKS
from fp3o.learning.config import Config, Rates
from fp3o.runs.run_config import Plan
from fp3o.runs.settings import SETTINGS, change, draft, flatten, read_settings


def test_every_setting_is_explained_once() -> None:
    """The flat form has every field of the three records, each with its docstring."""
    owners = (Plan, Config, Rates)
    names = [item.name for owner in owners for item in fields(owner)]
    assert len(names) == len({*names})
    assert {*SETTINGS} == {*names} - {"config", "rates"}
    assert all(len(setting.help) > 5 for setting in SETTINGS.values())


LARGE = {"mamujoco": "HalfCheetah-6x1", "smac": "3s5z"}
"""One task of a family of many."""
SOME = [name for name in TASKS if name.split("/")[1] in LARGE.get(name.split("/")[0], name)]


@pytest.mark.parametrize("task", SOME)
def test_flat_form_is_complete(task: str) -> None:
    """A plan comes back from JSON as it was, for every preset and with unusual values."""
    for preset in TASKS[task].presets or [None]:
        plan = draft(task, preset)
        num_agents = TASKS[task].spec().num_agents
        odd = {
            "sharing": list(range(num_agents)), "critic_sharing": "full", "value_clip": 0.3,
            "algorithm": "fp3o:inner_clip=0.5,uncertified=revert", "steps": 1e3,
        }  # fmt: skip
        for one in (plan, change(plan, odd)):
            told = json.loads(json.dumps(flatten(one)))
            back = change(Plan(), told)
            assert flatten(back) == told
            assert back.config.row == one.config.row
            assert replace(back.config, algorithm=one.config.row) == replace(
                one.config, algorithm=one.config.row
            )
            back.check()


@pytest.mark.parametrize("name", ALGORITHMS)
def test_algorithms_are_spelled(name: str) -> None:
    """A row and its text are one to one, changed fields included."""
    assert spell(ALGORITHMS[name]) == name
    row = replace(ALGORITHMS[name], sweeps=2, live=True, inner_clip=0.25)
    assert algorithm(spell(row)) == row


def test_presets_hold_the_published_numbers() -> None:
    """The paper's particle settings, spot by spot."""
    for task, steps, epochs in (
        ("mpe/simple_reference", 3_000_000, 15),
        ("mpe/simple_speaker_listener", 2_000_000, 15),
        ("mpe/simple_spread", 20_000_000, 10),
    ):
        plan = draft(task, "paper")
        rates = plan.config.rates
        assert (plan.steps, plan.config.epochs) == (steps, epochs)
        assert (rates.actor_lr, rates.critic_lr, rates.clip, rates.entropy) == (
            7e-4, 7e-4, 0.2, 0.01,
        )  # fmt: skip
        assert (plan.config.num_envs, plan.config.rollout, plan.config.recurrent) == (128, 25, 64)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"algoritm": "fp3o"}, "did you mean 'algorithm'"),
        ({"algorithm": "fp30"}, "did you mean 'fp3o'"),
        ({"algorithm": "fp3o:gatd=false"}, "did you mean 'gated'"),
        ({"num_envs": "8"}, "num_envs must be a whole number, got '8'"),
        ({"num_envs": 8.5}, "whole number"),
        ({"agent_id": 1}, "true or false"),
        ({"hidden": [64, "x"]}, "list of whole numbers"),
        ({"sharing": "partal"}, "did you mean 'partial'"),
        ({"sharing": [0, 1, 2]}, "the task has 2"),
        ({"variant": "papr"}, "did you mean 'paper'"),
        ({"task": "mpe/simple_referense"}, "did you mean 'mpe/simple_reference'"),
        ({"steps": 0}, "steps must be at least 1"),
        ({"keep": 0}, "keep must be at least 1"),
        ({"minibatches": 7}, "minibatches do not divide"),
        ({"actor_lr": -1}, "actor_lr"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, object], message: str) -> None:
    """What was wrong, what is allowed, what was probably meant."""
    with pytest.raises(ValueError, match=message):
        change(draft("mpe/simple_reference"), settings).check()


def test_settings_files(tmp_path: Path) -> None:
    """JSON, TOML and a run's own record; anything else is refused by name."""
    (tmp_path / "a.json").write_text('{"seeds": 3}')
    (tmp_path / "a.toml").write_text('seeds = 3\nsharing = "none"')
    (tmp_path / "config.json").write_text('{"format": 1, "settings": {"seeds": 3}}')
    (tmp_path / "bad.json").write_text("seeds: 3")
    (tmp_path / "list.json").write_text("[3]")
    for name in ("a.json", "a.toml", "config.json"):
        assert read_settings(tmp_path / name)["seeds"] == 3
    for name in ("bad.json", "list.json"):
        with pytest.raises(ValueError, match=name):
            read_settings(tmp_path / name)
