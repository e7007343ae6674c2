"""Carrying out a grid: what is done is skipped, what was cut goes on, what fails is told."""

import json
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import jax

from fp3o.lab.clock import clock
from fp3o.lab.grid import Cell, Experiment, Found, Scale
from fp3o.plan import Plan, change, flatten
from fp3o.progress import Display, Status
from fp3o.progress import clock as as_clock
from fp3o.reports.exhibit import Exhibit, Failure
from fp3o.reports.read import Run, read_runs
from fp3o.run import plan_of, resume_with, settle, start
from fp3o.runner import stop_signals
from fp3o.sharing import AUTO
from fp3o.storage import RunDirectory, RunError

FAILURES = "failures"
"""The folder of errors inside an experiment's folder: a file a failed cell."""

HOW_LONG = (
    "steps", "seeds", "seed", "eval_every", "eval_episodes", "final_episodes", "log_every",
    "save_every", "keep",
)  # fmt: skip
"""Settings in which a finished cell may differ from its plan: it is shown, with its own numbers."""


class Outcome(NamedTuple):
    """What became of a cell."""

    label: str
    finished: bool
    error: str = ""


class Work(NamedTuple):
    """A kind of work: what it leaves behind when it is done, and how it is done."""

    result: str
    go: Callable[[Plan, Path, Display], bool]


def learn(plan: Plan, path: Path, screen: Display) -> bool:
    """Train, or go on with training; whether it came to its end."""
    directory = RunDirectory(path)
    if not directory.exists():
        return start(plan, path, screen, (), pages=False).finished
    begun = plan_of(directory)
    if begun.seeds != plan.seeds:
        raise RunError(
            f"{path} was begun with {begun.seeds} seeds, not {plan.seeds}: choose another --out"
        )
    steps = max(begun.steps, plan.steps)
    return resume_with(path, screen, (), steps, pages=False).finished


def measure(plan: Plan, path: Path, screen: Display) -> bool:
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


def differing(ours: Plan, theirs: Plan) -> set[str]:
    """Names of the settings in which two plans differ, apart from how long they last."""
    one, other = flatten(ours), flatten(theirs)
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
    names = differing(change(Plan(), record["settings"]), cell.plan)
    if cell.plan.config.sharing == AUTO:  # what it led to stands there
        names -= {"sharing"}
    if names:
        raise RunError(
            f"{path} holds a run with other settings ({', '.join(sorted(names))}): choose "
            "another --out"
        )


def done(cell: Cell, out: Path) -> bool:
    """Whether a cell is finished."""
    return (out / cell.label / WORKS[cell.work].result).exists()


def carry_out(cell: Cell, out: Path, screen: Display) -> Outcome:
    """Do the work of a cell, here and now; an error ends the cell and nothing else."""
    failure = out / FAILURES / f"{cell.label}.txt"
    try:
        finished = WORKS[cell.work].go(settle(cell.plan), out / cell.label, screen)
    except Exception as error:
        screen.close()
        failure.parent.mkdir(parents=True, exist_ok=True)
        failure.write_text(traceback.format_exc())
        return Outcome(cell.label, False, f"{type(error).__name__}: {error}")
    finally:
        jax.clear_caches()  # programs of one cell are of no use to the next
    failure.unlink(missing_ok=True)
    return Outcome(cell.label, finished)


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


def conduct(cells: Sequence[Cell], out: Path, screen: Display) -> bool:
    """Do all cells that are not done, one after the other; False: somebody asked to stop."""
    left = to_do(cells, out, screen)
    whole = Progress(cells, left, screen)
    with stop_signals(lambda _: None) as stop:
        for cell in left:
            with whole.at(cell) as inside:
                outcome = carry_out(cell, out, inside)
            if outcome.error:
                screen.say(f"{cell.label} FAILED: {outcome.error.splitlines()[0]}")
            if stop or not (outcome.finished or outcome.error):
                return False
    return True


class Progress:
    """How far a grid is, and how long it will take: by steps of all seeds done so far."""

    def __init__(self, cells: Sequence[Cell], left: Sequence[Cell], screen: Display):
        self.screen, self.total = screen, len(cells)
        self.number = len(cells) - len(left)
        self.work = {cell.label: cell.plan.steps * cell.plan.seeds for cell in left}
        self.done, self._began = 0.0, time.perf_counter()

    @contextmanager
    def at(self, cell: Cell) -> Iterator[Display]:
        """While a cell is worked at, its display says where it stands in the grid."""
        self.number += 1
        self.screen.say(f"{self.number}/{self.total} {cell.label}")
        yield Inside(self, cell)
        self.done += self.work[cell.label]
        self.screen.close()
        if self.number < self.total:
            self.screen.say(f"{self.number}/{self.total} done, about {self.left()} left")

    def left(self, inside: int | float = 0) -> str:
        """Time left for all cells, given what was done inside the present one."""
        finished, total = self.done + inside, sum(self.work.values())
        spent = time.perf_counter() - self._began
        return as_clock(spent * (total - finished) / finished if finished else float("inf"))


class Inside:
    """The display of a cell inside a grid."""

    def __init__(self, grid: Progress, cell: Cell):
        self._grid, self._cell, self._screen = grid, cell, grid.screen

    def say(self, text: str) -> None:
        """A line; what belongs to single runs only is left out."""
        if "output in" not in text:
            self._screen.say(text)

    def waiting(self, text: str) -> Any:
        """A context in which something of unknown length happens."""
        return self._screen.waiting(text)

    def update(self, status: Status) -> None:
        """How far training is, and the grid."""
        status.title = f"{self._grid.number}/{self._grid.total} {self._cell.label}"
        left = self._grid.left(status.done * status.seeds)
        status.numbers["all cells"] = f"{left} left"
        self._screen.update(status)

    def close(self) -> None:
        """No more updates."""
        self._screen.close()


# What was found ----------------------------------------------------------------------------------


def found(cells: Sequence[Cell], out: Path, command: str = "") -> list[Found]:
    """The finished cells; `command` does all of them again."""
    there = [cell for cell in cells if done(cell, out)]
    for cell in there:
        refuse_another(cell, out)
    trained = {cell.label: out / cell.label for cell in there if cell.work == "train"}
    runs = {run.path.name: run for run in read_runs([*trained.values()])} if trained else {}
    facts = {
        cell.label: json.loads((out / cell.label / WORKS[cell.work].result).read_text())
        for cell in there
        if cell.work != "train"
    }
    return [
        Found(
            cell, out / cell.label, named(runs.get(cell.label), cell, command),
            facts.get(cell.label, {}),
        )
        for cell in there
    ]  # fmt: skip


def named(run: Run | None, cell: Cell, command: str) -> Run | None:
    """A run under the name that its experiment has for it, and how to do it again there."""
    words = " · ".join(filter(None, (cell.variant, cell.sharing, cell.more)))
    if run is None:
        return None
    told = run.settings
    how_long = f"--steps {told['steps']} --seeds {told['seeds']}"
    again = {"command": f"{command} --part {cell.label} {how_long}"} if command else {}
    return replace(run, label=words, config={**run.config, **again})


def exhibit(
    experiment: Experiment, cells: Sequence[Cell], scale: Scale, out: Path, command: str
) -> Exhibit:
    """All that can be said about an experiment now."""
    findings = found(cells, out, command)
    shown = experiment.show(findings)
    there = {item.cell.label for item in findings}
    failed = [
        cell.label
        for cell in cells
        if cell.label not in there and (out / FAILURES / f"{cell.label}.txt").exists()
    ]
    return Exhibit(
        name=experiment.name, title=experiment.title, question=experiment.question,
        claim=experiment.claim, verdict=shown.verdict, command=command, scale=scale,
        tables=shown.tables, pictures=shown.pictures, notes=shown.notes,
        runs=[item.run for item in findings if item.run],
        failures=[Failure(x, (out / FAILURES / f"{x}.txt").read_text().strip()) for x in failed],
        missing=[cell.label for cell in cells if cell.label not in {*there, *failed}],
        machines=machines(findings),
    )  # fmt: skip


def machines(findings: Sequence[Found]) -> str:
    """The devices and versions of all cells, those they were resumed on included."""
    parts: list[Mapping[str, Any]] = []
    for item in findings:
        config = item.run.config if item.run else item.facts["machine"]
        parts += [config, *config.get("resumed", [])]
    devices = dict.fromkeys(str(part["device"]) for part in parts)
    versions = sorted({str(part["versions"]["jax"]) for part in parts})
    return f"{'; '.join(devices)}; jax {', '.join(versions)}" if parts else ""


def shortened(cells: Sequence[Cell], settings: Mapping[str, Any]) -> list[Cell]:
    """The cells with other seeds or steps."""
    return [replace(cell, plan=change(cell.plan, settings)) for cell in cells]
