"""A batch of trials of one program as a cell of a grid: the part of a sweep that a node trains.

The trials of a batch are proposed beforehand. The node gets what the others have been evaluated to,
so that it can prune, and sends back the records of its own.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from fp3o.experiments.sweep.folder import SweepFolder
from fp3o.experiments.sweep.loop import SweepLoop
from fp3o.experiments.sweep.settings import SweepSettings
from fp3o.experiments.sweep.study import TrialRecord
from fp3o.runs.atomic import RunError
from fp3o.runs.directory import RunDirectory
from fp3o.runs.progress import Display
from fp3o.runs.run_config import RunConfig

BATCH_RESULT = "batch_result.json"
"""File of the records of a batch that is finished."""


def write_batch(
    folder: Path, settings: SweepSettings, before: Sequence[TrialRecord], own: Sequence[TrialRecord]
) -> None:
    """Write what a node needs to train some trials; `before` are the trials that have ended."""
    if SweepFolder(folder).exists():
        return  # interrupted: it continues
    trials = len(before) + len(own)
    options = dataclasses.replace(settings.options, trials=trials)
    record = dataclasses.replace(settings, options=options).record
    folder.mkdir(parents=True, exist_ok=True)
    known = [row._asdict() for row in (*before, *own)]
    RunDirectory(folder).write_json("sweep.json", {**record, "known": known})


def train_batch(config: RunConfig, path: Path, display: Display) -> bool:
    """Train the trials of a batch, from its newest checkpoint; False if it was stopped."""
    folder = SweepFolder(path)
    known = [_record(row) for row in folder.read()["known"]]
    settings = folder.settings()
    with folder.writing(settings):
        loop = SweepLoop(settings, folder, display)
        if not loop.study.records():
            for record in known:
                loop.study.add(record)
            loop.queue.waiting = [k for k, row in enumerate(known) if row.state == "waiting"]
        if not loop.run():
            return False
        own = [
            new._replace(number=old.number)
            for old, new in zip(known, loop.study.records(), strict=True)
            if old.state == "waiting"
        ]
        content = {"machine": {"settings": config.settings}, "trials": [x._asdict() for x in own]}
        RunDirectory(path).write_json(BATCH_RESULT, content)
    return True


def read_batch(folder: Path) -> list[TrialRecord]:
    """The records of a batch; empty if it is not finished."""
    try:
        rows = RunDirectory(folder).read_json(BATCH_RESULT)["trials"]
    except RunError:
        return []
    return [_record(row) for row in rows]


def _record(row: dict) -> TrialRecord:
    numbers = {int(number): score for number, score in row["evaluations"].items()}
    return TrialRecord(**{**row, "evaluations": numbers})
