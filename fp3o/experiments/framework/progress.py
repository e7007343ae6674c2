"""TODO."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from fp3o.experiments.framework.grid import Cell
from fp3o.runs.progress import Display, TrainingStatus, duration_text


class Progress:
    """How far a grid is, and how long it will take: by steps of all seeds done so far."""

    def __init__(self, cells: Sequence[Cell], left: Sequence[Cell], screen: Display):
        self.screen, self.total = screen, len(cells)
        self.number = len(cells) - len(left)
        self.work = {cell.label: cell.config.steps * cell.config.seeds for cell in left}
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
        return duration_text(spent * (total - finished) / finished if finished else float("inf"))


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

    def update(self, status: TrainingStatus) -> None:
        """How far training is, and the grid."""
        status.title = f"{self._grid.number}/{self._grid.total} {self._cell.label}"
        left = self._grid.left(status.done * status.seeds)
        status.numbers["all cells"] = f"{left} left"
        self._screen.update(status)

    def close(self) -> None:
        """No more updates."""
        self._screen.close()
