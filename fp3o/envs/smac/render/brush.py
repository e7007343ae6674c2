"""What all parts of a picture are painted with: colours, lines, words."""

from functools import cache
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from fp3o.envs.mpe.render import ALARM, COLOURS, INK, TEAM

Colour = tuple[int, ...]

SMOOTH = 2
"""Pixels painted for one that is seen, along each axis."""


class Side(NamedTuple):
    """The colours of a team."""

    fill: str
    dark: str
    light: str


OURS, THEIRS = (Side(COLOURS[2], "#153a66", "#b9d4f2"), Side(TEAM[1], "#6f3a06", "#fbdcb6"))

HEALTH, SHIELD, LOST = COLOURS[1], "#7cc4f0", "#3a3b40"

FIRE, FLAME = ALARM, "#ffd166"


def rgb(colour: str, alpha: int | None = None) -> Colour:
    """`#rrggbb` as numbers, with how much it covers of what is below, from 0 to 255."""
    return (*bytes.fromhex(colour[1:]), *(() if alpha is None else (alpha,)))


def line(
    pen: ImageDraw.ImageDraw, start: np.ndarray, end: np.ndarray, colour: Colour, width: float
) -> None:
    """A line of so many seen pixels."""
    pen.line((*map(float, start), *map(float, end)), colour, max(1, round(width * SMOOTH)))


def flat(corners: np.ndarray) -> list[float]:
    """Corners as Pillow takes them."""
    return corners.ravel().tolist()


def stamp(image: Image.Image, shape: Image.Image, middle: np.ndarray) -> None:
    """Paste a shape around a place."""
    x, y = np.round(middle - (shape.width / 2, shape.height / 2)).astype(int)
    image.paste(shape, (int(x), int(y)), shape)


@cache
def label(words: str, size: int, colour: str = INK, edge: str = "") -> Image.Image:
    """Words by themselves, as high as all of this size."""
    wide = round(font(size).getlength(words))
    image = Image.new("RGBA", (wide + 4, 2 * size), rgb(edge or colour, 0))
    ImageDraw.Draw(image).text(
        (image.width / 2, size), words, colour, font(size), "mm", stroke_width=1 if edge else 0,
        stroke_fill=edge or None,
    )  # fmt: skip
    return image


@cache
def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """The one that comes with Pillow."""
    return ImageFont.load_default(size)
