// SPDX-License-Identifier: Apache-2.0
// A heap that is a static object of this file. Built twice. In one build this is the first file of
// a program whose files are device programs of their own, so the static objects of the others,
// which register their device code, are made later. In the other, with -rdc=true, it is the last
// file, beside files that know nothing of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "early_heap.hpp"
#include "kernels.hpp"
#include "warpheap/heap/override.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace override_test { namespace {

using namespace warpheap;
using testing::Each;
using testing::HasSubstr;

constexpr u32 threads = 1000;
constexpr char const* pool_variable = "WARPHEAP_TEST_POOL_BYTES";

override_heap static_heap{std::getenv(pool_variable) ? std::strtoull(std::getenv(pool_variable), nullptr, 10)
                                                     : size_t{64} << 20};

TEST(StaticHeap, ServesFilesWhoseStaticObjectsAreMadeLater) {
  device_buffer<node*> const lists(threads);
  device_buffer<u32> const sums(threads);
  ASSERT_EQ(build_lists(threads, lists.data(), 10), cudaSuccess);
  EXPECT_EQ(static_heap.heap().statistics().live_blocks, 10 * threads);
  ASSERT_EQ(sum_and_free_lists(threads, lists.data(), sums.data()), cudaSuccess);
  EXPECT_THAT(sums.to_host(), Each(45u));
  EXPECT_EQ(static_heap.heap().statistics().live_blocks, 0u);
  EXPECT_EQ(static_heap.heap().statistics().foreign_frees, 0u);
}

#if defined(__CUDACC_RDC__)
TEST(StaticHeap, SaysThatItsFileIsLinkedTooEarly) {
  EXPECT_THAT(early_answer, testing::AllOf(HasSubstr("early_heap.cpp cannot be given its heap"),
                                           HasSubstr("link the file with the heap last")));
}
#endif

TEST(StaticHeap, EndsTheProgramWithItsReasonWhenItCannotBeMade) {
  EXPECT_EXIT(
      {
        setenv(pool_variable, "1", 1);
        execl("/proc/self/exe", "static_test", nullptr);
      },
      testing::KilledBySignal(SIGABRT), "heap of 1 bytes: the least is 1048576");
}

// The last test: a reset frees all memory on the device. The heap is destroyed when the program
// ends.
TEST(StaticHeap, OutlivesAResetOfTheDevice) {
  {
    device_buffer<node*> const lists(threads);
    ASSERT_EQ(build_lists(threads, lists.data(), 1), cudaSuccess);
  }
  EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
}

}}  // namespace override_test
