// SPDX-License-Identifier: Apache-2.0
// Out of memory ends the kernel, and the host reads which of its threads wanted how much. On a GPU
// nothing would run after that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/message_of.hpp"
#include "support/schedules.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/warpheap.hpp"

namespace trap_test {

using namespace warpheap;
using test::message_of;
using namespace warpheap::literals;

template <class Distribution>
using trapping = basic_heap<
    allocator<creation::slab_bitmap<>, Distribution, oom::trap, reserve_pool::device_memory, alignment::shrink<16>>>;

struct ask {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 bytes, u64 in_vain_by) const {
    heap.free(heap.malloc(0));
    heap.free(heap.malloc(bytes));
    if (global_thread_index() == in_vain_by) heap.malloc(2_MiB);
  }
};

template <class Heap>
std::string complaint(Heap const& heap, u64 in_vain_by) {
  return message_of<host::trap_error>([&] {
    launch({2, 40}, ask{}, heap.ref(), u64{100}, in_vain_by);
    synchronize();
  });
}

template <class Heap>
void expect_trap() {
  test::for_each_schedule(20, [] {
    Heap const heap{1_MiB};
    EXPECT_EQ(complaint(heap, 1000), "nothing thrown") << "nobody asked in vain";
    EXPECT_THAT(complaint(heap, 43), testing::HasSubstr("out of memory: no block for this request"));
    EXPECT_THAT(complaint(heap, 43), testing::HasSubstr("thread block 1, thread 3"));
  });
}

TEST(Trap, NamesTheFaultAndTheThread) { expect_trap<trapping<distribution::none>>(); }
TEST(Trap, NamesThemBehindCombinedRequests) { expect_trap<trapping<distribution::warp_coalesce>>(); }

}  // namespace trap_test
