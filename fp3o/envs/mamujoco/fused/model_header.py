"""The header `model.h`: sizes and tables of one MuJoCo model for the simulation.

`task_header` adds those of a task.
"""

# MuJoCo has no type stubs.
# pyright: reportAttributeAccessIssue=false

from collections.abc import Iterator
from typing import Any

import mujoco
import numpy as np

from fp3o.envs.mamujoco.fused.floor import floor_geom, floor_spheres, rotation_matrix
from fp3o.envs.mamujoco.fused.supported import require_supported


def model_header(model: mujoco.MjModel) -> str:
    """The text of the header; an error if the model has something that the simulation lacks."""
    require_supported(model)
    lines = [f"#define {name} {value}" for name, value in _sizes(model)]
    lines += [
        f"#define {name} {_initialiser(np.asarray(values))}" for name, values in _trees(model)
    ]
    lines += [table(name, values) for name, values in _tables(model)]
    return "\n".join([*lines, ""])


def _sizes(model: mujoco.MjModel) -> Iterator[tuple[str, Any]]:
    yield from {
        "NQ": model.nq, "NV": model.nv, "NU": model.nu, "NB": model.nbody,
        "NUM_JOINTS": model.njnt, "NUM_PAIRS": int(_dof_ancestors(model).sum()),
        "NUM_LIMITS": int(model.jnt_limited.sum()), "NUM_SPHERES": len(floor_spheres(model)),
        "RUNGE_KUTTA": int(model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4),
        "TIMESTEP": repr(float(model.opt.timestep)),
        "FLUID_DENSITY": repr(float(model.opt.density)),
        "FLUID_VISCOSITY": repr(float(model.opt.viscosity)),
    }.items()  # fmt: skip


def _trees(model: mujoco.MjModel) -> Iterator[tuple[str, Any]]:
    """Trees that the compiler knows, so that it can unroll loops over them."""
    yield "BODY_PARENTS", model.body_parentid
    yield "DOF_PARENTS", model.dof_parentid


def _tables(model: mujoco.MjModel) -> Iterator[tuple[str, Any]]:
    yield "GRAVITY", model.opt.gravity
    yield from _body_tables(model)
    yield from _joint_tables(model)
    yield from _dof_tables(model)
    yield "CONTROL_GEAR", model.actuator_gear[:, 0]
    yield "CONTROL_RANGE", model.actuator_ctrlrange
    yield from _limit_tables(model)
    if floor_spheres(model):
        yield from _contact_tables(model)


def _body_tables(model: mujoco.MjModel) -> Iterator[tuple[str, Any]]:
    ancestors = _body_ancestors(model)
    yield "BODY_PARENT", model.body_parentid
    yield "BODY_POSITION", model.body_pos
    yield "BODY_ROTATION", [rotation_matrix(q) for q in model.body_quat]
    yield "BODY_JOINT", np.searchsorted(model.jnt_bodyid, np.arange(model.nbody + 1))
    yield "BODY_DOFS", _masks(ancestors[:, model.dof_bodyid])
    yield "BODY_LAST_DOF", [max(np.flatnonzero(row), default=-1)
                            for row in ancestors[:, model.dof_bodyid]]  # fmt: skip
    yield "BODY_MASS", model.body_mass
    yield "BODY_CENTRE", model.body_ipos
    frames = np.array([rotation_matrix(q) for q in model.body_iquat]).reshape(-1, 3, 3)
    yield "BODY_INERTIA", (frames * model.body_inertia[:, None]) @ frames.swapaxes(1, 2)
    yield "BODY_INERTIA_FRAME", frames
    yield "BODY_BOX", _equivalent_boxes(model)


def _joint_tables(model: mujoco.MjModel) -> Iterator[tuple[str, Any]]:
    yield "JOINT_TYPE", model.jnt_type
    yield "JOINT_QPOS", model.jnt_qposadr
    yield "JOINT_DOF", model.jnt_dofadr
    yield "JOINT_AXIS", model.jnt_axis
    yield "JOINT_POSITION", model.jnt_pos
    yield "JOINT_REST", model.qpos0[model.jnt_qposadr]


def _dof_tables(model: mujoco.MjModel) -> Iterator[tuple[str, Any]]:
    joint, number = model.dof_jntid, np.arange(model.nv)
    within = number - model.jnt_dofadr[joint]
    free = model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE
    slides = model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_SLIDE
    qpos = model.jnt_qposadr[joint]
    yield "DOF_BODY", model.dof_bodyid
    rows, columns = _dof_ancestors(model).nonzero()
    yield "PAIR_ROW", rows
    yield "PAIR_COLUMN", columns
    # The three rotations of a free joint happen together: before them are its translations.
    yield "DOF_BEFORE", np.where(free & (within > 3), number - within + 2, model.dof_parentid)
    yield "DOF_TURNS", ~slides & ~(free & (within < 3))
    yield "DOF_QPOS", qpos
    yield "DOF_DAMPING", model.dof_damping
    yield "DOF_ARMATURE", model.dof_armature
    yield "DOF_SPRING", np.where(free, 0.0, model.jnt_stiffness[joint])
    yield "DOF_SPRING_REST", model.qpos_spring[qpos]
    actuator = np.full(model.nv, -1)
    actuator[model.jnt_dofadr[model.actuator_trnid[:, 0]]] = np.arange(model.nu)
    yield "DOF_ACTUATOR", actuator
    limited = np.flatnonzero(model.jnt_limited)
    limit = np.full(model.nv, -1)
    limit[model.jnt_dofadr[limited]] = np.arange(len(limited))
    yield "DOF_LIMIT", limit


def _limit_tables(model: mujoco.MjModel) -> Iterator[tuple[str, Any]]:
    joints = np.flatnonzero(model.jnt_limited)
    dofs = model.jnt_dofadr[joints]
    yield "LIMIT_DOF", dofs
    yield "LIMIT_RANGE", model.jnt_range[joints]
    yield "LIMIT_MARGIN", model.jnt_margin[joints]
    yield "LIMIT_WEIGHT", model.dof_invweight0[dofs]
    yield (
        "LIMIT_SOFTNESS",
        [_softness(model, model.jnt_solref[j], model.jnt_solimp[j]) for j in joints],
    )


def _contact_tables(model: mujoco.MjModel) -> Iterator[tuple[str, Any]]:
    floor, spheres = floor_geom(model), floor_spheres(model)
    geoms, centres, axes = (np.array(column) for column in zip(*spheres, strict=True))
    bodies = model.geom_bodyid[geoms]
    friction = np.maximum(model.geom_friction[geoms, 0], model.geom_friction[floor, 0])
    mix = model.geom_solmix[geoms, None] / (
        model.geom_solmix[geoms, None] + model.geom_solmix[floor]
    )
    solref = mix * model.geom_solref[geoms] + (1 - mix) * model.geom_solref[floor]
    solimp = mix * model.geom_solimp[geoms] + (1 - mix) * model.geom_solimp[floor]
    normal = rotation_matrix(model.geom_quat[floor]).reshape(3, 3)[:, 2]
    yield "FLOOR_NORMAL", normal
    yield "SPHERE_BODY", bodies
    yield "SPHERE_CENTRE", centres
    yield "SPHERE_AXIS", axes
    yield "SPHERE_HAS_AXIS", axes.any(1)
    yield "SPHERE_RADIUS", model.geom_size[geoms, 0]
    yield "SPHERE_MARGIN", model.geom_margin[geoms] + model.geom_margin[floor]
    yield "SPHERE_FRICTION", friction
    # All edges of a pyramid have the regularisation of an edge of the cone.
    translation = model.body_invweight0[bodies, 0]
    yield "SPHERE_WEIGHT", 2 * friction**2 * translation * (1 + friction**2)
    yield "SPHERE_SOFTNESS", [_softness(model, *pair) for pair in zip(solref, solimp, strict=True)]
    yield "FLOOR_HEIGHT", [normal @ model.geom_pos[floor]]
    yield "FLOOR_SECOND_AXIS", [1 if abs(normal[1]) < 0.5 else 2]


def _softness(model: mujoco.MjModel, solref: np.ndarray, solimp: np.ndarray) -> list[float]:
    """Impedance at the edge and inside, width, midpoint and power; stiffness and damping."""
    low, high, middle = np.clip(solimp[[0, 1, 3]], mujoco.mjMINIMP, mujoco.mjMAXIMP)
    time, ratio = max(solref[0], 2 * model.opt.timestep), solref[1]
    stiffness, damping = 1 / (high * time * ratio) ** 2, 2 / (high * time)
    return [low, high, max(0.0, solimp[2]), middle, max(1.0, solimp[4]), stiffness, damping]


def _body_ancestors(model: mujoco.MjModel) -> np.ndarray:
    """(body, body): whether the second is the first or an ancestor of it."""
    found = np.eye(model.nbody, dtype=bool)
    for body in range(1, model.nbody):
        found[body] |= found[model.body_parentid[body]]
    return found


def _dof_ancestors(model: mujoco.MjModel) -> np.ndarray:
    found = np.eye(model.nv, dtype=bool)
    for dof, parent in enumerate(model.dof_parentid):
        if parent >= 0:
            found[dof] |= found[parent]
    return found


def _equivalent_boxes(model: mujoco.MjModel) -> np.ndarray:
    """Edges of the boxes with the bodies' masses and inertias."""
    inertia = model.body_inertia
    others = np.roll(inertia, -1, 1) + np.roll(inertia, 1, 1) - inertia
    mass = np.maximum(model.body_mass, mujoco.mjMINVAL)[:, None]
    return np.sqrt(np.maximum(others, mujoco.mjMINVAL) / mass * 6.0)


def _masks(rows: np.ndarray) -> np.ndarray:
    """Rows of booleans as bits of integers."""
    return (rows.astype(np.uint32) << np.arange(rows.shape[1], dtype=np.uint32)).sum(1)


def table(name: str, values: Any) -> str:
    """A C array."""
    array = np.asarray(values)
    if array.ndim == 3:
        array = array.reshape(len(array), -1)
    kind = "double" if array.dtype.kind == "f" else "unsigned" if array.dtype.kind == "u" else "int"
    if array.shape[0] == 1 and name.startswith("FLOOR_"):
        return f"TABLE {kind} {name} = {_number(array[0])};"
    dimensions = "".join(f"[{max(size, 1)}]" for size in array.shape)
    return f"TABLE {kind} {name}{dimensions} = {_initialiser(array)};"


def _initialiser(array: np.ndarray) -> str:
    inner = map(_number, array) if array.ndim == 1 else map(_initialiser, array)
    return "{" + ", ".join(inner) + "}" if array.size else "{}"


def _number(value: Any) -> str:
    return repr(float(value)) if value.dtype.kind == "f" else str(int(value))
