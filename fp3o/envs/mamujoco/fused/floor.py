"""Contacts with the floor: which parts of a model can touch it."""

# MuJoCo has no type stubs.
# pyright: reportAttributeAccessIssue=false

import mujoco
import numpy as np


def floor_spheres(model: mujoco.MjModel) -> list[tuple[int, np.ndarray, np.ndarray]]:
    """Spheres and ends of capsules that can touch the floor: geom, centre in its body, axis."""
    found = []
    for geom in touching_geoms(model):
        axis = rotation_matrix(model.geom_quat[geom]).reshape(3, 3)[:, 2]
        if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_SPHERE:
            found.append((geom, model.geom_pos[geom], 0 * axis))
        else:
            half = model.geom_size[geom, 1] * axis
            found += [(geom, model.geom_pos[geom] + end, axis) for end in (half, -half)]
    return found


def touching_geoms(model: mujoco.MjModel) -> list[int]:
    """Geoms that can touch the floor."""
    floor = floor_geom(model)
    return [] if floor is None else [g for g in range(model.ngeom) if can_collide(model, floor, g)]


def floor_geom(model: mujoco.MjModel) -> int | None:
    """The plane of a model; None if there is not exactly one."""
    planes = np.flatnonzero(model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE)
    return int(planes[0]) if len(planes) == 1 else None


def can_collide(model: mujoco.MjModel, a: int, b: int) -> bool:
    """Whether MuJoCo looks for contacts between two geoms."""
    types, affinities, bodies = model.geom_contype, model.geom_conaffinity, model.geom_bodyid
    welds = model.body_weldid[bodies]
    related = welds[a] == welds[b] or (
        0 not in (welds[a], welds[b])
        and (model.body_weldid[model.body_parentid[welds[[a, b]]]] == welds[[b, a]]).any()
    )
    return bool((types[a] & affinities[b] or types[b] & affinities[a]) and not related)


def rotation_matrix(quaternion: np.ndarray) -> np.ndarray:
    """The rotation of a unit quaternion, row by row."""
    matrix = np.empty(9)
    mujoco.mju_quat2Mat(matrix, quaternion)
    return matrix
