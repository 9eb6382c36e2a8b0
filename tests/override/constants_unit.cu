// SPDX-License-Identifier: Apache-2.0
// Compiled several times, each time with another NUMBER: a unit with the header and a constant of
// its own, which is all zero in every unit. nvlink stores equal constants of several units once.
#include <cstdlib>

#include "kernels.hpp"

namespace override_test {

namespace {

__constant__ unsigned zeros[8];

__global__ void allocate_once(unsigned threads, void** memory, tally* counts) {
  unsigned const me = blockIdx.x * blockDim.x + threadIdx.x;
  if (me >= threads) return;
  memory[me] = malloc(48 + zeros[me % 8]);
  if (memory[me]) atomicAdd(&counts->made, 1);
}

}  // namespace

template <>
cudaError_t allocate_in_unit<NUMBER>(unsigned threads, void** memory, tally* counts) {
  allocate_once<<<(threads + 127) / 128, 128>>>(threads, memory, counts);
  return cudaDeviceSynchronize();
}

}  // namespace override_test
