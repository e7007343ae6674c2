"""Run the cells of an experiment side by side on one GPU, each in its own process.

    python docs/results/side_by_side.py smac-table --scale gpu --out runs/smac --jobs 12 --missing

The tables of battles were made like this: a single run of five seeds leaves most of an H200 idle.
Long cells start first, and a cell starts when its estimated memory is free. After `--seconds`, or
when this program is terminated, all cells save a checkpoint; the same command goes on from there.
Then `fp3o experiment NAME --scale SCALE --out DIR --show` writes the tables. On a cluster, use
`fp3o experiment --on ray --gpus 0.1` instead.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from stored_runs import find_run

from fp3o.experiments.framework.grid import Cell
from fp3o.experiments.framework.options import ExperimentOptions
from fp3o.experiments.framework.run_grid import (
    FAILURES,
    cell_finished,
    run_cell,
    unfinished_cells,
)
from fp3o.experiments.framework.session import experiment_cells, select_cells
from fp3o.runs.progress import duration_text, make_display
from fp3o.runs.signals import stop_signals

COPIES, BASE = 2.4, 3.5
"""GiB per GiB of observations and states in a rollout, and GiB of any program: more than cells with
3 to 27 agents took on an H200."""
SAVE_SECONDS = 60.0
"""Seconds that cells have to save a checkpoint."""


def memory(cell: Cell) -> float:
    """Estimated GiB of GPU memory."""
    config = cell.config
    spec = config.task_info.spec(config.variant)
    rows = config.seeds * config.steps_per_iteration * spec.num_agents
    return BASE + COPIES * 4 * rows * (spec.obs_size + spec.state_size) / 2**30


def work(cell: Cell) -> float:
    """Estimated work; algorithms that update agents in turn take small steps, which are slow."""
    config = cell.config
    agents = config.task_info.spec(config.variant).num_agents
    return config.steps * agents * (2 if config.learner.row.schedule != "simultaneous" else 1)


def steps_done(cell: Cell, out: Path) -> int:
    """Steps of a cell so far."""
    path = out / cell.label / "timing.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return json.loads(lines[-1])["step"] if lines else 0


def chosen_cells(options: Any) -> list[Cell]:
    """The cells of an experiment that the options name; if asked for, only those without a run."""
    experiment = ExperimentOptions(options.name, options.scale, seeds=options.seeds)
    cells = experiment_cells(experiment)
    named = {
        cell.label: cell
        for part in ([options.cell] if options.cell else options.part)
        for cell in select_cells(cells, replace(experiment, part=part))
    }
    return [cell for cell in named.values() if not (options.missing and find_run(cell).exists())]


class SideBySide:
    """Cells that run, wait and have ended."""

    def __init__(self, options: Any, cells: list[Cell]):
        self.options, self.out = options, Path(options.out)
        left = unfinished_cells(cells, self.out, make_display("plain"))
        self.waiting = sorted(left, key=work, reverse=True)
        self.cells = {cell.label: cell for cell in left}
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.started, self.first = time.monotonic(), self._done()

    def run(self) -> bool:
        """Run cells until the time is over or a signal arrives; whether all are finished."""
        shown = self.started
        with stop_signals(lambda _: print("stopping ...", flush=True)) as stop:
            while (self.waiting or self.running) and not stop:
                self._collect()
                self._start()
                if (now := time.monotonic()) - shown >= 60:
                    shown = now
                    print(self._progress(), flush=True)
                if now - self.started >= self.options.seconds:
                    break
                time.sleep(1)
        self._stop()
        left = [label for label, cell in self.cells.items() if not cell_finished(cell, self.out)]
        print(f"{self._progress()}; unfinished: {', '.join(left) or 'none'}", flush=True)
        return not left

    def _stop(self) -> None:
        """Let cells save a checkpoint, then end them."""
        for process in self.running.values():
            process.terminate()
        limit = time.monotonic() + SAVE_SECONDS
        while self.running and time.monotonic() < limit:
            self._collect()
            time.sleep(0.2)
        for process in self.running.values():
            process.kill()

    def _collect(self) -> None:
        for label, process in [*self.running.items()]:
            if process.poll() is not None:
                del self.running[label]
                self._tell(label, process.returncode)

    def _tell(self, label: str, code: int) -> None:
        failure = self.out / FAILURES / f"{label}.txt"
        text = "finished" if cell_finished(self.cells[label], self.out) else f"ended with {code}"
        if failure.exists():
            text = f"FAILED: {failure.read_text().splitlines()[-1][:200]}"
        print(f"{self._clock()} {label} {text}", flush=True)

    def _start(self) -> None:
        for cell in [*self.waiting]:
            used = sum(memory(self.cells[label]) for label in self.running)
            if len(self.running) >= self.options.jobs:
                return
            if self.running and used + memory(cell) > self.options.memory:
                continue
            self.waiting.remove(cell)
            names = [self.options.name, "--scale", self.options.scale, "--out", self.options.out]
            if self.options.seeds:
                names += ["--seeds", str(self.options.seeds)]
            log = self.out / "logs" / f"{cell.label}.txt"
            log.parent.mkdir(parents=True, exist_ok=True)
            with log.open("ab") as file:
                self.running[cell.label] = subprocess.Popen(
                    [sys.executable, __file__, *names, "--cell", cell.label],
                    env={"XLA_PYTHON_CLIENT_PREALLOCATE": "false", **os.environ},
                    stdout=file,
                    stderr=file,
                )
            print(f"{self._clock()} {cell.label} started, {memory(cell):.0f} GiB", flush=True)

    def _done(self) -> int:
        return sum(steps_done(cell, self.out) for cell in self.cells.values())

    def _clock(self) -> str:
        return duration_text(time.monotonic() - self.started)

    def _progress(self) -> str:
        done, total = self._done(), sum(cell.config.steps for cell in self.cells.values())
        rate = (done - self.first) / (time.monotonic() - self.started)
        left = duration_text(max(total - done, 0) / rate) if rate else "-:--"
        text = f"{len(self.running)} running, {len(self.waiting)} waiting"
        return (
            f"{self._clock()} {100 * done / max(total, 1):.1f} % of the steps, {left} left, {text}"
        )


def main() -> int:
    """Run one cell, or all of them side by side."""
    parser = argparse.ArgumentParser(description="Run cells of an experiment side by side.")
    parser.add_argument("name")
    parser.add_argument("--scale", default="gpu")
    parser.add_argument("--out", required=True)
    parser.add_argument(
        "--part", nargs="+", default=[""], help="only cells whose label contains one of these texts"
    )
    parser.add_argument("--missing", action="store_true", help="only cells without a run in runs/")
    parser.add_argument("--seeds", type=int, help="seeds per cell")
    parser.add_argument("--jobs", type=int, default=8, help="cells at a time")
    parser.add_argument("--memory", type=float, default=130.0, help="GiB for all cells together")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="time limit")
    parser.add_argument("--cell", help=argparse.SUPPRESS)
    options = parser.parse_args()
    cells = chosen_cells(options)
    if options.cell:
        return 0 if run_cell(cells[0], Path(options.out), make_display("plain")).finished else 1
    return 0 if SideBySide(options, cells).run() else 1


if __name__ == "__main__":
    raise SystemExit(main())
