"""Progress of a grid on the terminal."""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from fp3o.experiments.framework.grid import Cell
from fp3o.runs.progress import Display, TrainingStatus, duration_text


class GridProgress:
    """Number of finished cells and the time left, estimated from steps of all seeds."""

    def __init__(self, cells: Sequence[Cell], left: Sequence[Cell], display: Display):
        self.display, self.total = display, len(cells)
        self.number = len(cells) - len(left)
        self.steps = {cell.label: cell.config.steps * cell.config.seeds for cell in left}
        self.done, self._started = 0.0, time.perf_counter()

    @contextmanager
    def cell(self, cell: Cell) -> Iterator[Display]:
        """Context of one cell: a display that also shows the progress of the grid."""
        self.number += 1
        self.display.say(f"{self.number}/{self.total} {cell.label}")
        yield CellDisplay(self, cell)
        self.done += self.steps[cell.label]
        self.display.close()
        if self.number < self.total:
            self.display.say(f"{self.number}/{self.total} done, about {self.time_left()} left")

    def time_left(self, current: int | float = 0) -> str:
        """Time left for all cells, given the steps done in the current one."""
        finished, total = self.done + current, sum(self.steps.values())
        spent = time.perf_counter() - self._started
        return duration_text(spent * (total - finished) / finished if finished else math.inf)


class CellDisplay:
    """Display of a run inside a grid."""

    def __init__(self, grid: GridProgress, cell: Cell):
        self._grid, self._cell, self._display = grid, cell, grid.display

    def say(self, text: str) -> None:
        """Print a line, except the path of the single run."""
        if "output in" not in text:
            self._display.say(text)

    def waiting(self, text: str) -> Any:
        """Context of work of unknown duration."""
        return self._display.waiting(text)

    def update(self, status: TrainingStatus) -> None:
        """Show the progress of the run and of the grid."""
        status.title = f"{self._grid.number}/{self._grid.total} {self._cell.label}"
        left = self._grid.time_left(status.done * status.seeds)
        status.numbers["all cells"] = f"{left} left"
        self._display.update(status)

    def close(self) -> None:
        """End the updates."""
        self._display.close()
