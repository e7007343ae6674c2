// One simulation is computed by the 32 lanes of a warp together, or by one lane on a CPU.
//
// `EACH(i, n)` divides a loop among the lanes, `sync()` separates phases that read what other lanes
// have written. A simulation has three warps for what can be computed side by side (`TOGETHER`);
// `join()` waits for all of them.

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
FUNC double cos_pi(double x) { return cospi(x); }
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
FUNC double cos_pi(double x) { return cos(3.14159265358979323846 * x); }
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
