"""Order and labels of several runs in tables and figures."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fp3o.errors import SettingError, printable
from fp3o.reports.data.files import ReportError
from fp3o.reports.data.record import MOST_NAME, RunRecord
from fp3o.sharing.schemes import SHARINGS

RunPath = str | os.PathLike[str]
"""A run directory, or a run itself."""


def read_runs(runs: RunPath | Iterable[RunPath]) -> list[RunRecord]:
    """Read one or more run directories and label them; one given twice is read once."""
    paths = [runs] if isinstance(runs, str | os.PathLike) else _as_list(runs)
    if not paths:
        raise ReportError("no run was given: name one or more run directories")
    for path in paths:
        if not isinstance(path, str | os.PathLike):
            raise _not_runs(path)
    unique = {Path(path).resolve(): Path(path) for path in paths}
    return label_runs([RunRecord.read(path) for path in unique.values()])


def _as_list(runs: Any) -> list[Any]:
    if not isinstance(runs, Iterable):
        raise _not_runs(runs)
    return [*runs]


def _not_runs(given: Any) -> SettingError:
    return SettingError(
        "a report is about runs, because a policy alone has no metrics: give a run, the path of a "
        f"run directory, or a list of them, got a {type(given).__name__}"
    )


def label_runs(runs: Sequence[RunRecord]) -> list[RunRecord]:
    """Sort runs by task, sharing and algorithm, and give each a distinct label.

    Labels read `FP3O · partial`. Runs that would share one get the settings in which they differ,
    or else the name of their directory.
    """
    runs = sorted(runs, key=_sort_key)
    short = [f"{run.algorithm} · {run.sharing}" for run in runs]
    labels = []
    for run, label in zip(runs, short, strict=True):
        pairs = zip(runs, short, strict=True)
        same = [other for other, name in pairs if (other.task, name) == (run.task, label)]
        keys = differing_settings(same)
        extra = ", ".join(f"{key}={run.settings.get(key)}" for key in keys)
        if len(same) > 1 and (not 1 <= len(keys) <= 2 or len(extra) > 40):
            extra = run.path.resolve().name
        extra = printable(extra, MOST_NAME)
        labels.append(f"{label} · {extra}" if extra else label)
    return [replace(run, label=label) for run, label in zip(runs, labels, strict=True)]


def differing_settings(runs: Sequence[RunRecord]) -> list[str]:
    """Names of the settings that are not the same in all runs."""
    keys = dict.fromkeys(key for run in runs for key in run.settings)
    return [key for key in keys if len({repr(run.settings.get(key)) for run in runs}) > 1]


def _sort_key(run: RunRecord) -> tuple[Any, ...]:
    sharing = run.settings.get("sharing")
    place = [*SHARINGS, sharing].index(sharing)
    return run.task, place, run.sharing, run.algorithm_title, run.algorithm
