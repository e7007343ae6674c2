"""Images of the terrain: void, rocks, low and high ground, ramps."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from PIL import Image, ImageFilter

from fp3o.envs.rendering import PAPER, rgb
from fp3o.envs.smac.render.drawing import SUPERSAMPLING
from fp3o.envs.smac.terrain import Terrain, terrain

MAX_WIDTH, MAX_HEIGHT = 768, 624
"""Largest size of the terrain in pixels."""

HEADER, FOOTER = 54, 26
"""Heights of the strips for the legend and the caption, in pixels."""

_MARGIN = 0.75
"""Cells shown around the walkable ones."""

VOID_COLOUR, ROCK_COLOUR = "#5e5c58", "#a8a294"

LOW_COLOUR, HIGH_COLOUR = "#dedcd0", "#f6f0df"


@dataclass(frozen=True, eq=False)
class Backdrop:
    """An image of the terrain, on which units are drawn."""

    left: float
    top: float
    scale: float
    """Drawn pixels per cell."""
    image: Image.Image

    def pixel(self, x: np.ndarray | float, y: np.ndarray | float) -> np.ndarray:
        """Column and row of a position on the map."""
        row = SUPERSAMPLING * HEADER + (self.top - np.asarray(y)) * self.scale
        return np.stack([(np.asarray(x) - self.left) * self.scale, row], -1)


@cache
def backdrop(name: str) -> Backdrop:
    """The image of a terrain by name, with empty strips above and below."""
    land = terrain(name)
    cells = np.argwhere(land.walkable)
    (left, bottom), (right, top) = cells.min(0) - _MARGIN, cells.max(0) + 1 + _MARGIN
    scale = float(min(MAX_WIDTH / (right - left), MAX_HEIGHT / (top - bottom)))
    width, height = (2 * round(length * scale / 2) for length in (right - left, top - bottom))
    scale *= SUPERSAMPLING
    x = left + (np.arange(width * SUPERSAMPLING) + 0.5) / scale
    y = top - (np.arange(height * SUPERSAMPLING) + 0.5) / scale
    size = width * SUPERSAMPLING, (height + HEADER + FOOTER) * SUPERSAMPLING
    image = Image.new("RGB", size, PAPER)
    image.paste(Image.fromarray(_landscape(land, x, y, scale)), (0, HEADER * SUPERSAMPLING))
    return Backdrop(float(left), float(top), scale, image)


def _landscape(land: Terrain, x: np.ndarray, y: np.ndarray, scale: float) -> np.ndarray:
    """The terrain at the columns `x` and rows `y`, uint8 `(rows, columns, 3)`."""
    columns, rows = (np.floor(part).astype(int) + 1 for part in (x, y))

    def sample(cells: np.ndarray) -> np.ndarray:
        return np.pad(cells, 1)[columns[None], rows[:, None]].astype(np.float32)

    solid, free, high, ramp = (
        sample(cells) for cells in (land.level > 0, land.walkable, land.level == 2, land.level == 3)
    )
    if ramp.any():
        row, column = np.nonzero(ramp)
        down = _distance_to_high_ground(land, x[column], y[row])
        high[row, column] = 1 - down / down.max()
    tone = lambda name: np.array(rgb(name), np.float32)  # noqa: E731
    image = _mix(tone(VOID_COLOUR), tone(ROCK_COLOUR), _rounded(solid, 0.3 * scale))
    ground = _mix(tone(LOW_COLOUR), tone(HIGH_COLOUR), high)
    ground -= 14 * (ramp * (np.floor(8 * high) % 2))[..., None]
    ground -= 5 * ((columns[None] + rows[:, None]) % 2)[..., None]
    image = _mix(image, ground, _rounded(free, 0.3 * scale))
    edge = np.abs(_blur(free, 0.3 * scale) - 0.5)
    image -= 40 * np.clip(1 - edge / 0.12, 0, 1)[..., None]
    return np.clip(image, 0, 255).astype(np.uint8)


def _distance_to_high_ground(land: Terrain, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    away = np.full(len(x), np.inf)
    for left, bottom in np.argwhere(land.level == 2):
        across, along = x - np.clip(x, left, left + 1), y - np.clip(y, bottom, bottom + 1)
        away = np.minimum(away, across**2 + along**2)
    return np.sqrt(away)


def _mix(one: np.ndarray, other: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Interpolate between two colours."""
    return one + (other - one) * share[..., None]


def _blur(mask: np.ndarray, radius: float) -> np.ndarray:
    """A mask with soft edges."""
    image = Image.fromarray((mask * 255).astype(np.uint8))
    return np.asarray(image.filter(ImageFilter.GaussianBlur(radius)), np.float32) / 255


def _rounded(mask: np.ndarray, radius: float) -> np.ndarray:
    """A mask with round corners."""
    return np.clip((_blur(mask, radius) - 0.5) * 2 * radius + 0.5, 0, 1)
