// SPDX-License-Identifier: Apache-2.0
// Kernels that know nothing of Warpheap and hold many values in registers across each call that the
// linker gives to its heap: with -rdc=true ptxas takes these for CUDA's own, which leave more
// registers alone than other functions do.
#include <new>

#include "kernels.hpp"

namespace override_test {

namespace {

constexpr unsigned values = 90;

struct alignas(128) line {
  unsigned words[32];
};

__device__ void call(held_call what, void*& memory, unsigned seed) {
  switch (what) {
    case held_call::malloc: memory = malloc(16 + seed % 100); break;
    case held_call::free: free(memory); break;
    case held_call::make: memory = new unsigned[1 + seed % 25]; break;
    case held_call::destroy: delete[] static_cast<unsigned*>(memory); break;
    case held_call::make_aligned: memory = new line; break;
    case held_call::destroy_aligned: delete static_cast<line*>(memory); break;
  }
}

/// One call a kernel, so that each call has the values around it, whatever happens to other calls.
template <held_call What>
__global__ void hold(unsigned threads, unsigned const* in, void** memory, tally* counts) {
  unsigned const me = blockIdx.x * blockDim.x + threadIdx.x;
  if (me >= threads) return;
  unsigned held[values];
#pragma unroll
  for (unsigned i = 0; i < values; ++i) held[i] = in[(me + i) % threads];
  void* mine = memory[me];
  call(What, mine, me);
  unsigned wrong = 0;
#pragma unroll
  for (unsigned i = 0; i < values; ++i) wrong += held[i] != in[(me + i) % threads];
  if (wrong) atomicAdd(&counts->wrong, 1);
  memory[me] = mine;
  if (mine) atomicAdd(&counts->made, 1);
}

}  // namespace

cudaError_t hold_values(held_call what, unsigned threads, unsigned const* in, void** memory, tally* counts) {
  unsigned const blocks = (threads + 127) / 128;
  switch (what) {
    case held_call::malloc: hold<held_call::malloc><<<blocks, 128>>>(threads, in, memory, counts); break;
    case held_call::free: hold<held_call::free><<<blocks, 128>>>(threads, in, memory, counts); break;
    case held_call::make: hold<held_call::make><<<blocks, 128>>>(threads, in, memory, counts); break;
    case held_call::destroy: hold<held_call::destroy><<<blocks, 128>>>(threads, in, memory, counts); break;
    case held_call::make_aligned: hold<held_call::make_aligned><<<blocks, 128>>>(threads, in, memory, counts); break;
    case held_call::destroy_aligned:
      hold<held_call::destroy_aligned><<<blocks, 128>>>(threads, in, memory, counts);
      break;
  }
  return cudaDeviceSynchronize();
}

}  // namespace override_test
