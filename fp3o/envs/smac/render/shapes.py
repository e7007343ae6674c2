"""What the kinds of units look like from above."""

from collections.abc import Mapping
from functools import cache

import numpy as np
from PIL import Image, ImageDraw

from fp3o.envs.smac.render.brush import Side, flat, rgb

TURNS = 48
"""Directions in which a unit is painted."""

Part = tuple[int, np.ndarray]
"""A colour of the side, by its number, and the corners of what is filled with it."""


def disc(radius: float, x: float = 0.0, y: float = 0.0, lobes: int = 0) -> np.ndarray:
    """The corners of a circle, or of something with lobes."""
    angle = np.linspace(0, 2 * np.pi, 64, endpoint=False)
    size = radius * (1 + 0.11 * np.cos(lobes * angle) * (lobes > 0))
    return np.stack([x + size * np.cos(angle), y + size * np.sin(angle)], 1)


def even(*corners: tuple[float, float]) -> np.ndarray:
    """Left half, given from the front to the back, and the right half like it."""
    left = np.array(corners)
    return np.concatenate([left, left[::-1] * (1, -1)])


def both(tone: int, corners: np.ndarray) -> tuple[Part, Part]:
    """A part on the left and the same on the right."""
    return (tone, corners), (tone, corners * (1, -1))


def star(points: int, inner: float, turn: float = 0.0) -> np.ndarray:
    """The corners of a star."""
    angle = turn + np.arange(2 * points) * np.pi / points
    size = np.where(np.arange(2 * points) % 2, inner, 1.0)
    return np.stack([size * np.cos(angle), size * np.sin(angle)], 1)


FILL, DARK, LIGHT = range(3)

SHAPES: Mapping[str, tuple[Part, ...]] = {
    "marine": (
        (DARK, np.array([(0.1, -0.72), (1.2, -0.72), (1.2, -0.4), (0.1, -0.4)])),
        (FILL, disc(0.84)),
    ),
    "marauder": (
        *both(DARK, np.array([(-0.2, 0.55), (1.15, 0.55), (1.15, 0.98), (-0.2, 0.98)])),
        (FILL, even((0.7, 0.35), (0.35, 0.75), (-0.45, 0.75), (-0.85, 0.4))),
    ),
    "medivac": (
        *both(DARK, disc(0.36, 0.05, 0.68)),
        (FILL, even((1.05, 0.15), (0.8, 0.42), (-0.5, 0.42), (-0.65, 0.75), (-1.0, 0.75))),
        (LIGHT, even((0.35, 0.1), (0.12, 0.1), (0.12, 0.3), (-0.12, 0.3), (-0.12, 0.1),
                     (-0.35, 0.1))),
    ),
    "zealot": (
        *both(DARK, np.array([(1.2, 0.56), (0.3, 0.95), (-0.35, 0.8), (0.2, 0.55)])),
        (FILL, disc(0.74, -0.15)),
    ),
    "stalker": (
        (DARK, star(4, 0.42, np.pi / 4)),
        (FILL, even((0.8, 0.14), (0.3, 0.48), (-0.4, 0.48), (-0.72, 0.16))),
    ),
    "zergling": (
        (FILL, even((1.15, 0.06), (0.46, 0.34), (0.72, 0.78), (0.0, 0.76), (-0.7, 0.5),
                    (-0.95, 0.16))),
    ),
    "baneling": ((FILL, disc(0.92, lobes=8)), (DARK, disc(0.5))),
    "hydralisk": (
        (FILL, even((0.85, 0.2), (0.6, 0.75), (0.05, 0.85), (-0.3, 0.5), (-0.6, 0.2),
                    (-1.2, 0.06))),
        (LIGHT, even((0.68, 0.1), (0.52, 0.46), (0.34, 0.5), (0.44, 0.12))),
    ),
    "colossus": (
        (DARK, star(4, 0.2, np.pi / 4)),
        (FILL, even((0.5, 0.25), (0.36, 0.8), (-0.36, 0.8), (-0.5, 0.25))),
        (DARK, disc(0.17, 0.58)),
    ),
    "spine_crawler": (
        (DARK, star(7, 0.55)), (FILL, disc(0.5, -0.1)), (LIGHT, even((1.25, 0.03), (0.1, 0.22))),
    ),
}  # fmt: skip
"""What kinds look like from above, looking to the right; their radius is 1."""


@cache
def sprite(kind: str, side: Side, radius: float, turn: int) -> Image.Image:
    """A unit by itself, on a faint disc of its size."""
    fine, half = 3, int(1.35 * radius) + 4
    image = Image.new("RGBA", (2 * half * fine, 2 * half * fine), rgb(side.dark, 0))
    pen, angle = ImageDraw.Draw(image), 2 * np.pi * turn / TURNS
    cos, sin = np.cos(angle), np.sin(angle)
    rotate = np.array([(cos, -sin), (sin, cos)]) * radius * fine  # rows of a picture go down
    base = flat(half * fine + disc(1.0) @ rotate)
    pen.polygon(base, rgb(side.light, 150), rgb(side.fill, 170), fine)
    for tone, corners in SHAPES.get(kind, ((FILL, disc(0.9)),)):
        edge = flat(half * fine + corners @ rotate)
        pen.polygon(edge, rgb(side[tone], 255))
        pen.line((*edge, *edge[:2]), rgb(side.dark, 255), 2 * fine, "curve")
    return image.reduce(fine)
