"""Images of the radio tasks; Pillow is imported when drawing."""

from typing import Any

import numpy as np

from fp3o.envs.rendering import (
    AGENT_COLOURS,
    BLUE,
    EDGE,
    GREEN,
    INK,
    ORANGE,
    PAPER,
    RED,
    add_caption,
    font,
)
from fp3o.envs.toys.radio import BEACONS, SILENCE, RadioEnv, RadioState

_SIZE, _MARGIN = 360, 40
CHANNEL_COLOURS = (RED, GREEN, BLUE, ORANGE)
"""Colours of the beacons; a vehicle has the colour of the channel it hears."""


def render_radio(env: RadioEnv, state: RadioState, caption: str) -> np.ndarray:
    """The state as an image: rings around goals, lines to them, vehicles and their names."""
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (_SIZE, _SIZE), PAPER)
    pen = ImageDraw.Draw(image)
    pen.rectangle(
        (_MARGIN // 2, _MARGIN // 2, _SIZE - _MARGIN // 2, _SIZE - _MARGIN // 2), outline=EDGE
    )
    for channel, beacon in enumerate(BEACONS):
        _disc(pen, beacon, 9, CHANNEL_COLOURS[channel])
        x, y = _pixel(beacon)
        pen.text((x, y), str(channel), PAPER, font(12), "mm")
    for i in np.flatnonzero(env.moves).tolist():
        goal, here = BEACONS[int(state.goal[i])], np.asarray(state.position[i])
        _disc(pen, goal, 15 + 4 * i, None, AGENT_COLOURS[i])
        pen.line((*_pixel(here), *_pixel(goal)), EDGE, 2)
        heard = int(state.heard[i])
        _disc(pen, here, 11, INK if heard == SILENCE else CHANNEL_COLOURS[heard], AGENT_COLOURS[i])
        x, y = _pixel(here)
        pen.text((x, y - 20), env.agents[i], INK, font(11), "mm")
    pen.text((_MARGIN // 2, 10), f"step {int(state.time)}", INK, font(12), "lm")
    return add_caption(np.asarray(image), caption)


def _disc(pen: Any, centre: np.ndarray, radius: int, fill: str | None, edge: str = PAPER) -> None:
    x, y = _pixel(centre)
    pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill, edge, 2)


def _pixel(point: np.ndarray) -> tuple[float, float]:
    half = _SIZE / 2 - _MARGIN
    return _SIZE / 2 + half * float(point[0]), _SIZE / 2 - half * float(point[1])
