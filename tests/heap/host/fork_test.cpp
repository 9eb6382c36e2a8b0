// SPDX-License-Identifier: Apache-2.0
// Heaps in the child of a fork: they serve kernels there, and the host threads that serve a heap
// are missed in words. Neither their objects nor the child's end wait for them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <stdexcept>

#include "support/message_of.hpp"
#include "warpheap/heap/growing_heap.hpp"
#include "warpheap/heap/growth_service.hpp"
#include "warpheap/heap/published_gauge.hpp"
#include "warpheap/warpheap.hpp"

namespace heap_fork_test {

using namespace warpheap;
using namespace warpheap::literals;
using testing::ExitedWithCode;

struct take_and_give_back {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u32* served) const {
    void* const block = heap.malloc(100);
    if (block) atomic_ref<u32>{*served}.fetch_add(1, order::relaxed);
    heap.free(block);
  }
};

template <class Heap>
u32 served_by(Heap const& heap) {
  device_buffer<u32> served{1};
  launch({4, 64}, take_and_give_back{}, heap.ref(), served.data());
  return served[0];
}

class HeapForkDeathTest : public testing::Test {
 protected:
  void SetUp() override {
    if (host::detail::under_tsan) GTEST_SKIP() << "ThreadSanitizer lets no child of several threads make threads";
    testing::FLAGS_gtest_death_test_style = "fast";
  }
};

/// Exits with 42 if a heap serves all lanes after `body`, which must end within 20 seconds.
template <class Body>
[[noreturn]] void in_child(heap const& heap, Body body) {
  alarm(20);
  body();
  std::exit(served_by(heap) == 256 ? 42 : 1);
}

TEST_F(HeapForkDeathTest, AGrowthServiceSaysThatItIsNotInTheChild) {
  heap const used{1_MiB};
  ASSERT_EQ(served_by(used), 256u);
  size_t const granule = reserve_pool::growing::granularity();
  waiting_heap grown{growth{.initial = granule, .limit = 8 * granule, .chunk = granule}};
  std::optional<growth_service> service{std::in_place, grown};
  EXPECT_EXIT(in_child(used,
                       [&] {
                         std::fputs(test::message_of<std::logic_error>([&] {
                                      std::rethrow_exception(service->failure());
                                    }).c_str(),
                                    stderr);
                         service.emplace(grown);
                         if (service->failure()) _exit(2);
                         service.reset();
                       }),
              ExitedWithCode(42), "^growth_service of the process that forked: its thread is not in the child");
  EXPECT_EQ(service->failure(), nullptr) << "in the parent";
}

TEST_F(HeapForkDeathTest, AGaugeLeavesItsPageToTheParent) {
  heap const used{1_MiB};
  ASSERT_EQ(served_by(used), 256u);
  std::optional<published_gauge<default_allocator>> published{std::in_place, used, "forked",
                                                              std::chrono::milliseconds{1}};
  EXPECT_EXIT(in_child(used,
                       [&] {
                         std::fputs(test::message_of<std::logic_error>([&] { published->publish(); }).c_str(), stderr);
                         if (!published->failure()) _exit(2);
                         published.reset();
                       }),
              ExitedWithCode(42), "^published_gauge of the process that forked: its thread is not in the child");
  EXPECT_EQ(published->failure(), nullptr) << "in the parent";
  EXPECT_EQ(published->publish().live_blocks, 0u);
}

}  // namespace heap_fork_test
