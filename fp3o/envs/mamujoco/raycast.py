"""Pictures of solids without OpenGL: where rays meet them, how light falls on them. Only NumPy.

Every solid is convex and comes with its box, so only the pixels that the box covers get rays.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, floor

import numpy as np

FINE = 2
"""Rays along each side of a pixel; their mean makes smooth edges."""
LAMP = np.array([-0.42, 0.72, -0.55])
"""Where light comes from as the camera sees it: from the left, from above, from behind it."""
TIE = np.float32(1 - 3e-5)
"""Surfaces that differ by less are one: the first keeps it, where rounding would make speckles."""
LEVELS = 2**14 - 1
"""Of red, green, blue and cover, packed into 64 bits: those of four rays add up in one go."""
CORNERS = np.stack(np.meshgrid([-1, 1], [-1, 1], [-1, 1]), -1).reshape(8, 3)
Window = tuple[slice, slice]
"""Rows and columns of a picture."""


@dataclass(frozen=True)
class Shape:
    """A convex solid of one of the kinds in `ENTER`."""

    kind: str
    size: np.ndarray
    """Half the sides of its box."""
    place: np.ndarray
    turn: np.ndarray
    """Its axes as columns."""
    colour: np.ndarray

    @cached_property
    def corners(self) -> np.ndarray:
        """Of its box, `(8, 3)`."""
        return self.place + (CORNERS * self.size) @ self.turn.T

    def seen_from(self, place: np.ndarray) -> np.ndarray:
        """A place of the world in its frame, `(3, 1)`."""
        # Subtracted in double precision, or pictures far from the origin would shake.
        return ((place - self.place) @ self.turn).astype(np.float32)[:, None]


@dataclass(frozen=True)
class Camera:
    """A pinhole camera, held level above a level floor."""

    place: np.ndarray
    axes: np.ndarray
    """Rows: to the right, up and ahead."""
    slope: tuple[float, float]
    """Of the rays to the right and to the upper edge of the picture."""
    size: tuple[int, int]
    """Columns and rows."""
    height: float
    """Above the floor."""

    @cached_property
    def light(self) -> np.ndarray:
        """Where light comes from, in the world; never from below."""
        towards = LAMP @ self.axes
        towards[2] = max(towards[2], 0.8)
        return towards / np.linalg.norm(towards)

    def rays(self, window: Window, fine: int, turn: np.ndarray) -> np.ndarray:
        """Directions `(3, pixels)`, one ahead, in a frame with the columns of `turn`."""
        right, up, ahead = (self.axes @ turn).astype(np.float32)[:, :, None, None]
        rows, columns = (np.arange(part.start, part.stop, dtype=np.float32) for part in window)
        x = ((columns + 0.5) * (2 / (self.size[0] * fine)) - 1) * self.slope[0]
        y = (1 - (rows + 0.5) * (2 / (self.size[1] * fine))) * self.slope[1]
        return ((ahead + up * y[:, None]) + right * x).reshape(3, -1)

    def climb(self, fine: int) -> np.ndarray:
        """How far the rays of each row rise."""
        return self.rays((slice(0, self.size[1] * fine), slice(0, 1)), fine, np.eye(3))[2]

    def floor(self, fine: int) -> np.ndarray:
        """How many rays away the floor is in each row; inf from the horizon up."""
        fall = -self.climb(fine)
        return np.where(fall > 1e-6, self.height / np.maximum(fall, 1e-6), np.inf)

    def window(self, points: np.ndarray, fine: int) -> Window:
        """The part of the picture that holds points; all of it if some are not ahead."""
        x, y, ahead = self.axes @ (points - self.place).T
        columns, rows = (fine * side for side in self.size)
        if ahead.min() < 1e-3:
            return slice(0, rows), slice(0, columns)
        return _span(-y / ahead / self.slope[1], rows), _span(x / ahead / self.slope[0], columns)


def _span(at: np.ndarray, pixels: int) -> slice:
    """The pixels of positions between the edges -1 and 1."""
    first, last = ((1 + float(end)) / 2 * pixels for end in (at.min(), at.max()))
    return slice(min(max(floor(first), 0), pixels), min(max(ceil(last), 0), pixels))


def paint(scene: np.ndarray, shapes: Sequence[Shape], camera: Camera) -> None:
    """Draw solids, as far as they are above the floor, over a scene `(rows, columns, 3)`."""
    columns, rows = (FINE * side for side in camera.size)
    depth, front = np.repeat(camera.floor(FINE), columns), np.zeros(rows * columns, np.uint64)
    for shape in shapes:
        window = camera.window(shape.corners, FINE)
        start, rays = shape.seen_from(camera.place), camera.rays(window, FINE, shape.turn)
        at = enter(shape, start, rays)
        hits = np.flatnonzero((at > 0) & np.isfinite(at))
        pixels = _pixels(hits, window, columns)
        nearer = np.flatnonzero(at.take(hits) < TIE * depth.take(pixels))
        hits, pixels = hits.take(nearer), pixels.take(nearer)
        depth[pixels] = at.take(hits)
        front[pixels] = lit(shape, start + at.take(hits) * rays.take(hits, 1), camera)
    touched = camera.window(np.concatenate([shape.corners for shape in shapes]), 1)
    scene[touched] = _over(front.reshape(rows, columns), scene, touched)


def _pixels(within: np.ndarray, window: Window, columns: int) -> np.ndarray:
    """Numbers of pixels in a window as their numbers in the whole picture."""
    down, across = window
    width = across.stop - across.start
    return (
        within + within // max(width, 1) * (columns - width) + down.start * columns + across.start
    )


def _over(front: np.ndarray, scene: np.ndarray, window: Window) -> np.ndarray:
    """A window of the scene behind the mean of the rays of every pixel."""
    rays = front[tuple(slice(part.start * FINE, part.stop * FINE) for part in window)]
    rays = rays[::FINE] + rays[1::FINE]
    total = rays[:, ::FINE] + rays[:, 1::FINE]
    mean = total.view(np.uint16).reshape(*total.shape, 4) * np.float32(1 / (LEVELS * FINE**2))
    return scene[window] * (1 - mean[..., 3:]) + mean[..., :3]


def lit(shape: Shape, points: np.ndarray, camera: Camera) -> np.ndarray:
    """Packed colours of points of a surface: light of the sky, light of the lamp, its gleam."""
    light, eye = camera.light, -camera.axes[2]
    gleam = (light + eye) / np.linalg.norm(light + eye)
    towards = (np.stack([light, gleam, eye, [0, 0, 1]]) @ shape.turn).astype(np.float32)
    lamp, shine, facing, up = towards @ normals(shape, points)
    bright = 0.57 + 0.11 * up + 0.42 * np.maximum(lamp, 0)
    bright *= 0.74 + 0.26 * np.minimum(1, 2 * facing)  # dark edges: limbs that cross stand out
    shine = np.maximum(shine, 0)
    for _ in range(5):  # to the power of 32
        shine *= shine
    colours = shape.colour.astype(np.float32)[:, None] * bright + 0.2 * shine
    packed = np.full((len(lamp), 4), LEVELS, np.uint16)
    packed[:, :3] = (np.clip(colours, 0, 1) * LEVELS).T
    return packed.view(np.uint64)[:, 0]


def shadow(shapes: Sequence[Shape], camera: Camera) -> np.ndarray:
    """Whether solids keep the light from the floor, `(rows, columns)`."""
    away, dark = camera.floor(1), np.zeros(camera.size[::-1], bool)
    for shape in shapes:
        above = shape.corners[:, 2:] - (camera.place[2] - camera.height)
        fallen = shape.corners - camera.light * (above / camera.light[2])
        down, across = window = camera.window(fallen, 1)
        far = np.repeat(away[down], across.stop - across.start)
        with np.errstate(invalid="ignore"):  # there is no floor above the horizon
            spots = camera.rays(window, 1, shape.turn) * far + shape.seen_from(camera.place)
        ray = (camera.light @ shape.turn).astype(np.float32)[:, None]
        dark[window] |= np.isfinite(enter(shape, spots, ray)).reshape(dark[window].shape)
    return dark & np.isfinite(away)[:, None]


def enter(shape: Shape, start: np.ndarray, ray: np.ndarray) -> np.ndarray:
    """After how many rays from `start`, both `(3, n)` in its frame, one is inside; inf: never."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return ENTER[shape.kind](shape.size.astype(np.float32)[:, None], start, ray)


def _ball(size: np.ndarray, start: np.ndarray, ray: np.ndarray) -> np.ndarray:
    """An ellipsoid is a sphere of radius one in a squeezed space."""
    return _round(np.float32(1), start / size, ray / size)


def _round(radius: np.float32, start: np.ndarray, ray: np.ndarray) -> np.ndarray:
    """Into a sphere, or in two dimensions a circle, about the origin.

    From the point of the ray nearest to the middle: from afar, the usual formula would subtract
    large numbers that are almost equal.
    """
    slope = 1 / np.maximum(_dot(ray, ray), 1e-12)
    middle = -slope * _dot(start, ray)
    nearest = start + middle * ray
    inside = radius * radius - _dot(nearest, nearest)
    return np.where(inside >= 0, middle - np.sqrt(np.maximum(inside, 0) * slope), np.inf)


def _dot(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Products of columns; a single column meets all of the others."""
    return np.einsum("ij,ij->j", one, other)


def _capsule(size: np.ndarray, start: np.ndarray, ray: np.ndarray) -> np.ndarray:
    radius, half = size[0, 0], size[2, 0] - size[0, 0]
    side = _round(radius, start[:2], ray[:2])
    height = start[2] + side * ray[2]
    # A ray that comes into the endless cylinder beyond one end can only hit the ball of that end.
    ends = np.flatnonzero((np.abs(height) > half) & np.isfinite(side))
    start, ray = (part if part.shape[1] == 1 else part.take(ends, 1) for part in (start, ray))
    centre = np.zeros((3, len(ends)), np.float32)
    centre[2] = np.copysign(half, height.take(ends))
    side[ends] = _round(radius, start - centre, ray)
    return side


def _cylinder(size: np.ndarray, start: np.ndarray, ray: np.ndarray) -> np.ndarray:
    radius, half = size[0, 0], size[2, 0]
    side = _round(radius, start[:2], ray[:2])
    height = start[2] + side * ray[2]
    lid = (np.copysign(half, height) - start[2]) / ray[2]
    reach = start[:2] + lid * ray[:2]
    lid = np.where(_dot(reach, reach) <= radius * radius, lid, np.inf)
    return np.where(np.abs(height) <= half, side, lid)


def _box(size: np.ndarray, start: np.ndarray, ray: np.ndarray) -> np.ndarray:
    one, other = (-size - start) / ray, (size - start) / ray
    near, far = np.fmin(one, other).max(0), np.fmax(one, other).min(0)
    return np.where(near <= far, near, np.inf)


Entry = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
ENTER: dict[str, Entry] = {"ball": _ball, "box": _box, "capsule": _capsule, "cylinder": _cylinder}
"""The solids. Balls may be ellipsoids; capsules and cylinders stand along their third axis."""


def normals(shape: Shape, points: np.ndarray) -> np.ndarray:
    """Which way a surface faces at some of its points, all `(3, n)` in its frame."""
    size = shape.size.astype(np.float32)[:, None]
    if shape.kind == "ball":
        out = points / (size * size)
    elif shape.kind == "capsule":
        half, out = size[2] - size[0], points.copy()
        out[2] -= np.clip(out[2], -half, half)
    else:
        reach = np.abs(points) / size
        if shape.kind == "cylinder":
            reach[:2] = np.hypot(reach[0], reach[1])
        out = np.where(reach == reach.max(0), points, 0)
    return out / np.maximum(np.sqrt(_dot(out, out)), 1e-12)
