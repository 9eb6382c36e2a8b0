// SPDX-License-Identifier: Apache-2.0
// Device code that calls malloc, free, new and delete, and knows nothing of Warpheap. Read by
// scripts/check_override.py.
#include <cuda/std/cstdlib>

struct shape {
  __device__ virtual ~shape() {}
  __device__ virtual unsigned area() const { return 0; }
};
struct square : shape {
  __device__ explicit square(unsigned side) : side{side} {}
  __device__ unsigned area() const override { return side * side; }
  unsigned side;
};
struct alignas(128) line {
  unsigned words[32];
};

__global__ void use_malloc_and_new(unsigned* results, unsigned n) {
  auto* const numbers = static_cast<unsigned*>(malloc(n * sizeof(unsigned)));
  shape* const made = n % 2 ? new square{n} : new shape;
  auto* const lines = new line[n];
  numbers[n - 1] = made->area();
  lines[n - 1].words[0] = numbers[n - 1];
  results[threadIdx.x] = lines[n - 1].words[0];
  results[0] += static_cast<unsigned*>(cuda::std::calloc(n, sizeof(unsigned)))[1];
  cuda::std::free(cuda::std::aligned_alloc(64, 64));
  cuda::std::free(__nv_aligned_device_malloc(64, 64));
  delete[] lines;
  delete made;
  free(numbers);
}

void launch_kernels(unsigned* results) { use_malloc_and_new<<<1, 32>>>(results, 10); }
