// SPDX-License-Identifier: Apache-2.0
// Calls refused one by one, on every path of a heap: a thread that gets nullptr keeps its blocks,
// no other thread notices, and nothing is lost.
#include "warpheap/policy/creation/refuse_some.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/schedules.hpp"
#include "warpheap/adaptor/checked.hpp"
#include "warpheap/all.hpp"
#include "warpheap/heap/bound_heap.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace refuse_some_test {

using namespace warpheap;
using namespace warpheap::literals;
using testing::HasSubstr;
using testing::IsEmpty;

inline constexpr creation::refuse_some_config a_third{.seed = 5, .one_in = 3};
inline constexpr creation::refuse_some_config after_ten{.seed = 2, .one_in = 2, .served_first = 10};
inline constexpr creation::refuse_some_config everything{.one_in = 1};

template <class Creation>
using refusing = creation::refuse_some<Creation, a_third>;
using slabs = creation::slab_bitmap<>;

template <class Creation, class Distribution = distribution::none, class Oom = oom::return_null>
using over = allocator<Creation, Distribution, Oom, reserve_pool::device_memory, alignment::shrink<16>>;

static_assert(!refusing<slabs>::traits.exact_out_of_memory && !refusing<slabs>::traits.one_pass_refusals);
static_assert(!refusing<slabs>::traits.whole_pool && refusing<slabs>::traits.detects_misuse);
static_assert(refusing<slabs>::traits.self_aligned_up_to == slabs::traits.self_aligned_up_to);
static_assert(sizeof(refusing<slabs>) == sizeof(slabs) + 8);
static_assert(takes_snapshots<refusing<slabs>> && counts_slots_in_parts<refusing<slabs>>);
static_assert(creates_aligned<refusing<slabs>> && creates_by_warp<refusing<slabs>>);

struct ask_in_turn {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, void** blocks, u64 calls) const {
    for (u64 i = 0; i < calls; ++i) {
      if (i % 3 == 0) heap.malloc(0);  // has no number
      blocks[i] = heap.malloc(100);
    }
  }
};

template <class Allocator>
std::vector<void*> ask(basic_heap<Allocator> const& heap, u64 calls) {
  device_buffer<void*> const blocks(calls);
  launch({1, 1}, ask_in_turn{}, heap.ref(), blocks.data(), calls);
  synchronize();
  return blocks.to_host();
}

TEST(RefuseSome, RefusesTheCallsThatTheSeedSays) {
  basic_heap<over<creation::refuse_some<slabs, after_ten>>> heap{1_MiB};
  u64 refused = 0;
  for (u32 time = 0; time < 2; ++time) {
    auto const blocks = ask(heap, 200);
    refused = 0;
    for (u64 i = 0; i < blocks.size(); ++i) {
      EXPECT_EQ(blocks[i] == nullptr, after_ten.refuses(i)) << i;
      EXPECT_TRUE(blocks[i] || i >= 10);
      refused += blocks[i] == nullptr;
    }
    EXPECT_EQ(heap.ref().creation().calls(), 200u);
    EXPECT_EQ(heap.ref().creation().refusals(), refused);
    EXPECT_EQ(heap.statistics().live_blocks, 200 - refused);
    heap.reset();  // which begins the schedule anew
    synchronize();
    EXPECT_EQ(heap.ref().creation().calls(), 0u);
  }
  EXPECT_NEAR(static_cast<double>(refused), 95, 25);
}

TEST(RefuseSome, RefusesEverythingIfItIsToldTo) {
  basic_heap<over<creation::refuse_some<slabs, everything>>> const heap{1_MiB};
  EXPECT_THAT(ask(heap, 50), testing::Each(nullptr));
  EXPECT_EQ(heap.available_slots(16384), 64u);
}

TEST(RefuseSome, TellsItsConfigurationAndThatOfThePolicyBelow) {
  basic_heap<over<refusing<slabs>>> const heap{1_MiB};
  EXPECT_THAT(heap.info(), HasSubstr("creation refuse_some<seed 5, one_in 3, served_first 0> over slab_bitmap<"));
  EXPECT_THAT((basic_heap<over<slabs>>{1_MiB}.info()), testing::Not(HasSubstr("over")));
}

/// What the threads of live_on saw.
struct seen {
  u64 nulls = 0;   ///< calls that returned nullptr
  u64 stayed = 0;  ///< refused too: realloc whose block would have moved, and has room
  u64 served = 0;  ///< calls that did not
  u64 kept = 0;    ///< of these nullptr, those of realloc whose block stayed as it was
  u64 broken = 0;  ///< blocks without their contents, zeroes or alignment
};

/// Every thread makes calls of all kinds, on three blocks of its own, and frees all at the end.
struct live_on {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 rounds, u64 most, u64 seed, seen* total) const {
    u64 const me = global_thread_index();
    random_sequence random{seed ^ mix(me + 1)};
    void* blocks[3] = {};
    u64 bytes[3] = {};
    seen mine;
    for (u64 round = 0; round < rounds; ++round) {
      u32 const i = random.below(3), what = random.below(6);
      u64 const wanted = 1 + random.below(static_cast<u32>(most));
      if (blocks[i] && what < 3) {
        bool const moves = would_move(heap, blocks[i], wanted);
        void* const moved = heap.realloc(blocks[i], bytes[i], wanted);
        note(mine, moved);
        mine.stayed += moves && moved == blocks[i];
        u64 const kept = moved && wanted < bytes[i] ? wanted : bytes[i];
        mine.broken += !stands(moved ? moved : blocks[i], kept, me + i);
        if (!moved) {
          ++mine.kept;
          continue;
        }
        blocks[i] = moved;
      } else {
        mine.broken += blocks[i] && !stands(blocks[i], bytes[i], me + i);
        heap.free(blocks[i]);
        blocks[i] = take(heap, what, wanted, mine);
        note(mine, blocks[i]);
      }
      bytes[i] = wanted;
      if (blocks[i]) write(blocks[i], wanted, me + i);
    }
    for (u32 i = 0; i < 3; ++i) {
      mine.broken += blocks[i] && !stands(blocks[i], bytes[i], me + i);
      heap.free(blocks[i]);
    }
    add(total->nulls, mine.nulls);
    add(total->stayed, mine.stayed);
    add(total->served, mine.served);
    add(total->kept, mine.kept);
    add(total->broken, mine.broken);
  }

 private:
  template <class Heap>
  WARPHEAP_DEVICE static void* take(Heap heap, u32 what, u64 bytes, seen& mine) {
    if (what == 0) return heap.malloc(bytes);
    if (what == 1) {
      auto* const zeroed = static_cast<u8*>(heap.calloc(1, bytes));
      u8 any = 0;
      for (u64 i = 0; zeroed && i < bytes; ++i) any |= zeroed[i];
      mine.broken += any != 0;
      return zeroed;
    }
    if constexpr (requires { heap.aligned_alloc(size_t{64}, bytes); })
      if (what == 2) {
        void* const aligned = heap.aligned_alloc(64, bytes);
        mine.broken += reinterpret_cast<u64>(aligned) % 64 != 0;
        return aligned;
      }
    if constexpr (requires { heap.malloc_warp(u32{1}, bytes); })
      if (what < 5) {
        u32 const mask = simt::active_mask();
        return heap.malloc_warp(mask, bytes);
      }
    return heap.malloc(bytes);
  }

  WARPHEAP_DEVICE static void note(seen& mine, void const* result) { ++(result ? mine.served : mine.nulls); }
  WARPHEAP_DEVICE static void add(u64& sum, u64 part) { atomic_ref<u64>{sum}.fetch_add(part, order::relaxed); }

  /// Whether a smaller block serves `wanted` bytes, for which realloc asks.
  template <class Heap>
  WARPHEAP_DEVICE static bool would_move(Heap const& heap, void const* block, u64 wanted) {
    if constexpr (requires { heap.usable_size(block); }) {
      u64 const room = heap.usable_size(block);
      return wanted <= room / 2 && room > Heap::traits.alignment;
    } else {
      return false;
    }
  }

  WARPHEAP_DEVICE static void write(void* block, u64 bytes, u64 tag) {
    for (u64 i = 0; i < bytes; ++i) static_cast<u8*>(block)[i] = static_cast<u8>(mix(tag) + i);
  }
  WARPHEAP_DEVICE static bool stands(void const* block, u64 bytes, u64 tag) {
    bool intact = true;
    for (u64 i = 0; i < bytes; ++i) intact &= static_cast<u8 const*>(block)[i] == static_cast<u8>(mix(tag) + i);
    return intact;
  }
};

/// Runs live_on under many schedules on a heap that has room for all; `judge(heap, seen)` says what
/// else must hold. Nothing is broken, lost or taken for misuse, whatever is refused.
template <class Heap, class Judge>
void expect_no_harm(u32 schedules, u64 most, Judge judge) {
  seen all;
  test::for_each_schedule(schedules, [&] {
    Heap const heap{most <= 1000 ? 4_MiB : 64_MiB};
    device_buffer<seen> const found(1);
    launch({3, 40}, live_on{}, heap.ref(), u64{6}, most, test::schedule_seed(), found.data());
    synchronize();
    seen const now = found[0];
    EXPECT_EQ(now.broken, 0u);
    auto const counts = heap.statistics();
    EXPECT_EQ(counts.live_blocks, 0u);
    EXPECT_EQ(counts.double_frees + counts.foreign_frees, 0u);
    EXPECT_THAT(heap.check_invariants(), IsEmpty());
    judge(heap, now);
    all.nulls += now.nulls;
    all.kept += now.kept;
    all.served += now.served;
  });
  EXPECT_GT(all.served, 0u);
}

/// Where nothing stands between the caller and the policy, each refusal is a call's nullptr, or
/// that of a realloc to a size that the block has room for.
template <class Allocator>
void expect_each_refusal_to_be_one_nullptr(u32 schedules = 12, u64 most = 700) {
  u64 kept = 0;
  expect_no_harm<basic_heap<Allocator>>(schedules, most, [&](auto const& heap, seen const& now) {
    EXPECT_GT(now.nulls, 0u);
    EXPECT_EQ(now.nulls + now.stayed, heap.ref().creation().refusals());
    kept += now.kept + now.stayed;
  });
  EXPECT_GT(kept, 0u) << "realloc was never refused";
}

TEST(RefuseSome, DoesNoHarmWithSlabBitmap) { expect_each_refusal_to_be_one_nullptr<over<refusing<slabs>>>(); }
TEST(RefuseSome, DoesNoHarmWithRunsOfSlabs) { expect_each_refusal_to_be_one_nullptr<over<refusing<slabs>>>(4, 40'000); }
TEST(RefuseSome, DoesNoHarmWithHalloc) {
  expect_each_refusal_to_be_one_nullptr<finely_aligned_allocator<refusing<creation::halloc<>>>>();
}
TEST(RefuseSome, DoesNoHarmWithScatter) {
  expect_each_refusal_to_be_one_nullptr<over<refusing<creation::scatter<>>>>();
}
TEST(RefuseSome, DoesNoHarmWithThroughput) {
  expect_each_refusal_to_be_one_nullptr<over<refusing<creation::throughput<>>>>();
}
TEST(RefuseSome, DoesNoHarmWithTBuddy) {
  expect_each_refusal_to_be_one_nullptr<over<refusing<creation::tbuddy<>>>>(4, 20'000);
}
TEST(RefuseSome, DoesNoHarmWithRingBuffer) {
  expect_each_refusal_to_be_one_nullptr<over<refusing<creation::ring_buffer<>>>>();
}
TEST(RefuseSome, DoesNoHarmWithTheWalks) {
  expect_each_refusal_to_be_one_nullptr<over<refusing<creation::random_walk<walk_together>>>>();
  expect_each_refusal_to_be_one_nullptr<over<refusing<creation::rw_malloc<>>>>();
}

// What is refused to lanes together is asked again by each of them, so fewer calls fail.
TEST(RefuseSome, DoesNoHarmToCombinedRequests) {
  u64 nulls = 0, refusals = 0;
  expect_no_harm<basic_heap<over<refusing<slabs>, distribution::warp_coalesce>>>(
      25, 700, [&](auto const& heap, seen const& now) {
        nulls += now.nulls;
        refusals += heap.ref().creation().refusals();
      });
  EXPECT_GT(nulls, 0u);
  EXPECT_GT(refusals, nulls) << "no group of lanes was refused";
}

using second = over<slabs>;
using refusing_second = over<creation::refuse_some<slabs, creation::refuse_some_config{.seed = 9, .one_in = 2}>>;

TEST(RefuseSome, LeadsToTheSecondHeap) {
  expect_no_harm<basic_heap<over<refusing<slabs>, distribution::none, oom::overflow_to<second>>>>(
      20, 700, [](auto const& heap, seen const& now) {
        EXPECT_EQ(now.nulls, 0u);
        EXPECT_GT(heap.ref().creation().refusals(), 0u);
        EXPECT_EQ(heap.statistics().failures, 0u);
      });
}

TEST(RefuseSome, FailsCallsThatBothHeapsRefuse) {
  expect_no_harm<basic_heap<over<refusing<slabs>, distribution::none, oom::overflow_to<refusing_second>>>>(
      20, 700, [](auto const& heap, seen const& now) {
        EXPECT_GT(now.nulls, 0u);
        EXPECT_EQ(now.nulls + now.stayed, heap.statistics().failures);
        EXPECT_EQ(now.nulls + now.stayed, heap.second().ref().creation().refusals());
      });
}

TEST(RefuseSome, DoesNoHarmToCombinedRequestsInFrontOfASecondHeap) {
  expect_no_harm<basic_heap<over<refusing<slabs>, distribution::warp_coalesce, oom::overflow_to<refusing_second>>>>(
      20, 700, [](auto const& heap, seen const&) { EXPECT_GT(heap.ref().creation().refusals(), 0u); });
}

TEST(RefuseSome, DoesNoHarmToACheckedHeap) {
  u64 nulls = 0;
  expect_no_harm<checked<basic_heap<over<refusing<slabs>>>, checked_config{.prints_at_end = false}>>(
      5, 300, [&](auto const& heap, seen const& now) {
        EXPECT_EQ(heap.error_count(), 0u);
        EXPECT_THAT(heap.check_blocks(), IsEmpty());
        EXPECT_THAT(heap.leaks(), IsEmpty());
        nulls += now.nulls;
      });
  EXPECT_GT(nulls, 0u);
}

/// One block's life in a heap behind malloc and new: every call may be refused, and a null block is
/// passed on as it is.
struct live_behind_new {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(bound_heap<Heap> heap, u64* nulls) const {
    void* const blocks[] = {heap.malloc(24), heap.calloc(3, 8), heap.aligned_alloc(256, 8), heap.make(0),
                            heap.make(8, 128)};
    for (void* const block : blocks) {
      void* const grown = heap.realloc(block, 300);
      atomic_ref<u64>{*nulls}.fetch_add(u64{block == nullptr} + (grown == nullptr), order::relaxed);
      heap.free(grown ? grown : block);
    }
  }
};

TEST(RefuseSome, AnswersNullBehindMallocAndNew) {
  test::for_each_schedule(20, [] {
    using allocator_type = over<refusing<slabs>>;
    basic_heap<allocator_type> const heap{1_MiB};
    device_buffer<u64> const nulls(1);
    launch({2, 40}, live_behind_new{}, bound_heap<allocator_type>{heap.ref()}, nulls.data());
    synchronize();
    EXPECT_GT(nulls[0], 0u);
    EXPECT_EQ(nulls[0], heap.ref().creation().refusals());
    EXPECT_EQ(heap.statistics().live_blocks, 0u);
    EXPECT_EQ(heap.statistics().foreign_frees, 0u);
  });
}

#if !defined(__CUDACC__)
struct ask_once {
  template <class Heap>
  void operator()(Heap heap) const {
    heap.free(heap.malloc(64));
  }
};

// On a GPU nothing would run after that.
TEST(RefuseSome, EndsTheKernelThroughTrap) {
  using served = creation::refuse_some<slabs, creation::refuse_some_config{.one_in = 1, .served_first = 64}>;
  basic_heap<over<served, distribution::none, oom::trap>> const heap{1_MiB};
  launch({2, 32}, ask_once{}, heap.ref());
  EXPECT_THROW(launch({1, 1}, ask_once{}, heap.ref()), host::trap_error);
}
#endif

}  // namespace refuse_some_test
