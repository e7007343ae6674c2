// `environment.h` as a function that XLA calls, for a batch of environments.

#include <string>

#include "environment.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

// States are doubles; as bits, since JAX has no doubles unless all of a program's numbers may be.
using Bits = ffi::Buffer<ffi::U32>;
using Floats = ffi::Buffer<ffi::F32>;

constexpr int ACTIONS = NUM_AGENTS * ACTION_WIDTH;

#ifdef __CUDACC__

// Environments of a block share a multiprocessor. With three, programs side by side are faster: they
// are on fewer multiprocessors, and displace less of each other's code from the caches of instructions.
constexpr int MAX_BLOCK_ENVS = 3;

__global__ void __launch_bounds__(WARPS* LANES* MAX_BLOCK_ENVS)
    step_kernel(int count, const double* state, const float* action, bool restart, double* next, float* output) {
  extern __shared__ double memory[];
  const long i = blockIdx.x * blockDim.y + threadIdx.y;
  if (i >= count) return;
  environment_step(reinterpret_cast<Scratch*>(memory)[threadIdx.y], state + i * STATE_SIZE, action + i * ACTIONS, restart,
                   next + i * STATE_SIZE, output + i * OUTPUT_SIZE);
}

static ffi::Error cuda_error(cudaError_t code) {
  return code == cudaSuccess ? ffi::Error::Success() : ffi::Error::Internal(cudaGetErrorString(code));
}

static ffi::Error step(cudaStream_t stream, Bits state, Floats action, ffi::Result<Bits> next,
                       ffi::Result<Floats> output, bool restart) {
  // For every call, since a process may have several GPUs.
  int device = 0, available = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&available, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  const int fitting = available / (int)sizeof(Scratch), together = fitting < MAX_BLOCK_ENVS ? fitting : MAX_BLOCK_ENVS;
  if (together == 0)
    return ffi::Error(ffi::ErrorCode::kResourceExhausted,
                      "an environment of backend=fused needs " + std::to_string(sizeof(Scratch)) +
                          " bytes of shared memory, and the GPU has " + std::to_string(available) +
                          " per block: use backend=native");
  const int count = (int)(action.element_count() / ACTIONS), memory = together * (int)sizeof(Scratch);
  const cudaError_t ready = cudaFuncSetAttribute(step_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, memory);
  if (ready != cudaSuccess) return cuda_error(ready);
  step_kernel<<<(count + together - 1) / together, dim3(WARPS * LANES, together), memory, stream>>>(
      count, (const double*)state.typed_data(), action.typed_data(), restart, (double*)next->typed_data(),
      output->typed_data());
  return cuda_error(cudaGetLastError());
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
