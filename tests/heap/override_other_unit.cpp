// SPDX-License-Identifier: Apache-2.0
#include "override_units.hpp"
#include "warpheap/heap/override.hpp"

namespace override_test {

namespace {

struct allocate_all {
  WARPHEAP_DEVICE void operator()(void** blocks, warpheap::size_t bytes) const {
    auto const me = warpheap::global_thread_index();
    auto* const block = static_cast<warpheap::u64*>(warpheap::device_heap.malloc(bytes));
    if (block) *block = me;
    blocks[me] = block;
  }
};

struct free_all {
  WARPHEAP_DEVICE void operator()(void* const* blocks) const {
    warpheap::device_heap.free(blocks[warpheap::global_thread_index()]);
  }
};

}  // namespace

void allocate_in_other_unit(warpheap::launch_shape shape, void** blocks, warpheap::size_t bytes) {
  warpheap::launch(shape, allocate_all{}, blocks, bytes);
}

void free_in_other_unit(warpheap::launch_shape shape, void* const* blocks) {
  warpheap::launch(shape, free_all{}, blocks);
}

}  // namespace override_test
