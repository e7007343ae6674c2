"""A MuJoCo model in a pose as solids, and from where to film it: what its joints let it do."""

# pyright: reportAttributeAccessIssue=false
# The names of mujoco are compiled; there are no stubs for them.
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import mujoco
import numpy as np

from fp3o.envs.mamujoco.raycast import Camera, Shape

LENS = 0.29
"""Slope of the rays to the upper edge of the picture."""

KINDS = {
    int(mujoco.mjtGeom.mjGEOM_SPHERE): "ball",
    int(mujoco.mjtGeom.mjGEOM_ELLIPSOID): "ball",
    int(mujoco.mjtGeom.mjGEOM_CAPSULE): "capsule",
    int(mujoco.mjtGeom.mjGEOM_CYLINDER): "cylinder",
    int(mujoco.mjtGeom.mjGEOM_BOX): "box",
}
"""The geoms that are drawn as solids."""

JOINTS = {
    int(mujoco.mjtJoint.mjJNT_FREE): "free",
    int(mujoco.mjtJoint.mjJNT_BALL): "ball",
    int(mujoco.mjtJoint.mjJNT_SLIDE): "slide {}",
    int(mujoco.mjtJoint.mjJNT_HINGE): "hinge {}",
}

VIEWS = {
    "walks": (-76, 14),
    "runs": (-84, 9),
    "runs beside another": (-66, 18),
    "swims": (-90, 54),
    "turns level": (-90, 72),
    "swings": (-90, 7),
    "reaches": (50, 32),
}
"""What a robot does -> azimuth and elevation of the camera, in degrees."""

FOLLOWED = {"walks": (1, 1), "runs": (1, 0), "runs beside another": (1, 0), "swims": (1, 1)}
"""What a robot does -> whether the camera goes along with its x and y."""

ROUND = np.stack([np.cos(np.arange(16) * np.pi / 8), np.sin(np.arange(16) * np.pi / 8)], 1)


def pose(model: mujoco.MjModel, qpos: np.ndarray) -> mujoco.MjData:
    """Where everything is."""
    data = mujoco.MjData(model)
    data.qpos[:] = qpos
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    return data


def drawn(model: mujoco.MjModel) -> np.ndarray:
    """The geoms that are solids and not invisible."""
    return np.flatnonzero(np.isin(model.geom_type, list(KINDS)) & (model.geom_rgba[:, 3] > 0))


def solids(model: mujoco.MjModel, data: mujoco.MjData, colours: np.ndarray) -> list[Shape]:
    """The geoms that are drawn."""
    return [
        Shape(KINDS[int(model.geom_type[i])], box(model, int(i)), data.geom_xpos[i].copy(),
              data.geom_xmat[i].reshape(3, 3).copy(), colours[i])
        for i in drawn(model)
    ]  # fmt: skip


def box(model: mujoco.MjModel, geom: int) -> np.ndarray:
    """Half the sides of the box of a geom."""
    (a, b, c), kind = model.geom_size[geom], KINDS[int(model.geom_type[geom])]
    if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_SPHERE:
        return np.array([a, a, a])
    if kind in ("capsule", "cylinder"):
        return np.array([a, a, b + a * (kind == "capsule")])
    return np.array([a, b, c])


@dataclass(frozen=True)
class Shot:
    """How a model is filmed."""

    axes: np.ndarray
    """Of the camera: to the right, up and ahead."""
    follows: np.ndarray
    """Which coordinates of the robots it follows; up, but never further down than at first."""
    roots: np.ndarray
    """The first bodies of the robots."""
    cast: np.ndarray
    """Which of the solids have to stay in the picture."""
    middle: np.ndarray
    """What it looks at in the first pose."""
    centre: np.ndarray
    """Of mass of the robots in the first pose."""
    around: np.ndarray
    """Places that are always in the picture, seen from the middle."""
    floor: float
    tile: float
    """Side of the tiles of the floor."""


@lru_cache(8)
def shot(model: mujoco.MjModel) -> Shot:
    """How a model is filmed, from its first pose."""
    data, roots = pose(model, model.qpos0), robots(model)
    shapes, manner = solids(model, data, np.zeros((model.ngeom, 3))), does(model, roots)
    followed = manner in FOLLOWED
    cast = np.isin(model.body_rootid[model.geom_bodyid[drawn(model)]], roots) | (not followed)
    corners = np.concatenate(
        [shape.corners for shape, keep in zip(shapes, cast, strict=True) if keep]
    )
    low, high = corners.min(0), corners.max(0)
    planes = np.flatnonzero(model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE)
    floor = data.geom_xpos[planes[0], 2] if len(planes) else low[2] - 0.15 * (high[2] - low[2])
    middle, centre = (low + high) / 2, data.subtree_com[roots].mean(0)
    if followed:
        middle = np.array([centre[0], centre[1], (floor + high[2]) / 2])
    around = room(corners - middle, manner, float(floor - middle[2]))
    tile = neat(0.45 * float(np.abs(around).max()))
    follows = np.array([*FOLLOWED.get(manner, (0, 0)), followed], bool)
    return Shot(
        axes(*VIEWS[manner]), follows, roots, cast, middle, centre, around, float(floor), tile
    )


def robots(model: mujoco.MjModel) -> np.ndarray:
    """The first bodies of the trees with most joints: several only if they move alike."""
    joints = np.bincount(model.body_rootid[model.jnt_bodyid], minlength=model.nbody)
    able = motion(model, int(joints.argmax()))
    most = np.flatnonzero(joints == joints.max())
    return np.array([body for body in most if motion(model, int(body)) == able])


def motion(model: mujoco.MjModel, body: int) -> frozenset[str]:
    """What the joints of a body let it do: `slide x`, `hinge y`, `free`, ..."""
    first = int(model.body_jntadr[body])
    return frozenset(_word(model, j) for j in range(first, first + int(model.body_jntnum[body])))


def _word(model: mujoco.MjModel, joint: int) -> str:
    axis = int(np.abs(model.jnt_axis[joint]).argmax())
    return JOINTS[int(model.jnt_type[joint])].format("xyz"[axis])


def does(model: mujoco.MjModel, roots: np.ndarray) -> str:
    """Which of `VIEWS` suits robots."""
    able = motion(model, int(roots[0]))
    if "free" in able:
        return "walks"
    if {"slide x", "slide z"} <= able:
        return "runs" if len(roots) == 1 else "runs beside another"
    if {"slide x", "slide y", "hinge z"} <= able:
        return "swims"
    joints = np.flatnonzero(np.isin(model.body_rootid[model.jnt_bodyid], roots))
    turns = {_word(model, int(j)) for j in joints} - {"slide x", "slide y", "slide z"}
    return {"hinge z": "turns level", "hinge y": "swings"}.get("".join(turns), "reaches")


def room(corners: np.ndarray, manner: str, floor: float) -> np.ndarray:
    """Places that a robot with such corners needs, all as seen from its middle."""
    if manner not in FOLLOWED:
        return corners
    corners = np.concatenate([corners, [[0, 0, floor]]])
    reach, (x, y, z) = np.hypot(corners[:, 0], corners[:, 1]), corners.T
    if manner.startswith("runs"):  # either way round
        return np.concatenate([np.stack([side * np.abs(x), y, z], 1) for side in (-1.2, 1.2)])
    # It may turn. A swimmer that does so is seldom stretched; if it is, the camera steps back.
    reach *= 0.8 if manner == "swims" else 1.0
    return np.concatenate([np.stack([reach * a, reach * b, z], 1) for a, b in ROUND])


def neat(length: float) -> float:
    """The nearest to a length of 1, 2, 5, 10, ..."""
    power = 10.0 ** np.floor(np.log10(length))
    return float(min((1, 2, 5, 10), key=lambda step: abs(np.log(step * power / length))) * power)


def axes(azimuth: int | float, elevation: int | float) -> np.ndarray:
    """Right, up and ahead for a camera in that direction from what it looks at."""
    (a, e), level = np.deg2rad([azimuth, elevation]), np.zeros(3)
    level[:2] = np.cos(a), np.sin(a)
    ahead = -np.cos(e) * level - np.sin(e) * np.array([0, 0, 1])
    right = np.array([-level[1], level[0], 0])
    return np.stack([right, np.cross(right, ahead), ahead])


def aim(
    model: mujoco.MjModel, data: mujoco.MjData, shapes: Sequence[Shape], size: tuple[int, int]
) -> Camera:
    """The camera for a pose: it goes along, and steps back before a limb gets out of sight."""
    plan, slope = shot(model), (LENS * size[0] / size[1], LENS)
    moved = data.subtree_com[plan.roots].mean(0) - plan.centre
    moved[2] = max(moved[2], 0)
    middle = plan.middle + moved * plan.follows
    cast = [shape.corners for shape, keep in zip(shapes, plan.cast, strict=True) if keep]
    usual = distance(plan.around @ plan.axes.T, slope, 0.84)
    needed = distance((np.concatenate(cast) - middle) @ plan.axes.T, slope, 0.99)
    place = middle - plan.axes[2] * min(max(usual, needed), 3 * usual)
    return Camera(place, plan.axes, slope, size, float(place[2]) - plan.floor)


def distance(points: np.ndarray, slope: tuple[float, float], fill: float) -> float:
    """From how far points, given to the right, up and ahead, fill a part of the picture."""
    sides = np.abs(points[:, :2]) / (np.array(slope) * fill)
    return float((sides.max(1) - points[:, 2]).max())
