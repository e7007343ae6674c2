"""What a model must not have to be simulated by the kernel."""

# MuJoCo has no type stubs.
# pyright: reportAttributeAccessIssue=false

from collections.abc import Iterator
from typing import Any

import mujoco

from fp3o.envs.mamujoco.fused.floor import can_collide, floor_geom, floor_spheres, touching_geoms
from fp3o.errors import SettingError

MOST_BITS = 32
"""Bodies and degrees of freedom are bits of a mask; rows of matrices and points that can touch the
floor are lanes of a warp."""


def require_supported(model: mujoco.MjModel) -> None:
    """Name what the model has and the simulation lacks."""
    lacking = [name for name, present in _unsupported(model) if present]
    if lacking:
        raise SettingError(f"the fused simulation has no {', no '.join(lacking)}")


def _unsupported(model: mujoco.MjModel) -> Iterator[tuple[str, Any]]:
    yield from _unsupported_joints(model)
    yield from _unsupported_contacts(model)
    yield "actuators but motors of joints with limited controls", not _only_motors(model)
    yield "integrators but Euler's and Runge-Kutta's", model.opt.integrator not in (0, 1)
    yield "wind", model.opt.wind.any()
    yield "fluid shapes of geoms", model.geom_fluid.any()
    yield "gravity that is compensated", model.body_gravcomp.any()
    yield "flags", model.opt.disableflags or model.opt.enableflags
    count = max(model.nbody, model.nv, len(floor_spheres(model)))
    yield f"bodies of more than {MOST_BITS} parts, or points at the floor", count > MOST_BITS


def _unsupported_joints(model: mujoco.MjModel) -> Iterator[tuple[str, Any]]:
    yield "ball joints", (model.jnt_type == mujoco.mjtJoint.mjJNT_BALL).any()
    yield "limits of free joints", model.jnt_limited[model.jnt_type < 2].any()
    yield "limits of forces at joints", model.jnt_actfrclimited.any()
    yield "stiffness of limits in place of time constants", (model.jnt_solref <= 0)[:, 0].any()
    yield "dry friction of joints", model.dof_frictionloss.any()
    yield "tendons or equalities", model.ntendon or model.neq


def _unsupported_contacts(model: mujoco.MjModel) -> Iterator[tuple[str, Any]]:
    floor, touching = floor_geom(model), touching_geoms(model)
    shapes = int(mujoco.mjtGeom.mjGEOM_SPHERE), int(mujoco.mjtGeom.mjGEOM_CAPSULE)
    pairs = [
        (a, b) for a in range(model.ngeom) for b in range(a)
        if floor not in (a, b) and can_collide(model, a, b)
    ]  # fmt: skip
    yield "collisions between bodies", pairs or model.npair
    others = [g for g in touching if model.geom_type[g] not in shapes]
    yield "collisions of shapes other than spheres and capsules", others
    # A contact has the larger dimension of the two.
    dimensions = {int(model.geom_condim[[g, floor]].max()) for g in touching}
    yield "contacts of other dimensions than 3", dimensions - {3}
    yield "stiffness of contacts in place of time constants", (model.geom_solref <= 0)[:, 0].any()
    yield "priorities or gaps of geoms", model.geom_priority.any() or model.geom_gap.any()
    yield "elliptic friction cones", model.opt.cone != mujoco.mjtCone.mjCONE_PYRAMIDAL
    yield "ratio of impedances", model.opt.impratio != 1


def _only_motors(model: mujoco.MjModel) -> bool:
    joints = model.actuator_trnid[:, 0]
    return bool(
        (model.actuator_trntype == mujoco.mjtTrn.mjTRN_JOINT).all()
        and (model.actuator_gaintype == mujoco.mjtGain.mjGAIN_FIXED).all()
        and (model.actuator_gainprm[:, 0] == 1).all()
        and (model.actuator_biastype == mujoco.mjtBias.mjBIAS_NONE).all()
        and (model.actuator_dyntype == mujoco.mjtDyn.mjDYN_NONE).all()
        and model.actuator_ctrllimited.all()
        and not model.actuator_forcelimited.any()
        and len(set(joints)) == model.nu
    )
