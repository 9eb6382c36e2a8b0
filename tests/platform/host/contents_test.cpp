// SPDX-License-Identifier: Apache-2.0
// Contents of blocks of memory: which lane owns one, and whether its last owner's accesses come
// before.
#include <gmock/gmock.h>

#include "support/message_of.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace contents_test {

using namespace warpheap;
using testing::AllOf;
using testing::HasSubstr;

/// ThreadSanitizer sees plain accesses itself.
class Contents : public testing::Test {
  void SetUp() override {
    if (host::detail::under_tsan) GTEST_SKIP();
  }
};

constexpr char const* none = "nothing thrown";

host::execution settings(u64 seed, bool weak_memory) {
  return {.mode = host::execution_mode::deterministic, .seed = seed, .weak_memory = weak_memory};
}

/// The message of the first of `seeds` runs that fails.
template <class Kernel>
std::string first_failure(launch_shape shape, Kernel kernel, bool weak_memory = true, u64 seeds = 300) {
  for (u64 seed = 0; seed < seeds; ++seed) {
    host::scoped_execution const use{settings(seed, weak_memory)};
    device_buffer<u64> memory(64);
    auto const message = test::message_of<host::schedule_error>([&] { launch(shape, kernel, memory.data()); });
    if (message != none) return message;
  }
  return none;
}

/// A heap of one block: memory[1] and the next seven words, guarded by memory[0].
template <order Take, order Give>
struct one_block_heap {
  void operator()(u64* memory) const {
    for (u32 round = 0; round < 4; ++round) {
      while (atomic_ref<u64>{memory[0]}.exchange(1, Take) != 0) simt::pause(1);
      contents::acquire(memory + 1, 64);
      memory[1] += 1;
      contents::release(memory + 1, 64);
      atomic_ref<u64>{memory[0]}.store(0, Give);
    }
  }
};

TEST_F(Contents, PassFromOwnerToOwnerByReleaseAndAcquire) {
  EXPECT_EQ(first_failure({3, 2}, one_block_heap<order::acquire, order::release>{}), none);
}

TEST_F(Contents, AreNotPassedByHalfOfThePair) {
  auto const raced = AllOf(HasSubstr("acquires 64 bytes of buffer"), HasSubstr("no order says that this comes after"),
                           HasSubstr("released 64 bytes"));
  EXPECT_THAT(first_failure({3, 2}, one_block_heap<order::relaxed, order::release>{}), raced);
  EXPECT_THAT(first_failure({3, 2}, one_block_heap<order::acquire, order::relaxed>{}), raced);
  // Interleaving alone has no orders.
  EXPECT_EQ(first_failure({3, 2}, one_block_heap<order::relaxed, order::relaxed>{}, false), none);
}

/// Both lanes take a block, and the blocks overlap.
struct overlapping_blocks {
  void operator()(u64* memory) const {
    if (simt::thread_index() == 1) simt::sync_block();
    contents::acquire(memory + 8 * simt::thread_index(), 128);
    if (simt::thread_index() == 0) simt::sync_block();
  }
};

TEST_F(Contents, HaveOneOwnerAtATime) {
  for (bool const weak_memory : {false, true}) {
    EXPECT_THAT(first_failure({1, 2}, overlapping_blocks{}, weak_memory),
                AllOf(HasSubstr("thread block 0 thread 1 at step 2 acquires 128 bytes of buffer"),
                      HasSubstr("but thread block 0 thread 0 at step "), HasSubstr("and not released it")));
  }
}

template <u32 AcquiredBytes, u32 Releases>
struct releases_of_one_lane {
  void operator()(u64* memory) const {
    if (AcquiredBytes) contents::acquire(memory, AcquiredBytes);
    for (u32 i = 0; i < Releases; ++i) contents::release(memory, 64);
  }
};

// host.R2
TEST_F(Contents, AreReleasedOnceAndAsAWhole) {
  EXPECT_EQ(first_failure({1, 1}, releases_of_one_lane<64, 1>{}), none);
  EXPECT_THAT(first_failure({1, 1}, releases_of_one_lane<0, 1>{}), HasSubstr("which no lane has acquired"));
  EXPECT_THAT(first_failure({1, 1}, releases_of_one_lane<64, 2>{}), HasSubstr("has released 64 bytes"));
  EXPECT_THAT(first_failure({1, 1}, releases_of_one_lane<128, 1>{}), HasSubstr("has acquired 128 bytes"));
}

/// Releases what an earlier kernel acquired, or the other way round.
struct one_half {
  bool acquires;
  void operator()(u64* memory) const {
    if (acquires) contents::acquire(memory, 64);
    else contents::release(memory, 64);
  }
};

TEST_F(Contents, StayOwnedFromKernelToKernel) {
  host::scoped_execution const use{settings(1, true)};
  device_buffer<u64> memory(64);
  launch({1, 1}, one_half{true}, memory.data());
  EXPECT_THROW(launch({1, 1}, one_half{true}, memory.data()), host::schedule_error);
  launch({1, 1}, one_half{false}, memory.data());
  launch({1, 1}, one_half{true}, memory.data());
}

TEST_F(Contents, AreForgottenWithTheirMemory) {
  host::scoped_execution const use{settings(1, true)};
  for (int i = 0; i < 20; ++i) {
    device_buffer<u64> const memory(64);
    launch({1, 1}, one_half{true}, memory.data());
  }
}

TEST_F(Contents, AreForgottenOnRequest) {
  host::scoped_execution const use{settings(1, true)};
  device_buffer<u64> const memory(64);
  launch({1, 1}, one_half{true}, memory.data());
  contents::forget(memory.data(), 64);
  launch({1, 1}, one_half{true}, memory.data());
}

TEST_F(Contents, AreNotSeenInParallelMode) {
  device_buffer<u64> const memory(64);
  launch({4, 32}, one_half{true}, memory.data());
  contents::acquire(memory.data(), 8);  // nor outside a kernel
  contents::acquire(memory.data(), 8);
}

/// Parts of a block get owners of their own, and one owner gets the parts of several.
struct splits_and_joins {
  void operator()(u64* memory) const {
    contents::acquire(memory, 256);
    contents::release(memory, 256);
    for (u32 i = 0; i < 4; ++i) contents::acquire(memory + 8 * i, 64);
    for (u32 i = 0; i < 4; ++i) contents::release(memory + 8 * i, 64);
    contents::acquire(memory + 4, 128);
    contents::acquire(memory, 32);
    contents::release(memory + 4, 128);
    contents::release(memory, 32);
    contents::acquire(memory, 256);
  }
};

// host.R1
TEST_F(Contents, MayBeDividedAnew) { EXPECT_EQ(first_failure({1, 1}, splits_and_joins{}), none); }

}  // namespace contents_test
