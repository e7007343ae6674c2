"""Images of MuJoCo models: colours, camera, floor, captions."""

import numpy as np
import pytest
from mamujoco_images import MODELS, bent, joints, like, load, pixels, split, team, view

from fp3o.envs.mamujoco.camera import camera_setup, geom_shapes, pose
from fp3o.envs.mamujoco.render import (
    AGENT_PALETTE,
    FIXED_COLOUR,
    GOAL_COLOUR,
    OBJECT_COLOUR,
    PASSIVE_COLOUR,
    geom_colours,
    render_model,
)
from fp3o.envs.rendering import STRIP


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
