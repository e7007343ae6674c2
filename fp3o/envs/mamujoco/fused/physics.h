// A simulation step of a MuJoCo body in double precision, for a CPU and for CUDA.
//
// `model.h`, written for one body by `model_header.py`, has its sizes and tables. On a GPU the 32 lanes of a warp
// work on one simulation together: `EACH(i, n)` divides a loop among them, and `sync()` separates
// phases that read what other lanes have written. On a CPU there is one lane.
//
// Spatial vectors are (angular, linear), in world axes, at the position of body 1 (`origin`), so that
// quantities of all bodies can be added. The dynamics are the usual ones of articulated bodies:
// composite inertias for the mass matrix, recursive Newton-Euler for the bias forces, as sums over
// ancestors and subtrees instead of sweeps, since lanes can compute sums in parallel. Constraints
// follow MuJoCo's documentation: soft contacts with pyramidal friction cones and joint limits, whose
// accelerations minimise a convex, piecewise quadratic function.

#pragma once

#include <math.h>

#ifdef __CUDACC__
#define FUNC static __device__ __forceinline__
#define LANES 32
#define WARPS 3
FUNC int lane() { return threadIdx.x & 31; }
FUNC int warp() { return threadIdx.x / LANES; }
FUNC void sync() { __syncwarp(); }
// All warps of a simulation, of which a block has several (`target.cpp`).
FUNC void join() { asm volatile("bar.sync %0, %1;" ::"r"(1 + threadIdx.y), "n"(WARPS * LANES) : "memory"); }
// Three calls that do not need each other's results, one per warp.
#define TOGETHER(a, b, c) (warp() == 0 ? a : warp() == 1 ? b : c)
FUNC bool any_lane(bool x) { return __any_sync(0xffffffffu, x); }
FUNC double sum_lanes(double x) {
  for (int offset = 16; offset; offset >>= 1) x += __shfl_xor_sync(0xffffffffu, x, offset);
  return x;
}
// 1 / x of an ordinary number, without the branches of a division.
FUNC double reciprocal(double x) {
  double y;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  for (int i = 0; i < 2; i++) y += y * fma(-x, y, 1.0);
  return y;
}
// How many earlier lanes have `x`.
FUNC int count_before(bool x) { return __popc(__ballot_sync(0xffffffffu, x) & ((1u << lane()) - 1)); }
FUNC int count_all(bool x) { return __popc(__ballot_sync(0xffffffffu, x)); }
#define TABLE static __device__ const
#define UNROLL _Pragma("unroll")
#define ONCE _Pragma("unroll 1")  // short code stays in the cache
#else
#define FUNC static inline
#define LANES 1
FUNC int lane() { return 0; }
FUNC int warp() { return 0; }
FUNC void sync() {}
FUNC void join() {}
#define TOGETHER(a, b, c) (a, b, c)
FUNC bool any_lane(bool x) { return x; }
FUNC double cospi(double x) { return cos(3.14159265358979323846 * x); }
FUNC double sum_lanes(double x) { return x; }
FUNC int count_before(bool) { return 0; }
FUNC int count_all(bool x) { return x; }
#define TABLE static const
#define UNROLL
#define ONCE
#endif

#define EACH(i, n) for (int i = lane(); i < (n); i += LANES)
#define FIRST_WARP if (warp() == 0)
#define BIT(mask, i) ((mask) >> (i) & 1u)

enum JointType { FREE, BALL, SLIDE, HINGE };  // as in MuJoCo

#include "model.h"

static_assert(LANES == 1 || (NV <= LANES && NUM_SPHERES <= LANES), "one lane per row and sphere");

constexpr int MAX_ROWS = 4 * (NUM_SPHERES ? NUM_SPHERES : 1);
constexpr int MAX_LIMITS = NUM_LIMITS ? NUM_LIMITS : 1;
constexpr int MAX_FULL_STEPS = 8, MAX_NEWTON_STEPS = 50;
constexpr int MAX_SEARCH_STEPS = 30;
constexpr double SEARCH_TOLERANCE = 1e-12;
constexpr double TINY = 1e-15;

// All intermediate results of one simulation.
struct Scratch {
  double qpos[NQ], qvel[NV], control[NU], qacc[NV], sine[NUM_JOINTS], cosine[NUM_JOINTS];
  // Kinematics: transform relative to the parent, in the world; axes and anchors of joints in the
  // frame of the parent.
  double relative_rotation[NB][9], relative_position[NB][3], axis[NV][3], anchor[NV][3];
  double rotation[NB][9], position[NB][3];
  // Dynamics.
  double motion[NV][6], motion_rate[NV][6], velocity[NV][6], acceleration[NV][6];
  double inertia[NB][10], composite[NB][10], force[NB][6], momentum[NV][6];
  double mass[NV][NV], smooth[NV];
  // Constraints: rows of contacts, four per touching sphere, and limits of joints.
  int num_rows, contact_sphere[MAX_ROWS / 4];
  double contact_frame[MAX_ROWS / 4][9], contact_arm[MAX_ROWS / 4][3];
  double rows[MAX_ROWS][NV], stiffness[MAX_ROWS], target[MAX_ROWS], residual[MAX_ROWS],
      change[MAX_ROWS];
  double limit_stiffness[MAX_LIMITS], limit_sign[MAX_LIMITS], limit_target[MAX_LIMITS],
      limit_residual[MAX_LIMITS], limit_change[MAX_LIMITS];
  bool pushes[MAX_ROWS], limit_pushes[MAX_LIMITS], edge_pushed[MAX_ROWS];
  double hessian[NV][NV], gradient[NV], direction[NV];
  // Integration.
  double start_qpos[NQ], start_qvel[NV], stage_qvel[4][NV], stage_qacc[4][NV], step[NV];
  // What agents and critics may observe; see `environment.h`.
  double readings[NUM_READINGS];
};

FUNC void cross(const double* a, const double* b, double* out) {
  out[0] = a[1] * b[2] - a[2] * b[1];
  out[1] = a[2] * b[0] - a[0] * b[2];
  out[2] = a[0] * b[1] - a[1] * b[0];
}

FUNC double dot(const double* a, const double* b, int n) {
  double total = 0;
  for (int i = 0; i < n; i++) total += a[i] * b[i];
  return total;
}

FUNC void rotate(const double* R, const double* x, double* out) {
  for (int i = 0; i < 3; i++) out[i] = dot(R + 3 * i, x, 3);
}

FUNC void rotate_back(const double* R, const double* x, double* out) {
  for (int i = 0; i < 3; i++) out[i] = R[i] * x[0] + R[3 + i] * x[1] + R[6 + i] * x[2];
}

FUNC void multiply(const double* A, const double* B, double* out) {
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++)
      out[3 * i + j] = A[3 * i] * B[j] + A[3 * i + 1] * B[3 + j] + A[3 * i + 2] * B[6 + j];
}

// Rodrigues' formula.
FUNC void rotation_about(const double* axis, double s, double c, double* R) {
  const double x = axis[0], y = axis[1], z = axis[2], t = 1 - c;
  R[0] = t * x * x + c, R[1] = t * x * y - s * z, R[2] = t * x * z + s * y;
  R[3] = t * x * y + s * z, R[4] = t * y * y + c, R[5] = t * y * z - s * x;
  R[6] = t * x * z - s * y, R[7] = t * y * z + s * x, R[8] = t * z * z + c;
}

FUNC void rotation_of_quaternion(const double* q, double* R) {
  const double scale = 1 / sqrt(dot(q, q, 4));
  const double w = q[0] * scale, x = q[1] * scale, y = q[2] * scale, z = q[3] * scale;
  R[0] = 1 - 2 * (y * y + z * z), R[1] = 2 * (x * y - w * z), R[2] = 2 * (x * z + w * y);
  R[3] = 2 * (x * y + w * z), R[4] = 1 - 2 * (x * x + z * z), R[5] = 2 * (y * z - w * x);
  R[6] = 2 * (x * z - w * y), R[7] = 2 * (y * z + w * x), R[8] = 1 - 2 * (x * x + y * y);
}

// Turn a unit quaternion by the rotation vector `turn` in its own frame.
FUNC void turn_quaternion(double* q, const double* turn) {
  const double angle = sqrt(dot(turn, turn, 3));
  double s, c, p[4];
  sincos(angle / 2, &s, &c);
  const double f = angle < TINY ? 0 : s / angle, x = turn[0] * f, y = turn[1] * f, z = turn[2] * f;
  p[0] = q[0] * c - q[1] * x - q[2] * y - q[3] * z;
  p[1] = q[0] * x + q[1] * c + q[2] * z - q[3] * y;
  p[2] = q[0] * y - q[1] * z + q[2] * c + q[3] * x;
  p[3] = q[0] * z + q[1] * y - q[2] * x + q[3] * c;
  const double scale = 1 / sqrt(dot(p, p, 4));
  for (int i = 0; i < 4; i++) q[i] = p[i] * scale;
}

// Momentum of a body with spatial inertia I (mass, mass * centre, Ixx Iyy Izz Ixy Ixz Iyz).
FUNC void momentum_of(const double* I, const double* v, double* out) {
  double turn[3], shift[3];
  cross(I + 1, v + 3, turn);
  cross(I + 1, v, shift);
  out[0] = I[4] * v[0] + I[7] * v[1] + I[8] * v[2] + turn[0];
  out[1] = I[7] * v[0] + I[5] * v[1] + I[9] * v[2] + turn[1];
  out[2] = I[8] * v[0] + I[9] * v[1] + I[6] * v[2] + turn[2];
  for (int i = 0; i < 3; i++) out[3 + i] = I[0] * v[3 + i] - shift[i];
}

// Rate of change of a spatial motion that moves with velocity v.
FUNC void cross_motion(const double* v, const double* m, double* out) {
  double a[3], b[3];
  cross(v, m, out);
  cross(v, m + 3, a);
  cross(v + 3, m, b);
  for (int i = 0; i < 3; i++) out[3 + i] = a[i] + b[i];
}

// Add the rate of change of a spatial force that moves with velocity v.
FUNC void add_cross_force(const double* v, const double* f, double* out) {
  double a[3], b[3], c[3];
  cross(v, f, a);
  cross(v + 3, f + 3, b);
  cross(v, f + 3, c);
  for (int i = 0; i < 3; i++) out[i] += a[i] + b[i], out[3 + i] += c[i];
}

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

// The fluid's force on a body that is a box of equal inertia: added to a spatial force.
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

// A constraint with violation `distance` (negative: violated): its stiffness, and its target
// acceleration at rest; moving, it is less by p[6] times the speed.
FUNC void soft_constraint(const double* p, double distance, double weight, double* stiffness,
                          double* target) {
  const double low = p[0], high = p[1], width = p[2], middle = p[3], power = p[4];
  const double x = fabs(distance) / width;
  double impedance;
  if (low == high || width <= TINY)
    impedance = 0.5 * (low + high);
  else if (x >= 1)
    impedance = high;
  else {
    const bool near = x <= middle;
    const double at = near ? middle : 1 - middle, y = near ? x : 1 - x;
    const double curve = power == 2 ? y * y / at : y * pow(y / at, power - 1);
    impedance = low + (near ? curve : 1 - curve) * (high - low);
  }
  *stiffness = 1 / fmax(TINY, (1 - impedance) / impedance * weight);
  *target = -p[5] * impedance * distance;
}

FUNC void limits(Scratch& s) {
  EACH(i, NUM_LIMITS) {
    const int dof = LIMIT_DOF[i];
    const double q = s.qpos[DOF_QPOS[dof]];
    const double low = q - LIMIT_RANGE[i][0], high = LIMIT_RANGE[i][1] - q;
    // A range is wider than its margins: at most one side is active.
    const double sign = low < high ? 1 : -1, distance = fmin(low, high) - LIMIT_MARGIN[i];
    s.limit_sign[i] = sign;
    s.limit_stiffness[i] = s.limit_target[i] = 0;
    if (distance < 0) {
      soft_constraint(LIMIT_SOFTNESS[i], distance, LIMIT_WEIGHT[i], &s.limit_stiffness[i],
                      &s.limit_target[i]);
      s.limit_target[i] -= LIMIT_SOFTNESS[i][6] * sign * s.qvel[dof];
    }
  }
}

// Number the spheres that touch the floor; where and how they do.
FUNC void find_contacts(Scratch& s) {
  if (lane() == 0) s.num_rows = 0;
#if NUM_SPHERES > 0
  sync();
  EACH(turn, (NUM_SPHERES + LANES - 1) / LANES * LANES) {  // all lanes take part
    const double* normal = FLOOR_NORMAL;
    const int sphere = turn < NUM_SPHERES ? turn : 0, body = SPHERE_BODY[sphere];
    double centre[3], axis[3];
    rotate(s.rotation[body], SPHERE_CENTRE[sphere], centre);
    for (int i = 0; i < 3; i++) centre[i] += s.position[body][i];
    const double distance = dot(centre, normal, 3) - FLOOR_HEIGHT - SPHERE_RADIUS[sphere];
    const bool touches = turn < NUM_SPHERES && distance < SPHERE_MARGIN[sphere];
    const int index = s.num_rows / 4 + count_before(touches), all = count_all(touches);
    sync();
    if (lane() == 0) s.num_rows += 4 * all;
    if (!touches) continue;
    // The contact is half way between the lowest point and the floor; its second axis is along the
    // capsule.
    const double depth = -distance / 2 - SPHERE_RADIUS[sphere];
    rotate(s.rotation[body], SPHERE_AXIS[sphere], axis);
    if (!SPHERE_HAS_AXIS[sphere])
      for (int i = 0; i < 3; i++) axis[i] = i == FLOOR_SECOND_AXIS;
    const double along = dot(axis, normal, 3);
    for (int i = 0; i < 3; i++) axis[i] -= along * normal[i];
    const double length = sqrt(dot(axis, axis, 3));
    double* frame = s.contact_frame[index];
    for (int i = 0; i < 3; i++) {
      s.contact_arm[index][i] = centre[i] + depth * normal[i] - s.position[1][i];
      frame[i] = normal[i];
      frame[3 + i] = length < TINY ? i == 0 : axis[i] / length;
    }
    cross(frame, frame + 3, frame + 6);
    double stiffness, target;
    soft_constraint(SPHERE_SOFTNESS[sphere], distance - SPHERE_MARGIN[sphere], SPHERE_WEIGHT[sphere], &stiffness,
                    &target);
    s.contact_sphere[index] = sphere;
    for (int edge = 0; edge < 4; edge++)
      s.stiffness[4 * index + edge] = stiffness, s.target[4 * index + edge] = target;
  }
  sync();
#endif
}

// Four rows, the edges of the friction pyramid, for every sphere that touches the floor.
FUNC void contacts(Scratch& s) {
  find_contacts(s);
#if NUM_SPHERES > 0
  EACH(i, s.num_rows / 4 * NV) {
    const int contact = i / NV, dof = i % NV, sphere = s.contact_sphere[contact];
    const double friction = SPHERE_FRICTION[sphere];
    double v[3] = {0, 0, 0}, u[3];
    if (BIT(BODY_DOFS[SPHERE_BODY[sphere]], dof)) {
      cross(s.motion[dof], s.contact_arm[contact], v);
      for (int k = 0; k < 3; k++) v[k] += s.motion[dof][3 + k];
    }
    rotate(s.contact_frame[contact], v, u);
    for (int edge = 0; edge < 4; edge++)
      s.rows[4 * contact + edge][dof] = u[0] + (edge % 2 ? -friction : friction) * u[1 + edge / 2];
  }
  sync();
  EACH(i, s.num_rows)
  s.target[i] -= SPHERE_SOFTNESS[s.contact_sphere[i / 4]][6] * dot(s.rows[i], s.qvel, NV);
#endif
}

// Solve `A x = b` for a symmetric positive definite A; destroys A.
FUNC void solve(double (*A)[NV], const double* b, double* x) {
#ifdef __CUDACC__
  // Gauss-Jordan elimination: a lane has a row in registers. What is left to eliminate is symmetric,
  // so the next row is the next column, to which every lane contributes one number.
  const int row = lane() < NV ? lane() : 0;
  double a[NV], y = b[row], own = 0;
  UNROLL for (int j = 0; j < NV; j++) a[j] = A[row][j];
  sync();
  UNROLL for (int k = 0; k < NV; k++) {
    if (lane() < NV) A[k][lane()] = a[k];
    sync();
    const double inverse = reciprocal(A[k][k]), factor = lane() == k ? 0 : a[k] * inverse;
    UNROLL for (int j = k + 1; j < NV; j++) a[j] -= factor * A[k][j];
    y -= factor * __shfl_sync(0xffffffffu, y, k);
    if (lane() == k) own = inverse;
  }
  if (lane() < NV) x[lane()] = y * own;
  sync();
#else
  // Cholesky's factor, in the lower triangle.
  double y[NV];
  for (int i = 0; i < NV; i++) {
    double value = b[i];
    for (int j = 0; j <= i; j++) {
      double entry = A[i][j] - dot(A[i], A[j], j);
      A[i][j] = i == j ? 1 / sqrt(entry) : entry * A[j][j];
      if (j < i) value -= A[i][j] * y[j];
    }
    y[i] = value * A[i][i];
  }
  for (int i = NV - 1; i >= 0; i--) {
    x[i] = y[i] * A[i][i];
    for (int j = 0; j < i; j++) y[j] -= A[i][j] * x[i];
  }
#endif
}

// Rows of constraints times x, less their targets or not.
FUNC void apply_rows(Scratch& s, const double* x, bool minus_targets, double* contact, double* limit) {
  EACH(i, s.num_rows) contact[i] = dot(s.rows[i], x, NV) - (minus_targets ? s.target[i] : 0);
  EACH(i, NUM_LIMITS)
  limit[i] = s.limit_sign[i] * x[LIMIT_DOF[i]] - (minus_targets ? s.limit_target[i] : 0);
  sync();
}

// The first guess: rows push that have a negative residual, or pushed in the previous evaluation.
FUNC void guess_pushes(Scratch& s) {
  EACH(i, s.num_rows) s.pushes[i] = s.residual[i] < 0 || s.edge_pushed[4 * s.contact_sphere[i / 4] + i % 4];
  EACH(i, NUM_LIMITS)
  s.limit_pushes[i] = s.limit_stiffness[i] > 0 && (s.limit_residual[i] < 0 || s.limit_pushes[i]);
  sync();
}

// What the next evaluation needs for its guess.
FUNC void keep_pushes(Scratch& s) {
  EACH(i, 4 * NUM_SPHERES) s.edge_pushed[i] = false;
  sync();
  EACH(i, s.num_rows) s.edge_pushed[4 * s.contact_sphere[i / 4] + i % 4] = s.pushes[i];
}

// Rows with a negative residual push; whether these are others than before.
FUNC bool update_pushes(Scratch& s) {
  bool changed = false;
  EACH(i, s.num_rows) {
    const bool pushes = s.residual[i] < 0;
    changed |= pushes != s.pushes[i];
    s.pushes[i] = pushes;
  }
  EACH(i, NUM_LIMITS) {
    const bool pushes = s.limit_stiffness[i] > 0 && s.limit_residual[i] < 0;
    changed |= pushes != s.limit_pushes[i];
    s.limit_pushes[i] = pushes;
  }
  sync();
  return any_lane(changed);
}

// The minimum of the objective if the rows that push stay the same: `hessian` x = `gradient`.
FUNC void quadratic(Scratch& s) {
  EACH(i, NV) {
    double row[NV], value = s.smooth[i];
    for (int j = 0; j < NV; j++) row[j] = s.mass[j][i];
    for (int r = 0; r < s.num_rows; r++) {
      if (!s.pushes[r]) continue;
      const double weight = s.stiffness[r] * s.rows[r][i];
      value += weight * s.target[r];
      for (int j = 0; j < NV; j++) row[j] += weight * s.rows[r][j];
    }
    const int limit = DOF_LIMIT[i];
    const bool pushes = limit >= 0 && s.limit_pushes[limit];
    for (int j = 0; j < NV; j++)
      s.hessian[i][j] = row[j] + (pushes && i == j ? s.limit_stiffness[limit] : 0);
    if (pushes) value += s.limit_sign[limit] * s.limit_stiffness[limit] * s.limit_target[limit];
    s.gradient[i] = value;
  }
  sync();
}

// The minimum along the direction: Newton's method for the slope, safeguarded by bisection.
FUNC double search(const Scratch& s) {
  double at_zero = 0, first = 0, curvature = 0;
  EACH(i, NV) {
    first += s.direction[i] * (dot(s.mass[i], s.qacc, NV) - s.smooth[i]);
    curvature += s.direction[i] * dot(s.mass[i], s.direction, NV);
  }
  first = sum_lanes(first), curvature = sum_lanes(curvature);
  double length = 1, low = 0, high = INFINITY;
  ONCE for (int number = 0; number <= MAX_SEARCH_STEPS; number++) {
    const double at = number ? length : 0;  // the first evaluation is for the tolerance
    double slope = 0, bend = 0;
    EACH(i, s.num_rows) {
      const double residual = s.residual[i] + at * s.change[i], force = s.stiffness[i] * s.change[i];
      if (residual < 0) slope += force * residual, bend += force * s.change[i];
    }
    EACH(i, NUM_LIMITS) {
      const double residual = s.limit_residual[i] + at * s.limit_change[i];
      const double force = s.limit_stiffness[i] * s.limit_change[i];
      if (residual < 0) slope += force * residual, bend += force * s.limit_change[i];
    }
    slope = sum_lanes(slope) + first + at * curvature, bend = sum_lanes(bend) + curvature;
    if (number == 0) {
      at_zero = slope;
      continue;
    }
    if (fabs(slope) <= SEARCH_TOLERANCE * fabs(at_zero)) break;
    if (slope < 0)
      low = length;
    else
      high = length;
    length -= slope / bend;
    if (!(length > low && length < high)) length = high < INFINITY ? (low + high) / 2 : 2 * low;
  }
  return length;
}

FUNC void constraints(Scratch& s) {
  limits(s);
  contacts(s);
}

// The acceleration that minimises 1/2 (a - a0)' M (a - a0) + sum of 1/2 D min(0, J a - target)^2.
//
// If the rows that push are known, this is a linear system. Usually they are those that push at the
// previous acceleration, or at the solution for those. Where this guess goes in circles, it becomes
// Newton's method with a search along the line, which always ends.
FUNC void constrained_acceleration(Scratch& s) {
  apply_rows(s, s.qacc, true, s.residual, s.limit_residual);
  guess_pushes(s);
  ONCE for (int number = 0; number < MAX_NEWTON_STEPS; number++) {
    const bool safe = number >= MAX_FULL_STEPS;
    quadratic(s);
    solve(s.hessian, s.gradient, safe ? s.direction : s.qacc);
    if (safe) {
      EACH(i, NV) s.direction[i] -= s.qacc[i];
      sync();
      apply_rows(s, s.direction, false, s.change, s.limit_change);
      const double length = search(s);
      EACH(i, NV) s.qacc[i] += length * s.direction[i];
      sync();
    }
    apply_rows(s, s.qacc, true, s.residual, s.limit_residual);
    if (!update_pushes(s)) break;
  }
  keep_pushes(s);
}

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
