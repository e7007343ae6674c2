"""Runs that start from saved policies, and frozen partners."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kill_and_resume import differences, environment, interrupted, whole
from probe_runs import StopAfter
from small_runs import SMALL, TASK, read_metrics

import fp3o
from fp3o.cli.train import read_train_options, train_command
from fp3o.cli.train_options import TrainOptions
from fp3o.errors import SettingError
from fp3o.experiments.sweep.lanes import Lanes
from fp3o.policy.export import read_actor
from fp3o.reports.data.record import RunRecord
from fp3o.reports.pages.run_page import provenance_section
from fp3o.runs import trainer
from fp3o.runs.checkpoint_files import read_checkpoint
from fp3o.runs.directory import RunDirectory
from fp3o.runs.run import Run
from fp3o.runs.run_config import RunConfig
from fp3o.runs.train import make_config

SHORT = {**SMALL, "steps": 24, "loggers": ()}
"""One iteration."""


def arrays_of(run: Path, number: int) -> dict[str, np.ndarray]:
    """The arrays of a run's checkpoint."""
    return read_checkpoint(RunDirectory(run).checkpoints()[number]).arrays


def config_for(**settings: Any) -> RunConfig:
    """Settings of a small run with some changed."""
    plain = {name: x for name, x in SMALL.items() if name != "progress"}
    return make_config(TASK).with_settings({**plain, **settings})


def test_a_run_starts_with_the_saved_bits(finished: Run, tmp_path: Path) -> None:
    """Actor, critic and value normaliser of all seeds; optimisers start anew; it is recorded."""
    run = fp3o.train(TASK, out=tmp_path / "run", start_from=finished, start_critic=True, **SHORT)
    start, source = arrays_of(run.path, 0), arrays_of(finished.path, -1)
    rows = {row["seed"]: row["return"] for row in finished.results["last"]}
    best = max(rows, key=lambda seed: rows[seed])
    for part in ("actor", "critic", "value_norm"):
        names = [name for name in start if name.startswith(f".state.learner.{part}")]
        for name in (name for name in names if "adam" not in name):
            np.testing.assert_array_equal(start[name], np.stack([source[name][best]] * 2))
    np.testing.assert_array_equal(start[".best.actor[0]"], start[".state.learner.actor[0]"])
    assert not any(x.any() for name, x in start.items() if "adam" in name)
    record = json.loads((run.path / "config.json").read_text())
    assert record["settings"]["start_from"] == str(finished.path)
    assert record["settings"]["start_agents"] == "0,1,2"
    (found,) = record["sources"]
    assert found["path"] == str((finished.path / f"policy/seed-{best}/last").resolve())
    assert found["agents"] == [[0, 0], [1, 1], [2, 2]]
    assert found["critic"]["iteration"] == 6
    page = str(provenance_section([RunRecord.read(run.path)]))
    assert f"{found['path']} at step 144, with its critic (agents 0 from 0, 1 from 1" in page


def test_a_resumed_run_does_not_need_the_policy(
    finished: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped, the policy deleted, resumed: the same metrics as without."""
    place = shutil.copytree(finished.path / "policy/seed-0/best", tmp_path / "policy")
    settings = {**SMALL, "start_from": place, "loggers": ()}
    straight = fp3o.train(TASK, out=tmp_path / "straight", **settings)
    monkeypatch.setattr(trainer, "stop_signals", StopAfter(2))
    stopped = fp3o.train(TASK, out=tmp_path / "stopped", **settings)
    monkeypatch.undo()
    assert not stopped.finished
    shutil.rmtree(place)
    assert fp3o.resume(stopped.path, progress="quiet", loggers=()).finished
    assert differences(straight.path, stopped.path) == []
    assert read_metrics(straight.path)[0]["eval_return"] is not None


def test_starting_over_needs_the_same_policy(finished: Run, tmp_path: Path) -> None:
    """A run that starts over reads the policy again: the same one, or it is refused."""
    place = tmp_path / "policy"
    shutil.copytree(finished.path / "policy/seed-0/best", place)
    run = fp3o.train(TASK, out=tmp_path / "run", start_from=place, **SHORT)
    before = arrays_of(run.path, 0)[".state.learner.actor[0]"]
    again = fp3o.resume(run.path, restart=True, progress="quiet", loggers=())
    np.testing.assert_array_equal(arrays_of(again.path, 0)[".state.learner.actor[0]"], before)
    shutil.rmtree(place)
    shutil.copytree(finished.path / "policy/seed-1/last", place)
    with pytest.raises(SettingError, match="has changed since this run was created"):
        fp3o.resume(run.path, restart=True, progress="quiet", loggers=())


def test_frozen_partners_play_and_stay(finished: Run, tmp_path: Path) -> None:
    """The saved policy has the whole team: the partners act as in their policy."""
    partner = finished.policy()
    frozen = {1: finished.path, "agent_2": f"{finished.path}:agents=0"}
    run = fp3o.train(TASK, out=tmp_path / "run", frozen=frozen, **{**SHORT, "steps": 48})
    record = json.loads((run.path / "config.json").read_text())
    assert record["settings"]["frozen_agents"] == [1, 2]
    assert [source["agents"] for source in record["sources"]] == [[[1, 1]], [[2, 0]]]
    policy = run.policy("last")
    obs = np.random.default_rng(0).normal(size=(5, 3, policy.card.spec.obs_size))
    obs[:, 2] = obs[:, 0]
    (now, _), (then, _) = policy.distribution(obs), partner.distribution(obs)
    np.testing.assert_array_equal(now[0][:, 1], then[0][:, 1])  # pyright: ignore
    np.testing.assert_allclose(now[0][:, 2], then[0][:, 0], atol=1e-6)  # pyright: ignore
    first, last = (arrays_of(run.path, k)[".state.learner.actor[0]"] for k in (0, -1))
    np.testing.assert_array_equal(first[:, 1:], last[:, 1:])
    assert (first[:, 0] != last[:, 0]).any()
    assert run.evaluate(4)["policies"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"start_agents": "0,0,0"}, "start_agents also needs start_from"),
        ({"start_critic": True}, "start_critic also needs start_from"),
        ({"start_from": "RUN", "start_agents": (0, 1)}, "start_agents has 2 agents, .* has 3"),
        ({"start_from": "RUN", "start_agents": "0,1,7"}, "no agent 7, only 0 to 2"),
        ({"start_from": "RUN", "start_agents": "0,1,agnt_2"}, "did you mean 'agent_2'"),
        ({"start_from": "RUN", "hidden": (4,)}, r"set hidden=\(8,\)"),
        ({"start_from": "RUN", "gru_size": 4, "rollout": 10}, "set gru_size=0"),
        ({"start_from": "RUN/policy", "start_critic": True}, "holds neither"),
        ({"start_from": "POLICY", "start_critic": True}, "a policy alone, which has no critic"),
        ({"start_from": "RUN", "start_critic": True, "algorithm": "ippo"}, "critic of .* inputs"),
        ({"start_from": "RUN", "start_critic": True, "critic": "attention"}, "set critic=mlp_gru"),
        ({"start_from": 3}, "must be a policy folder or a run directory, got 3"),
        ({"start_agents": (0.5,)}, "indices or names of agents"),
        ({"frozen": "RUN"}, "AGENTS=POLICY"),
        ({"frozen": 3}, "AGENTS=POLICY"),
        ({"frozen": {1: "RUN", "1,2": "RUN"}}, "twice"),
        ({"frozen": {1: "RUN:agents=(0,1)"}}, "1 agents but 2 agents of the policy"),
        ({"frozen": {1: "RUN:agent=0"}}, "only agents"),
        ({"frozen": {(0, 1, 2): "RUN"}}, "one at least must learn"),
        ({"frozen": {1: "RUN"}, "hidden": (4,)}, r"set hidden=\(8,\)"),
    ],
)
def test_what_cannot_work_is_refused(
    settings: dict[str, Any], message: str, finished: Run, tmp_path: Path
) -> None:
    """Before anything is written; the message names the setting and what is allowed."""
    policy = tmp_path / "policy"
    shutil.copytree(finished.path / "policy/seed-0/best", policy)
    places = {"RUN": str(finished.path), "POLICY": str(policy)}

    def placed(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: placed(x) for key, x in value.items()}
        if isinstance(value, str):
            for name, place in places.items():
                value = value.replace(name, place)
        return value

    with pytest.raises(fp3o.UserError, match=message):
        config_for(**{name: placed(value) for name, value in settings.items()}).resolve()


def test_other_tasks_are_refused_with_both_sizes(finished: Run) -> None:
    """A task with other observations; a task with another team needs the agents."""
    spread = RunConfig.from_preset("mpe/simple_spread").with_settings({"start_from": finished})
    with pytest.raises(SettingError, match=r"observations of size 2, those of .* have size 18"):
        spread.with_settings({"hidden": (8,)}).resolve()
    team = RunConfig.from_preset("mpe/simple_speaker_listener")
    with pytest.raises(SettingError, match=r"has 3 agents, .* has 2: .* --from-agents 0,1"):
        team.with_settings({"start_from": finished.path}).resolve()


def test_options_of_the_command_line() -> None:
    """`--from` and its relatives are the settings `start_from` and so on; frozen repeats."""
    words = "--from runs/a --from-agents 0,0,1 --from-critic --frozen 1=runs/b --frozen 2=runs/c"
    options = read_train_options(TrainOptions, [TASK, *words.split()], train_command)
    settings = options.settings.config.settings
    assert settings["start_from"] == "runs/a"
    assert settings["start_agents"] == "0,0,1"
    assert settings["start_critic"] is True
    assert settings["frozen"] == ["1=runs/b", "2=runs/c"]


def test_trials_of_a_sweep_start_from_it(finished: Run) -> None:
    """All lanes have the saved policy at first."""
    config = config_for(start_from=finished).resolve()
    lanes = Lanes(config, 2)
    saved = read_actor(finished.policy(), lanes.program.setup)
    for found, wanted in zip(lanes.state.learner.actor, saved, strict=True):
        np.testing.assert_array_equal(found, np.stack([wanted] * 4))


def test_killed_runs_resume_exactly(tmp_path: Path) -> None:
    """After SIGKILL at random times, a run with a start and a partner ends with the same bits."""
    env, steps, source = environment(tmp_path / "cache"), 48 * 20, tmp_path / "source"
    whole(source, TASK, 48 * 2, env)
    start = ("--from", str(source), "--from-critic", "--frozen", f"2={source}:agents=0")
    whole(tmp_path / "whole", TASK, steps, env, start)
    assert len(interrupted(tmp_path / "killed", TASK, steps, 2, env, start)) == 2
    assert differences(tmp_path / "whole", tmp_path / "killed") == []
