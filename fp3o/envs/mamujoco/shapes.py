"""Convex shapes: where rays enter them, and their surface normals."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

CORNERS = np.stack(np.meshgrid([-1, 1], [-1, 1], [-1, 1]), -1).reshape(8, 3)
"""Corners of a box of half side 1."""


@dataclass(frozen=True)
class Shape:
    """A convex shape of one of the types in `INTERSECTIONS`."""

    type: str
    size: np.ndarray
    """Half the sides of its bounding box."""
    position: np.ndarray
    axes: np.ndarray
    """Its axes as columns."""
    colour: np.ndarray

    @cached_property
    def corners(self) -> np.ndarray:
        """Corners of its bounding box, `(8, 3)`."""
        return self.position + (CORNERS * self.size) @ self.axes.T

    def local(self, position: np.ndarray) -> np.ndarray:
        """A position of the world in its frame, `(3, 1)`."""
        # In double precision: otherwise images far from the origin would shake.
        return ((position - self.position) @ self.axes).astype(np.float32)[:, None]


def intersect(shape: Shape, start: np.ndarray, ray: np.ndarray) -> np.ndarray:
    """Depth, in ray lengths, at which rays enter a shape; infinite if they miss it.

    `start` and `ray` are `(3, n)` in the frame of the shape.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return INTERSECTIONS[shape.type](shape.size.astype(np.float32)[:, None], start, ray)


def _ball(size: np.ndarray, start: np.ndarray, ray: np.ndarray) -> np.ndarray:
    """An ellipsoid is a unit sphere in scaled coordinates."""
    return _round(np.float32(1), start / size, ray / size)


def _round(radius: np.float32, start: np.ndarray, ray: np.ndarray) -> np.ndarray:
    """Intersection with a sphere, or in two dimensions a circle, around the origin.

    It starts from the point of the ray nearest to the centre: from far away, the usual formula
    would subtract large numbers that are almost equal.
    """
    slope = 1 / np.maximum(_dot(ray, ray), 1e-12)
    middle = -slope * _dot(start, ray)
    nearest = start + middle * ray
    inside = radius * radius - _dot(nearest, nearest)
    return np.where(inside >= 0, middle - np.sqrt(np.maximum(inside, 0) * slope), np.inf)


def _dot(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Dot products of columns; a single column is broadcast."""
    return np.einsum("ij,ij->j", one, other)


def _capsule(size: np.ndarray, start: np.ndarray, ray: np.ndarray) -> np.ndarray:
    radius, half = size[0, 0], size[2, 0] - size[0, 0]
    side = _round(radius, start[:2], ray[:2])
    height = start[2] + side * ray[2]
    # A ray that enters the infinite cylinder beyond one end can only hit the sphere at that end.
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


INTERSECTIONS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    "ball": _ball, "box": _box, "capsule": _capsule, "cylinder": _cylinder,
}  # fmt: skip
"""Shape types. Balls may be ellipsoids; capsules and cylinders lie along their third axis."""


def surface_normals(shape: Shape, points: np.ndarray) -> np.ndarray:
    """Normals at points of the surface, all `(3, n)` in the frame of the shape."""
    size = shape.size.astype(np.float32)[:, None]
    if shape.type == "ball":
        out = points / (size * size)
    elif shape.type == "capsule":
        half, out = size[2] - size[0], points.copy()
        out[2] -= np.clip(out[2], -half, half)
    else:
        reach = np.abs(points) / size
        if shape.type == "cylinder":
            reach[:2] = np.hypot(reach[0], reach[1])
        out = np.where(reach == reach.max(0), points, 0)
    return out / np.maximum(np.sqrt(_dot(out, out)), 1e-12)
