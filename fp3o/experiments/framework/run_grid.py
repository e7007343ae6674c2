"""Carrying out a grid: what is done is skipped, what was cut goes on, what fails is told."""

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import jax

from fp3o.experiments.framework.grid import Cell
from fp3o.experiments.framework.progress import Progress
from fp3o.experiments.framework.timing import clock
from fp3o.runs.directory import RunDirectory, RunError
from fp3o.runs.progress import Display
from fp3o.runs.train import continue_run, start_run
from fp3o.runs.run_config import RunConfig
from fp3o.runs.signals import stop_signals
from fp3o.sharing.schemes import AUTO

FAILURES = "failures"
"""The folder of errors inside an experiment's folder: a file a failed cell."""

HOW_LONG = (
    "steps", "seeds", "seed", "eval_every", "eval_episodes", "final_episodes", "log_every",
    "save_every", "keep",
)  # fmt: skip
"""Settings in which a finished cell may differ from its plan: it is shown, with its own numbers."""


class CellStatus(NamedTuple):
    """What became of a cell."""

    label: str
    finished: bool
    error: str = ""


class Work(NamedTuple):
    """A kind of work: what it leaves behind when it is done, and how it is done."""

    result: str
    go: Callable[[RunConfig, Path, Display], bool]


def learn(plan: RunConfig, path: Path, screen: Display) -> bool:
    """Train, or go on with training; whether it came to its end."""
    directory = RunDirectory(path)
    if not directory.exists():
        return start_run(plan, path, screen, (), with_report=False).finished
    begun = RunConfig().with_settings(directory.read_settings())
    if begun.seeds != plan.seeds:
        raise RunError(
            f"{path} was begun with {begun.seeds} seeds, not {plan.seeds}: choose another --out"
        )
    steps = max(begun.steps, plan.steps)
    return continue_run(path, screen, (), steps, with_report=False).finished


def measure(plan: RunConfig, path: Path, screen: Display) -> bool:
    """Take the time of a few iterations."""
    path.mkdir(parents=True, exist_ok=True)
    with screen.waiting("compiling and taking the time"):
        found = clock(plan)
    RunDirectory(path).write_json("clock.json", found)
    return True


WORKS: Mapping[str, Work] = {
    "train": Work("results.json", learn),
    "clock": Work("clock.json", measure),
}
"""What cells can ask for."""


def differing(ours: RunConfig, theirs: RunConfig) -> set[str]:
    """Names of the settings in which two plans differ, apart from how long they last."""
    one, other = ours.settings, theirs.settings
    return {name for name in one if one[name] != other[name]} - {*HOW_LONG}


def refuse_another(cell: Cell, out: Path) -> None:
    """Raise if a cell's folder holds something else, finished or not."""
    path = out / cell.label
    if cell.work == "train" and RunDirectory(path).exists():
        record = RunDirectory(path).read_json("config.json")
    elif done(cell, out):
        record = RunDirectory(path).read_json(WORKS[cell.work].result)["machine"]
    else:
        return
    names = differing(RunConfig().with_settings(record["settings"]), cell.config)
    if cell.config.learner.sharing == AUTO:  # what it led to stands there
        names -= {"sharing"}
    if names:
        raise RunError(
            f"{path} holds a run with other settings ({', '.join(sorted(names))}): choose "
            "another --out"
        )


def done(cell: Cell, out: Path) -> bool:
    """Whether a cell is finished."""
    return (out / cell.label / WORKS[cell.work].result).exists()


def run_cell(cell: Cell, out: Path, screen: Display) -> CellStatus:
    """Do the work of a cell, here and now; an error ends the cell and nothing else."""
    failure = out / FAILURES / f"{cell.label}.txt"
    try:
        finished = WORKS[cell.work].go(cell.config.resolve(), out / cell.label, screen)
    except Exception as error:
        screen.close()
        failure.parent.mkdir(parents=True, exist_ok=True)
        failure.write_text(traceback.format_exc())
        return CellStatus(cell.label, False, f"{type(error).__name__}: {error}")
    finally:
        jax.clear_caches()  # programs of one cell are of no use to the next
    failure.unlink(missing_ok=True)
    return CellStatus(cell.label, finished)


def to_do(cells: Sequence[Cell], out: Path, screen: Display) -> list[Cell]:
    """The cells that are not done; an error where a folder holds something else."""
    labels = [cell.label for cell in cells]
    assert len({*labels}) == len(labels), "two cells of a grid have the same name"
    for cell in cells:
        refuse_another(cell, out)
    left = [cell for cell in cells if not done(cell, out)]
    if len(left) < len(cells):
        screen.say(f"{len(cells) - len(left)} of {len(cells)} cells are done already")
    return left


def run_grid(cells: Sequence[Cell], out: Path, screen: Display) -> bool:
    """Do all cells that are not done, one after the other; False: somebody asked to stop."""
    left = to_do(cells, out, screen)
    whole = Progress(cells, left, screen)
    with stop_signals(lambda _: None) as stop:
        for cell in left:
            with whole.at(cell) as inside:
                outcome = run_cell(cell, out, inside)
            if outcome.error:
                screen.say(f"{cell.label} FAILED: {outcome.error.splitlines()[0]}")
            if stop or not (outcome.finished or outcome.error):
                return False
    return True


def shortened(cells: Sequence[Cell], settings: Mapping[str, Any]) -> list[Cell]:
    """The cells with other seeds or steps."""
    return [replace(cell, config=cell.config.with_settings(settings)) for cell in cells]
