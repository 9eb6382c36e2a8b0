// SPDX-License-Identifier: Apache-2.0
// Compiled as C++11, once as UNIT=unit_of_program and once as UNIT=unit_of_library.
#include "unit.h"

#include <string.h>

#include "warpheap.h"

namespace {

__device__ unsigned me() { return blockIdx.x * blockDim.x + threadIdx.x; }

__global__ void allocate(void** blocks, unsigned threads, size_t bytes) {
  if (me() < threads) blocks[me()] = malloc(bytes);
}

__global__ void make(int** arrays, unsigned threads) {
  if (me() >= threads) return;
  unsigned const count = 1 + me() % 64;
  int* const made = new int[count];
  for (unsigned i = 0; made && i < count; ++i) made[i] = static_cast<int>(me());
  arrays[me()] = made;
}

__global__ void release(void** blocks, unsigned threads) {
  if (me() < threads) free(blocks[me()]);
}

__device__ bool is_zero(void const* memory, size_t bytes) {
  unsigned char const* const at = static_cast<unsigned char const*>(memory);
  unsigned any = 0;
  for (size_t i = 0; i < bytes; ++i) any |= at[i];
  return any == 0;
}

__global__ void exercise(unsigned* faults, unsigned threads) {
  if (me() >= threads) return;
  unsigned wrong = 0;
  void* const zeroed = calloc(3, 40);
  wrong += !zeroed || !is_zero(zeroed, 120);
  if (zeroed) memset(zeroed, 7, 120);
  unsigned char* const longer = static_cast<unsigned char*>(realloc(zeroed, 1000));
  wrong += !longer || longer[0] != 7 || longer[119] != 7 || malloc_usable_size(longer) < 1000;
  wrong += realloc(longer, 0) != 0;
  void* const aligned = aligned_alloc(256, 48);
  wrong += !aligned || reinterpret_cast<size_t>(aligned) % 256 != 0;
  wrong += aligned_alloc(24, 48) != 0;  // no power of two
  free(aligned);
  free(0);
  void* const nothing = malloc(0);  // has an address of its own
  wrong += !nothing;
  free(nothing);
  void* const prefixed = warpheap_device_malloc(16);
  wrong += !prefixed || warpheap_device_usable_size(prefixed) < 16;
  warpheap_device_free(prefixed);
  if (wrong) atomicAdd(faults, wrong);
}

__global__ void find_dirty(void** blocks, unsigned threads, size_t bytes, unsigned* dirty) {
  if (me() < threads && blocks[me()] && !is_zero(blocks[me()], bytes)) atomicAdd(dirty, 1);
}

unsigned grid(unsigned threads) { return (threads + 255) / 256; }

cudaError_t finished() {
  cudaError_t const launched = cudaGetLastError();
  return launched != cudaSuccess ? launched : cudaDeviceSynchronize();
}

cudaError_t run_allocate(void** blocks, unsigned threads, size_t bytes) {
  allocate<<<grid(threads), 256>>>(blocks, threads, bytes);
  return finished();
}
cudaError_t run_make(int** arrays, unsigned threads) {
  make<<<grid(threads), 256>>>(arrays, threads);
  return finished();
}
cudaError_t run_release(void** blocks, unsigned threads) {
  release<<<grid(threads), 256>>>(blocks, threads);
  return finished();
}
cudaError_t run_exercise(unsigned* faults, unsigned threads) {
  exercise<<<grid(threads), 256>>>(faults, threads);
  return finished();
}
cudaError_t run_find_dirty(void** blocks, unsigned threads, size_t bytes, unsigned* dirty) {
  find_dirty<<<grid(threads), 256>>>(blocks, threads, bytes, dirty);
  return finished();
}

}  // namespace

extern unit const UNIT;
unit const UNIT = {run_allocate, run_make, run_release, run_exercise, run_find_dirty};
