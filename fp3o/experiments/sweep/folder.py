"""The folder of a sweep: what it is, its journal, its checkpoints and its results.

| file             | contents                                                                 |
|------------------|--------------------------------------------------------------------------|
| `sweep.json`     | the settings of the sweep, versions, commit, device, command             |
| `journal.log`    | optuna's journal of all trials                                           |
| `checkpoints/*`  | the trials in training; each belongs to a length of the journal          |
| `trials.jsonl`   | one line per trial: values, score per seed, state, steps, seconds        |
| `best.json`      | settings of the best trial, for `fp3o train --config`                    |
| `report.html`    | the page of the sweep                                                    |

A sweep continues from its newest checkpoint: the journal is cut back to the length that the
checkpoint states, and what came after it is done again.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from fp3o.experiments.sweep.settings import SweepSettings
from fp3o.experiments.sweep.study import JOURNAL, SweepStudy
from fp3o.runs.atomic import RunError, write_atomically
from fp3o.runs.checkpoint_files import Checkpoint, checkpoint_paths, newest_intact, write_checkpoint
from fp3o.runs.directory import RunDirectory
from fp3o.runs.provenance import provenance_record
from fp3o.runs.start import source_records

SWEEP_FILE, TRIALS_FILE, BEST_FILE = "sweep.json", "trials.jsonl", "best.json"

KEEP = 2
"""Checkpoints that are kept."""

TABLE = "table"
"""Name of the array of a checkpoint that has the places of the trials, as JSON."""


Checkpointed = tuple[Mapping[str, Any], Mapping[str, np.ndarray]]
"""Places of the trials, and their state as named arrays."""


class SweepFolder:
    """The files of a sweep; writing needs `writing()`."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self._files = RunDirectory(self.path)

    def exists(self) -> bool:
        """Whether a sweep was started here."""
        return (self.path / SWEEP_FILE).exists()

    def read(self) -> dict[str, Any]:
        """The content of `sweep.json`."""
        if not self.exists():
            raise RunError(f"{self.path} is not the folder of a sweep: it has no {SWEEP_FILE}")
        return self._files.read_json(SWEEP_FILE)

    def settings(self) -> SweepSettings:
        """The settings of the sweep; code that they name is imported."""
        return SweepSettings.from_record(self.read())

    @contextmanager
    def writing(self, settings: SweepSettings) -> Iterator[None]:
        """Lock the folder, which is made if it does not exist, for a sweep with these settings."""
        if self.exists():
            self._files.lock()
        else:
            self._files.create()
        with self._files.writing():
            if not self.exists():
                agents = settings.base.task_info.spec(settings.base.variant).num_agents
                provenance = provenance_record(settings.base.settings, agents)
                sources = source_records(settings.base)
                self._files.write_json(SWEEP_FILE, {**provenance, **sources, **settings.record})
            elif (record := self.read())["options"] != settings.record["options"]:
                self._files.write_json(SWEEP_FILE, {**record, **settings.record})
            yield

    def save(self, settings: SweepSettings, tick: int, content: Checkpointed) -> None:
        """Write a checkpoint that belongs to the journal as it is now."""
        table, arrays = content
        text = np.frombuffer(json.dumps(table).encode(), np.uint8)
        journal = (self.path / JOURNAL).read_bytes()
        digest = hashlib.sha256(journal).hexdigest()
        folder = self.path / "checkpoints"
        folder.mkdir(exist_ok=True)
        stored = {TABLE: text, **{f"state{name}": x for name, x in arrays.items()}}
        write_checkpoint(
            folder, Checkpoint(tick, len(journal), stored, sweep_digest(settings), digest)
        )
        for old in checkpoint_paths(folder)[:-KEEP]:
            old.unlink()

    def restore(self, settings: SweepSettings) -> tuple[int, Checkpointed] | None:
        """Cut the journal back to the newest checkpoint; None if there is none."""
        path = self.path / JOURNAL
        journal = path.read_bytes() if path.exists() else b""
        try:
            found = newest_intact(self.path / "checkpoints", sweep_digest(settings), journal)
        except RunError as error:
            reason = str(error).partition(" Nothing was changed")[0]
            raise RunError(
                f"{reason} Nothing was changed: restore the files from a copy, or start another "
                "sweep with --out"
            ) from None
        if path.exists():
            os.truncate(path, found.cursor if found else 0)
        if found is None:
            return None
        table = json.loads(found.arrays.pop(TABLE).tobytes())
        arrays = {name.removeprefix("state"): x for name, x in found.arrays.items()}
        return found.iteration, (table, arrays)

    def trials(self) -> list[dict[str, Any]]:
        """The rows of `trials.jsonl`."""
        path = self.path / TRIALS_FILE
        return [*map(json.loads, path.read_text().splitlines())] if path.exists() else []

    def write_results(self, study: SweepStudy) -> None:
        """Write the trials so far and the settings of the best one."""
        rows = "".join(json.dumps(row._asdict()) + "\n" for row in study.records())
        write_atomically(self.path / TRIALS_FILE, rows.encode())
        if best := study.best():
            config = study.settings.trial_config(best.params)
            found = {"trial": best.number, "score": best.score, "scores": best.scores}
            found["measure"] = study.settings.options.measure
            text = json.dumps({"settings": config.settings, "sweep": found}, indent=2)
            write_atomically(self.path / BEST_FILE, f"{text}\n".encode())


def sweep_digest(settings: SweepSettings) -> str:
    """SHA-256 of what defines the trials: everything but their number."""
    record = settings.record
    record["options"] = {**record["options"], "trials": None}
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()
