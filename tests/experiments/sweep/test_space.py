"""The grammar of searched settings, in text and in Python."""

from typing import Any

import pytest
from small_sweeps import small_settings

import fp3o
from fp3o.errors import SettingError
from fp3o.experiments.sweep.settings import SearchOptions
from fp3o.experiments.sweep.space import (
    ChoiceSet,
    ValueRange,
    grid_points,
    parse_search,
    setting_values,
    space_texts,
)

TEXT = (
    "actor_lr=1e-4..1e-2:log clip_range=0.05..0.4 epochs=5..20:5 gru_size=8..64:log "
    "algorithm=fp3o,mappo:critic_passes=2 hidden=(64,64),(128,) layer_norm=true,false "
    "value_clip=none,0.2 sharing=full,[0,0,1]"
)


def test_text_and_python_mean_the_same() -> None:
    python: dict[str, Any] = {
        "actor_lr": (1e-4, 1e-2, "log"),
        "clip_range": (0.05, 0.4),
        "epochs": (5, 20, 5),
        "gru_size": (8, 64, "log"),
        "algorithm": ["fp3o", "mappo:critic_passes=2"],
        "hidden": [(64, 64), (128,)],
        "layer_norm": [True, False],
        "value_clip": [None, 0.2],
        "sharing": ["full", [0, 0, 1]],
    }
    space = parse_search(TEXT)
    assert parse_search(python) == parse_search(TEXT.split()) == space
    assert parse_search(space_texts(space)) == space
    assert space["actor_lr"] == ValueRange(1e-4, 1e-2, log=True)
    assert space["epochs"] == ValueRange(5, 20, step=5, whole=True)
    assert isinstance(space["hidden"], ChoiceSet)
    chosen = {"hidden": "(128,)", "value_clip": "none", "layer_norm": "false"}
    part = {name: space[name] for name in chosen}
    assert setting_values(part, chosen) == {
        "hidden": (128,), "value_clip": None, "layer_norm": False,
    }  # fmt: skip


def test_digits_of_ranges_are_kept() -> None:
    space = parse_search("actor_lr=0.00012345678..0.1:log")
    assert parse_search(space_texts(space)) == space


@pytest.mark.parametrize(
    ("search", "message"),
    [
        ("actor_rl=1..2", "unknown setting 'actor_rl': did you mean 'actor_lr'"),
        ("actor_lr=2..1", "range 2.0..1.0 of actor_lr is empty"),
        ("actor_lr=1..nan", "actor_lr has no range|needs numbers|must be"),
        ("clip_range=0..1:log", "must start above 0"),
        ("clip_range=0.1..0.3:0.5", "step of clip_range must be above 0 and at most 0.2"),
        ("epochs=1.5..3", "epochs must be an integer, got 1.5"),
        ("algorithm=a..b", "a range of algorithm needs numbers, got 'a'"),
        ("layer_norm=0..1", "layer_norm must be true or false"),
        ("steps=1e3..1e4", "steps cannot be searched"),
        ("task=a,b", "task cannot be searched"),
        ("actor_lr=1e-3", "actor_lr=0.001 is a single value"),
        ("actor_lr=1e-3,0.001", "contain a value twice"),
        ("actor_lr=high,low", "actor_lr must be a number, got 'high'"),
        ("actor_lr", "'actor_lr' is no search: write NAME=VALUES"),
        ({"actor_lr": 1e-3}, "must be a tuple"),
        (["actor_lr=1..2", "actor_lr=2..3"], "searched twice"),
        ({}, "nothing to search"),
    ],
)
def test_mistakes_are_named(search: Any, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        parse_search(search)


def test_values_must_fit_the_task_and_the_other_settings() -> None:
    with pytest.raises(SettingError, match=r"search of clip_range, value -1.0: clip_range must be"):
        small_settings("clip_range=-1..1")
    with pytest.raises(SettingError, match=r"value 'mapo'.*did you mean 'mappo"):
        small_settings("algorithm=fp3o,mapo")
    with pytest.raises(SettingError, match=r"no measure 'wins'.*Known: length, return"):
        small_settings(measure="wins")
    with pytest.raises(SettingError, match="unknown sampler 'tep': did you mean 'tpe'"):
        fp3o.sweep("probe/credit", search="actor_lr=1..2", sampler="tep")
    with pytest.raises(SettingError, match="parallel must be at least 1, got 0"):
        SearchOptions(parallel=0).check()


def test_a_grid_has_all_points_and_changes_hyperparameters_fastest() -> None:
    space = parse_search("clip_range=0.1..0.3:0.1 epochs=1,2 actor_lr=1e-3,1e-2")
    points = grid_points(space)
    assert len(points) == 12 and len({str(point) for point in points}) == 12
    assert [point["epochs"] for point in points] == ["1"] * 6 + ["2"] * 6
    assert {point["clip_range"] for point in points} == {0.1, 0.2, 0.3}
    with pytest.raises(SettingError, match="a grid needs single values of actor_lr"):
        grid_points(parse_search("actor_lr=1e-3..1e-2"))
    assert small_settings("actor_lr=1e-3,1e-2", sampler="grid", trials=None).trials == 2


def test_training_is_rounded_up_to_evenly_spaced_evaluations() -> None:
    settings = small_settings(evaluations=4)  # 6 iterations
    config = settings.trial_config({"actor_lr": 1e-3, "clip_range": 0.2})
    assert (config.eval_every, config.iterations) == (2, 6)
    config = small_settings(evaluations=5).trial_config({"actor_lr": 1e-3, "clip_range": 0.2})
    assert config.iterations % config.eval_every == 0 and config.iterations >= 6
