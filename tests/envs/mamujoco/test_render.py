"""Images of MuJoCo models: rays against brute force, colours, camera, floor."""

# pyright: reportAttributeAccessIssue=false
# MuJoCo has no type stubs.

import importlib.util
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from fp3o.envs.mamujoco.camera import camera_setup, geom_shapes, place_camera, pose
from fp3o.envs.mamujoco.raycast import Camera, draw_shapes, shadow_mask
from fp3o.envs.mamujoco.render import (
    AGENT_PALETTE,
    FIXED_COLOUR,
    GOAL_COLOUR,
    OBJECT_COLOUR,
    PASSIVE_COLOUR,
    geom_colours,
    render_model,
)
from fp3o.envs.mamujoco.shapes import INTERSECTIONS, Shape, intersect, surface_normals
from fp3o.envs.rendering import STRIP

FILES = (
    "ant", "half_cheetah", "hopper", "humanoid", "humanoidstandup", "inverted_double_pendulum",
    "inverted_pendulum", "pusher", "pusher_v5", "reacher", "swimmer", "walker2d_v5",
)  # fmt: skip
MODELS = (*FILES, "eel", "yoked")

EEL = "".join(
    f'<body pos="-1 0 0"><joint name="turn{i}" axis="0 0 1"/>'
    f'<geom type="capsule" fromto="0 0 0 -1 0 0" size=".1"/>' for i in range(15)
)  # fmt: skip
MADE = {
    "eel": f"""<mujoco><worldbody><geom type="plane" size="40 40 1" pos="0 0 -.1"/><body>
        <joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/><joint axis="0 0 1"/>
        <geom type="capsule" fromto="0 0 0 -1 0 0" size=".1"/>{EEL}{"</body>" * 16}</worldbody>
        <actuator>{"".join(f'<motor joint="turn{i}"/>' for i in range(15))}</actuator></mujoco>""",
    "yoked": """<mujoco><worldbody><geom type="plane" size="40 40 1"/>
        <body pos="0 -1 .5"><joint name="a" type="slide" axis="1 0 0"/>
        <joint type="slide" axis="0 0 1"/><geom type="box" size=".3 .1 .1"/><site name="a"/></body>
        <body pos="0 1 .5"><joint name="b" type="slide" axis="1 0 0"/>
        <joint type="slide" axis="0 0 1"/><geom type="ellipsoid" size=".3 .1 .1"/><site name="b"/>
        </body></worldbody><tendon><spatial width=".08"><site site="a"/><site site="b"/></spatial>
        </tendon><actuator><motor joint="a"/><motor joint="b"/></actuator></mujoco>""",
}
"""A swimmer of 16 links, and two sliding bodies tied together."""


@cache
def load(name: str) -> mujoco.MjModel:
    if name in MADE:
        return mujoco.MjModel.from_xml_string(MADE[name])
    found = importlib.util.find_spec("gymnasium")
    assert found is not None and found.origin is not None
    path = Path(found.origin).parent / "envs" / "mujoco" / "assets" / f"{name}.xml"
    # MuJoCo would write to a file that this attribute is deprecated.
    return mujoco.MjModel.from_xml_string(re.sub(r'settotalmass="\d+"', "", path.read_text()))


def joints(model: mujoco.MjModel, *names: str) -> list[int]:
    return [model.joint(name).id for name in names]


def split(model: mujoco.MjModel, agents: int) -> list[list[int]]:
    """Consecutive actuators, as evenly as possible."""
    return [part.tolist() for part in np.array_split(model.actuator_trnid[:, 0], agents)]


def team(name: str, agents: int = 6) -> tuple[mujoco.MjModel, np.ndarray]:
    model = load(name)
    return model, geom_colours(model, split(model, min(agents, model.nu)))


def bent(model: mujoco.MjModel) -> np.ndarray:
    """The initial pose with small rotations of all actuated joints."""
    turned, noise = np.zeros(model.nv), np.random.default_rng(0).uniform(-0.3, 0.3, model.nu)
    turned[model.jnt_dofadr[model.actuator_trnid[:, 0]]] = noise
    qpos = model.qpos0.copy()
    mujoco.mj_integratePos(model, qpos, turned, 1.0)
    return qpos


def view(model: mujoco.MjModel, qpos: np.ndarray, hues: np.ndarray) -> tuple[Camera, list[Shape]]:
    data = pose(model, qpos)
    shapes = geom_shapes(model, data, hues)
    return place_camera(model, data, shapes, (480, 320 - STRIP)), shapes


def pixels(camera: Camera, positions: np.ndarray) -> np.ndarray:
    """Rows and columns of positions in the image, `(n, 2)`."""
    x, y, ahead = camera.axes @ (positions - camera.position).T
    across, down = x / ahead / camera.slope[0], -y / ahead / camera.slope[1]
    columns, rows = camera.size
    return np.stack([(1 + down) * rows / 2, (1 + across) * columns / 2], 1)


def like(image: np.ndarray, colour: np.ndarray) -> np.ndarray:
    """Pixels of this hue and sufficient saturation, in light or shade."""
    image = image.astype(float) / 255
    grey, own = image.mean(-1, keepdims=True), colour - colour.mean()
    tint = image - grey
    size = np.linalg.norm(tint, axis=-1)
    return (size > 0.12) & (tint @ own > 0.97 * size * np.linalg.norm(own))


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


def test_geoms_have_the_colour_of_the_agent_that_moves_them() -> None:
    model = load("ant")
    owned = [
        joints(model, f"hip_{a}", f"ankle_{a}", f"hip_{b}", f"ankle_{b}") for a, b in ("14", "23")
    ]
    hues = geom_colours(model, owned)
    for geom, body in enumerate(model.geom_bodyid):
        mine = set(
            range(model.body_jntadr[body], model.body_jntadr[body] + model.body_jntnum[body])
        )
        agent = next((i for i, own in enumerate(owned) if mine & set(own)), None)
        expected = (
            FIXED_COLOUR if body == 0 else PASSIVE_COLOUR if agent is None else AGENT_PALETTE[agent]
        )
        assert np.array_equal(hues[geom], expected), model.geom(geom).name
    assert len(np.unique(hues, axis=0)) == 4


def test_bodies_without_joints_have_the_colour_of_their_parent() -> None:
    model = load("humanoid")
    lower = [
        j for j in range(1, model.njnt) if any(w in model.joint(j).name for w in ("hip", "knee"))
    ]
    upper = [j for j in range(1, model.njnt) if j not in lower]
    hues = geom_colours(model, [upper, lower])
    by_name = {model.geom(g).name: hues[g] for g in range(model.ngeom)}
    expected = {
        "left_foot": AGENT_PALETTE[1], "butt": AGENT_PALETTE[0], "head": PASSIVE_COLOUR,
        "right_hand": AGENT_PALETTE[0],
    }  # fmt: skip
    for name, hue in expected.items():
        assert np.array_equal(by_name[name], hue)
    hips = joints(model, "right_hip_x", "right_hip_z")
    rest = [j for j in lower if j not in hips]
    thigh = geom_colours(model, [rest, hips])[model.geom("right_thigh1").id]
    assert np.array_equal(thigh, AGENT_PALETTE[1])


def test_goals_and_objects_are_distinguishable() -> None:
    model, hues = team("pusher_v5")
    body = lambda name: hues[model.geom_bodyid == model.body(name).id]  # noqa: E731
    assert (body("goal") == GOAL_COLOUR).all() and (body("object") == OBJECT_COLOUR).all()
    model, hues = team("reacher")
    assert (hues[model.geom("target").id] == GOAL_COLOUR).all()
    assert (hues[model.geom("sideN").id] == FIXED_COLOUR).all()
    assert like(render_model(model, model.qpos0, hues), GOAL_COLOUR).sum() > 20


@pytest.mark.parametrize("name", ["half_cheetah", "swimmer", "eel", "reacher"])
def test_limbs_are_drawn_in_their_colour(name: str) -> None:
    model, hues = team(name)
    qpos = bent(model)
    image, (camera, shapes) = render_model(model, qpos, hues), view(model, qpos, hues)
    for agent, hue in enumerate(AGENT_PALETTE[: min(6, model.nu)]):
        own = np.stack([shape.position for shape in shapes if np.array_equal(shape.colour, hue)])
        rows, columns = pixels(camera, own).astype(int).T
        assert like(image, hue)[rows, columns].all(), agent
    torso = [shape.position for shape in shapes if np.array_equal(shape.colour, PASSIVE_COLOUR)][:1]
    for row, column in pixels(camera, np.reshape(torso, (-1, 3))).astype(int):
        assert not any(like(image, hue)[row, column] for hue in AGENT_PALETTE[:6])


@pytest.mark.parametrize("name", MODELS)
def test_every_model_is_rendered_with_all_its_agents(name: str) -> None:
    model, hues = team(name, 2)
    qpos = bent(model)
    image = render_model(model, qpos, hues, "a caption")
    assert image.shape == (320, 480, 3) and image.dtype == np.uint8 and image.std() > 5
    for hue in AGENT_PALETTE[: min(2, model.nu)]:
        assert like(image, hue)[28:].sum() > 100  # below the legend
    camera, shapes = view(model, qpos, hues)
    framed = camera_setup(model).framed
    corners = [shape.corners for shape, keep in zip(shapes, framed, strict=True) if keep]
    at = pixels(camera, np.concatenate(corners))
    assert (at > 0).all() and (at < [320 - STRIP, 480]).all()
    assert np.array_equal(image, render_model(model, qpos, hues, "a caption"))


def test_an_image_does_not_depend_on_earlier_ones() -> None:
    model, hues = team("ant")
    late = render_model(model, bent(model), hues)
    camera_setup.cache_clear()
    assert np.array_equal(late, render_model(model, bent(model), hues))
    render_model(model, model.qpos0, hues)
    assert np.array_equal(late, render_model(model, bent(model), hues))


@pytest.mark.parametrize("name", ["half_cheetah", "ant", "eel"])
def test_the_camera_follows_the_robot(name: str) -> None:
    model, hues = team(name)
    qpos, tile = bent(model), camera_setup(model).tile

    def moved(x: float) -> np.ndarray:
        there = qpos.copy()
        there[0] += x
        return render_model(model, there, hues).astype(int)

    here = moved(0.0)
    half = np.abs(moved(0.5 * tile) - here).max(-1)
    assert (half > 8).mean() > 0.05
    limbs = np.any([like(here, hue) for hue in AGENT_PALETTE[:6]], 0)
    assert (half[limbs] > 8).mean() < 0.2  # edges blend with the floor
    for far in (2 * tile, 2e4 * tile):  # the pattern is periodic, and remains sharp
        assert (np.abs(moved(far) - here).max(-1) > 8).mean() < 2e-3


def test_a_tendon_is_drawn_between_its_sites() -> None:
    model, hues = team("yoked")
    image, (camera, _) = render_model(model, model.qpos0, hues), view(model, model.qpos0, hues)
    (row, column), (floor, beside) = pixels(camera, np.array([[0, 0, 0.5], [0.6, 0, 0.5]])).astype(
        int
    )
    assert image[row, column].mean() < 90 < 180 < image[floor, beside].mean()


def test_captions_are_below_and_sizes_are_kept() -> None:
    model, hues = team("hopper")
    plain, captioned = (render_model(model, model.qpos0, hues, text) for text in ("", "step 7"))
    changed = np.flatnonzero((plain != captioned).any((1, 2)))
    assert changed.min() > 320 - STRIP
    assert render_model(model, model.qpos0, hues, "step 7", (200, 151)).shape == (151, 200, 3)
    many = geom_colours(load("humanoid"), split(load("humanoid"), 17))
    assert len(np.unique(many, axis=0)) > 10


def test_invisible_geoms_are_left_out() -> None:
    model = load("pusher")
    hidden = np.flatnonzero(model.geom_rgba[:, 3] == 0)
    data, hues = pose(model, model.qpos0), np.random.default_rng(0).random((model.ngeom, 3))
    shown = {tuple(shape.colour) for shape in geom_shapes(model, data, hues)}
    assert len(hidden) == 1 and tuple(hues[hidden[0]]) not in shown
    assert len(shown) == model.ngeom - 2  # without the floor
