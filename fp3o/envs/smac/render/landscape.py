"""Pictures of the ground: the abyss, rocks, low and high ground, ramps."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from PIL import Image, ImageFilter

from fp3o.envs.mpe.render import PAPER
from fp3o.envs.smac.render.brush import SMOOTH, rgb
from fp3o.envs.smac.terrain import Terrain, terrain

WIDE, TALL = 768, 624
"""The most columns and rows of the scene."""

HEAD, FOOT = 54, 26
"""Rows above the scene, for the legend, and below it, for the caption."""

MARGIN = 0.75
"""Cells around those one can walk on."""

ABYSS, ROCK, LOW, HIGH = "#5e5c58", "#a8a294", "#dedcd0", "#f6f0df"


@dataclass(frozen=True, eq=False)
class Stage:
    """A ground on paper."""

    left: float
    top: float
    scale: float
    """Painted pixels of a cell."""
    paper: Image.Image

    def at(self, x: np.ndarray | float, y: np.ndarray | float) -> np.ndarray:
        """Where a place is painted: column and row."""
        row = SMOOTH * HEAD + (self.top - np.asarray(y)) * self.scale
        return np.stack([(np.asarray(x) - self.left) * self.scale, row], -1)


@cache
def stage(ground: str) -> Stage:
    """A ground painted on paper, as large as it fits, with strips above and below."""
    land = terrain(ground)
    cells = np.argwhere(land.walkable)
    (left, bottom), (right, top) = cells.min(0) - MARGIN, cells.max(0) + 1 + MARGIN
    scale = float(min(WIDE / (right - left), TALL / (top - bottom)))
    wide, tall = (2 * round(length * scale / 2) for length in (right - left, top - bottom))
    scale *= SMOOTH
    x = left + (np.arange(wide * SMOOTH) + 0.5) / scale
    y = top - (np.arange(tall * SMOOTH) + 0.5) / scale
    paper = Image.new("RGB", (wide * SMOOTH, (tall + HEAD + FOOT) * SMOOTH), PAPER)
    paper.paste(Image.fromarray(landscape(land, x, y, scale)), (0, HEAD * SMOOTH))
    return Stage(float(left), float(top), scale, paper)


def landscape(land: Terrain, x: np.ndarray, y: np.ndarray, scale: float) -> np.ndarray:
    """The ground at the columns `x` and rows `y`, uint8 `(rows, columns, 3)`."""
    columns, rows = (np.floor(part).astype(int) + 1 for part in (x, y))

    def seen(cells: np.ndarray) -> np.ndarray:
        return np.pad(cells, 1)[columns[None], rows[:, None]].astype(np.float32)

    solid, free, high, ramp = (
        seen(cells) for cells in (land.level > 0, land.walkable, land.level == 2, land.level == 3)
    )
    if ramp.any():
        row, column = np.nonzero(ramp)
        down = descent(land, x[column], y[row])
        high[row, column] = 1 - down / down.max()
    tone = lambda name: np.array(rgb(name), np.float32)  # noqa: E731
    image = mix(tone(ABYSS), tone(ROCK), rounded(solid, 0.3 * scale))
    ground = mix(tone(LOW), tone(HIGH), high)
    ground -= 14 * (ramp * (np.floor(8 * high) % 2))[..., None]
    ground -= 5 * ((columns[None] + rows[:, None]) % 2)[..., None]
    image = mix(image, ground, rounded(free, 0.3 * scale))
    edge = np.abs(blur(free, 0.3 * scale) - 0.5)
    image -= 40 * np.clip(1 - edge / 0.12, 0, 1)[..., None]
    return np.clip(image, 0, 255).astype(np.uint8)


def descent(land: Terrain, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """How far some places are from the high ground."""
    away = np.full(len(x), np.inf)
    for left, bottom in np.argwhere(land.level == 2):
        across, along = x - np.clip(x, left, left + 1), y - np.clip(y, bottom, bottom + 1)
        away = np.minimum(away, across**2 + along**2)
    return np.sqrt(away)


def mix(one: np.ndarray, other: np.ndarray, share: np.ndarray) -> np.ndarray:
    """From one colour to another."""
    return one + (other - one) * share[..., None]


def blur(mask: np.ndarray, radius: float) -> np.ndarray:
    """The same with soft edges."""
    image = Image.fromarray((mask * 255).astype(np.uint8))
    return np.asarray(image.filter(ImageFilter.GaussianBlur(radius)), np.float32) / 255


def rounded(mask: np.ndarray, radius: float) -> np.ndarray:
    """The same with round corners."""
    return np.clip((blur(mask, radius) - 0.5) * 2 * radius + 0.5, 0, 1)
