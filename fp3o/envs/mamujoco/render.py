"""Pictures of MuJoCo scenes, drawn without a screen and without OpenGL."""

# pyright: reportAttributeAccessIssue=false
# The names of mujoco are compiled; there are no stubs for them.
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise

import mujoco
import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from fp3o.envs.mamujoco.camera import aim, pose, shot, solids
from fp3o.envs.mamujoco.raycast import Camera, Shape, paint, shadow
from fp3o.envs.mamujoco.task import World
from fp3o.envs.mpe.render import ALARM, COLOURS, INK, PAPER, TEAM

STRIP = 26
"""Rows below the scene, for the caption."""


def rgb(colour: str) -> np.ndarray:
    """`#rrggbb` as three numbers from 0 to 1."""
    return np.frombuffer(bytes.fromhex(colour[1:]), np.uint8) / 255


BODY, STAGE = rgb("#a29e95"), rgb("#c9c4b8")
"""Of the parts of robots that nobody drives, and of what never moves."""

GOAL, THING = rgb(ALARM), rgb(INK)
"""Of what only marks a place, and of what can be pushed about."""

SKY, HORIZON = rgb("#b5d0e8"), rgb("#f7f5f0")

TILES = np.stack([rgb("#f2efe8"), rgb("#d6d7d8")])


def palette() -> np.ndarray:
    """Colours of up to 24 agents: the first ones differ also for the colour-blind."""
    names = (COLOURS[2], TEAM[1], COLOURS[1], COLOURS[0], TEAM[0], TEAM[2])
    base = np.stack([rgb(name) for name in names])
    return np.concatenate([base, 0.45 + 0.55 * base, 0.6 * base, 0.7 + 0.3 * base])


AGENTS = palette()


def colours(model: mujoco.MjModel, owned: Sequence[Sequence[int]]) -> np.ndarray:
    """The colour of every geom, `(ngeom, 3)` from 0 to 1: whose joints move it.

    `owned[i]` are the joints that agent `i` drives. A body that several agents turn has the colour
    of the one with most of its joints; one without joints has that of its parent. What nobody
    drives is grey, except for goals, in red, and for things to be pushed, nearly black.
    """
    bodies = np.tile(STAGE, (model.nbody, 1))
    joint = model.actuator_trntype == mujoco.mjtTrn.mjTRN_JOINT
    motored = set(model.body_rootid[model.jnt_bodyid[model.actuator_trnid[joint, 0]]])
    for body in range(1, model.nbody):
        first = int(model.body_jntadr[body])
        joints = set(range(first, first + int(model.body_jntnum[body])))
        shares = [len(joints.intersection(mine)) for mine in owned]
        if not joints:
            bodies[body] = bodies[model.body_parentid[body]]
        elif any(shares):
            bodies[body] = AGENTS[int(np.argmax(shares)) % len(AGENTS)]
        else:
            bodies[body] = BODY if model.body_rootid[body] in motored else THING
    painted = bodies[model.geom_bodyid]
    touches_nothing = (model.geom_contype == 0) & (model.geom_conaffinity == 0)
    painted[touches_nothing & (painted == THING).all(1)] = GOAL
    return painted


def portrait(world: World, qpos: np.ndarray, caption: str) -> np.ndarray:
    """A task's body in this position, the parts an agent moves in its colour."""
    model = world.model
    moved = [[int(model.actuator_trnid[motor, 0]) for motor in own] for own in world.driven]
    return picture(model, qpos, colours(model, moved), caption)


def picture(
    model: mujoco.MjModel,
    qpos: np.ndarray,
    colours: np.ndarray,
    caption: str = "",
    size: tuple[int, int] = (480, 320),
) -> np.ndarray:
    """The model at `qpos`, uint8 `(height, width, 3)`, with a caption below."""
    data = pose(model, qpos)
    shapes = solids(model, data, colours)
    camera = aim(model, data, shapes, (size[0], size[1] - STRIP))
    shapes += bands(model, data)
    scene = ground(camera, shot(model).tile)
    scene *= 1 - 0.36 * softly(shadow(shapes, camera))[..., None]
    paint(scene, shapes, camera)
    return label((scene * 255 + 0.5).astype(np.uint8), colours, caption)


def bands(model: mujoco.MjModel, data: mujoco.MjData) -> Iterator[Shape]:
    """Tendons that run from site to site."""
    for tendon in range(model.ntendon):
        first = int(model.tendon_adr[tendon])
        for pair in pairwise(range(first, first + int(model.tendon_num[tendon]))):
            if (model.wrap_type[list(pair)] == mujoco.mjtWrap.mjWRAP_SITE).all():
                ends = data.site_xpos[model.wrap_objid[list(pair)]]
                yield rod(ends[0], ends[1], float(model.tendon_width[tendon]) / 2)


def rod(start: np.ndarray, end: np.ndarray, radius: float) -> Shape:
    """A capsule from one place to another."""
    along = end - start
    # Its third axis lies along it; which way the others face does not matter.
    turn = np.linalg.qr(np.column_stack([along, np.eye(3)[np.abs(along).argsort()[:2]].T]))[0]
    size = np.array([radius, radius, float(np.linalg.norm(along)) / 2 + radius])
    return Shape("capsule", size, (start + end) / 2, turn[:, [1, 2, 0]], THING)


def softly(shade: np.ndarray) -> np.ndarray:
    """The same with soft edges, as numbers from 0 to 1."""
    image = Image.fromarray(shade.astype(np.uint8) * 255).filter(ImageFilter.BoxBlur(1))
    return np.asarray(image) * np.float32(1 / 255)


def ground(camera: Camera, tile: float) -> np.ndarray:
    """The sky, and a chequered floor that fades into it, `(rows, columns, 3)`."""
    width, height = camera.size
    climb, scene = camera.climb(1)[:, None], np.empty((height, width, 3), np.float32)
    horizon = int((climb > -1e-3).sum())
    scene[:horizon] = (HORIZON + (SKY - HORIZON) * np.clip(climb[:horizon] / 0.2, 0, 1))[:, None]
    fade = 1 / (1 + (climb[horizon:] / 0.12) ** 2)
    light, dark = ((hue + (HORIZON - hue) * fade).astype(np.float32)[:, None] for hue in TILES)
    scene[horizon:] = (light + dark) / 2 + (light - dark) / 2 * chequers(camera, tile, horizon)
    return scene


def chequers(camera: Camera, tile: float, horizon: int) -> np.ndarray:
    """From 1 to -1 where the tiles of the floor are light and dark, `(rows, columns, 1)`."""
    width, height = camera.size
    below = slice(horizon, height), slice(0, width)
    away = camera.floor(1)[horizon:, None] / np.float32(tile)
    x, y, _ = camera.rays(below, 1, np.eye(3)).reshape(3, -1, width) * away
    # The pattern repeats: what is left out before rounding keeps it sharp far from the origin.
    left, behind = ((camera.place[:2] / tile) % 2).astype(np.float32)
    return (wave(x + left) * wave(y + behind))[..., None]


def wave(x: np.ndarray) -> np.ndarray:
    """1 and -1 in turn on intervals of length one, averaged over the width of each pixel."""
    if min(x.shape) < 2:
        return np.zeros_like(x)
    wide = np.abs(np.gradient(x, axis=0)) + np.abs(x[:, 1:2] - x[:, :1])  # rows are even
    wide += np.float32(1e-6)
    ends = ((x - wide / 2) / 2, (x + wide / 2) / 2)
    low, high = (np.abs(2 * (end - np.floor(end)) - 1) for end in ends)  # the integral, a zigzag
    return (low - high) / wide


@cache
def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """The one that comes with Pillow."""
    return ImageFont.load_default(size)


def label(scene: np.ndarray, colours: np.ndarray, caption: str) -> np.ndarray:
    """The scene with whose colour is which above and the caption below."""
    height, width, _ = scene.shape
    paper = Image.new("RGB", (width, height + STRIP), PAPER)
    paper.paste(Image.fromarray(scene))
    pen = ImageDraw.Draw(paper)
    pen.line((0, height, width, height), "#d8d4ca")
    pen.text((12, height + STRIP / 2), caption, INK, font(13), "lm")
    legend(pen, np.flatnonzero([np.isclose(colours, hue).all(1).any() for hue in AGENTS]), width)
    return np.asarray(paper).copy()


def legend(pen: ImageDraw.ImageDraw, agents: np.ndarray, width: int) -> None:
    """Whose colour is which, in as many rows as it takes."""
    many, x, y = len(agents) > 6, 12.0, 16.0
    if many:
        pen.text((x, y), "agents", INK, font(12), "lm")
        x += pen.textlength("agents", font(12)) + 10
    for agent in agents:
        name = f"{agent}" if many else f"agent {agent}"
        wide = 14 + pen.textlength(name, font(12))
        if x + wide > width - 8:
            x, y = 12.0, y + 17
        hue = tuple(int(255 * part) for part in AGENTS[agent])
        pen.rounded_rectangle((x, y - 5, x + 9, y + 4), 2, hue)
        pen.text((x + 14, y), name, INK, font(12), "lm")
        x += wide + (9 if many else 14)
