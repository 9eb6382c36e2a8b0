// SPDX-License-Identifier: Apache-2.0
// Mutants of append_buffer: a step of the protocol left out is seen by the test that guards it.
// And the buffer itself in every schedule of two and three lanes.
#include <gtest/gtest.h>

#include "container/append_buffer.hpp"
#include "support/explorations.hpp"
#include "support/schedules.hpp"
#include "warpheap/warpheap.hpp"

namespace {

using namespace warpheap;
using namespace warpheap::literals;
using append_parts::no_faults;
using test::appending;
using test::entry;
using test::find_failing_schedule;
using test::orders_owners;
using test::refusing_heap;

// append.A2: the page is published, and what its last owner did is not.
struct publishes_relaxed : no_faults {
  static constexpr order publishes = order::relaxed;
};
struct finds_relaxed : no_faults {
  static constexpr order finds = order::relaxed;
};
// append.A2: a page has two threads that make it.
struct elects_two : no_faults {
  static constexpr u32 elected = 2;
};
// append.A3: a page is made though the one before it is refused.
struct skips_the_page_before : no_faults {
  static constexpr bool waits_for_the_page_before = false;
};

template <class Faults>
using mutant = append_buffer<entry, append_buffer_config{.first_page = 2}, Faults>;

/// Steps after which a mutant that hangs is stopped.
constexpr u64 most_steps = 2'000'000;

/// Whether buffers are right, and all pages are freed, where call `refused` of malloc gets none.
template <class Faults>
bool survives_refusal(launch_shape shape, u32 refused) {
  heap const memory{1_MiB};
  device_buffer<u32> const calls(1);
  refusing_heap<heap_ref> const refusing{memory.ref(), calls.data(), refused, refused + 1};
  appending<mutant<Faults>> round{1, shape};
  bool const right = round.fault_of_round(refusing).empty();
  round.destroy_all(memory.ref());
  return right && memory.statistics().live_blocks == 0;
}

template <class Faults>
bool survives_refusals() {
  for (u32 const refused : {1u, 3u, 1000u})
    if (!survives_refusal<Faults>({3, 5}, refused)) return false;
  return true;
}

TEST(AppendBufferMutants, TheBufferItselfSurvives) {
  EXPECT_FALSE(find_failing_schedule(400, orders_owners<mutant<no_faults>>));
  EXPECT_FALSE(find_failing_schedule(400, survives_refusals<no_faults>));
}
TEST(AppendBufferMutants, APagePublishedWithoutReleaseIsNoticed) {
  EXPECT_TRUE(find_failing_schedule(400, orders_owners<mutant<publishes_relaxed>>, most_steps));
}
TEST(AppendBufferMutants, APageFoundWithoutAcquireIsNoticed) {
  EXPECT_TRUE(find_failing_schedule(400, orders_owners<mutant<finds_relaxed>>, most_steps));
}
TEST(AppendBufferMutants, APageMadeByTwoThreadsIsNoticed) {
  EXPECT_TRUE(find_failing_schedule(400, survives_refusals<elects_two>, most_steps));
}
TEST(AppendBufferMutants, APageBehindARefusedOneIsNoticed) {
  EXPECT_TRUE(find_failing_schedule(400, survives_refusals<skips_the_page_before>, most_steps));
}

/// A heap of few steps: pieces of one array, one after the other. Call `refused` gets none.
struct array_heap {
  u8* memory;
  u32* calls;
  u32 refused;

  void* malloc(size_t) const {
    u32 const number = atomic_ref<u32>{*calls}.fetch_add(1, order::relaxed);
    return number == refused ? nullptr : memory + 256 * number;
  }
  void free(void*) const {}
};

struct append_numbers {
  template <class Buffer>
  void operator()(array_heap heap, Buffer* to, u32 each, u32* served) const {
    for (u32 i = 0; i < each; ++i)
      if (to->append(heap, entry::of(global_thread_index() * each + i)))
        atomic_ref<u32>{*served}.fetch_add(1, order::relaxed);
  }
};

/// Whether lanes of `shape` that append `each` numbers leave what they should: numbers of their
/// own, as many as were served, and pages that were requested once. Pages have 1, 1, 2, 2, ...
/// elements.
template <class Faults>
bool appends_right(launch_shape shape, u32 each, u32 refused) {
  using one_a_page = append_buffer<entry, append_buffer_config{.first_page = 1}, Faults>;
  u64 const appended = u64{shape.blocks} * shape.threads * each;
  device_buffer<one_a_page> const to(1);
  device_buffer<u8> const memory(16 * 256);
  device_buffer<u32> const calls(1), served(1);
  launch(shape, append_numbers{}, array_heap{memory.data(), calls.data(), refused}, to.data(), each, served.data());
  auto const end = to[0];
  u32 const wanted = one_a_page::layout::place_of(static_cast<u32>(appended - 1)).page + 1;
  if (end.size() + end.dropped() != appended || end.size() != served[0]) return false;
  if (calls[0] != std::min(wanted, refused + 1)) return false;
  u64 seen = 0;
  for (entry const& found : to_host(to.data())) {
    if (!found.is_right() || found.number >= appended || seen >> found.number & 1) return false;
    seen |= u64{1} << found.number;
  }
  return true;
}

TEST(ExploredAppendBuffer, IsRightInEverySchedule) {
  for (auto const masks : {host::mask_policy::maximal, host::mask_policy::singleton})
    for (auto const shape : {launch_shape{2, 1}, {1, 2}, {3, 1}, {1, 3}})
      for (u32 const refused : {0u, 1u, 1000u}) {
        u32 const lanes = shape.blocks * shape.threads;
        test::expect_every_schedule_right(
            "append buffer, " + std::to_string(shape.blocks) + " x " + std::to_string(shape.threads) +
                " lanes, masks " + host::detail::name_of(masks) + ", refused " + std::to_string(refused),
            {lanes == 2 ? 3u : 1u, lanes == 2 ? 4u : 2u}, [&] { return appends_right<no_faults>(shape, 2, refused); },
            masks);
      }
}

TEST(ExploredAppendBuffer, MutantsFailInSomeSchedule) {
  test::expect_some_schedule_wrong("two elected", 2, [] { return appends_right<elects_two>({3, 1}, 2, 1000); });
  test::expect_some_schedule_wrong("page before skipped", 2, [] {
    return appends_right<skips_the_page_before>({3, 1}, 2, 1);
  });
}

}  // namespace
