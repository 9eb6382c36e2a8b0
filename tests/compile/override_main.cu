// A program whose kernels are in override_kernels.cu, with a heap for them. Read by
// scripts/check_override.py.
#include <warpheap/heap/override.hpp>

void launch_kernels(unsigned* results);

int main() {
  warpheap::override_heap const heap{64ull << 20};
  launch_kernels(nullptr);
  return heap.heap().statistics().live_blocks != 0;
}
