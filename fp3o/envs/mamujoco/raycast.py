"""Ray casting of convex shapes with NumPy: camera, shading, shadows.

Every shape has a bounding box, and rays are cast only for the pixels that the box covers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, floor

import numpy as np

from fp3o.envs.mamujoco.shapes import Shape, intersect, surface_normals

RAYS_PER_SIDE = 2
"""Rays per side of a pixel; their mean makes smooth edges."""
LIGHT_DIRECTION = np.array([-0.42, 0.72, -0.55])
"""Direction of the light relative to the camera: from the left, above and behind."""
DEPTH_TOLERANCE = np.float32(1 - 3e-5)
"""Of surfaces whose depths differ by less, the first is drawn; rounding would make speckles."""
LEVELS = 2**14 - 1
"""Levels of red, green, blue and opacity, packed into 64 bits: rays add up in one operation."""
Window = tuple[slice, slice]
"""Rows and columns of an image."""


@dataclass(frozen=True)
class Camera:
    """A pinhole camera without roll, above a horizontal floor."""

    position: np.ndarray
    axes: np.ndarray
    """Rows: to the right, up and ahead."""
    slope: tuple[float, float]
    """Slopes of the rays to the right and upper edges of the image."""
    size: tuple[int, int]
    """Columns and rows."""
    height: float
    """Height above the floor."""

    @cached_property
    def light(self) -> np.ndarray:
        """Direction towards the light in the world; never from below."""
        towards = LIGHT_DIRECTION @ self.axes
        towards[2] = max(towards[2], 0.8)
        return towards / np.linalg.norm(towards)

    def rays(self, window: Window, fine: int, turn: np.ndarray) -> np.ndarray:
        """Directions `(3, pixels)` of unit depth, in a frame with the columns of `turn` as axes."""
        right, up, ahead = (self.axes @ turn).astype(np.float32)[:, :, None, None]
        rows, columns = (np.arange(part.start, part.stop, dtype=np.float32) for part in window)
        x = ((columns + 0.5) * (2 / (self.size[0] * fine)) - 1) * self.slope[0]
        y = (1 - (rows + 0.5) * (2 / (self.size[1] * fine))) * self.slope[1]
        return ((ahead + up * y[:, None]) + right * x).reshape(3, -1)

    def rise(self, fine: int) -> np.ndarray:
        """Vertical components of the rays of each row."""
        return self.rays((slice(0, self.size[1] * fine), slice(0, 1)), fine, np.eye(3))[2]

    def floor_distance(self, fine: int) -> np.ndarray:
        """Depth of the floor in each row; infinite above the horizon."""
        fall = -self.rise(fine)
        return np.where(fall > 1e-6, self.height / np.maximum(fall, 1e-6), np.inf)

    def window(self, points: np.ndarray, fine: int) -> Window:
        """The window of the image that contains points; all of it if some are not ahead."""
        x, y, ahead = self.axes @ (points - self.position).T
        columns, rows = (fine * side for side in self.size)
        if ahead.min() < 1e-3:
            return slice(0, rows), slice(0, columns)
        return _pixel_range(-y / ahead / self.slope[1], rows), _pixel_range(
            x / ahead / self.slope[0], columns
        )


def _pixel_range(at: np.ndarray, pixels: int) -> slice:
    """The pixels that positions cover, between the edges -1 and 1."""
    first, last = ((1 + float(end)) / 2 * pixels for end in (at.min(), at.max()))
    return slice(min(max(floor(first), 0), pixels), min(max(ceil(last), 0), pixels))


def draw_shapes(image: np.ndarray, shapes: Sequence[Shape], camera: Camera) -> None:
    """Draw the parts of shapes above the floor onto an image `(rows, columns, 3)`."""
    columns, rows = (RAYS_PER_SIDE * side for side in camera.size)
    depth, front = (
        np.repeat(camera.floor_distance(RAYS_PER_SIDE), columns),
        np.zeros(rows * columns, np.uint64),
    )
    for shape in shapes:
        window = camera.window(shape.corners, RAYS_PER_SIDE)
        start = shape.local(camera.position)
        rays = camera.rays(window, RAYS_PER_SIDE, shape.axes)
        at = intersect(shape, start, rays)
        hits = np.flatnonzero((at > 0) & np.isfinite(at))
        pixels = _pixel_indices(hits, window, columns)
        nearer = np.flatnonzero(at.take(hits) < DEPTH_TOLERANCE * depth.take(pixels))
        hits, pixels = hits.take(nearer), pixels.take(nearer)
        depth[pixels] = at.take(hits)
        front[pixels] = _shade(shape, start + at.take(hits) * rays.take(hits, 1), camera)
    touched = camera.window(np.concatenate([shape.corners for shape in shapes]), 1)
    image[touched] = _blend(front.reshape(rows, columns), image, touched)


def _pixel_indices(within: np.ndarray, window: Window, columns: int) -> np.ndarray:
    """Indices of pixels in a window as indices in the whole image."""
    down, across = window
    width = across.stop - across.start
    return (
        within + within // max(width, 1) * (columns - width) + down.start * columns + across.start
    )


def _blend(front: np.ndarray, image: np.ndarray, window: Window) -> np.ndarray:
    """A window of the image behind the mean of the rays of every pixel."""
    rays = front[
        tuple(slice(part.start * RAYS_PER_SIDE, part.stop * RAYS_PER_SIDE) for part in window)
    ]
    rays = rays[::RAYS_PER_SIDE] + rays[1::RAYS_PER_SIDE]
    total = rays[:, ::RAYS_PER_SIDE] + rays[:, 1::RAYS_PER_SIDE]
    mean = total.view(np.uint16).reshape(*total.shape, 4) * np.float32(
        1 / (LEVELS * RAYS_PER_SIDE**2)
    )
    return image[window] * (1 - mean[..., 3:]) + mean[..., :3]


def _shade(shape: Shape, points: np.ndarray, camera: Camera) -> np.ndarray:
    """Packed colours of surface points: ambient, diffuse and specular light."""
    light, eye = camera.light, -camera.axes[2]
    halfway = (light + eye) / np.linalg.norm(light + eye)
    towards = (np.stack([light, halfway, eye, [0, 0, 1]]) @ shape.axes).astype(np.float32)
    diffuse, specular, facing, up = towards @ surface_normals(shape, points)
    bright = 0.57 + 0.11 * up + 0.42 * np.maximum(diffuse, 0)
    bright *= 0.74 + 0.26 * np.minimum(1, 2 * facing)  # dark edges separate crossing limbs
    specular = np.maximum(specular, 0)
    for _ in range(5):  # to the power of 32
        specular *= specular
    colours = shape.colour.astype(np.float32)[:, None] * bright + 0.2 * specular
    packed = np.full((len(diffuse), 4), LEVELS, np.uint16)
    packed[:, :3] = (np.clip(colours, 0, 1) * LEVELS).T
    return packed.view(np.uint64)[:, 0]


def shadow_mask(shapes: Sequence[Shape], camera: Camera) -> np.ndarray:
    """Whether shapes cast a shadow on the floor, `(rows, columns)`."""
    away, dark = camera.floor_distance(1), np.zeros(camera.size[::-1], bool)
    for shape in shapes:
        above = shape.corners[:, 2:] - (camera.position[2] - camera.height)
        fallen = shape.corners - camera.light * (above / camera.light[2])
        down, across = window = camera.window(fallen, 1)
        far = np.repeat(away[down], across.stop - across.start)
        with np.errstate(invalid="ignore"):  # no floor above the horizon
            spots = camera.rays(window, 1, shape.axes) * far + shape.local(camera.position)
        ray = (camera.light @ shape.axes).astype(np.float32)[:, None]
        dark[window] |= np.isfinite(intersect(shape, spots, ray)).reshape(dark[window].shape)
    return dark & np.isfinite(away)[:, None]
