"""Damaged files of runs: a report of what is left, or an error that names the place."""

import json
import os
import warnings
from pathlib import Path
from typing import Any

import pytest
from campaigns import Campaign
from hypothesis import given
from hypothesis import strategies as st
from report_runs import make

from fp3o.reports import ReportError, RunRecord, read_runs, summary_text
from fp3o.reports.data.scores import scores_by_task
from fp3o.reports.data.timing import elapsed_seconds
from fp3o.reports.marl_eval import marl_eval
from fp3o.reports.pages.run_page import provenance_section, settings_section
from fp3o.reports.phrasing import finding
from fp3o.runs.run import Run

VALUES: tuple[Any, ...] = (
    None, True, -1, 2**70, 10**400, 1e200, float("nan"), "x", "\x1b[2J" * 50, [], [[1]], {},
    {"a": 1}, [None], "9" * 1000,
)  # fmt: skip


def _places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    found = [at] if at else []
    for key, entry in inside:
        deeper = _places(entry, (*at, key)) if isinstance(entry, dict | list) else [(*at, key)]
        found += deeper
    return found


def _damage(path: Path, draw: st.DataObject) -> None:
    """Replace a value somewhere, cut the file, flip a bit, or delete it."""
    content = path.read_bytes()
    kind = draw.draw(st.sampled_from(["value", "value", "value", "cut", "flip", "delete", "link"]))
    if kind == "value":
        lines = [json.loads(line) for line in content.splitlines()]
        k = draw.draw(st.integers(0, len(lines) - 1))
        *at, last = draw.draw(st.sampled_from(_places(lines[k])))
        place = lines[k]
        for key in at:
            place = place[key]
        place[last] = draw.draw(st.sampled_from(VALUES))
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    elif kind == "cut":
        path.write_bytes(content[: draw.draw(st.integers(0, len(content)))])
    elif kind == "flip":
        k, bit = draw.draw(st.integers(0, len(content) - 1)), draw.draw(st.integers(0, 7))
        path.write_bytes(content[:k] + bytes([content[k] ^ 1 << bit]) + content[k + 1 :])
    else:
        path.unlink()
    if kind == "link":
        path.symlink_to(os.devnull if draw.draw(st.booleans()) else __file__)


def test_damaged_files_of_runs(campaign: Campaign, tmp_path: Path) -> None:
    """A report of what is left, or an error that names the file and the place; never a trace."""
    files = ("config.json", "metrics.jsonl", "results.json", "timing.jsonl")
    numbers = iter(range(10**9))

    @given(st.data())
    def attack(draw: st.DataObject) -> None:
        path = make(tmp_path / str(next(numbers)), (-5.0, -6.0), iterations=2, wins=(0.5, 0.7))
        lines = ({"step": 3200 * k, "seconds": 1.5 * k} for k in range(3))
        (path / "timing.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        _damage(path / draw.draw(st.sampled_from(files)), draw)
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", ".* cannot be read: skipped")
                runs = read_runs([path])
                [finding(scores) for scores in scores_by_task(runs)]
                assert settings_section(runs) and provenance_section(runs)
                assert all(line.isprintable() for line in summary_text([path]).split("\n"))
                run = Run.load(path)
                assert repr(run).isprintable() and run._repr_html_()
                json.dumps(marl_eval(runs), allow_nan=False)
            campaign.count("reported")
        except (ReportError, FileNotFoundError) as error:
            assert str(path) in str(error) and str(error).isprintable()
            assert len(str(error)) < 400 + len(str(path))
            campaign.count("refused")

    campaign.attack(attack, small=30, medium=200, whole=4_000)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("config.json", "[1]", "its content must be an object, got a list"),
        ("config.json", '{"format": 2, "settings": 3}', "settings must be an object, got 3"),
        ("results.json", "null", "its content must be an object, got None"),
        ("results.json", '{"last": [{"seed": 0, "return": "x"}]}', r"last\[0\].return must be a"),
        ("results.json", '{"last": [{"seed": 9}]}', r"last\[0\].seed is 9, the seeds of the run"),
        ("results.json", '{"last": [], "baselines": {"a": {"episode_metrics": 1}}}',
         "baselines.a.episode_metrics must be an object, got 1"),
        ("results.json", "[" * 10**5, "nested too deeply"),
    ],
)  # fmt: skip
def test_damage_is_named_with_its_place(
    tmp_path: Path, name: str, content: str, words: str
) -> None:
    """In one sentence."""
    path = make(tmp_path / "run", iterations=1)
    (path / name).write_text(content)
    with pytest.raises(ReportError, match=rf"{name} is damaged: .*{words}"):
        RunRecord.read(path)


@pytest.mark.parametrize(
    "line",
    [b"\xff\xfe", b"[1]", b"[" * 10**5, b'{"step": Infinity, "seconds": 1}',
     b'{"step": 1, "seconds": 1%s}' % (b"0" * 400), b'{"step": "x", "seconds": {}}', b"{}"],
    ids=lambda line: ascii(line[:24]),
)  # fmt: skip
def test_damaged_times_are_skipped(tmp_path: Path, line: bytes) -> None:
    """They are for information only."""
    path = make(tmp_path / "run", iterations=1)
    (path / "timing.jsonl").write_bytes(line + b'\n{"step": 3200, "seconds": 1.5}\n')
    assert elapsed_seconds(path) == {3200: 1.5}
    assert marl_eval(read_runs([path]))


def test_numbers_in_metrics_that_are_none(tmp_path: Path) -> None:
    """They count as missing; lines without a place, or of an unknown seed, are skipped."""
    path = make(tmp_path / "run", (-5.0,), iterations=1)
    rows: list[dict[str, Any]] = [
        {"iteration": 2, "step": 6400, "seed": 0, "eval_return": 10**400, "kl": {"a": "b"}},
        {"iteration": 3, "step": 9600, "seed": 7, "eval_return": 1.0},
        {"iteration": "4", "step": 9600, "seed": 0, "eval_return": 1.0},
        {"iteration": 5, "step": 10**300, "seed": 0, "eval_return": 1.0},
        {"iteration": 6, "step": 9600, "seed": 0, "eval_return": float("nan")},
    ]
    with (path / "metrics.jsonl").open("a") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    with pytest.warns(UserWarning, match="cannot be read: skipped") as warned:
        run = RunRecord.read(path)
    assert len(warned) == 3
    assert run.series("eval_return").step.tolist() == [0, 3200] and run.series("kl").step.size == 0
    assert scores_by_task([run])
