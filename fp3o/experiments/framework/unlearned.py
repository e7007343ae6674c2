"""Tasks and sharings in which nothing was learned: battles are judged by kills, others excluded."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fp3o.experiments.framework.grid import CellResult, CellResults
from fp3o.reports.data.measures import KILLS, WIN_RATE, Measure
from fp3o.reports.phrasing import number_text, sharing_title
from fp3o.reports.stats.intervals import mean_interval

TaskAndSharing = tuple[str, str]


def judge_by_kills(results: CellResults) -> list[CellResult]:
    """The results, with battles judged by kills where no variant wins more than random actions."""
    unlearned = unlearned_cells(results)
    counted = {key for key in unlearned if all(map(_counts_kills, _group(results, key)))}
    return [
        replace(item, judged_by=_kills_of(item)) if _key(item) in counted else item
        for item in results
    ]


def unlearned_cells(results: CellResults) -> dict[TaskAndSharing, str]:
    """Tasks and sharings in which no variant exceeds the uninformed baseline, and its score."""
    floors = {}
    for key in dict.fromkeys(map(_key, results)):
        group = [item for item in _group(results, key) if item.seeds.size]
        if group and not any(map(has_learned, group)):
            floors[key] = _floor_text(group)
    return floors


def has_learned(item: CellResult) -> bool:
    """Whether a cell exceeds the uninformed baseline, if it has one and was evaluated."""
    limit = _limit(item)
    return limit is None or float(np.mean(item.seeds)) > limit


def surely_learned(item: CellResult) -> bool:
    """Whether all of a cell's interval over seeds exceeds that baseline."""
    limit, scores = _limit(item), mean_interval(item.seeds)
    return limit is None or not scores.known or scores.low > limit


def _limit(item: CellResult) -> float | None:
    """The score of the uninformed baseline with its error; None if there is nothing to compare."""
    floor, measure = _floor([item]), item.measure
    if not floor or not item.seeds.size:
        return None
    error = np.nan_to_num(measure.standard_error(floor, int(floor.get("episodes") or 0)))
    return float(measure.value(floor) + 2 * error)


def unlearned_notes(results: CellResults) -> list[str]:
    """Notes on the tasks and sharings that are judged by kills, and on those that are excluded."""
    unlearned = unlearned_cells(results)
    judged = dict.fromkeys(_key(item) for item in results if item.judged_by)
    by_kills = {key: _group(results, key) for key in judged if key not in unlearned}
    return [
        f"{_title(key)} is {not_won(group)}: judged by{group[0].measure.unit}. The best variant "
        f"exceeds {_baseline_text(_floor(group), KILLS)}."
        for key, group in by_kills.items()
    ] + [
        f"{_title(key)} is not learned at this scale: no variant exceeds {floor}. It is excluded "
        "from the verdict."
        for key, floor in unlearned.items()
    ]


def doubtful_notes(results: CellResults) -> list[str]:
    """Notes on the variants of learned tasks that may be no better than the uninformed baseline."""
    unlearned = unlearned_cells(results)
    doubtful: dict[TaskAndSharing, list[CellResult]] = {}
    for item in results:
        if _key(item) not in unlearned and not surely_learned(item):
            doubtful.setdefault(_key(item), []).append(item)
    return [
        f"{_title(key)}: not shown to exceed {_floor_text(group)}: "
        + ", ".join(f"“{item.cell.variant}”" for item in group)
        + "."
        for key, group in doubtful.items()
    ]


def not_won(results: CellResults) -> str:
    """How rarely battles that are judged by kills were won, as a predicate."""
    rows = [row for item in results if item.run for row in item.run.results["last"]]
    wins = max((WIN_RATE.value(row) for row in rows), default=0.0)
    return "not won by anybody" if wins == 0 else "not won more often than by random actions"


def _key(item: CellResult) -> TaskAndSharing:
    return item.cell.task, item.cell.sharing


def _group(results: CellResults, key: TaskAndSharing) -> list[CellResult]:
    return [item for item in results if _key(item) == key]


def _title(key: TaskAndSharing) -> str:
    return f"{key[0]} with {sharing_title(key[1])}"


def _floor(group: CellResults) -> Mapping[str, Any]:
    """Evaluation of the baseline that a policy exceeds if it has learned something; or empty."""
    return group[0].baseline("uninformed") or group[0].baseline("random") or {}


def _floor_text(group: CellResults) -> str:
    return _baseline_text(_floor(group), group[0].measure)


def _baseline_text(floor: Mapping[str, Any], measure: Measure) -> str:
    title = floor.get("title") or "random actions"
    return f"the baseline “{title}” ({number_text(measure.value(floor))}{measure.unit})"


def _counts_kills(item: CellResult) -> bool:
    """Whether a cell is one of battles whose kills were counted."""
    rows = item.run.results["last"] if item.run else []
    return item.task_measure is WIN_RATE and all(np.isfinite(KILLS.value(row)) for row in rows)


def _kills_of(item: CellResult) -> Measure:
    """Kills, with the number of enemies in the unit where the task states it."""
    config = item.cell.config
    enemies = getattr(config.task_info.env(config.variant), "num_enemies", None)
    return KILLS._replace(unit=f" kills of {enemies}" if enemies else " kills")
