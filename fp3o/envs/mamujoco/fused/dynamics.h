// The mass matrix and all forces but those of constraints.
//
// The usual dynamics of articulated bodies: composite inertias for the mass matrix, Newton and Euler's
// equations for the bias forces; sums over ancestors and descendants are computed by component.

#pragma once

#include "algebra.h"
#include "scratch.h"

// Transforms of bodies relative to their parents; axes and anchors of joints in the parent's frame.
FUNC void relative_transforms(Scratch& s) {
  EACH(joint, NUM_JOINTS) {
    if (JOINT_TYPE[joint] == HINGE)
      sincos(s.qpos[JOINT_QPOS[joint]] - JOINT_REST[joint], &s.sine[joint], &s.cosine[joint]);
  }
  sync();
  EACH(body, NB) {
    double R[9], p[3], turn[9], next[9], offset[3];
    for (int i = 0; i < 9; i++) R[i] = BODY_ROTATION[body][i];
    for (int i = 0; i < 3; i++) p[i] = BODY_POSITION[body][i];
    for (int joint = BODY_JOINT[body]; joint < BODY_JOINT[body + 1]; joint++) {
      const int dof = JOINT_DOF[joint], q = JOINT_QPOS[joint];
      if (JOINT_TYPE[joint] == FREE) {
        for (int i = 0; i < 3; i++) p[i] = s.qpos[q + i];
        rotation_of_quaternion(s.qpos + q + 3, R);
        for (int k = 0; k < 3; k++)
          for (int i = 0; i < 3; i++) {
            s.axis[dof + k][i] = i == k;
            s.axis[dof + 3 + k][i] = R[3 * i + k];
            s.anchor[dof + 3 + k][i] = p[i];
          }
        continue;
      }
      rotate(R, JOINT_AXIS[joint], s.axis[dof]);
      if (JOINT_TYPE[joint] == SLIDE) {
        for (int i = 0; i < 3; i++) p[i] += (s.qpos[q] - JOINT_REST[joint]) * s.axis[dof][i];
        continue;
      }
      rotate(R, JOINT_POSITION[joint], offset);
      for (int i = 0; i < 3; i++) s.anchor[dof][i] = p[i] + offset[i];
      rotation_about(JOINT_AXIS[joint], s.sine[joint], s.cosine[joint], turn);
      multiply(R, turn, next);
      for (int i = 0; i < 9; i++) R[i] = next[i];
      rotate(R, JOINT_POSITION[joint], offset);
      for (int i = 0; i < 3; i++) p[i] = s.anchor[dof][i] - offset[i];
    }
    for (int i = 0; i < 9; i++) s.relative_rotation[body][i] = R[i];
    for (int i = 0; i < 3; i++) s.relative_position[body][i] = p[i];
  }
  sync();
}

// Transforms of all bodies from the root on; a lane has a row of the rotations.
FUNC void kinematics(Scratch& s) {
  constexpr int parents[NB] = BODY_PARENTS;
  relative_transforms(s);
  EACH(row, 3) {
    double rotation[NB][3], position[NB];
    for (int i = 0; i < 3; i++) rotation[0][i] = i == row;
    position[0] = 0;
    UNROLL for (int body = 0; body < NB; body++) {
      const int parent = parents[body];
      if (body) {
        const double *R = s.relative_rotation[body], *p = s.relative_position[body];
        for (int i = 0; i < 3; i++)
          rotation[body][i] = rotation[parent][0] * R[i] + rotation[parent][1] * R[3 + i] +
                              rotation[parent][2] * R[6 + i];
        position[body] = position[parent] + dot(rotation[parent], p, 3);
      }
      for (int i = 0; i < 3; i++) s.rotation[body][3 * row + i] = rotation[body][i];
      s.position[body][row] = position[body];
    }
  }
  sync();
}

// The motion that each degree of freedom causes.
FUNC void motions(Scratch& s) {
  const double* origin = s.position[1];
  EACH(dof, NV) {
    const int parent = BODY_PARENT[DOF_BODY[dof]];
    double axis[3], anchor[3];
    rotate(s.rotation[parent], s.axis[dof], axis);
    if (DOF_TURNS[dof]) {
      rotate(s.rotation[parent], s.anchor[dof], anchor);
      for (int i = 0; i < 3; i++) anchor[i] += s.position[parent][i] - origin[i];
      cross(anchor, axis, s.motion[dof] + 3);
    }
    for (int i = 0; i < 3; i++) {
      if (DOF_TURNS[dof])
        s.motion[dof][i] = axis[i];
      else
        s.motion[dof][i] = 0, s.motion[dof][3 + i] = axis[i];
    }
  }
}

// The spatial inertia of each body.
FUNC void inertias(Scratch& s) {
  const double* origin = s.position[1];
  EACH(body, NB) {
    const double *R = s.rotation[body], *local = BODY_INERTIA[body], m = BODY_MASS[body];
    double c[3], I[9], turned[9];
    rotate(R, BODY_CENTRE[body], c);
    for (int i = 0; i < 3; i++) c[i] += s.position[body][i] - origin[i];
    multiply(R, local, turned);
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < 3; j++) I[3 * i + j] = dot(turned + 3 * i, R + 3 * j, 3);
    const double square = dot(c, c, 3);
    double out[10] = {m};
    for (int i = 0; i < 3; i++) out[1 + i] = m * c[i], out[4 + i] = I[4 * i] + m * (square - c[i] * c[i]);
    out[7] = I[1] - m * c[0] * c[1];
    out[8] = I[2] - m * c[0] * c[2];
    out[9] = I[5] - m * c[1] * c[2];
    for (int i = 0; i < 10; i++) s.inertia[body][i] = s.composite[body][i] = out[i];
  }
}

// out[dof] = sum over the dof and its ancestors of x[dof] * qvel[dof]; a lane has a component.
FUNC void sum_over_ancestors(const Scratch& s, const double (*x)[6], double (*out)[6]) {
  constexpr int parents[NV] = DOF_PARENTS;
  EACH(k, 6) {
    double total[NV];
    UNROLL for (int dof = 0; dof < NV; dof++) {
      total[dof] = x[dof][k] * s.qvel[dof] + (parents[dof] < 0 ? 0 : total[parents[dof]]);
      out[dof][k] = total[dof];
    }
  }
}

// Replace what belongs to each body by the sum over the body and its descendants.
template <int SIZE>
FUNC void sum_over_descendants(double (*x)[SIZE]) {
  constexpr int parents[NB] = BODY_PARENTS;
  EACH(k, SIZE) {
    double total[NB];
    UNROLL for (int body = 0; body < NB; body++) total[body] = x[body][k];
    UNROLL for (int body = NB - 1; body > 0; body--) {
      total[parents[body]] += total[body];
      x[body][k] = total[body];
    }
  }
}

// Subtract the fluid's force on a body, taken as a box of equal inertia, from a spatial force.
FUNC void subtract_fluid_force(const Scratch& s, int body, const double* velocity, double* force) {
  if (!(FLUID_DENSITY > 0 || FLUID_VISCOSITY > 0)) return;
  const double *box = BODY_BOX[body], pi = 3.14159265358979323846;
  const double diameter = (box[0] + box[1] + box[2]) / 3;
  double frame[9], c[3], v[3], turn[3], w[3], local_force[3], local_torque[3], f[3], torque[3], arm[3];
  multiply(s.rotation[body], BODY_INERTIA_FRAME[body], frame);
  rotate(s.rotation[body], BODY_CENTRE[body], c);
  for (int i = 0; i < 3; i++) c[i] += s.position[body][i] - s.position[1][i];
  cross(velocity, c, turn);
  for (int i = 0; i < 3; i++) turn[i] += velocity[3 + i];
  rotate_back(frame, turn, v);
  rotate_back(frame, velocity, w);
  for (int i = 0; i < 3; i++) {
    const double a = box[(i + 1) % 3], b = box[(i + 2) % 3];
    local_force[i] = -3 * pi * diameter * FLUID_VISCOSITY * v[i] -
                     0.5 * FLUID_DENSITY * a * b * fabs(v[i]) * v[i];
    local_torque[i] = -pi * diameter * diameter * diameter * FLUID_VISCOSITY * w[i] -
                      FLUID_DENSITY * box[i] * (a * a * a * a + b * b * b * b) * fabs(w[i]) * w[i] / 64;
  }
  rotate(frame, local_force, f);
  rotate(frame, local_torque, torque);
  cross(c, f, arm);
  for (int i = 0; i < 3; i++) force[i] -= torque[i] + arm[i], force[3 + i] -= f[i];
}

FUNC void mass_matrix(Scratch& s) {
  sum_over_descendants<10>(s.composite);
  sync();
  EACH(dof, NV) momentum_of(s.composite[DOF_BODY[dof]], s.motion[dof], s.momentum[dof]);
  sync();
  EACH(pair, NUM_PAIRS) {
    const int row = PAIR_ROW[pair], column = PAIR_COLUMN[pair];
    s.mass[row][column] = s.mass[column][row] =
        dot(s.motion[column], s.momentum[row], 6) + (row == column ? DOF_ARMATURE[row] : 0);
  }
}

// All forces but those of constraints.
FUNC void smooth_forces(Scratch& s) {
  sum_over_ancestors(s, s.motion, s.velocity);
  sync();
  EACH(dof, NV) {
    const int before = DOF_BEFORE[dof];
    const double none[6] = {0, 0, 0, 0, 0, 0};
    cross_motion(before < 0 ? none : s.velocity[before], s.motion[dof], s.motion_rate[dof]);
  }
  sync();
  sum_over_ancestors(s, s.motion_rate, s.acceleration);
  sync();
  EACH(body, NB) {
    const int dof = BODY_LAST_DOF[body];
    double v[6], a[6], momentum[6];
    for (int i = 0; i < 6; i++) {
      v[i] = dof < 0 ? 0 : s.velocity[dof][i];
      a[i] = (dof < 0 ? 0 : s.acceleration[dof][i]) - (i < 3 ? 0 : GRAVITY[i - 3]);
    }
    momentum_of(s.inertia[body], a, s.force[body]);
    momentum_of(s.inertia[body], v, momentum);
    add_cross_force(v, momentum, s.force[body]);
    subtract_fluid_force(s, body, v, s.force[body]);
  }
  sync();
  sum_over_descendants<6>(s.force);
  sync();
  EACH(dof, NV) {
    double value = -dot(s.motion[dof], s.force[DOF_BODY[dof]], 6) - DOF_DAMPING[dof] * s.qvel[dof];
    if (DOF_SPRING[dof] != 0) value -= DOF_SPRING[dof] * (s.qpos[DOF_QPOS[dof]] - DOF_SPRING_REST[dof]);
    const int actuator = DOF_ACTUATOR[dof];
    if (actuator >= 0) {
      const double low = CONTROL_RANGE[actuator][0], high = CONTROL_RANGE[actuator][1];
      value += CONTROL_GEAR[actuator] * fmin(fmax(s.control[actuator], low), high);
    }
    s.smooth[dof] = value;
  }
}
