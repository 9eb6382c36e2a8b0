// SPDX-License-Identifier: Apache-2.0
// A lane that overflows its stack is noticed, and harms no other lane, however far its frame
// reaches. Where there are more lanes than guards without access, a lane that switches below its
// stack is named, and so is one that has overwritten the lowest word when it ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include "support/message_of.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace warpheap { namespace {

using testing::HasSubstr;

/// More lanes at a time than the 16,384 whose guard faults.
constexpr launch_shape most_lanes{20, 1024};
constexpr host::execution all_resident{.mode = host::execution_mode::deterministic,
                                       .policy = host::schedule_policy::round_robin,
                                       .sm_count = most_lanes.blocks,
                                       .blocks_per_sm = 1};

struct count_each {
  void operator()(u32* counter) const { atomic_ref<u32>{*counter}.fetch_add(1, order::relaxed); }
};

/// Thread 5 of one thread block stores at an offset from the lowest byte of its stack, as an
/// overflow does on its way.
struct store_on_stack {
  void operator()(u32 block, i64 offset, u32* guarded) const {
    if (simt::block_index() != block || simt::thread_index() != 5) return;
    auto const& stack = *host::detail::this_lane().stack;
    *guarded = stack.guarded;
    *reinterpret_cast<u64 volatile*>(stack.bottom + offset) = 1;
  }
};

/// As thread 5 of `block`, touches the far end of a frame that is three times a lane's stack, and
/// may switch there. Every other lane keeps locals meanwhile, and counts itself if they change.
struct have_a_large_frame {
  static constexpr u32 frame_bytes = 3 * 64 * 1024;

  [[gnu::noinline]] static void reach_far(u32 me, u32* counter) {
    u8 volatile room[frame_bytes];
    room[0] = static_cast<u8>(me);
    if (counter) atomic_ref<u32>{*counter}.fetch_add(room[0], order::relaxed);
  }
  void operator()(u32 block, u32* counter, u32* wrong) const {
    u32 const me = static_cast<u32>(global_thread_index());
    u32 volatile locals[500];
    for (auto& each : locals) each = me;
    simt::sync_block();
    if (simt::block_index() == block && simt::thread_index() == 5) reach_far(me, counter);
    simt::sync_block();
    u32 changed = 0;
    for (auto& each : locals) changed += each != me;
    if (changed) atomic_ref<u32>{*wrong}.fetch_add(1, order::relaxed);
  }
};

struct recurse {
  [[gnu::noinline]] static u32 depth(u32 frames) {
    u8 volatile room[1024];
    room[0] = 1;
    return frames == 0 ? 0 : depth(frames - 1) + room[0];
  }
  void operator()(u32 frames, u32* reached) const { reached[simt::thread_index()] = depth(frames); }
};

template <class... Arguments>
std::string message_of_launch(Arguments... arguments) {
  return test::message_of<backend_error>([&] { launch(arguments...); });
}

constexpr char const* overflow_of_5 =
    "thread block 19 thread 5 (warp 0 lane 5) overflowed its stack of 65536 bytes: raise "
    "host::execution::stack_bytes\n";

/// 65,536 bytes under sanitizers too, whose default is more.
host::execution all_with_64_kib() {
  auto how = all_resident;
  how.stack_bytes = 64 * 1024;
  return how;
}

class ManyStacks : public testing::Test {
 protected:
  void SetUp() override {
    if (host::detail::under_tsan) GTEST_SKIP() << "ThreadSanitizer allows 8,000 lanes";
  }
  device_buffer<u32> guarded{1}, counter{1}, wrong{1};
};

// host.S2
TEST_F(ManyStacks, AnOverflowIsSeenWhenTheLaneEnds) {
  host::scoped_execution const use{all_with_64_kib()};
  EXPECT_THAT(message_of_launch(most_lanes, store_on_stack{}, most_lanes.blocks - 1, i64{0}, guarded.data()),
              HasSubstr(overflow_of_5));
  EXPECT_EQ(guarded[0], 0u);
  // the backend works, and blames no other lane for what that lane left
  launch(most_lanes, count_each{}, counter.data());
  EXPECT_EQ(counter[0], most_lanes.blocks * most_lanes.threads);
}

TEST_F(ManyStacks, ALargeFrameHarmsNoOtherLane) {
  host::scoped_execution const use{all_with_64_kib()};
  u32* const no_switch = nullptr;
  launch(most_lanes, have_a_large_frame{}, most_lanes.blocks - 1, no_switch, wrong.data());
  EXPECT_EQ(wrong[0], 0u);
}

TEST_F(ManyStacks, ALaneThatSwitchesBelowItsStackIsNamed) {
  host::scoped_execution const use{all_with_64_kib()};
  EXPECT_THAT(message_of_launch(most_lanes, have_a_large_frame{}, most_lanes.blocks - 1, counter.data(), wrong.data()),
              HasSubstr(overflow_of_5));
  launch(most_lanes, count_each{}, counter.data());
}

TEST(Stack, UsingAllOfAGuardedStackIsNoOverflow) {
  device_buffer<u32> guarded(1);
  launch({1, 32}, store_on_stack{}, 0u, i64{0}, guarded.data());
  EXPECT_EQ(guarded[0], 1u);
}

TEST(Stack, HasTheSizeThatIsSet) {
  device_buffer<u32> reached(32);
  for (u64 const kibibytes : {4096, 1024, 2048}) {
    host::scoped_execution const use{{.stack_bytes = kibibytes * 1024}};
    launch({1, 32}, recurse{}, static_cast<u32>(kibibytes / 2), reached.data());
    EXPECT_EQ(reached[31], kibibytes / 2);
  }
  launch({1, 32}, recurse{}, 20u, reached.data());
  EXPECT_EQ(reached[31], 20u);
}

TEST(Stack, SizesThatCannotBeAreRefused) {
  for (u64 const bytes : {u64{100}, u64{1} << 40}) {
    host::scoped_execution const use{{.stack_bytes = bytes}};
    EXPECT_EQ(message_of_launch(launch_shape{1, 1}, recurse{}, 0u, static_cast<u32*>(nullptr)),
              "execution: stack_bytes of " + std::to_string(bytes) + ": 16384 to 1073741824 are possible");
  }
}

TEST(Stack, ASizeThatWasSetIsPartOfWhatReplaysARun) {
  EXPECT_THAT(host::describe({.stack_bytes = 1 << 20}), testing::EndsWith(", stacks of 1048576 bytes"));
  EXPECT_THAT(host::describe({}), testing::Not(HasSubstr("stacks")));
}

class StackDeathTest : public testing::Test {
 protected:
  void SetUp() override {
    if (host::detail::under_asan || host::detail::under_tsan) GTEST_SKIP() << "a sanitizer takes the signal";
    testing::FLAGS_gtest_death_test_style = "threadsafe";
  }
  device_buffer<u32> words{1};
};

// host.S1
TEST_F(StackDeathTest, AnOverflowIntoTheGuardFaults) {
  auto const last = -static_cast<i64>(host::detail::guard_bytes());
  for (i64 const offset : {i64{-8}, last}) {
    EXPECT_EXIT(launch({1, 32}, store_on_stack{}, 0u, offset, words.data()), testing::KilledBySignal(SIGSEGV),
                HasSubstr("overflowed its stack"));
  }
}

TEST_F(StackDeathTest, ALargeFrameIsCalledAnOverflow) {
  EXPECT_EXIT(launch({1, 32}, have_a_large_frame{}, 0u, static_cast<u32*>(nullptr), words.data()),
              testing::KilledBySignal(SIGSEGV),
              HasSubstr("thread block 0 thread 5 (warp 0 lane 5) overflowed its stack of 65536 bytes: raise "
                        "host::execution::stack_bytes\n"));
}

}}  // namespace warpheap
