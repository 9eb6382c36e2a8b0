// SPDX-License-Identifier: Apache-2.0
// The entry points with C names, called with nothing but the heap's number.
#include "warpheap/heap/c_interface.hpp"

#include <gtest/gtest.h>

#include "support/schedules.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/warpheap.hpp"

namespace c_interface_test {

using namespace warpheap;
using namespace warpheap::literals;

enum outcome : u64 { zeroed = 1, grew_with_contents = 2, aligned = 4, refused = 8, freed = 16, all_of_it = 31 };

/// One block's life through every function; frees all when it is done.
struct live_through {
  WARPHEAP_DEVICE void operator()(u64 heap, u64* outcomes) const {
    u64 seen = 0;
    u32 const me = static_cast<u32>(global_thread_index());
    auto* numbers = static_cast<u32*>(warpheap_calloc(heap, 10, sizeof(u32)));
    if (numbers && numbers[0] == 0 && numbers[9] == 0) seen |= zeroed;
    if (numbers) numbers[9] = me;
    numbers = static_cast<u32*>(warpheap_realloc(heap, numbers, 700));
    if (numbers && numbers[9] == me) seen |= grew_with_contents;
    void* const page = warpheap_aligned_alloc(heap, 1024, 100);
    if (page && reinterpret_cast<u64>(page) % 1024 == 0) seen |= aligned;
    if (!warpheap_malloc(heap, ~u64{0}) && !warpheap_malloc(heap, 0) && !warpheap_aligned_alloc(heap, 24, 8) &&
        !warpheap_calloc(heap, ~u64{0}, 16))
      seen |= refused;
    int const answers[] = {warpheap_free(heap, warpheap_malloc(heap, 64)), warpheap_free(heap, page),
                           warpheap_free(heap, nullptr)};
    warpheap_realloc(heap, numbers, 0);
    if ((answers[0] | answers[1] | answers[2]) == 0) seen |= freed;
    outcomes[me] = seen;
  }
};

TEST(CInterface, DoesWhatTheMembersDo) {
  test::for_each_schedule(50, [] {
    warpheap::heap heap{1_MiB};
    constexpr launch_shape shape{2, 40};
    device_buffer<u64> const outcomes(80);
    launch(shape, live_through{}, heap.handle(), outcomes.data());
    synchronize();
    for (u64 const seen : outcomes.to_host()) ASSERT_EQ(seen, u64{all_of_it});
    auto const counts = heap.statistics();
    EXPECT_EQ(counts.live_blocks + counts.double_frees + counts.foreign_frees, 0u);
  });
}

}  // namespace c_interface_test
