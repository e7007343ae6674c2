// Contacts and limits of joints, as MuJoCo's documentation defines them: soft constraints with pyramids of
// friction, and the accelerations that minimise a convex, piecewise quadratic function.

#pragma once

#include "algebra.h"
#include "scratch.h"

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
