// SPDX-License-Identifier: Apache-2.0
// All schedules of a few lanes in an arena, up to two preemptions.
#include <gtest/gtest.h>

#include "warpheap/container/arena.hpp"
#include "warpheap/explore/exploration.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/warpheap.hpp"

namespace arena_schedules_test {

using namespace warpheap;
using namespace warpheap::literals;

using tiny = arena<32>;

/// A heap that hands out the pieces of an array, and nothing when they are gone.
struct pieces_heap {
  u64* next;
  u8* memory;
  u64 bytes;

  WARPHEAP_DEVICE void* malloc(size_t wanted) const {
    u64 const at = atomic_ref<u64>{*next}.fetch_add(wanted, order::relaxed);
    return at + wanted <= bytes ? memory + at : nullptr;
  }
  WARPHEAP_DEVICE void free(void*) const {}
};

struct take_blocks {
  WARPHEAP_DEVICE void operator()(pieces_heap heap, tiny* state, u64* got) const {
    arena_ref const from{heap, *state};
    u64 const mine = global_thread_index();
    for (u32 i = 0; i < 2; ++i) {
      auto* const memory = static_cast<u64*>(from.malloc(16));
      if (memory) *memory = 1 + 2 * mine + i;
      got[2 * mine + i] = reinterpret_cast<u64>(memory);
    }
  }
};

/// What is wrong after `shape.blocks` lanes took two blocks each from a heap of `bytes` bytes, or
/// "".
std::string fault_of(launch_shape shape, u64 bytes, u64 least) {
  device_buffer<tiny> const state(1);
  device_buffer<u64> const next(1), got(2 * u64{shape.blocks} * shape.threads);
  device_buffer<u8> const memory(bytes);
  launch(shape, take_blocks{}, pieces_heap{next.data(), memory.data(), bytes}, state.data(), got.data());
  synchronize();
  u64 served = 0;
  for (u64 i = 0; i < got.size(); ++i) {
    if (got[i] == 0) continue;
    ++served;
    if (*reinterpret_cast<u64 const*>(got[i]) != 1 + i) return "a block has two owners";
  }
  return served < least ? "too few blocks: " + std::to_string(served) : "";
}

// arena.A2, arena.A3
TEST(ArenaSchedules, ServeEachLane) {
  auto const found = explore::explore({.preemptions = 1}, [] { return fault_of({3, 1}, 1024, 6); });
  ASSERT_FALSE(found.fault) << found.fault->what;
  EXPECT_TRUE(found.ended);
}

TEST(ArenaSchedules, RefuseWhatTheHeapRefusesAndServeTheRest) {
  auto const found = explore::explore({.preemptions = 2}, [] { return fault_of({2, 1}, 64, 2); });
  ASSERT_FALSE(found.fault) << found.fault->what;
  EXPECT_TRUE(found.ended);
}

/// A heap that refuses everything, and counts how often it was asked.
struct full_heap {
  u64* asked;

  WARPHEAP_DEVICE void* malloc(size_t) const {
    atomic_ref<u64>{*asked}.fetch_add(1, order::relaxed);
    return nullptr;
  }
  WARPHEAP_DEVICE void free(void*) const {}
};

struct ask_once {
  WARPHEAP_DEVICE void operator()(full_heap heap, tiny* state) const { arena_ref{heap, *state}.malloc(16); }
};

TEST(ArenaSchedules, AskAFullHeapOnceForThreadsThatWaitTogether) {
  host::scoped_execution const run{{.mode = host::execution_mode::deterministic,
                                    .policy = host::schedule_policy::round_robin,
                                    .masks = host::mask_policy::maximal}};
  device_buffer<tiny> const state(1);
  device_buffer<u64> const asked(1);
  launch({8, warp_lanes}, ask_once{}, full_heap{asked.data()}, state.data());
  synchronize();
  EXPECT_GE(asked[0], 1u);
  EXPECT_LE(asked[0], 16u);
}

}  // namespace arena_schedules_test
