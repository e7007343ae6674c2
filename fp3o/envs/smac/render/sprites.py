"""Unit types from above."""

from collections.abc import Mapping
from functools import cache

import numpy as np
from PIL import Image, ImageDraw

from fp3o.envs.rendering import rgb
from fp3o.envs.smac.render.drawing import SideColours, vertices

DIRECTIONS = 48
"""Number of directions in which a sprite is drawn."""

Polygon = tuple[int, np.ndarray]
"""Index of a colour of the side, and the corners."""


def circle(radius: float, x: float = 0.0, y: float = 0.0, lobes: int = 0) -> np.ndarray:
    """The corners of a circle, with lobes if there are any."""
    angle = np.linspace(0, 2 * np.pi, 64, endpoint=False)
    size = radius * (1 + 0.11 * np.cos(lobes * angle) * (lobes > 0))
    return np.stack([x + size * np.cos(angle), y + size * np.sin(angle)], 1)


def _symmetric(*corners: tuple[float, float]) -> np.ndarray:
    """A symmetric polygon from its left half, given from the front to the back."""
    left = np.array(corners)
    return np.concatenate([left, left[::-1] * (1, -1)])


def _pair(tone: int, corners: np.ndarray) -> tuple[Polygon, Polygon]:
    """A polygon on the left and its mirror image on the right."""
    return (tone, corners), (tone, corners * (1, -1))


def star(points: int, inner: float, turn: float = 0.0) -> np.ndarray:
    """The corners of a star."""
    angle = turn + np.arange(2 * points) * np.pi / points
    size = np.where(np.arange(2 * points) % 2, inner, 1.0)
    return np.stack([size * np.cos(angle), size * np.sin(angle)], 1)


_FILL, _DARK, _LIGHT = range(3)

UNIT_SHAPES: Mapping[str, tuple[Polygon, ...]] = {
    "marine": (
        (_DARK, np.array([(0.1, -0.72), (1.2, -0.72), (1.2, -0.4), (0.1, -0.4)])),
        (_FILL, circle(0.84)),
    ),
    "marauder": (
        *_pair(_DARK, np.array([(-0.2, 0.55), (1.15, 0.55), (1.15, 0.98), (-0.2, 0.98)])),
        (_FILL, _symmetric((0.7, 0.35), (0.35, 0.75), (-0.45, 0.75), (-0.85, 0.4))),
    ),
    "medivac": (
        *_pair(_DARK, circle(0.36, 0.05, 0.68)),
        (_FILL, _symmetric((1.05, 0.15), (0.8, 0.42), (-0.5, 0.42), (-0.65, 0.75), (-1.0, 0.75))),
        (_LIGHT, _symmetric((0.35, 0.1), (0.12, 0.1), (0.12, 0.3), (-0.12, 0.3), (-0.12, 0.1),
                     (-0.35, 0.1))),
    ),
    "zealot": (
        *_pair(_DARK, np.array([(1.2, 0.56), (0.3, 0.95), (-0.35, 0.8), (0.2, 0.55)])),
        (_FILL, circle(0.74, -0.15)),
    ),
    "stalker": (
        (_DARK, star(4, 0.42, np.pi / 4)),
        (_FILL, _symmetric((0.8, 0.14), (0.3, 0.48), (-0.4, 0.48), (-0.72, 0.16))),
    ),
    "zergling": (
        (_FILL, _symmetric((1.15, 0.06), (0.46, 0.34), (0.72, 0.78), (0.0, 0.76), (-0.7, 0.5),
                    (-0.95, 0.16))),
    ),
    "baneling": ((_FILL, circle(0.92, lobes=8)), (_DARK, circle(0.5))),
    "hydralisk": (
        (_FILL, _symmetric((0.85, 0.2), (0.6, 0.75), (0.05, 0.85), (-0.3, 0.5), (-0.6, 0.2),
                    (-1.2, 0.06))),
        (_LIGHT, _symmetric((0.68, 0.1), (0.52, 0.46), (0.34, 0.5), (0.44, 0.12))),
    ),
    "colossus": (
        (_DARK, star(4, 0.2, np.pi / 4)),
        (_FILL, _symmetric((0.5, 0.25), (0.36, 0.8), (-0.36, 0.8), (-0.5, 0.25))),
        (_DARK, circle(0.17, 0.58)),
    ),
    "spine_crawler": (
        (_DARK, star(7, 0.55)),
        (_FILL, circle(0.5, -0.1)),
        (_LIGHT, _symmetric((1.25, 0.03), (0.1, 0.22))),
    ),
}  # fmt: skip
"""Polygons of every unit type, facing right; their radius is 1."""


@cache
def sprite(unit: str, colours: SideColours, radius: float, turn: int) -> Image.Image:
    """A unit as a transparent image, on a faint circle of its size."""
    fine, half = 3, int(1.35 * radius) + 4
    image = Image.new("RGBA", (2 * half * fine, 2 * half * fine), rgb(colours.dark, 0))
    pen, angle = ImageDraw.Draw(image), 2 * np.pi * turn / DIRECTIONS
    cos, sin = np.cos(angle), np.sin(angle)
    rotate = np.array([(cos, -sin), (sin, cos)]) * radius * fine  # rows of an image go down
    base = vertices(half * fine + circle(1.0) @ rotate)
    pen.polygon(base, rgb(colours.light, 150), rgb(colours.fill, 170), fine)
    for tone, corners in UNIT_SHAPES.get(unit, ((_FILL, circle(0.9)),)):
        edge = vertices(half * fine + corners @ rotate)
        pen.polygon(edge, rgb(colours[tone], 255))
        pen.line((*edge, *edge[:2]), rgb(colours.dark, 255), 2 * fine, "curve")
    return image.reduce(fine)
