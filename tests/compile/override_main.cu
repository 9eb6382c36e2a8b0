// SPDX-License-Identifier: Apache-2.0
// A program whose kernels are in override_kernels.cu, with a heap for them. Read by
// scripts/check_override.py.
#if defined(OVERRIDE_GROWS)
#include <warpheap/heap/override_growing.hpp>
#else
#include <warpheap/heap/override.hpp>
#endif

void launch_kernels(unsigned* results);

int main() {
#if defined(OVERRIDE_GROWS)
  warpheap::override_heap const heap{warpheap::growth{.initial = 64ull << 20, .limit = 1ull << 30}};
#else
  warpheap::override_heap const heap{64ull << 20};
#endif
  launch_kernels(nullptr);
  return heap.heap().statistics().live_blocks != 0;
}
