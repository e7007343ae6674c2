"""Running a grid: finished cells are skipped, interrupted ones resumed, failures recorded."""

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import jax

from fp3o.experiments.framework.grid import Cell
from fp3o.experiments.framework.progress import GridProgress
from fp3o.experiments.framework.timing import time_iteration
from fp3o.experiments.sweep.batch import BATCH_RESULT, train_batch
from fp3o.runs.directory import RunDirectory, RunError
from fp3o.runs.progress import Display
from fp3o.runs.run import Run
from fp3o.runs.run_config import RunConfig
from fp3o.runs.signals import stop_at_once, stop_signals
from fp3o.runs.train import continue_run, start_run
from fp3o.runs.trust import require_trust_in_settings
from fp3o.sharing.schemes import AUTO

FAILURES = "failures"
"""Folder of errors inside an experiment's folder: one file per failed cell."""

LENGTH_SETTINGS = (
    "steps", "seeds", "seed", "eval_every", "eval_episodes", "final_episodes", "log_every",
    "video_every", "save_every", "keep_checkpoints",
)  # fmt: skip
"""Settings in which a finished cell may differ from the grid: it is shown with its own numbers."""


class CellStatus(NamedTuple):
    """How a cell ended."""

    label: str
    finished: bool
    error: str = ""


class Job(NamedTuple):
    """A kind of work: the file it writes when it is finished, and the function that does it."""

    result: str
    run: Callable[[RunConfig, Path, Display], bool]


def train_cell(config: RunConfig, path: Path, display: Display) -> bool:
    """Start or resume the run of a cell; False if it was stopped."""
    directory = RunDirectory(path)
    if not directory.exists():
        return _finished(start_run(config, path, display, (), with_report=False))
    started = _stored_config(directory.read_settings(), config, path)
    if started.seeds != config.seeds:
        raise RunError(
            f"{path} was started with {started.seeds} seeds, not {config.seeds}: choose another "
            "--out"
        )
    steps = max(started.steps, config.steps)
    return _finished(continue_run(path, display, (), steps, with_report=False))


def _finished(run: Run | None) -> bool:
    assert run is not None, "a cell is trained by one process"
    return run.finished


def time_cell(config: RunConfig, path: Path, display: Display) -> bool:
    """Measure the duration of a few iterations."""
    path.mkdir(parents=True, exist_ok=True)
    with display.waiting("compiling and timing"), stop_at_once():
        timing = time_iteration(config)
    RunDirectory(path).write_json("cell_timing.json", timing)
    return True


JOBS: Mapping[str, Job] = {
    "train": Job("results.json", train_cell),
    "time": Job("cell_timing.json", time_cell),
    "trials": Job(BATCH_RESULT, train_batch),
}
"""Kinds of work of a cell, by name."""


def differing_fields(ours: RunConfig, theirs: RunConfig) -> set[str]:
    """Names of the settings in which two configurations differ and compute something else."""
    one, other = deciding_settings(ours), deciding_settings(theirs)
    return {name for name in one if one[name] != other[name]}


def deciding_settings(config: RunConfig) -> dict[str, Any]:
    """The settings that decide what is computed: without seeds, length, and equal simulators."""
    settings = {name: x for name, x in config.settings.items() if name not in LENGTH_SETTINGS}
    return {**settings, "variant": config.task_info.canonical(settings["variant"])}


def check_cell_folder(cell: Cell, out: Path) -> None:
    """Raise if the folder of a cell contains a run with other settings, finished or not."""
    path = out / cell.label
    if cell.job == "train" and RunDirectory(path).exists():
        record = RunDirectory(path).read_json("config.json")
    elif cell_finished(cell, out):
        record = RunDirectory(path).read_json(JOBS[cell.job].result)["machine"]
    else:
        return
    names = differing_fields(_stored_config(record["settings"], cell.config, path), cell.config)
    if cell.config.learner.sharing == AUTO:  # the folder contains the groups that were found
        names -= {"sharing"}
    if names:
        raise RunError(
            f"{path} contains a run with other settings ({', '.join(sorted(names))}): choose "
            "another --out"
        )


def _stored_config(settings: Mapping[str, Any], ours: RunConfig, path: Path) -> RunConfig:
    """The settings in the folder of a cell, which may name no code but that of the grid."""
    require_trust_in_settings(settings, False, path, named=ours.settings)
    return RunConfig().with_settings(settings)


def cell_finished(cell: Cell, out: Path) -> bool:
    """Whether a cell is finished."""
    return (out / cell.label / JOBS[cell.job].result).exists()


def run_cell(cell: Cell, out: Path, display: Display) -> CellStatus:
    """Run a cell in this process; an error ends the cell, not the grid."""
    failure = out / FAILURES / f"{cell.label}.txt"
    try:
        finished = JOBS[cell.job].run(cell.config.resolve(), out / cell.label, display)
    except Exception as error:
        display.close()
        failure.parent.mkdir(parents=True, exist_ok=True)
        failure.write_text(traceback.format_exc())
        return CellStatus(cell.label, False, f"{type(error).__name__}: {error}")
    finally:
        jax.clear_caches()  # the next cell compiles other programs
    failure.unlink(missing_ok=True)
    return CellStatus(cell.label, finished)


def unfinished_cells(cells: Sequence[Cell], out: Path, display: Display) -> list[Cell]:
    """The cells that are not finished; raises if a folder contains another run."""
    labels = [cell.label for cell in cells]
    assert len({*labels}) == len(labels), "two cells of a grid have the same label"
    for cell in cells:
        check_cell_folder(cell, out)
    left = [cell for cell in cells if not cell_finished(cell, out)]
    if len(left) < len(cells):
        display.say(f"{len(cells) - len(left)} of {len(cells)} cells are already finished")
    return left


def run_grid(cells: Sequence[Cell], out: Path, display: Display) -> bool:
    """Run all unfinished cells one after another; False if a signal stopped it."""
    left = unfinished_cells(cells, out, display)
    progress = GridProgress(cells, left, display)
    with stop_signals(display.say) as stop:
        for cell in left:
            with progress.cell(cell) as cell_display:
                status = run_cell(cell, out, cell_display)
            if status.error:
                display.say(f"{cell.label} FAILED: {status.error.splitlines()[0]}")
            if stop or not (status.finished or status.error):
                return False
    return True


def with_length(cells: Sequence[Cell], settings: Mapping[str, Any]) -> list[Cell]:
    """The cells with other seeds or steps."""
    return [replace(cell, config=cell.config.with_settings(settings)) for cell in cells]
