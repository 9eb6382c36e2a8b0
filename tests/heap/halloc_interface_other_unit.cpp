// SPDX-License-Identifier: Apache-2.0
#include "halloc_interface_units.hpp"
#include "warpheap/heap/halloc_interface.hpp"

namespace halloc_interface_test {

namespace {

struct allocate_all {
  WARPHEAP_DEVICE void operator()(void** blocks, warpheap::size_t bytes) const {
    blocks[warpheap::global_thread_index()] = hamalloc(bytes);
  }
};

struct free_all {
  WARPHEAP_DEVICE void operator()(void* const* blocks) const { hafree(blocks[warpheap::global_thread_index()]); }
};

}  // namespace

void allocate_in_other_unit(warpheap::launch_shape shape, void** blocks, warpheap::size_t bytes) {
  warpheap::launch(shape, allocate_all{}, blocks, bytes);
}

void free_in_other_unit(warpheap::launch_shape shape, void* const* blocks) {
  warpheap::launch(shape, free_all{}, blocks);
}

}  // namespace halloc_interface_test
