"""The background of MuJoCo images: the sky, and a chequered floor that fades into it."""

import numpy as np

from fp3o.envs.mamujoco.raycast import Camera
from fp3o.envs.rendering import rgb

_SKY, _HORIZON = (np.array(rgb(name), np.uint8) / 255 for name in ("#b5d0e8", "#f7f5f0"))

_TILES = np.stack([np.array(rgb(name), np.uint8) / 255 for name in ("#f2efe8", "#d6d7d8")])
"""Light and dark tiles."""


def sky_and_floor(camera: Camera, tile: float) -> np.ndarray:
    """The background seen by a camera, `(rows, columns, 3)`."""
    width, height = camera.size
    rise, image = camera.rise(1)[:, None], np.empty((height, width, 3), np.float32)
    horizon = int((rise > -1e-3).sum())
    image[:horizon] = (_HORIZON + (_SKY - _HORIZON) * np.clip(rise[:horizon] / 0.2, 0, 1))[:, None]
    fade = 1 / (1 + (rise[horizon:] / 0.12) ** 2)
    light, dark = ((hue + (_HORIZON - hue) * fade).astype(np.float32)[:, None] for hue in _TILES)
    image[horizon:] = (light + dark) / 2 + (light - dark) / 2 * _chequers(camera, tile, horizon)
    return image


def _chequers(camera: Camera, tile: float, horizon: int) -> np.ndarray:
    """From 1 to -1 where the tiles of the floor are light and dark, `(rows, columns, 1)`."""
    width, height = camera.size
    below = slice(horizon, height), slice(0, width)
    distance = camera.floor_distance(1)[horizon:, None] / np.float32(tile)
    x, y, _ = camera.rays(below, 1, np.eye(3)).reshape(3, -1, width) * distance
    # The pattern is periodic; reducing before rounding keeps it sharp far from the origin.
    offset_x, offset_y = ((camera.position[:2] / tile) % 2).astype(np.float32)
    return (_square_wave(x + offset_x) * _square_wave(y + offset_y))[..., None]


def _square_wave(x: np.ndarray) -> np.ndarray:
    """1 and -1 alternating on unit intervals, averaged over the width of each pixel."""
    if min(x.shape) < 2:
        return np.zeros_like(x)
    width = np.abs(np.gradient(x, axis=0)) + np.abs(x[:, 1:2] - x[:, :1])  # rows are even
    width += np.float32(1e-6)
    ends = ((x - width / 2) / 2, (x + width / 2) / 2)
    low, high = (np.abs(2 * (end - np.floor(end)) - 1) for end in ends)  # the integral, a zigzag
    return (low - high) / width
