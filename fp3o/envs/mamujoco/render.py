"""Images of MuJoCo bodies, ray-cast with NumPy, without a display or OpenGL."""

# pyright: reportAttributeAccessIssue=false
# MuJoCo has no type stubs.
from collections.abc import Iterator, Sequence
from itertools import pairwise

import mujoco
import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from fp3o.envs.mamujoco.camera import camera_setup, geom_shapes, place_camera, pose
from fp3o.envs.mamujoco.floor import sky_and_floor
from fp3o.envs.mamujoco.raycast import draw_shapes, shadow_mask
from fp3o.envs.mamujoco.shapes import Shape
from fp3o.envs.mamujoco.task import BodyTask
from fp3o.envs.rendering import AGENT_COLOURS, ALERT, INK, STRIP, add_caption, font, rgb


def _unit_rgb(colour: str) -> np.ndarray:
    """`#rrggbb` as three numbers from 0 to 1."""
    return np.array(rgb(colour), np.uint8) / 255


PASSIVE_COLOUR, FIXED_COLOUR = _unit_rgb("#a29e95"), _unit_rgb("#c9c4b8")
"""Parts of bodies that no agent controls, and parts that never move."""

GOAL_COLOUR, OBJECT_COLOUR = _unit_rgb(ALERT), _unit_rgb(INK)
"""Marks of positions, and objects that can be pushed."""


def _agent_palette() -> np.ndarray:
    """Colours of up to 24 agents; the first ones are distinguishable for colour-blind readers."""
    base = np.stack([_unit_rgb(name) for name in AGENT_COLOURS])
    return np.concatenate([base, 0.45 + 0.55 * base, 0.6 * base, 0.7 + 0.3 * base])


AGENT_PALETTE = _agent_palette()


def geom_colours(model: mujoco.MjModel, owned: Sequence[Sequence[int]]) -> np.ndarray:
    """The colour of every geom, `(ngeom, 3)` from 0 to 1: that of the agent whose joints move it.

    `owned[i]` are the joints that agent `i` controls. A body that several agents turn has the
    colour of the one with most of its joints; one without joints has that of its parent. Parts
    that no agent controls are grey, except for goals, in red, and objects, nearly black.
    """
    bodies = np.tile(FIXED_COLOUR, (model.nbody, 1))
    joint = model.actuator_trntype == mujoco.mjtTrn.mjTRN_JOINT
    actuated = set(model.body_rootid[model.jnt_bodyid[model.actuator_trnid[joint, 0]]])
    for body in range(1, model.nbody):
        first = int(model.body_jntadr[body])
        joints = set(range(first, first + int(model.body_jntnum[body])))
        shares = [len(joints.intersection(own)) for own in owned]
        if not joints:
            bodies[body] = bodies[model.body_parentid[body]]
        elif any(shares):
            bodies[body] = AGENT_PALETTE[int(np.argmax(shares)) % len(AGENT_PALETTE)]
        else:
            is_part = model.body_rootid[body] in actuated
            bodies[body] = PASSIVE_COLOUR if is_part else OBJECT_COLOUR
    colours = bodies[model.geom_bodyid]
    without_contact = (model.geom_contype == 0) & (model.geom_conaffinity == 0)
    colours[without_contact & (colours == OBJECT_COLOUR).all(1)] = GOAL_COLOUR
    return colours


def render_task(task: BodyTask, qpos: np.ndarray, caption: str) -> np.ndarray:
    """The body of a task in a position, with one colour per agent."""
    model = task.model
    owned = [[int(model.actuator_trnid[i, 0]) for i in own] for own in task.controlled]
    return render_model(model, qpos, geom_colours(model, owned), caption)


def render_model(
    model: mujoco.MjModel,
    qpos: np.ndarray,
    colours: np.ndarray,
    caption: str = "",
    size: tuple[int, int] = (480, 320),
) -> np.ndarray:
    """A model in a position, uint8 `(height, width, 3)`, with a legend and a caption."""
    data = pose(model, qpos)
    shapes = geom_shapes(model, data, colours)
    camera = place_camera(model, data, shapes, (size[0], size[1] - STRIP))
    shapes += _tendon_shapes(model, data)
    image = sky_and_floor(camera, camera_setup(model).tile)
    image *= 1 - 0.36 * _soft_edges(shadow_mask(shapes, camera))[..., None]
    draw_shapes(image, shapes, camera)
    return _with_legend((image * 255 + 0.5).astype(np.uint8), colours, caption)


def _tendon_shapes(model: mujoco.MjModel, data: mujoco.MjData) -> Iterator[Shape]:
    """Tendons that run from site to site."""
    for tendon in range(model.ntendon):
        first = int(model.tendon_adr[tendon])
        for pair in pairwise(range(first, first + int(model.tendon_num[tendon]))):
            if (model.wrap_type[list(pair)] == mujoco.mjtWrap.mjWRAP_SITE).all():
                ends = data.site_xpos[model.wrap_objid[list(pair)]]
                yield _rod(ends[0], ends[1], float(model.tendon_width[tendon]) / 2)


def _rod(start: np.ndarray, end: np.ndarray, radius: float) -> Shape:
    """A capsule between two positions."""
    along = end - start
    # Its third axis lies along it; the directions of the others do not matter.
    turn = np.linalg.qr(np.column_stack([along, np.eye(3)[np.abs(along).argsort()[:2]].T]))[0]
    size = np.array([radius, radius, float(np.linalg.norm(along)) / 2 + radius])
    return Shape("capsule", size, (start + end) / 2, turn[:, [1, 2, 0]], OBJECT_COLOUR)


def _soft_edges(mask: np.ndarray) -> np.ndarray:
    """A mask with soft edges, from 0 to 1."""
    image = Image.fromarray(mask.astype(np.uint8) * 255).filter(ImageFilter.BoxBlur(1))
    return np.asarray(image) * np.float32(1 / 255)


def _with_legend(image: np.ndarray, colours: np.ndarray, caption: str) -> np.ndarray:
    """The image with the agents' colours above and the caption below."""
    framed = Image.fromarray(add_caption(image, caption))
    agents = np.flatnonzero([np.isclose(colours, hue).all(1).any() for hue in AGENT_PALETTE])
    _draw_agents(ImageDraw.Draw(framed), agents, framed.width)
    return np.asarray(framed).copy()


def _draw_agents(pen: ImageDraw.ImageDraw, agents: np.ndarray, width: int) -> None:
    """Draw the colours and indices of agents, in as many rows as needed."""
    many, x, y = len(agents) > 6, 12.0, 16.0
    if many:
        pen.text((x, y), "agents", INK, font(12), "lm")
        x += pen.textlength("agents", font(12)) + 10
    for agent in agents:
        name = f"{agent}" if many else f"agent {agent}"
        space = 14 + pen.textlength(name, font(12))
        if x + space > width - 8:
            x, y = 12.0, y + 17
        hue = tuple(int(255 * part) for part in AGENT_PALETTE[agent])
        pen.rounded_rectangle((x, y - 5, x + 9, y + 4), 2, hue)
        pen.text((x + 14, y), name, INK, font(12), "lm")
        x += space + (9 if many else 14)
