// Rotations, and spatial vectors: (angular, linear), in world axes, at the position of body 1, the `origin`,
// so that quantities of all bodies can be added.

#pragma once

#include "lanes.h"

constexpr double TINY = 1e-15;  // what MuJoCo divides by at least

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
