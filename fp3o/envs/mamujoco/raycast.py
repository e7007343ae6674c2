"""Pictures of solids without OpenGL: where rays meet them, how light falls on them. Only NumPy.

Every solid is convex and described by its box, so one routine finds the few pixels it can touch
and only those get a ray.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

FINE = 2
"""Rays along each side of a pixel; their mean makes smooth edges."""
LIGHT = np.array([-0.42, 0.72, -0.55]) / np.linalg.norm([-0.42, 0.72, -0.55])
"""Where the light comes from as the camera sees it: from the left, above and behind it."""
Window = tuple[slice, slice]
"""Rows and columns of a picture."""


@dataclass(frozen=True)
class Shape:
    """A convex solid: a kind of `ENTER`, half the sides of its box, its place and its colour."""

    kind: str
    size: np.ndarray
    place: np.ndarray
    turn: np.ndarray
    """Its axes as columns."""
    colour: np.ndarray

    def corners(self) -> np.ndarray:
        """Of its box, `(8, 3)`."""
        return self.place + (CORNERS * self.size) @ self.turn.T


CORNERS = np.stack(np.meshgrid([-1, 1], [-1, 1], [-1, 1]), -1).reshape(8, 3)


@dataclass(frozen=True)
class Camera:
    """A pinhole camera above a level floor."""

    place: np.ndarray
    axes: np.ndarray
    """Rows: to the right, up and ahead."""
    slope: tuple[float, float]
    """Of the rays to the right and upper edge of the picture."""
    size: tuple[int, int]
    """Columns and rows."""
    height: float
    """Above the floor."""

    def light(self) -> np.ndarray:
        """Where light comes from, in the world and never from below."""
        towards = LIGHT @ self.axes
        towards[2] = max(towards[2], 0.8)
        return towards / np.linalg.norm(towards)

    def rays(self, window: Window, fine: int, turn: np.ndarray) -> np.ndarray:
        """Directions `(3, rows, columns)`, one ahead, in a frame with the columns of `turn`."""
        right, up, ahead = (self.axes @ turn).astype(np.float32)[:, :, None, None]
        rows, columns = (np.arange(part.start, part.stop, dtype=np.float32) for part in window)
        x = ((columns + 0.5) * (2 / (self.size[0] * fine)) - 1) * self.slope[0]
        y = (1 - (rows + 0.5) * (2 / (self.size[1] * fine))) * self.slope[1]
        return (ahead + up * y[:, None]) + right * x

    def window(self, points: np.ndarray, fine: int) -> Window:
        """The part of the picture in which points may be seen; all of it if some are behind."""
        x, y, ahead = self.axes @ (points - self.place).T
        columns, rows = (fine * side for side in self.size)
        if ahead.min() < 1e-3:
            return slice(0, rows), slice(0, columns)
        x, y = x / ahead / self.slope[0], y / ahead / self.slope[1]
        return _span(-y, rows), _span(x, columns)


def _span(at: np.ndarray, pixels: int) -> slice:
    """Pixels that hold positions from -1 to 1."""
    low, high = ((1 + at.min()) * pixels / 2, (1 + at.max()) * pixels / 2)
    return slice(*(int(np.clip(edge, 0, pixels)) for edge in (np.floor(low), np.ceil(high))))


def paint(shapes: Iterable[Shape], camera: Camera) -> np.ndarray:
    """What is seen of solids above the floor: `(rows, columns, 4)`, colour times cover, cover."""
    columns, rows = camera.size
    picture = np.zeros((rows * FINE, columns * FINE, 4), np.float32)
    depth = np.full(picture.shape[:2], np.inf, np.float32)
    for shape in shapes:
        window = camera.window(shape.corners(), FINE)
        near, rays, origin = depth[window], camera.rays(window, FINE, shape.turn), _origin(shape)
        if not near.size:
            continue
        start = origin(camera.place)[:, None, None]
        at = enter(shape, start, rays)
        floor = np.float32(camera.height * 1.0001)
        fall = shape.turn.astype(np.float32)[2]
        seen = (at < near) & (at > 0)
        at, rays = at[seen], rays[:, seen]
        kept = at * (fall @ rays) > -floor
        seen[seen] = kept
        at, rays = at[kept], rays[:, kept]
        near[seen] = at
        picture[window][seen] = lit(shape, start[:, 0] + at * rays, camera)
    return sum(picture[i::FINE, j::FINE] for i in range(FINE) for j in range(FINE)) / FINE**2


def _origin(shape: Shape) -> Callable[[np.ndarray], np.ndarray]:
    # Subtracted in double precision: far from the origin of the world nothing starts to shake.
    return lambda place: ((place - shape.place) @ shape.turn).astype(np.float32)


def lit(shape: Shape, points: np.ndarray, camera: Camera) -> np.ndarray:
    """Colours `(n, 4)` of points of a surface: light of the sky, of the lamp, and its gleam."""
    light, eye = camera.light(), -camera.axes[2]
    gleam = (light + eye) / np.linalg.norm(light + eye)
    across = np.stack([light, gleam, eye, [0, 0, 1]]) @ shape.turn
    lamp, shine, facing, up = across.astype(np.float32) @ normals(shape, points)
    bright = 0.50 + 0.14 * up + 0.44 * np.maximum(lamp, 0)
    bright *= 0.72 + 0.28 * np.minimum(1, 2.2 * np.maximum(facing, 0))  # limbs that cross stand out
    colours = np.ones((points.shape[1], 4), np.float32)
    colours[:, :3] = bright[:, None] * shape.colour.astype(np.float32)
    colours[:, :3] += (0.22 * np.maximum(shine, 0) ** 32)[:, None]
    return np.minimum(colours, 1, out=colours)


def shadow(shapes: Iterable[Shape], camera: Camera) -> np.ndarray:
    """Whether solids keep the light from the floor, 0 or 1 per pixel."""
    columns, rows = camera.size
    dark, light = np.zeros((rows, columns), np.float32), camera.light()
    below = camera.place[2] - camera.height
    for shape in shapes:
        corners = shape.corners()
        fallen = corners - light * ((corners[:, 2:] - below) / light[2])
        window = camera.window(fallen, 1)
        rays = camera.rays(window, 1, np.eye(3))
        if not rays.size:
            continue
        falling = np.minimum(rays[2], -1e-6)
        floor = rays * (np.float32(-camera.height) / falling)
        local = np.tensordot(shape.turn.T.astype(np.float32), floor, 1)
        start = local + _origin(shape)(camera.place)[:, None, None]
        ray = (light @ shape.turn).astype(np.float32)[:, None, None]
        dark[window] += np.isfinite(enter(shape, start, ray)) & (rays[2] < -1e-6)
    return np.minimum(dark, 1)


def enter(shape: Shape, start: np.ndarray, ray: np.ndarray) -> np.ndarray:
    """How many rays ahead of `start`, both `(3, ...)` in its frame, one enters; inf: it misses."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return ENTER[shape.kind](*shape.size.tolist(), start, ray)


def _ball(side: float, wide: float, tall: float, start: np.ndarray, ray: np.ndarray) -> np.ndarray:
    """An ellipsoid: a sphere of radius one, once space is squeezed."""
    squeeze = np.array([1 / side, 1 / wide, 1 / tall], np.float32).reshape(3, *[1] * (ray.ndim - 1))
    return _round(start * squeeze, ray * squeeze, 1.0)


def _round(start: np.ndarray, ray: np.ndarray, radius: float) -> np.ndarray:
    """Into a sphere, or in two dimensions a circle, about the origin.

    From the point of the ray nearest to the middle: seen from afar, the textbook formula would
    subtract large numbers that are almost equal.
    """
    slope = 1 / np.maximum((ray * ray).sum(0), 1e-12)
    middle = -(start * ray).sum(0) * slope
    nearest = start + middle * ray
    inside = radius * radius - (nearest * nearest).sum(0)
    return np.where(inside >= 0, middle - np.sqrt(np.maximum(inside, 0) * slope), np.inf)


def _capsule(
    radius: float, _: float, tall: float, start: np.ndarray, ray: np.ndarray
) -> np.ndarray:
    side = _round(start[:2], ray[:2], radius)
    height, half = start[2] + side * ray[2], np.float32(tall - radius)
    beyond = np.abs(height) > half
    # A ray that comes into the endless cylinder beyond one end can only hit the ball of that end.
    centre = np.broadcast_to(start, (3, *height.shape))[:, beyond].copy()
    centre[2] -= np.copysign(half, height[beyond])
    side[beyond] = _round(centre, np.broadcast_to(ray, (3, *height.shape))[:, beyond], radius)
    return side


def _cylinder(
    radius: float, _: float, tall: float, start: np.ndarray, ray: np.ndarray
) -> np.ndarray:
    side = _round(start[:2], ray[:2], radius)
    height = start[2] + side * ray[2]
    lid = (np.copysign(np.float32(tall), height) - start[2]) / ray[2]
    reach = start[:2] + lid * ray[:2]
    lid = np.where((reach * reach).sum(0) <= radius * radius, lid, np.inf)
    return np.where(np.abs(height) <= tall, side, lid)


def _box(side: float, wide: float, tall: float, start: np.ndarray, ray: np.ndarray) -> np.ndarray:
    half = np.array([side, wide, tall], np.float32).reshape(3, *[1] * (ray.ndim - 1))
    one, other = (-half - start) / ray, (half - start) / ray
    near, far = np.fmin(one, other).max(0), np.fmax(one, other).min(0)
    return np.where(near <= far, near, np.inf)


Entry = Callable[[float, float, float, np.ndarray, np.ndarray], np.ndarray]
ENTER: dict[str, Entry] = {"ball": _ball, "box": _box, "capsule": _capsule, "cylinder": _cylinder}
"""The solids. A ball may be an ellipsoid; capsules and cylinders stand along their third axis."""


def normals(shape: Shape, points: np.ndarray) -> np.ndarray:
    """Which way a surface faces at some of its points, all `(3, n)` in its frame."""
    size = shape.size.astype(np.float32)[:, None]
    if shape.kind == "ball":
        out = points / (size * size)
    elif shape.kind == "capsule":
        out, half = points.copy(), size[2] - size[0]
        out[2] -= np.clip(out[2], -half, half)
    else:
        axis = np.arange(3)[:, None]
        reach = np.abs(points) / size
        if shape.kind == "cylinder":
            reach[:2] = np.hypot(reach[0], reach[1])
            axis = np.array([0, 0, 2])[:, None]
        face = reach.argmax(0)
        out = np.where(axis == axis[face, 0], points, 0)
    return out / np.maximum(np.sqrt((out * out).sum(0)), 1e-12)
