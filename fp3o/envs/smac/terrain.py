"""Terrain: walkable cells, distances to walls, and routes between cells."""

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from fp3o.envs.smac.terrain_data import TERRAINS

MAP_SIZE = 32
"""Cells per side of a map; the centre is SMAC's origin."""
CLEARANCE_SAMPLES = 4
"""Samples per cell and axis of the distance to the nearest wall."""
RAMP = 3
"""Level of the cells between low and high ground."""
DIRECT = 8
"""Entry of a table of routes: a straight line leads there."""
COMPASS = np.array([(1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1)])
"""The eight directions to neighbouring cells."""


@dataclass(frozen=True, eq=False)
class Terrain:
    """The terrain of a map. Arrays of cells are indexed `[x, y]`."""

    level: np.ndarray
    """0: void; 1 and 2: low and high ground; 3: a ramp between them."""

    @cached_property
    def walkable(self) -> np.ndarray:
        """Cells on which units can walk: ground without a cliff next to it.

        Only the running game knows its exact grid. By the map files it lies between all ground
        cells and the ground cells without a cliff; this is the latter.
        """
        inner = self.level > 0
        padded = np.pad(self.level, 1, mode="edge")
        for x, y in COMPASS.tolist():
            beside = padded[1 + x : 1 + x + MAP_SIZE, 1 + y : 1 + y + MAP_SIZE]
            ramp = (beside == RAMP) | (self.level == RAMP)
            inner = inner & (beside > 0) & ((beside == self.level) | ramp)
        return inner

    @cached_property
    def over_cliffs(self) -> np.ndarray:
        """Cells for units that step over cliffs: all ground without void next to it."""
        padded = np.pad(self.level > 0, 1, mode="edge")
        parts = [
            padded[1 + x : 1 + x + MAP_SIZE, 1 + y : 1 + y + MAP_SIZE] for x, y in COMPASS.tolist()
        ]
        return np.logical_and.reduce([self.level > 0, *parts])

    @cached_property
    def rectangle(self) -> tuple[float, float, float, float] | None:
        """Left, right, bottom and top, if the walkable cells form a rectangle."""
        xs, ys = np.nonzero(self.walkable)
        left, right, bottom, top = xs.min(), xs.max() + 1, ys.min(), ys.max() + 1
        full = (right - left) * (top - bottom) == len(xs)
        return (float(left), float(right), float(bottom), float(top)) if full else None

    @cached_property
    def routes(self) -> np.ndarray | None:
        """(1024, 1024): first direction from cell to cell, an index of `COMPASS` or `DIRECT`.

        To a cell on which nobody can walk, such as a cliff under a colossus, a route leads to the
        nearest walkable one. None if straight lines connect all cells.
        """
        free = self.walkable
        if self.rectangle is not None:
            return None
        clear = lines_of_sight(free)
        inside = free.ravel()
        if clear[np.ix_(inside, inside)].all():
            return None
        away = path_lengths(free)
        best, first = np.full(away.shape, np.inf), np.full(away.shape, DIRECT, np.int8)
        for number, (x, y) in enumerate(COMPASS.tolist()):
            step = np.hypot(x, y) + _beside(away, x, y, np.inf)
            step = np.where(_open(free, x, y).ravel()[:, None], step, np.inf)
            first, best = np.where(step < best, number, first), np.minimum(step, best)
        table = np.where(clear | ~np.isfinite(best), DIRECT, first).astype(np.int8)
        return table[:, nearest_cells(free)]


def nearest_cells(free: np.ndarray) -> np.ndarray:
    """(1024,): index of the free cell nearest to every cell; that of free cells is their own."""
    cells, open_cells = np.argwhere(np.ones_like(free)), np.argwhere(free)
    distance = ((cells[:, None] - open_cells[None]) ** 2).sum(-1)
    return np.flatnonzero(free)[distance.argmin(1)]


def clearance(free: np.ndarray) -> np.ndarray:
    """(s, s, 3): distance to the nearest wall, negative inside walls, and the direction from it."""
    count = MAP_SIZE * CLEARANCE_SAMPLES
    middle = (np.arange(count) + 0.5) / CLEARANCE_SAMPLES
    points = np.stack(np.meshgrid(middle, middle, indexing="ij"), -1).reshape(-1, 2)
    outside, inside = (_nearest(points, cells) for cells in (~free, free))
    distance = np.where(outside[0] > 0, outside[0], -inside[0])
    direction = np.where((outside[0] > 0)[:, None], outside[1], -inside[1])
    rows = np.concatenate([distance[:, None], direction], 1)
    return rows.reshape(count, count, 3).astype(np.float32)


def _nearest(points: np.ndarray, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distance to the nearest of some cells, and the direction away from that cell."""
    best, away = np.full(len(points), np.inf), np.zeros_like(points)
    for corner in np.argwhere(cells):
        gap = points - np.clip(points, corner, corner + 1)
        length = np.hypot(*gap.T)
        nearer = length < best
        best, away = np.where(nearer, length, best), np.where(nearer[:, None], gap, away)
    return best, away / np.maximum(best, 1e-9)[:, None]


def lines_of_sight(free: np.ndarray) -> np.ndarray:
    """(1024, 1024): whether the line between the centres of two cells crosses free cells only."""
    cells = np.argwhere(np.ones_like(free)).astype(np.float32) + 0.5
    start, end = cells[:, None], cells[None]
    clear = np.ones((len(cells), len(cells)), bool)
    for part in np.linspace(0, 1, 2 * MAP_SIZE):
        x, y = np.moveaxis(start + part * (end - start), -1, 0).astype(int)
        clear &= free[x, y]
    return clear


def path_lengths(free: np.ndarray) -> np.ndarray:
    """(1024, 1024): length of the shortest path over free cells that cuts no corner."""
    count = MAP_SIZE * MAP_SIZE
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
    grid = np.pad(
        table.reshape(MAP_SIZE, MAP_SIZE, -1), ((1, 1), (1, 1), (0, 0)), constant_values=fill
    )
    return grid[1 + x : 1 + x + MAP_SIZE, 1 + y : 1 + y + MAP_SIZE].reshape(table.shape)


def _open(free: np.ndarray, x: int, y: int) -> np.ndarray:
    """Cells from which a step in this direction is possible."""
    padded = np.pad(free, 1)
    at = lambda dx, dy: padded[1 + dx : 1 + dx + MAP_SIZE, 1 + dy : 1 + dy + MAP_SIZE]  # noqa: E731
    return free & at(x, y) & at(x, 0) & at(0, y)


@cache
def terrain(name: str) -> Terrain:
    """A terrain by name."""
    lines = (line.split() for line in TERRAINS[name].split("\n") if line)
    rows = [row for count, row in lines for _ in range(int(count))]
    number = {"0": 0, "1": 1, "2": 2, "r": RAMP}
    return Terrain(np.array([[number[c] for c in row] for row in reversed(rows)]).T)
