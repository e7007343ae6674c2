"""Models to be drawn, and where their parts are in an image."""

# pyright: reportAttributeAccessIssue=false
# MuJoCo has no type stubs.

import importlib.util
import re
from functools import cache
from pathlib import Path

import mujoco
import numpy as np

from fp3o.envs.mamujoco.camera import geom_shapes, place_camera, pose
from fp3o.envs.mamujoco.raycast import Camera
from fp3o.envs.mamujoco.render import geom_colours
from fp3o.envs.mamujoco.shapes import Shape
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
