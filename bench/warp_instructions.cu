// SPDX-License-Identifier: Apache-2.0
// What scripts/count_instructions.py profiles: for each size of its arguments bursts of one call a
// thread, in kernels that do nothing else.
#include <cstdio>
#include <cstdlib>

#include "../tests/compile/allocating_kernels.cu"

int main(int count, char** arguments) {
  constexpr unsigned threads = 1u << 20, of_block = 256, bursts = 7;
  void** blocks = nullptr;
  if (cudaMalloc(&blocks, threads * sizeof *blocks) != cudaSuccess) return EXIT_FAILURE;
  for (int i = 1; i < count; ++i) {
    warpheap::heap heap{size_t{8} << 30};
    auto const bytes = std::strtoull(arguments[i], nullptr, 10);
    for (unsigned burst = 0; burst < bursts; ++burst) {
      one_malloc<<<threads / of_block, of_block>>>(heap.ref(), blocks, bytes, threads);
      one_free<<<threads / of_block, of_block>>>(heap.ref(), blocks, bytes, threads);
    }
    if (cudaDeviceSynchronize() != cudaSuccess || heap.statistics().failures != 0) return EXIT_FAILURE;
  }
  std::puts("done");
}
