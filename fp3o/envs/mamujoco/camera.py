"""Shapes of a MuJoCo model in a pose, and a camera position that suits its joints."""

# pyright: reportAttributeAccessIssue=false
# MuJoCo has no type stubs.
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import mujoco
import numpy as np

from fp3o.envs.mamujoco.raycast import Camera
from fp3o.envs.mamujoco.shapes import Shape

LENS = 0.29
"""Slope of the rays to the upper edge of the image."""

SHAPE_TYPES = {
    int(mujoco.mjtGeom.mjGEOM_SPHERE): "ball",
    int(mujoco.mjtGeom.mjGEOM_ELLIPSOID): "ball",
    int(mujoco.mjtGeom.mjGEOM_CAPSULE): "capsule",
    int(mujoco.mjtGeom.mjGEOM_CYLINDER): "cylinder",
    int(mujoco.mjtGeom.mjGEOM_BOX): "box",
}
"""Geom types that are drawn."""

_JOINT_NAMES = {
    int(mujoco.mjtJoint.mjJNT_FREE): "free",
    int(mujoco.mjtJoint.mjJNT_BALL): "ball",
    int(mujoco.mjtJoint.mjJNT_SLIDE): "slide {}",
    int(mujoco.mjtJoint.mjJNT_HINGE): "hinge {}",
}

_VIEWS = {
    "walk": (-76, 14),
    "run": (-84, 9),
    "run in parallel": (-66, 18),
    "swim": (-90, 54),
    "turn horizontally": (-90, 72),
    "swing": (-90, 7),
    "reach": (50, 32),
}
"""Type of motion -> azimuth and elevation of the camera, in degrees."""

_FOLLOWED = {"walk": (1, 1), "run": (1, 0), "run in parallel": (1, 0), "swim": (1, 1)}
"""Type of motion -> whether the camera follows x and y."""

_CIRCLE = np.stack([np.cos(np.arange(16) * np.pi / 8), np.sin(np.arange(16) * np.pi / 8)], 1)


def pose(model: mujoco.MjModel, qpos: np.ndarray) -> mujoco.MjData:
    """The positions of all bodies."""
    data = mujoco.MjData(model)
    data.qpos[:] = qpos
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    return data


def _visible_geoms(model: mujoco.MjModel) -> np.ndarray:
    """The geoms that are drawn."""
    return np.flatnonzero(np.isin(model.geom_type, list(SHAPE_TYPES)) & (model.geom_rgba[:, 3] > 0))


def geom_shapes(model: mujoco.MjModel, data: mujoco.MjData, colours: np.ndarray) -> list[Shape]:
    """The shapes of the geoms that are drawn."""
    return [
        Shape(
            SHAPE_TYPES[int(model.geom_type[i])], _half_sides(model, int(i)),
            data.geom_xpos[i].copy(), data.geom_xmat[i].reshape(3, 3).copy(), colours[i],
        )
        for i in _visible_geoms(model)
    ]  # fmt: skip


def _half_sides(model: mujoco.MjModel, geom: int) -> np.ndarray:
    """Half the sides of the bounding box of a geom."""
    (a, b, c), shape = model.geom_size[geom], SHAPE_TYPES[int(model.geom_type[geom])]
    if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_SPHERE:
        return np.array([a, a, a])
    if shape in ("capsule", "cylinder"):
        return np.array([a, a, b + a * (shape == "capsule")])
    return np.array([a, b, c])


@dataclass(frozen=True)
class CameraSetup:
    """How the camera follows a model."""

    axes: np.ndarray
    """Axes of the camera: to the right, up and ahead."""
    follows: np.ndarray
    """Coordinates of the centre of mass that it follows; never below the initial height."""
    roots: np.ndarray
    """Root bodies of the robots."""
    framed: np.ndarray
    """Shapes that have to stay in the image."""
    middle: np.ndarray
    """Point at which the camera looks in the initial pose."""
    centre: np.ndarray
    """Centre of mass of the robots in the initial pose."""
    around: np.ndarray
    """Points that are always in the image, relative to `middle`."""
    floor: float
    tile: float
    """Side of the floor tiles."""


@lru_cache(8)
def camera_setup(model: mujoco.MjModel) -> CameraSetup:
    """The camera setup of a model, from its initial pose."""
    data, roots = pose(model, model.qpos0), _root_bodies(model)
    shapes, motion = geom_shapes(model, data, np.zeros((model.ngeom, 3))), _motion(model, roots)
    followed = motion in _FOLLOWED
    framed = np.isin(model.body_rootid[model.geom_bodyid[_visible_geoms(model)]], roots) | (
        not followed
    )
    corners = np.concatenate(
        [shape.corners for shape, keep in zip(shapes, framed, strict=True) if keep]
    )
    low, high = corners.min(0), corners.max(0)
    planes = np.flatnonzero(model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE)
    floor = data.geom_xpos[planes[0], 2] if len(planes) else low[2] - 0.15 * (high[2] - low[2])
    middle, centre = (low + high) / 2, data.subtree_com[roots].mean(0)
    if followed:
        middle = np.array([centre[0], centre[1], (floor + high[2]) / 2])
    around = _required_points(corners - middle, motion, float(floor - middle[2]))
    tile = _round_length(0.45 * float(np.abs(around).max()))
    follows = np.array([*_FOLLOWED.get(motion, (0, 0)), followed], bool)
    return CameraSetup(
        _camera_axes(*_VIEWS[motion]),
        follows,
        roots,
        framed,
        middle,
        centre,
        around,
        float(floor),
        tile,
    )


def _root_bodies(model: mujoco.MjModel) -> np.ndarray:
    """The roots of the kinematic trees with most joints; several only if their joints are alike."""
    joints = np.bincount(model.body_rootid[model.jnt_bodyid], minlength=model.nbody)
    joint_types = _root_joints(model, int(joints.argmax()))
    most = np.flatnonzero(joints == joints.max())
    return np.array([body for body in most if _root_joints(model, int(body)) == joint_types])


def _root_joints(model: mujoco.MjModel, body: int) -> frozenset[str]:
    """The joints of a body by type and axis: `slide x`, `hinge y`, `free`, ..."""
    first = int(model.body_jntadr[body])
    return frozenset(
        _joint_name(model, j) for j in range(first, first + int(model.body_jntnum[body]))
    )


def _joint_name(model: mujoco.MjModel, joint: int) -> str:
    axis = int(np.abs(model.jnt_axis[joint]).argmax())
    return _JOINT_NAMES[int(model.jnt_type[joint])].format("xyz"[axis])


def _motion(model: mujoco.MjModel, roots: np.ndarray) -> str:
    """The type of motion, a key of `_VIEWS`."""
    root = _root_joints(model, int(roots[0]))
    if "free" in root:
        return "walk"
    if {"slide x", "slide z"} <= root:
        return "run" if len(roots) == 1 else "run in parallel"
    if {"slide x", "slide y", "hinge z"} <= root:
        return "swim"
    joints = np.flatnonzero(np.isin(model.body_rootid[model.jnt_bodyid], roots))
    turns = {_joint_name(model, int(j)) for j in joints} - {"slide x", "slide y", "slide z"}
    return {"hinge z": "turn horizontally", "hinge y": "swing"}.get("".join(turns), "reach")


def _required_points(corners: np.ndarray, motion: str, floor: float) -> np.ndarray:
    """Points that a moving robot with such corners may reach, relative to its middle."""
    if motion not in _FOLLOWED:
        return corners
    corners = np.concatenate([corners, [[0, 0, floor]]])
    reach, (x, y, z) = np.hypot(corners[:, 0], corners[:, 1]), corners.T
    if motion.startswith("run"):  # in either direction
        return np.concatenate([np.stack([side * np.abs(x), y, z], 1) for side in (-1.2, 1.2)])
    # It may turn. A turning swimmer is rarely stretched; if it is, the camera moves back.
    reach *= 0.8 if motion == "swim" else 1.0
    return np.concatenate([np.stack([reach * a, reach * b, z], 1) for a, b in _CIRCLE])


def _round_length(length: float) -> float:
    """The nearest of 1, 2, 5, 10, ..."""
    power = 10.0 ** np.floor(np.log10(length))
    return float(min((1, 2, 5, 10), key=lambda step: abs(np.log(step * power / length))) * power)


def _camera_axes(azimuth: int | float, elevation: int | float) -> np.ndarray:
    """Right, up and ahead of a camera in that direction from its target."""
    (a, e), level = np.deg2rad([azimuth, elevation]), np.zeros(3)
    level[:2] = np.cos(a), np.sin(a)
    ahead = -np.cos(e) * level - np.sin(e) * np.array([0, 0, 1])
    right = np.array([-level[1], level[0], 0])
    return np.stack([right, np.cross(right, ahead), ahead])


def place_camera(
    model: mujoco.MjModel, data: mujoco.MjData, shapes: Sequence[Shape], size: tuple[int, int]
) -> Camera:
    """The camera for a pose: it follows the body, and moves back to keep all limbs visible."""
    setup, slope = camera_setup(model), (LENS * size[0] / size[1], LENS)
    moved = data.subtree_com[setup.roots].mean(0) - setup.centre
    moved[2] = max(moved[2], 0)
    middle = setup.middle + moved * setup.follows
    corners = [shape.corners for shape, keep in zip(shapes, setup.framed, strict=True) if keep]
    usual = _distance(setup.around @ setup.axes.T, slope, 0.84)
    needed = _distance((np.concatenate(corners) - middle) @ setup.axes.T, slope, 0.99)
    position = middle - setup.axes[2] * min(max(usual, needed), 3 * usual)
    return Camera(position, setup.axes, slope, size, float(position[2]) - setup.floor)


def _distance(points: np.ndarray, slope: tuple[float, float], fill: float) -> float:
    """Distance from which points, given to the right, up and ahead, fill a share of the image."""
    sides = np.abs(points[:, :2]) / (np.array(slope) * fill)
    return float((sides.max(1) - points[:, 2]).max())
