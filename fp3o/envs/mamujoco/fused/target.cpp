// `environment.h` as a function that XLA calls, for a batch of environments.

#include "environment.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

// States are doubles; as bits, since JAX has no doubles unless all of a program's numbers may be.
using Bits = ffi::Buffer<ffi::U32>;
using Floats = ffi::Buffer<ffi::F32>;

constexpr int ACTIONS = NUM_AGENTS * ACTION_WIDTH;

#ifdef __CUDACC__

// Environments of a block share a multiprocessor, whose cache of instructions holds little more than
// this kernel: programs side by side would displace each other's code everywhere.
constexpr int BLOCK_ENVS = 3;

__global__ void __launch_bounds__(WARPS* LANES* BLOCK_ENVS)
    step_kernel(int count, const double* state, const float* action, bool restart, double* next, float* output) {
  extern __shared__ double memory[];
  const long i = blockIdx.x * BLOCK_ENVS + threadIdx.y;
  if (i >= count) return;
  environment_step(reinterpret_cast<Scratch*>(memory)[threadIdx.y], state + i * STATE_SIZE, action + i * ACTIONS, restart,
                   next + i * STATE_SIZE, output + i * OUTPUT_SIZE);
}

static ffi::Error step(cudaStream_t stream, Bits state, Floats action, ffi::Result<Bits> next,
                       ffi::Result<Floats> output, bool restart) {
  static const cudaError_t ready =
      cudaFuncSetAttribute(step_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, BLOCK_ENVS * sizeof(Scratch));
  if (ready != cudaSuccess) return ffi::Error::Internal(cudaGetErrorString(ready));
  const int count = (int)(action.element_count() / ACTIONS), blocks = (count + BLOCK_ENVS - 1) / BLOCK_ENVS;
  step_kernel<<<blocks, dim3(WARPS * LANES, BLOCK_ENVS), BLOCK_ENVS * sizeof(Scratch), stream>>>(
      count, (const double*)state.typed_data(), action.typed_data(), restart, (double*)next->typed_data(),
      output->typed_data());
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? ffi::Error::Success() : ffi::Error::Internal(cudaGetErrorString(error));
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(Step, step,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::PlatformStream<cudaStream_t>>()
                                  .Arg<Bits>()
                                  .Arg<Floats>()
                                  .Ret<Bits>()
                                  .Ret<Floats>()
                                  .Attr<bool>("restart"),
                              {ffi::Traits::kCmdBufferCompatible});

#else

static ffi::Error step(Bits state, Floats action, ffi::Result<Bits> next, ffi::Result<Floats> output, bool restart) {
  Scratch scratch;  // not thread_local, whose address is looked up at every access
  for (size_t i = 0; i < action.element_count() / ACTIONS; i++)
    environment_step(scratch, (const double*)state.typed_data() + i * STATE_SIZE, action.typed_data() + i * ACTIONS,
                     restart, (double*)next->typed_data() + i * STATE_SIZE, output->typed_data() + i * OUTPUT_SIZE);
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(Step, step,
                              ffi::Ffi::Bind()
                                  .Arg<Bits>()
                                  .Arg<Floats>()
                                  .Ret<Bits>()
                                  .Ret<Floats>()
                                  .Attr<bool>("restart"));

#endif
