"""Colours, lines and text of battle images."""

from functools import cache
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw

from fp3o.envs.rendering import ALERT, BLUE, GREEN, INK, ORANGE, font, rgb

SUPERSAMPLING = 2
"""Drawn pixels per pixel of the final image, along each axis."""


class SideColours(NamedTuple):
    """The colours of a side."""

    fill: str
    dark: str
    light: str


ALLY_COLOURS = SideColours(BLUE, "#153a66", "#b9d4f2")

ENEMY_COLOURS = SideColours(ORANGE, "#6f3a06", "#fbdcb6")

HEALTH_COLOUR, SHIELD_COLOUR, EMPTY_COLOUR = GREEN, "#7cc4f0", "#3a3b40"

BEAM_COLOUR, SPARK_COLOUR = ALERT, "#ffd166"


def draw_line(
    pen: ImageDraw.ImageDraw,
    start: np.ndarray,
    end: np.ndarray,
    colour: tuple[int, ...],
    width: float,
) -> None:
    """Draw a line; the width is in pixels of the final image."""
    pen.line((*map(float, start), *map(float, end)), colour, max(1, round(width * SUPERSAMPLING)))


def vertices(corners: np.ndarray) -> list[float]:
    """Corners `(n, 2)` in the form that Pillow expects."""
    return corners.ravel().tolist()


def paste_centred(image: Image.Image, shape: Image.Image, middle: np.ndarray) -> None:
    """Paste a transparent image around a position."""
    x, y = np.round(middle - (shape.width / 2, shape.height / 2)).astype(int)
    image.paste(shape, (int(x), int(y)), shape)


@cache
def text_image(text: str, size: int, colour: str = INK, outline: str = "") -> Image.Image:
    """Text as a transparent image; all texts of one size have the same height."""
    width = round(font(size).getlength(text))
    image = Image.new("RGBA", (width + 4, 2 * size), rgb(outline or colour, 0))
    ImageDraw.Draw(image).text(
        (image.width / 2, size), text, colour, font(size), "mm", stroke_width=1 if outline else 0,
        stroke_fill=outline or None,
    )  # fmt: skip
    return image
