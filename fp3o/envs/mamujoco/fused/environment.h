// One step of a task: physics, reward, end of the episode, start of the next one, observations.
//
// The rules are numbers of `model.h`; `ForwardRules` in `rewards/rules.py` states them for all simulators.

#pragma once

#include "integration.h"

// Positions, velocities, accelerations; progress, steps (-1: no episode yet) and number of the episode, random stream.
constexpr int PROGRESS = NQ + 2 * NV, TIME = PROGRESS + 1, NUMBER = TIME + 1, STREAM = NUMBER + 1;
constexpr int STATE_SIZE = STREAM + 1;
// Before and after a new start: observations and states of all agents; then reward and ends.
constexpr int VIEW_SIZE = NUM_AGENTS * (OBS_WIDTH + TEAM_WIDTH);
constexpr int OUTPUT_SIZE = 2 * VIEW_SIZE + 3;
constexpr double MAX_NUMBER = 1e10;  // beyond it MuJoCo starts a simulation anew

// The finaliser of splitmix64.
FUNC unsigned long long mix(unsigned long long x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// Random numbers of an episode: they depend on stream, episode and index alone.
FUNC double uniform(unsigned long long stream, double episode, int index) {
  const unsigned long long x = mix(stream ^ mix(((unsigned long long)episode << 16) + index));
  return ((double)(x >> 11) + 0.5) * 0x1p-53;
}

FUNC double start_noise(unsigned long long stream, double episode, int index, bool normal) {
  const double u = uniform(stream, episode, 2 * index);
  if (!normal) return START_NOISE * (2 * u - 1);
  return START_NOISE * sqrt(-2 * log(u)) * cos_pi(2 * uniform(stream, episode, 2 * index + 1));
}

FUNC void start_episode(Scratch& s, unsigned long long stream, double episode) {
  EACH(i, NQ) s.qpos[i] = REST[i] + start_noise(stream, episode, i, false);
  EACH(i, NV) {
    s.qvel[i] = start_noise(stream, episode, NQ + i, START_NORMAL);
    s.qacc[i] = 0;
  }
  sync();
  kinematics(s);
}

// The distance covered; as in MuJoCo, positions of bodies are those of the last evaluation.
FUNC double progress(const Scratch& s) { return PROGRESS_OF_TORSO ? s.position[1][0] : s.qpos[0]; }

FUNC bool is_valid(const Scratch& s) {
  bool bad = false;
  EACH(i, NQ) bad |= !(fabs(s.qpos[i]) < MAX_NUMBER);
  EACH(i, NV) bad |= !(fabs(s.qvel[i]) < MAX_NUMBER);
  return !any_lane(bad);
}

FUNC bool is_healthy(const Scratch& s) {
  for (int i = 0; i < NUM_BOUNDS; i++) {
    const double x = s.qpos[BOUND_INDEX[i]];
    if (!(x > BOUND_RANGE[i][0] && x < BOUND_RANGE[i][1])) return false;
  }
  return true;
}

FUNC double effort(const Scratch& s) {
  double total = 0;
  EACH(i, NU) total += s.control[i] * s.control[i];
  return sum_lanes(total);
}

// Columns of the readings as a row; in the paper's variant with mean 0 and deviation 1.
FUNC void write_row(const double* readings, const int* columns, int width, float* one, float* other) {
  double mean = 0, scale = 1;
  if (STANDARDISED) {
    double square = 0;
    for (int j = 0; j < width; j++) mean += readings[columns[j]];
    mean /= width;
    for (int j = 0; j < width; j++) square += (readings[columns[j]] - mean) * (readings[columns[j]] - mean);
    scale = 1 / sqrt(square / width);
  }
  for (int j = 0; j < width; j++) one[j] = other[j] = (float)((readings[columns[j]] - mean) * scale);
}

// Observations and states of all agents, written to two places.
FUNC void observe(Scratch& s, float* one, float* other) {
  EACH(i, NQ) s.readings[i] = s.qpos[i];
  EACH(i, NV) {
    s.readings[NQ + i] = s.qvel[i];
    s.readings[NQ + NV + i] = fmin(fmax(s.qvel[i], -10.), 10.);
  }
  EACH(i, 2) s.readings[NQ + 2 * NV + i] = i;
  sync();
  EACH(row, 2 * NUM_AGENTS) {
    const int agent = row / 2;
    if (row % 2) {
      const int at = NUM_AGENTS * OBS_WIDTH + agent * TEAM_WIDTH;
      write_row(s.readings, TEAM_COLUMNS[agent], TEAM_WIDTH, one + at, other + at);
    } else {
      const int at = agent * OBS_WIDTH;
      write_row(s.readings, OBS_COLUMNS[agent], OBS_WIDTH, one + at, other + at);
    }
  }
  sync();
}

FUNC void load(Scratch& s, const double* state, const float* action) {
  EACH(i, NQ) s.qpos[i] = state[i];
  EACH(i, NV) s.qvel[i] = state[NQ + i], s.qacc[i] = state[NQ + NV + i];
  EACH(i, NU) s.control[i] = action[CONTROL_INDEX[i]];
  EACH(i, NV * NV) s.mass[i / NV][i % NV] = 0;
  EACH(i, MAX_ROWS) s.edge_pushed[i] = false;
  EACH(i, MAX_LIMITS) s.limit_pushes[i] = false;
  sync();
}

// Reward, ends, observations; with `restart`, an episode that has ended is followed by the next one.
FUNC void finish(Scratch& s, const double* state, bool restart, double* next, float* output) {
  const unsigned long long stream = *(const unsigned long long*)(state + STREAM);
  const bool playing = state[TIME] >= 0, valid = is_valid(s);
  const double covered = progress(s) - state[PROGRESS], cost = CONTROL_COST * effort(s);
  double time = state[TIME] + 1, number = state[NUMBER];
  const bool healthy = valid && is_healthy(s), late = playing && healthy && time >= MAX_STEPS;
  const bool failed = playing && !healthy, start = !playing || (restart && (failed || late));
  const double bonus = BONUS_ON_FAILURE || healthy ? ALIVE_BONUS : 0;
  // A simulation that has diverged gives no reward, or NaN if the actions were not finite.
  const double reward = valid ? covered / STEP_SECONDS + bonus - cost : 0 * cost;
  if (!valid || !playing) start_episode(s, stream, number);
  observe(s, output, output + VIEW_SIZE);
  if (start) {
    if (valid && playing) {
      start_episode(s, stream, number);
      observe(s, output + VIEW_SIZE, output + VIEW_SIZE);
    }
    time = 0, number += 1;
  }
  if (lane() == 0) {
    output[2 * VIEW_SIZE] = (float)(playing ? reward : 0);
    output[2 * VIEW_SIZE + 1] = failed, output[2 * VIEW_SIZE + 2] = late;
    next[PROGRESS] = progress(s), next[TIME] = time, next[NUMBER] = number;
    next[STREAM] = state[STREAM];
  }
  EACH(i, NQ) next[i] = s.qpos[i];
  EACH(i, NV) next[NQ + i] = s.qvel[i], next[NQ + NV + i] = s.qacc[i];
}

FUNC void environment_step(Scratch& s, const double* state, const float* action, bool restart, double* next,
                           float* output) {
  FIRST_WARP load(s, state, action);
  if (state[TIME] >= 0) {
    ONCE for (int substep = 0; substep < FRAME_SKIP; substep++) advance(s);
  }
  FIRST_WARP finish(s, state, restart, next, output);
}
