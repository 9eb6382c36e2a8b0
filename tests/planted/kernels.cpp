// SPDX-License-Identifier: Apache-2.0
// The kernels of kernels.hpp and one of a heap, as a program that returns 0 if all results are
// right. scripts/planted_faults asks `warpheap test` for each fault; for compute-sanitizer nvcc
// compiles the same source.
#include "kernels.hpp"

#include "warpheap/warpheap.hpp"

using namespace warpheap;

/// Each thread makes two blocks and adds up what they hold.
struct make_blocks {
  WARPHEAP_DEVICE void operator()(heap_ref heap, unsigned* sum) const {
    auto* const first = static_cast<unsigned*>(heap.malloc(64));
    auto* const second = static_cast<unsigned*>(heap.malloc(64));
    if (first == nullptr || second == nullptr) return;
    *first = 1;
    *second = 2;
    bool const is_chosen = global_thread_index() == 17;
#if FAULT == USE_AFTER_FREE
    if (is_chosen) heap.free(first);
#endif
    atomicAdd(sum, *first + *second);
#if FAULT == USE_AFTER_FREE
    if (!is_chosen)
#endif
      heap.free(first);
#if FAULT == DOUBLE_FREE
    if (is_chosen) heap.free(first);
#endif
    static_cast<void>(is_chosen);
    heap.free(second);
  }
};

bool blocks_of_a_heap() {
  heap all{u64{2} << 20};
  device_buffer<u32> const sum(1);
  launch({2, 40}, make_blocks{}, all.ref(), sum.data());
  synchronize();
  auto const known = all.statistics();
  return planted::check(sum[0] == 3 * 80, "a sum of what blocks hold") &&
         planted::check(known.live_blocks == 0 && known.double_frees == 0, "statistics of the heap");
}

int main() {
  using namespace planted;
  bool const all_right = reduction() && prefix_sums() && histograms() && transposes() && sorts() && hash_tables() &&
                         sorted_lists() && blocks_of_a_heap();
  return all_right ? 0 : 1;
}
