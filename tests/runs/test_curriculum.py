"""Curricula: stages that start from the one before, skipped, resumed and refused."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from kill_and_resume import differences
from probe_runs import StopAfter
from small_runs import SMALL, TASK

import fp3o
from fp3o.cli import main as cli
from fp3o.errors import SettingError
from fp3o.runs import trainer

SETTINGS: dict[str, Any] = {**SMALL, "loggers": (), "task": TASK}
STAGES = [{"steps": 24}, {"steps": 48, "start_agents": (2, 0, 1), "actor_lr": 1e-3}]


def sources(run: fp3o.Run) -> list[dict[str, Any]]:
    return json.loads((run.path / "config.json").read_text()).get("sources", [])


def test_stages_start_from_the_one_before(tmp_path: Path) -> None:
    """One directory per stage; finished ones are skipped, and stages can be added."""
    first, second = fp3o.curriculum(STAGES, tmp_path / "c", **SETTINGS)
    assert (first.path.name, second.path.name) == ("stage-1", "stage-2")
    assert first.finished
    assert second.finished
    assert sources(first) == []
    (source,) = sources(second)
    assert Path(source["path"]).is_relative_to(first.path.resolve())
    assert source["agents"] == [[0, 2], [1, 0], [2, 1]]
    assert second.settings["actor_lr"] == 1e-3
    written = second.path.stat().st_mtime_ns
    third = fp3o.curriculum([*STAGES, {"steps": 24}], tmp_path / "c", **SETTINGS)[-1]
    assert third.path.name == "stage-3"
    assert second.path.stat().st_mtime_ns == written
    assert Path(sources(third)[0]["path"]).is_relative_to(second.path.resolve())
    assert len(fp3o.curriculum(tmp_path / "c", progress="quiet", loggers=())) == 3
    with pytest.raises(SettingError, match=r"stage 1 of .* other settings: actor_lr was"):
        fp3o.curriculum(STAGES, tmp_path / "c", **{**SETTINGS, "actor_lr": 1e-3})


def test_a_stopped_stage_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped in the second stage and continued by the command: the same bits."""
    expected = fp3o.curriculum(STAGES, tmp_path / "whole", **SETTINGS)
    monkeypatch.setattr(trainer, "stop_signals", StopAfter(1))
    assert not fp3o.curriculum(STAGES, tmp_path / "stopped", **SETTINGS)[-1].finished
    monkeypatch.undo()
    assert cli.main(["curriculum", str(tmp_path / "stopped"), "--quiet", "--loggers", "none"]) == 0
    for run in expected:
        assert differences(run.path, tmp_path / "stopped" / run.path.name) == []


def test_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A settings file: settings of all stages, then the stages; the folder has its name."""
    monkeypatch.chdir(tmp_path)
    values = {name: x for name, x in SMALL.items() if name != "progress"}
    content = {**values, "task": TASK, "stages": [{"steps": 24}, {"steps": 24, "seeds": 1}]}
    Path("lessons.json").write_text(json.dumps(content))
    runs = fp3o.curriculum("lessons.json", progress="quiet", loggers=())
    assert [str(run.path) for run in runs] == ["runs/lessons/stage-1", "runs/lessons/stage-2"]
    assert [len(run.seeds) for run in runs] == [2, 1]


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ([], "needs a list of stages"),
        ([{"task": None}], "stage 1 has no task"),
        ([{}, {"stepps": 3}], "stage 2: unknown setting 'stepps': did you mean 'steps'"),
        ([{}, {"hidden": (4,)}], r"stage 2: stage 1 has a network with hidden=\(8,\)"),
        ([{}, {"task": "probe/roles"}], "stage 2: agent 0 of stage 1 has the actions Discrete"),
        ([{"start_critic": True}], "stage 1: start_critic also needs start_from"),
        ([{}, {"start_from": "runs/nothing"}], "stage 2: runs/nothing does not exist"),
        ([{}, {"frozen": {1: "runs/nothing"}}], "stage 2: runs/nothing does not exist"),
        ([{"sharing": "none"}, {}], "stage 2: agents 0 and 1 share .* start them from the same"),
        (
            [{}, {"start_critic": True, "critic": "attention"}],
            "stage 2: stage 1 has critic=mlp_gru, this run critic=attention: set critic=mlp_gru",
        ),
        ([{}, {"start_critic": True, "algorithm": "ippo"}], "the critic of stage 1 does not fit"),
        (
            [{}, {"task": "mpe/simple_reference", "gru_size": 0, "sequence_length": 1}],
            r"stage 2: stage 1 has 3 agents, .* has 2: say",
        ),
    ],
)
def test_what_cannot_work_is_refused(stages: Any, message: str, tmp_path: Path) -> None:
    """Before the first stage is trained; the message names the stage."""
    with pytest.raises(SettingError, match=message):
        fp3o.curriculum(stages, tmp_path / "c", **SETTINGS)
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize(
    ("stages", "message"),
    [(3, "needs a list of stages, got 3"), ("ab", "list of stages"), (["a"], "names and values")],
)
def test_odd_files(stages: Any, message: str, tmp_path: Path) -> None:
    """Stages that are no list, or no settings."""
    (tmp_path / "stages.json").write_text(json.dumps({"stages": stages}))
    with pytest.raises(SettingError, match=message):
        fp3o.curriculum(tmp_path / "stages.json")


def test_a_folder_that_is_no_curriculum(finished: fp3o.Run) -> None:
    """A run is not one: the message says what is missing."""
    with pytest.raises(SettingError, match=r"is not a curriculum: it has no curriculum.json"):
        fp3o.curriculum(finished.path)


def test_stages_that_began_need_no_policy(tmp_path: Path, finished: fp3o.Run) -> None:
    """Their partners may be deleted; later stages start from them as they were trained."""
    partner = Path(shutil.copytree(finished.path / "policy/seed-0/best", tmp_path / "partner"))
    stages: list[dict[str, Any]] = [{"steps": 24, "frozen": {1: partner}}]
    (run,) = fp3o.curriculum(stages, tmp_path / "c", **SETTINGS)
    shutil.rmtree(partner)
    assert [run.path] == [x.path for x in fp3o.curriculum(stages, tmp_path / "c", **SETTINGS)]
    with pytest.raises(SettingError, match="stage 2: agents 0 and 1 share"):
        fp3o.curriculum([*stages, {}], tmp_path / "c", **SETTINGS)
    other = {"start_from": run.path, "frozen_agents": (1,), "hidden": (4,)}
    with pytest.raises(SettingError, match="stage 3: stage 1 has a network with hidden"):
        fp3o.curriculum([*stages, {"frozen_agents": (1,)}, other], tmp_path / "c", **SETTINGS)


def test_code_in_a_file_needs_trust(tmp_path: Path) -> None:
    """A file of stages that names code to import is refused, like other settings files."""
    file = tmp_path / "stages.json"
    file.write_text(json.dumps({"stages": [{"task": TASK, "network": "my_module:Net"}]}))
    with pytest.raises(fp3o.UserError, match="--trust"):
        fp3o.curriculum(file, tmp_path / "c")
