"""Where units can walk, how far walls are, and which way leads where."""

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from fp3o.envs.smac import terrain_data as grounds

SIZE = 32
"""Cells of a side of a map; the middle is SMAC's origin."""
FINE = 4
"""Samples a cell, along each axis, of the distance to the next wall."""
STRAIGHT = 8
"""In a table of routes: nothing is in the way."""
COMPASS = np.array([(1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1)])
"""The eight ways to a neighbouring cell."""


@dataclass(frozen=True, eq=False)
class Terrain:
    """The ground of a map. Arrays of cells are indexed `[x, y]`."""

    level: np.ndarray
    """0 the abyss, 1 and 2 the ground, 3 a ramp between them."""

    @cached_property
    def walkable(self) -> np.ndarray:
        """Cells that are not beside a cliff.

        The game's own grid can only be asked of the game; in the files it lies between the cells
        with ground and the cells without a cliff. This is the ground less a cell at every cliff.
        """
        inner = self.level > 0
        padded = np.pad(self.level, 1, mode="edge")
        for x, y in COMPASS.tolist():
            beside = padded[1 + x : 1 + x + SIZE, 1 + y : 1 + y + SIZE]
            ramp = (beside == 3) | (self.level == 3)
            inner = inner & (beside > 0) & ((beside == self.level) | ramp)
        return inner

    @cached_property
    def over_cliffs(self) -> np.ndarray:
        """Cells for those that step over cliffs: all but those beside the abyss."""
        padded = np.pad(self.level > 0, 1, mode="edge")
        parts = [padded[1 + x : 1 + x + SIZE, 1 + y : 1 + y + SIZE] for x, y in COMPASS.tolist()]
        return np.logical_and.reduce([self.level > 0, *parts])

    @cached_property
    def box(self) -> tuple[float, float, float, float] | None:
        """Left, right, bottom and top of a walkable rectangle, if it is one."""
        xs, ys = np.nonzero(self.walkable)
        left, right, bottom, top = xs.min(), xs.max() + 1, ys.min(), ys.max() + 1
        full = (right - left) * (top - bottom) == len(xs)
        return (float(left), float(right), float(bottom), float(top)) if full else None

    @cached_property
    def routes(self) -> np.ndarray | None:
        """(1024, 1024): the way from a cell to a cell, as a number of `COMPASS` or `STRAIGHT`.

        None where every two cells see each other.
        """
        free = self.walkable
        if self.box is not None:
            return None
        clear = sees(free)
        inside = free.ravel()
        if clear[np.ix_(inside, inside)].all():
            return None
        away = distances(free)
        best, way = np.full(away.shape, np.inf), np.full(away.shape, STRAIGHT, np.int8)
        for number, (x, y) in enumerate(COMPASS.tolist()):
            step = np.hypot(x, y) + _beside(away, x, y, np.inf)
            step = np.where(_open(free, x, y).ravel()[:, None], step, np.inf)
            way, best = np.where(step < best, number, way), np.minimum(step, best)
        return np.where(clear | ~np.isfinite(best), STRAIGHT, way).astype(np.int8)


def clearance(free: np.ndarray) -> np.ndarray:
    """(3, fine, fine): distance to the next wall (below 0 inside of one), and the way from it."""
    count = SIZE * FINE
    middle = (np.arange(count) + 0.5) / FINE
    points = np.stack(np.meshgrid(middle, middle, indexing="ij"), -1).reshape(-1, 2)
    outside, inside = (_nearest(points, cells) for cells in (~free, free))
    far = np.where(outside[0] > 0, outside[0], -inside[0])
    way = np.where((outside[0] > 0)[:, None], outside[1], -inside[1])
    return np.concatenate([far[:, None], way], 1).T.reshape(3, count, count).astype(np.float32)


def _nearest(points: np.ndarray, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distance to the nearest of some cells, and the direction away from it."""
    best, away = np.full(len(points), np.inf), np.zeros_like(points)
    for corner in np.argwhere(cells):
        gap = points - np.clip(points, corner, corner + 1)
        length = np.hypot(*gap.T)
        nearer = length < best
        best, away = np.where(nearer, length, best), np.where(nearer[:, None], gap, away)
    return best, away / np.maximum(best, 1e-9)[:, None]


def sees(free: np.ndarray) -> np.ndarray:
    """(1024, 1024): whether the line between the middles of two cells crosses free cells only."""
    cells = np.argwhere(np.ones_like(free)).astype(np.float32) + 0.5
    start, end = cells[:, None], cells[None]
    clear = np.ones((len(cells), len(cells)), bool)
    for part in np.linspace(0, 1, 2 * SIZE):
        x, y = np.moveaxis(start + part * (end - start), -1, 0).astype(int)
        clear &= free[x, y]
    return clear


def distances(free: np.ndarray) -> np.ndarray:
    """(1024, 1024): length of the shortest way over free cells, no corner cut."""
    count = SIZE * SIZE
    away = np.where(np.eye(count, dtype=bool) & free.ravel(), 0.0, np.inf).astype(np.float32)
    while True:
        new = away
        for x, y in COMPASS.tolist():
            step = np.float32(np.hypot(x, y)) + _beside(new, x, y, np.inf)
            new = np.where(_open(free, x, y).ravel()[:, None], np.minimum(new, step), new)
        if np.array_equal(new, away):
            return away
        away = new


def _beside(table: np.ndarray, x: int, y: int, fill: float) -> np.ndarray:
    """The rows of the neighbouring cells."""
    grid = np.pad(table.reshape(SIZE, SIZE, -1), ((1, 1), (1, 1), (0, 0)), constant_values=fill)
    return grid[1 + x : 1 + x + SIZE, 1 + y : 1 + y + SIZE].reshape(table.shape)


def _open(free: np.ndarray, x: int, y: int) -> np.ndarray:
    """Cells from which one can step this way."""
    padded = np.pad(free, 1)
    at = lambda dx, dy: padded[1 + dx : 1 + dx + SIZE, 1 + dy : 1 + dy + SIZE]  # noqa: E731
    return free & at(x, y) & at(x, 0) & at(0, y)


@cache
def terrain(name: str) -> Terrain:
    """A ground by its name."""
    rows = getattr(grounds, name.upper()).split()
    number = {"0": 0, "1": 1, "2": 2, "r": 3}
    return Terrain(np.array([[number[c] for c in row] for row in reversed(rows)]).T)
