"""Custom metrics: declared ones with label, unit and direction, and those nobody declared."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_runs import Page, make

import fp3o
from fp3o.errors import SettingError
from fp3o.reports import read_runs
from fp3o.reports.data.measures import declared_measures, metrics_record
from fp3o.reports.data.metrics import flat_metrics, is_built_in
from fp3o.reports.data.scores import scalar_series, scores_by_task
from fp3o.reports.pages.other_metrics import other_metrics_section

FIGURES: list[str] = []
"""Names of the figures that were drawn."""

pytestmark = pytest.mark.usefixtures("registries")


def add(path: Path, declared: dict[str, Any] | None = None, **metrics: Any) -> Path:
    """Add metrics to every line of a run, and a declaration to its config."""
    lines = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    rows = [{**line, **metrics} if line["iteration"] else line for line in lines]
    (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(config | {"metrics": declared or {}}))
    return path


def section(*paths: Path) -> str:
    """The section on custom metrics of a report."""
    tasks = [("", task) for task in scores_by_task(read_runs(paths))]
    return "".join(other_metrics_section(tasks, lambda _, name: FIGURES.append(name)))


def test_a_declared_metric_has_label_unit_and_the_best_run(tmp_path: Path) -> None:
    """Also in a process that did not declare it: the run says so."""
    declared = {"ratio_mean": {"label": "Mean <ratio>", "unit": "m", "better": "lower"}}
    near = add(make(tmp_path / "a"), declared, ratio_mean=[9.0, 1.25])
    far = add(make(tmp_path / "b", algorithm="mappo"), declared, ratio_mean=[9.0, 2.5])
    text = section(near, far)
    assert "<b>1.25 ± 0 m</b>" in text or "<b>1.25 m</b>" in text, text[:500]
    assert "<td>Mean &lt;ratio&gt;</td>" in text and "2.5" in text and "svg" in text
    assert "The best mean is marked" in text


def test_an_undeclared_metric_is_shown_by_its_key(tmp_path: Path) -> None:
    """Scalars, lists per stage, and per stage and agent; texts are no metrics."""
    path = add(make(tmp_path / "a"), None, my_loss=3.0, each=[[0, 0], [1, 3]], note="text")
    (task,) = scores_by_task(read_runs(path))
    assert {name: scores.measure.title for name, scores in task.other_metrics.items()} == {
        "each": "Each", "my_loss": "My loss",
    }  # fmt: skip
    assert task.other_metrics["each"].last[0].values == pytest.approx([2.0] * 5)
    step, value = scalar_series(task.runs[0], "each")
    assert step.shape == (12,) and np.all(value == 2.0) and value.shape == (5, 12)
    FIGURES.clear()
    assert "marked" not in section(path) and FIGURES == ["metric_each", "metric_my-loss"]


def test_a_report_without_custom_metrics_has_no_such_section(tmp_path: Path) -> None:
    assert section(make(tmp_path / "a")) == ""


def test_an_episode_metric_is_declared_by_its_name(tmp_path: Path) -> None:
    """Its curve is that of the evaluations."""
    path = add(make(tmp_path / "a"), None, eval_gap=0.5, episode_gap=0.75)
    assert section(path) == ""
    fp3o.register_metric("gap", label="Gap between the agents", better="lower")
    text = section(path)
    table = text.partition("<svg")[0]
    assert "<td>Gap between the agents</td>" in table and ">0.5" in table and "0.75" not in table


def test_the_whole_page(tmp_path: Path) -> None:
    """With a chapter, and the figures as files."""
    path = add(make(tmp_path / "a"), None, my_loss=3.0)
    page = Page(fp3o.report(path, tmp_path / "report.html").read_text())
    assert "Other metrics" in page.words and "My loss" in page.words
    assert (tmp_path / "figures" / "metric_my-loss.png").exists()


def test_declarations_are_recorded_and_read_back() -> None:
    fp3o.register_metric("gap", label="Gap", unit="m", better="lower")
    record = json.loads(json.dumps(metrics_record()))
    assert record == {"gap": {"label": "Gap", "unit": "m", "better": "lower"}}
    again = declared_measures({"metrics": {**record, "kl": {"label": "x"}, "won": {}}})
    assert again.keys() == {"gap"}
    assert (again["gap"].axis, again["gap"].unit, again["gap"].better) == ("Gap, m", " m", "lower")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "kl"}, "'kl' is a metric of fp3o itself"),
        ({"name": "eval_gap"}, "without `eval_` and `episode_`"),
        ({"name": "return"}, "'return' is a metric of fp3o itself"),
        ({"name": ""}, "a text of up to 60 characters, got ''"),
        ({"name": "a\nb"}, "a text of up to 60 characters"),
    ],
)
def test_wrong_declarations(arguments: Any, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        fp3o.register_metric(**arguments)


def test_names_for_loggers() -> None:
    """Axes with one entry are left out; lists of unknown axes are numbered."""
    row = {
        "iteration": 1, "step": 2, "seed": 3, "kl": [[0.5]], "gate": [True, False], "mine": [1, 2],
        "ratio_quantiles": [[1, 2, 3, 4, 5]], "eval_won": 0.5, "env_restarts": 1, "episodes": None,
    }  # fmt: skip
    assert dict(flat_metrics(row, ["a"])) == {
        "policy/kl": 0.5, "fp3o/gate/stage_1": 1.0, "fp3o/gate/stage_2": 0.0, "mine/0": 1.0,
        "mine/1": 2.0, "policy/ratio/min": 1.0, "policy/ratio/p5": 2.0, "policy/ratio/median": 3.0,
        "policy/ratio/p95": 4.0, "policy/ratio/max": 5.0, "eval/won": 0.5, "workers/restarts": 1.0,
    }  # fmt: skip
    assert is_built_in("kl") and is_built_in("eval_gap") and not is_built_in("gap")
