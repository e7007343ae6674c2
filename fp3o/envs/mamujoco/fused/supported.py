"""What a model must not have to be simulated by the kernel."""

# MuJoCo has no type stubs.
# pyright: reportAttributeAccessIssue=false

from collections.abc import Sequence
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


def _unsupported(model: mujoco.MjModel) -> Sequence[tuple[str, Any]]:
    touching = touching_geoms(model)
    shapes = int(mujoco.mjtGeom.mjGEOM_SPHERE), int(mujoco.mjtGeom.mjGEOM_CAPSULE)
    floor = floor_geom(model)
    pairs = [
        (a, b) for a in range(model.ngeom) for b in range(a)
        if floor not in (a, b) and can_collide(model, a, b)
    ]  # fmt: skip
    # A contact has the larger dimension, and only positive time constants are mixed.
    dimensions = {max(model.geom_condim[[g, floor]]) for g in touching}
    stiff = model.geom_solref[:, 0].min(initial=1) <= 0 or model.jnt_solref.min(initial=1) <= 0
    unusual = model.geom_priority, model.geom_gap, model.geom_fluid, model.jnt_actfrclimited
    joints = model.actuator_trnid[:, 0]
    motors = (
        (model.actuator_trntype == mujoco.mjtTrn.mjTRN_JOINT).all()
        and (model.actuator_gaintype == mujoco.mjtGain.mjGAIN_FIXED).all()
        and (model.actuator_gainprm[:, 0] == 1).all()
        and (model.actuator_biastype == mujoco.mjtBias.mjBIAS_NONE).all()
        and (model.actuator_dyntype == mujoco.mjtDyn.mjDYN_NONE).all()
        and model.actuator_ctrllimited.all() and not model.actuator_forcelimited.any()
        and len(set(joints)) == model.nu
    )  # fmt: skip
    return [
        ("ball joints", (model.jnt_type == mujoco.mjtJoint.mjJNT_BALL).any()),
        ("limits of free joints", model.jnt_limited[model.jnt_type < 2].any()),
        ("tendons or equalities", model.ntendon or model.neq),
        ("dry friction of joints", model.dof_frictionloss.any()),
        ("collisions between bodies", pairs or model.npair),
        ("collisions of shapes other than spheres and capsules",
         any(model.geom_type[g] not in shapes for g in touching)),
        ("contacts of other dimensions than 3", dimensions - {3}),
        ("stiffness in place of time constants", stiff),
        ("priorities, gaps or fluid shapes of geoms, or limits of forces at joints",
         any(values.any() for values in unusual)),
        ("gravity that is compensated", model.body_gravcomp.any()),
        ("flags", model.opt.disableflags or model.opt.enableflags),
        ("elliptic friction cones", model.opt.cone != mujoco.mjtCone.mjCONE_PYRAMIDAL),
        ("ratio of impedances", model.opt.impratio != 1),
        ("actuators but motors of joints with limited controls", not motors),
        ("integrators but Euler's and Runge-Kutta's", model.opt.integrator not in (0, 1)),
        ("wind", model.opt.wind.any()),
        (f"bodies of more than {MOST_BITS} parts or points that can touch the floor",
         max(model.nbody, model.nv, len(floor_spheres(model))) > MOST_BITS),
    ]  # fmt: skip
