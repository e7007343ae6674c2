// A simulation step, in double precision.

#pragma once

#include "constraints.h"
#include "dynamics.h"

// The acceleration at the current positions and velocities.
FUNC void evaluate(Scratch& s) {
  FIRST_WARP kinematics(s);
  join();
  TOGETHER(inertias(s), motions(s), (void)0);
  join();
  TOGETHER(mass_matrix(s), smooth_forces(s), constraints(s));
  join();
  FIRST_WARP constrained_acceleration(s);
}

// Positions after `step`, a displacement of the degrees of freedom, from `start`.
FUNC void displace(Scratch& s, const double* start, const double* step) {
  EACH(joint, NUM_JOINTS) {
    const int q = JOINT_QPOS[joint], dof = JOINT_DOF[joint];
    if (JOINT_TYPE[joint] == FREE) {
      for (int i = 0; i < 3; i++) s.qpos[q + i] = start[q + i] + step[dof + i];
      double quaternion[4];
      for (int i = 0; i < 4; i++) quaternion[i] = start[q + 3 + i];
      turn_quaternion(quaternion, step + dof + 3);
      for (int i = 0; i < 4; i++) s.qpos[q + 3 + i] = quaternion[i];
    } else {
      s.qpos[q] = start[q] + step[dof];
    }
  }
}

#if RUNGE_KUTTA
// The rate of the rotation vector `turn` that makes the body turn with the velocity `rate`, both in the body's frame.
FUNC void rate_of_turn(const double* turn, double* rate) {
  const double square = dot(turn, turn, 3), half = sqrt(square) / 2;
  // (1 - x / tan x) / (2 x)^2, by its series where it would cancel
  const double second =
      square < 1e-4 ? 1. / 12 + square / 720 + square * square / 30240 : (1 - half / tan(half)) / square;
  double once[3], twice[3];
  cross(turn, rate, once);
  cross(turn, once, twice);
  for (int i = 0; i < 3; i++) rate[i] += once[i] / 2 + second * twice[i];
}

// Positions and velocities at which the method evaluates the acceleration next.
FUNC void start_stage(Scratch& s, int stage, double ahead) {
  EACH(i, NV) {
    s.step[i] = TIMESTEP * ahead * s.stage_qvel[stage - 1][i];
    s.qvel[i] = s.start_qvel[i] + TIMESTEP * ahead * s.stage_qacc[stage - 1][i];
  }
  sync();
  displace(s, s.start_qpos, s.step);
  sync();
}

FUNC void finish_stage(Scratch& s, int stage) {
  EACH(i, NV) s.stage_qvel[stage][i] = s.qvel[i], s.stage_qacc[stage][i] = s.qacc[i];
  sync();
  EACH(joint, NUM_JOINTS)
  if (stage && JOINT_TYPE[joint] == FREE)
    rate_of_turn(s.step + JOINT_DOF[joint] + 3, s.stage_qvel[stage] + JOINT_DOF[joint] + 3);
  sync();
}

FUNC void finish_step(Scratch& s) {
  const double weight[4] = {1. / 6, 1. / 3, 1. / 3, 1. / 6};
  EACH(i, NV) {
    double step = 0, gain = 0;
    for (int stage = 0; stage < 4; stage++) {
      step += weight[stage] * s.stage_qvel[stage][i];
      gain += weight[stage] * s.stage_qacc[stage][i];
    }
    s.step[i] = TIMESTEP * step;
    s.qvel[i] = s.start_qvel[i] + TIMESTEP * gain;
  }
  sync();
  displace(s, s.start_qpos, s.step);
  sync();
}

// The classical method of fourth order; rotations of free joints in the coordinates of their rotation vector.
FUNC void advance(Scratch& s) {
  FIRST_WARP {
    EACH(i, NQ) s.start_qpos[i] = s.qpos[i];
    EACH(i, NV) s.start_qvel[i] = s.qvel[i];
    sync();
  }
  ONCE for (int stage = 0; stage < 4; stage++) {
    if (stage) FIRST_WARP start_stage(s, stage, stage < 3 ? 0.5 : 1);
    evaluate(s);
    FIRST_WARP finish_stage(s, stage);
  }
  FIRST_WARP finish_step(s);
}
#else
// Semi-implicit Euler, with implicit damping of joints.
FUNC void finish_step(Scratch& s) {
  EACH(i, NQ) s.start_qpos[i] = s.qpos[i];
  EACH(i, NV) s.gradient[i] = dot(s.mass[i], s.qacc, NV);
  EACH(i, NV * NV) s.hessian[i / NV][i % NV] =
      s.mass[i / NV][i % NV] + (i / NV == i % NV ? TIMESTEP * DOF_DAMPING[i / NV] : 0);
  sync();
  solve(s.hessian, s.gradient, s.direction);
  EACH(i, NV) {
    s.qvel[i] += TIMESTEP * s.direction[i];
    s.step[i] = TIMESTEP * s.qvel[i];
  }
  sync();
  displace(s, s.start_qpos, s.step);
  sync();
}

FUNC void advance(Scratch& s) {
  evaluate(s);
  FIRST_WARP finish_step(s);
}
#endif
