"""Rendering shared by all families: colours, font, captions, and machines without a display.

Pillow is imported when an image is drawn.
"""

import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from fp3o.errors import UserError
from fp3o.imports import describe_error

INK, PAPER, GRID, EDGE = "#2b2d33", "#fbfaf7", "#e4e1da", "#d8d4ca"
"""Colours of text, background, grid lines and frames."""

BLUE, ORANGE, GREEN = "#2e6fbb", "#d9822b", "#2a9d6f"

RED, PURPLE, TEAL = "#d1495b", "#7b4fb5", "#12869b"

AGENT_COLOURS = (BLUE, ORANGE, GREEN, RED, PURPLE, TEAL)
"""One colour per agent; the first two are distinguishable for colour-blind readers."""

ALERT = "#c1121f"
"""Collisions, hits and targets."""

STRIP = 26
"""Height in pixels of the strip that holds the caption."""


def rgb(colour: str, alpha: int | None = None) -> tuple[int, ...]:
    """`#rrggbb` as integers from 0 to 255, followed by the opacity if one is given."""
    return (*bytes.fromhex(colour[1:]), *(() if alpha is None else (alpha,)))


@cache
def font(size: int) -> Any:
    """Pillow's built-in font."""
    from PIL import ImageFont

    return ImageFont.load_default(size)


def add_caption(image: np.ndarray, text: str) -> np.ndarray:
    """Append a strip with a caption below an image."""
    from PIL import Image, ImageDraw

    height, width = image.shape[:2]
    framed = Image.new("RGB", (width, height + STRIP), PAPER)
    framed.paste(Image.fromarray(image))
    pen = ImageDraw.Draw(framed)
    pen.line((0, height, width, height), EDGE)
    pen.text((12, height + STRIP / 2), text, INK, font(13), "lm")
    return np.array(framed)


def without_display() -> None:
    """Select off-screen drivers where Linux has no display; pygame, MuJoCo and pyglet read them."""
    if sys.platform == "linux" and not {"DISPLAY", "WAYLAND_DISPLAY"} & {*os.environ}:
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
        os.environ.setdefault("MUJOCO_GL", "egl")
        os.environ.setdefault("PYGLET_HEADLESS", "true")


def rendered_frame(render: Callable[[], Any]) -> np.ndarray | None:
    """Call the `render` of another library; None if it returns no image."""
    try:
        frame = render()
    except Exception as error:
        raise UserError(
            f"the environment cannot be rendered: {describe_error(error)}. Without a "
            "display, pygame needs SDL_VIDEODRIVER=dummy and MuJoCo a library for MUJOCO_GL=egl "
            "(libEGL) or osmesa"
        ) from error
    return frame if isinstance(frame, np.ndarray) and frame.ndim == 3 else None
