"""Rays against brute force: intersections, hidden shapes, shadows."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from mamujoco_images import like

from fp3o.envs.mamujoco.raycast import Camera, draw_shapes, shadow_mask
from fp3o.envs.mamujoco.render import AGENT_PALETTE, PASSIVE_COLOUR
from fp3o.envs.mamujoco.shapes import INTERSECTIONS, Shape, intersect, surface_normals

INSIDE: dict[str, Callable[[np.ndarray, np.ndarray], Any]] = {
    "ball": lambda p, s: ((p / s) ** 2).sum(-1) <= 1,
    "box": lambda p, s: (np.abs(p) <= s).all(-1),
    "cylinder": lambda p, s: (np.hypot(p[..., 0], p[..., 1]) <= s[0]) & (np.abs(p[..., 2]) <= s[2]),
    "capsule": lambda p, s: np.hypot(
        np.hypot(p[..., 0], p[..., 1]), np.maximum(np.abs(p[..., 2]) - s[2] + s[0], 0)
    ) <= s[0],
}  # fmt: skip
SIZES = {
    "ball": (0.3, 0.5, 0.9), "box": (0.3, 0.5, 0.9),
    "capsule": (0.3, 0.3, 0.9), "cylinder": (0.4, 0.4, 0.7),
}  # fmt: skip


def make_shape(name: str, position: tuple[float, float, float] = (0, 0, 0), hue: int = 0) -> Shape:
    return Shape(
        name, np.array(SIZES[name]), np.array(position, float), np.eye(3), AGENT_PALETTE[hue]
    )


@pytest.mark.parametrize("name", INTERSECTIONS)
def test_intersections_equal_a_search_along_the_ray(name: str) -> None:
    rng, shape = np.random.default_rng(1), make_shape(name)
    start = rng.normal(size=(400, 3))
    start *= 3 / np.linalg.norm(start, axis=1, keepdims=True)
    ray = rng.uniform(-0.8, 0.8, (400, 3)) - start
    ray[:3] = -start[:3] * [[1, 0, 0], [0, 1, 0], [0, 0, 1]]  # along the axes, too
    start[:3] = -ray[:3]
    steps = np.linspace(0, 2, 8001)
    walk = INSIDE[name](start[:, None] + steps[:, None] * ray[:, None], shape.size)
    first = np.where(walk.any(1), steps[walk.argmax(1)], np.inf)
    at = intersect(shape, start.T.astype(np.float32), ray.T.astype(np.float32))
    surely = (walk.sum(1) > 40) | ~walk.any(1)  # without rays that only graze it
    assert 0.3 < np.isfinite(at[surely]).mean() < 0.95 and surely.mean() > 0.9
    grazes = np.isfinite(at) & ~np.isfinite(first)
    assert grazes.mean() < 0.02
    assert np.allclose(at[surely & ~grazes], first[surely & ~grazes], atol=1e-3)

    hit = np.isfinite(at)
    points = (start + np.where(hit, at, 0)[:, None] * ray)[hit]
    out = surface_normals(shape, points.T.astype(np.float32)).T
    assert np.allclose(np.linalg.norm(out, axis=1), 1, atol=1e-5)
    assert not INSIDE[name](points + 2e-3 * out, shape.size).any()
    assert INSIDE[name](points - 2e-3 * out, shape.size).mean() > 0.98  # except at a sharp edge
    assert ((out * ray[hit]).sum(1) < 1e-3).all()


def above() -> Camera:
    """Straight down from four units above the floor."""
    axes = np.array([[1, 0, 0], [0, 1, 0], [0, 0, -1]], float)
    return Camera(np.array([0, 0, 4.0]), axes, (0.75, 0.5), (120, 80), 4.0)


def test_nearer_shapes_hide_others_and_the_floor_hides_what_is_below() -> None:
    camera, image = above(), np.ones((80, 120, 3), np.float32)
    shapes = make_shape("box"), make_shape("ball", (0, 0, 1.5), 1), make_shape("box", (1, 0, -2), 2)
    draw_shapes(image, shapes, camera)
    image = (image * 255).astype(np.uint8)
    assert like(image, AGENT_PALETTE[1])[40, 60]
    assert like(image, AGENT_PALETTE[0]).any()
    assert not like(image, AGENT_PALETTE[2]).any()


@pytest.mark.parametrize("turn", [(0, 1, 2), (2, 0, 1)])
def test_a_shadow_is_where_a_line_to_the_light_meets_the_shape(turn: tuple[int, ...]) -> None:
    camera = above()
    ball = Shape(
        "ball", np.full(3, 0.4), np.array([0.2, -0.1, 0.8]), np.eye(3)[list(turn)], PASSIVE_COLOUR
    )
    rows, columns = np.mgrid[:80, :120]
    x, y = ((columns + 0.5) / 60 - 1) * 3, (1 - (rows + 0.5) / 40) * 2
    spots = np.stack([x, y, 0 * x], -1) - ball.position
    along = spots @ camera.light
    apart = np.sqrt((spots**2).sum(-1) - along**2)
    dark = shadow_mask([ball], camera)
    assert dark.any() and (dark == (apart < 0.4))[np.abs(apart - 0.4) > 1e-3].all()
