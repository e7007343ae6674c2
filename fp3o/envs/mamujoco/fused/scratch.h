// All intermediate results of one simulation. `model.h`, which `task_header.py` writes for a task, has its
// sizes and tables.

#pragma once

#include "lanes.h"

enum JointType { FREE, BALL, SLIDE, HINGE };  // as in MuJoCo

#include "model.h"

static_assert(LANES == 1 || (NV <= LANES && NUM_SPHERES <= LANES), "one lane per row and sphere");

constexpr int MAX_ROWS = 4 * (NUM_SPHERES ? NUM_SPHERES : 1);
constexpr int MAX_LIMITS = NUM_LIMITS ? NUM_LIMITS : 1;
#ifndef MAX_FULL_STEPS
#define MAX_FULL_STEPS 8
#endif

constexpr int MAX_NEWTON_STEPS = 50;
constexpr int MAX_SEARCH_STEPS = 30;
constexpr double SEARCH_TOLERANCE = 1e-12;

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
