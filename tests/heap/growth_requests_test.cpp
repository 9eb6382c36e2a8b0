// SPDX-License-Identifier: Apache-2.0
// Calls that ask for memory: the sum of what they lacked reaches the host, and what the host maps
// reaches them, between kernels and while they run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

#include "support/schedules.hpp"
#include "warpheap/all.hpp"
#include "warpheap/heap/c_functions.hpp"
#include "warpheap/heap/growing_heap.hpp"
#include "warpheap/heap/growth_service.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace growth_requests_test {

using namespace warpheap;
using namespace warpheap::literals;

static_assert(sizeof(polled_allocator) == 24 && sizeof(waiting_allocator) == 24);

size_t const granule = reserve_pool::growing::granularity();

/// Kernel: every thread asks once, and writes its number to its block.
struct take_each {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 bytes, u64** blocks) const {
    u64 const me = global_thread_index();
    u64* const block = static_cast<u64*>(heap.malloc(bytes));
    if (block) *block = me;
    blocks[me] = block;
  }
};

/// Kernel: counts the threads whose block does not hold their number, and frees the blocks.
struct verify_and_free {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64* const* blocks, u64* wrong) const {
    u64 const me = global_thread_index();
    u64* const block = blocks[me];
    if (block && *block != me) atomic_ref<u64>{*wrong}.fetch_add(1, order::relaxed);
    heap.free(block);
  }
};

template <class Heap>
u64 take(Heap const& heap, launch_shape shape, u64 bytes, device_buffer<u64*> const& blocks) {
  backend::fill_bytes(blocks.data(), 0, blocks.size() * sizeof(u64*));
  launch(shape, take_each{}, heap.ref(), bytes, blocks.data());
  synchronize();
  auto all = blocks.to_host();
  std::erase(all, nullptr);
  EXPECT_EQ(std::set<u64*>(all.begin(), all.end()).size(), all.size());
  return all.size();
}

template <class Heap>
void give_back(Heap const& heap, launch_shape shape, device_buffer<u64*> const& blocks) {
  device_buffer<u64> const wrong(1);
  launch(shape, verify_and_free{}, heap.ref(), blocks.data(), wrong.data());
  synchronize();
  EXPECT_EQ(wrong[0], 0u);
  EXPECT_EQ(heap.statistics().live_blocks, 0u);
  EXPECT_THAT(heap.check_invariants(), testing::IsEmpty());
}

constexpr launch_shape shape{16, 64};
constexpr u64 threads = 16 * 64, block_bytes = 16384;  // 16 MiB in all

TEST(PolledHeap, GrowsByWhatWasRefused) {
  polled_heap heap{growth{.initial = 0, .limit = 64 * granule, .chunk = granule}};
  device_buffer<u64*> const blocks(threads);
  EXPECT_EQ(heap.poll(), 0u);
  EXPECT_EQ(take(heap, shape, block_bytes, blocks), 0u);
  EXPECT_EQ(heap.poll(), threads * block_bytes) << "one sum of all that was refused";
  EXPECT_EQ(heap.poll(), 0u) << "nothing was requested since";
  EXPECT_EQ(take(heap, shape, block_bytes, blocks), threads);
  EXPECT_EQ(heap.poll(), 0u);
  give_back(heap, shape, blocks);
  EXPECT_EQ(heap.trim(), threads * block_bytes);
}

/// Kernel: every thread asks for one block, again and again.
struct ask_in_vain {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 bytes, u32 tries) const {
    for (u32 i = 0; i < tries; ++i)
      if (heap.malloc(bytes)) return;
  }
};

// growth.G4
TEST(PolledHeap, GrowsByWhatWasRefusedAtOneTimeHoweverOftenItWasTried) {
  for (auto const threads : {launch_shape{1, 1}, launch_shape{1, 32}, launch_shape{3, 40}}) {
    u64 const lanes = u64{threads.blocks} * threads.threads, bytes = granule / 4;
    u64 const chunks = (lanes + 3) / 4;
    polled_heap heap{growth{.initial = 0, .limit = 512 * granule, .chunk = granule}};
    for (u32 kernel = 1; kernel <= 3; ++kernel) {
      launch(threads, ask_in_vain{}, heap.ref(), bytes, 200u);
      synchronize();
      EXPECT_EQ(heap.requested_bytes(), kernel * 200 * lanes * bytes) << "each try by itself";
    }
    EXPECT_EQ(heap.poll(), chunks * granule) << lanes << " threads";
    EXPECT_EQ(heap.poll(), 0u);
    launch(threads, ask_in_vain{}, heap.ref(), bytes, 200u);
    synchronize();
    EXPECT_EQ(heap.statistics().live_blocks, lanes);
  }
}

// What contending threads lacked earlier says nothing of a thread that tries again later.
TEST(PolledHeap, ForgetsWhatWasRefusedBeforeItGrewOrWasTrimmed) {
  for (bool const trims : {false, true}) {
    polled_heap heap{growth{.initial = 0, .limit = 256 * granule, .chunk = granule}};
    launch(shape, ask_in_vain{}, heap.ref(), block_bytes, 1u);
    synchronize();
    EXPECT_EQ(heap.poll(), threads * block_bytes);
    launch({1, 1}, ask_in_vain{}, heap.ref(), threads * block_bytes, 1u);
    if (trims) {  // the threads are refused at the limit, where poll() maps nothing
      heap.grow(256 * granule);
      launch({1, 1}, ask_in_vain{}, heap.ref(), 256 * granule - threads * block_bytes, 1u);
      launch(shape, ask_in_vain{}, heap.ref(), granule, 1u);
      synchronize();
      EXPECT_EQ(heap.poll(), 0u);
      heap.reset();
      EXPECT_EQ(heap.trim(), 256 * granule);
    }
    launch({1, 1}, ask_in_vain{}, heap.ref(), granule, 200u);
    synchronize();
    EXPECT_EQ(heap.poll(), granule) << trims;
  }
}

TEST(PolledHeap, IsFullAtItsLimitAndSaysNothingWrong) {
  polled_heap heap{growth{.initial = 0, .limit = 2 * granule, .chunk = granule}};
  device_buffer<u64*> const blocks(threads);
  EXPECT_EQ(take(heap, shape, block_bytes, blocks), 0u);
  EXPECT_EQ(heap.poll(), 2 * granule);
  EXPECT_EQ(take(heap, shape, block_bytes, blocks), 2 * granule / block_bytes);
  EXPECT_EQ(heap.poll(), 0u);
  give_back(heap, shape, blocks);
  EXPECT_EQ(take(heap, {1, 32}, block_bytes, blocks), 32u);
}

TEST(PolledHeap, ServesAKernelWithoutAPollAfterGrow) {
  polled_heap heap{growth{.initial = granule, .limit = 8 * granule, .chunk = granule}};
  device_buffer<u64*> const blocks(threads);
  EXPECT_EQ(heap.grow(7 * granule), 7 * granule);
  EXPECT_EQ(take(heap, shape, block_bytes, blocks), 8 * granule / block_bytes);
  EXPECT_EQ(heap.committed_bytes(), 8 * granule);
  give_back(heap, shape, blocks);
}

TEST(PolledHeap, PostsWhatGrowthCanServe) {
  polled_heap heap{growth{.initial = granule, .limit = 4 * granule, .chunk = granule}};
  device_buffer<u64*> const blocks(threads);
  EXPECT_EQ(take(heap, shape, 0, blocks), 0u);
  EXPECT_EQ(heap.poll(), 0u) << "no bytes were asked for";
  for (u64 const bytes : {~u64{0}, ~u64{0} - 7, u64{1} << 40, u64{4 * granule + 1}})
    EXPECT_EQ(take(heap, {1, 1}, bytes, blocks), 0u);
  EXPECT_EQ(heap.requested_bytes(), 0u);
  EXPECT_EQ(heap.statistics().failures, 4u);
  EXPECT_EQ(heap.poll(), 0u) << "no growth would help these";
  EXPECT_EQ(take(heap, {1, 1}, 4 * granule, blocks), 0u);
  EXPECT_EQ(heap.poll(), 3 * granule);
  EXPECT_EQ(take(heap, {1, 1}, 4 * granule, blocks), 1u);
}

/// Kernel: every thread asks by a handle, in code that was compiled for `Allocator`.
template <class Allocator>
struct take_by_handle {
  WARPHEAP_DEVICE void operator()(u64 handle, u64 bytes, u64** blocks) const {
    take_each{}(ref_of<Allocator>(handle), bytes, blocks);
  }
};

TEST(PolledHeap, ServesCodeOfTheDefaultAllocatorWhichPostsNothing) {
  polled_heap heap{growth{.initial = granule, .limit = 64 * granule, .chunk = granule}};
  device_buffer<u64*> const blocks(threads);
  launch(shape, take_by_handle<default_allocator>{}, heap.handle(), block_bytes, blocks.data());
  synchronize();
  auto const got = blocks.to_host();
  EXPECT_EQ(got.size() - std::count(got.begin(), got.end(), nullptr), granule / block_bytes);
  EXPECT_EQ(heap.requested_bytes(), 0u);
  give_back(heap, shape, blocks);
  launch(shape, take_by_handle<polled_allocator>{}, heap.handle(), block_bytes, blocks.data());
  synchronize();
  EXPECT_EQ(heap.poll(), threads * block_bytes - granule);
}

// As long as a busy machine may need.
constexpr oom::grow_on_demand_config wait_a_minute{.deadline_us = 60'000'000};
using patient_heap = basic_heap<growing_allocator_with<oom::grow_on_demand<wait_a_minute>>>;

TEST(WaitingHeap, IsServedWhileItsKernelRuns) {
  patient_heap heap{growth{.initial = 0, .limit = 64 * granule, .chunk = granule}};
  growth_service const service{heap};
  device_buffer<u64*> const blocks(threads);
  for (u32 round = 0; round < 5; ++round) {
    EXPECT_EQ(take(heap, shape, block_bytes, blocks), threads);
    EXPECT_GE(heap.committed_bytes(), threads * block_bytes);
    give_back(heap, shape, blocks);
    EXPECT_GE(heap.trim(), threads * block_bytes);
    EXPECT_EQ(heap.committed_bytes(), 0u);
  }
  EXPECT_EQ(service.failure(), nullptr);
}

// growth.G3
TEST(WaitingHeap, GetsNullSoonWhereThereIsNoMore) {
  patient_heap heap{growth{.initial = granule, .limit = 2 * granule, .chunk = granule}};
  growth_service const service{heap};
  device_buffer<u64*> const blocks(threads);
  auto const began = std::chrono::steady_clock::now();
  EXPECT_EQ(take(heap, shape, block_bytes, blocks), 2 * granule / block_bytes);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds{30});
  give_back(heap, shape, blocks);
  EXPECT_EQ(take(heap, {1, 64}, block_bytes, blocks), 64u);
}

TEST(WaitingHeap, GetsNullAtItsDeadlineWithoutAService) {
  waiting_heap heap{growth{.initial = granule, .limit = 4 * granule, .chunk = granule}};
  device_buffer<u64*> const blocks(threads);
  auto const began = std::chrono::steady_clock::now();
  EXPECT_EQ(take(heap, {1, 64}, granule, blocks), 1u);
  auto const took = std::chrono::steady_clock::now() - began;
  EXPECT_GE(took, std::chrono::milliseconds{wait_20_ms.deadline_us / 1000});
  EXPECT_LT(took, std::chrono::seconds{20});
  EXPECT_EQ(heap.poll(), 3 * granule) << "the requests are still there for the host";
  EXPECT_EQ(take(heap, {1, 2}, granule, blocks), 2u);
}

TEST(WaitingHeap, FindsBlocksThatWereFreedMeanwhile) {
  patient_heap heap{growth{.initial = granule, .limit = granule, .chunk = granule}};
  device_buffer<u64*> const blocks(threads), others(threads);
  EXPECT_EQ(take(heap, {1, 1}, granule, blocks), 1u);
  stream const ours, theirs;
  device_buffer<u64> const wrong(1);
  launch(ours, {1, 1}, take_each{}, heap.ref(), granule, others.data());
  launch(theirs, {1, 1}, verify_and_free{}, heap.ref(), blocks.data(), wrong.data());
  synchronize();
  EXPECT_EQ(wrong[0], 0u);
  EXPECT_NE(others[0], nullptr);
}

// growth.G2
TEST(PolledHeap, UsesAndTrimsWhatAServiceHasMapped) {
  polled_heap heap{growth{.initial = 0, .limit = 64 * granule, .chunk = granule}};
  device_buffer<u64*> const blocks(threads);
  for (bool const trims : {true, false}) {
    EXPECT_EQ(take(heap, shape, block_bytes, blocks), 0u);
    EXPECT_EQ(heap.serve(), threads * block_bytes);
    EXPECT_EQ(heap.available_slots(block_bytes), 0u) << "no call and no kernel has added it";
    EXPECT_EQ(trims ? heap.trim() : heap.poll(), trims ? threads * block_bytes : 0);
  }
  EXPECT_EQ(heap.available_slots(block_bytes), threads);
  EXPECT_THAT(heap.check_invariants(), testing::IsEmpty());
}

TEST(PolledHeap, HearsOfEveryRefusal) {
  test::for_each_schedule(300, [&] {
    polled_heap heap{growth{.initial = 0, .limit = 4 * granule, .chunk = granule}};
    constexpr launch_shape few{3, 20};
    device_buffer<u64*> const blocks(60);
    for (u64 const round : {1, 2, 3}) {
      EXPECT_EQ(take(heap, few, granule, blocks), 0u);
      EXPECT_EQ(heap.requested_bytes(), round * 60 * granule);
    }
    EXPECT_EQ(heap.poll(), 4 * granule) << "all that there is";
    EXPECT_EQ(take(heap, few, granule, blocks), 4u);
  });
}

/// A pool that is never larger.
struct no_pool {
  WARPHEAP_DEVICE void add_committed(u64, u64) const {}
};

/// Kernel: each thread is refused once, the first for much, the others for little.
struct be_refused {
  WARPHEAP_DEVICE void operator()(growth_state* state, u64 much, u64 little) const {
    oom::grow_on_demand<> const policy{state};
    u64 const bytes = global_thread_index() == 0 ? much : little;
    auto mine = policy.begin(bytes);
    policy.more_may_be_there(mine, bytes, no_pool{});
  }
};

TEST(GrowOnDemand, TellsOfTheLargestRefusalWhicheverThreadTells) {
  test::for_each_schedule(2000, [&] {
    auto const words = reserve_pool::growing::share(growth_word::count);
    device_buffer<growth_state> const state(
        std::vector<growth_state>{first_growth_state(u64{1} << 30, 0, words.device())});
    launch({2, 1}, be_refused{}, state.data(), u64{1} << 20, u64{16});
    synchronize();
    ASSERT_EQ(words.load(growth_word::unmet), (u64{1} << 20) + 16);
    EXPECT_EQ(words.load(growth_word::at_once), u64{2} << 20);
  });
}

// A call that took what grow() has mapped for news would be tried again.
TEST(PolledHeap, CountsARefusedCallOnceAlsoAfterGrow) {
  test::for_each_schedule(60, [&] {
    polled_heap heap{growth{.initial = 0, .limit = 4 * granule, .chunk = granule}};
    constexpr launch_shape few{3, 20};
    device_buffer<u64*> const blocks(60);
    for (u64 const round : {1, 2, 3}) {
      heap.grow(granule);
      EXPECT_EQ(take(heap, few, 4 * granule, blocks), 0u);
      EXPECT_EQ(heap.requested_bytes(), round * 60 * 4 * granule);
      EXPECT_EQ(heap.statistics().failures, round * 60);
    }
  });
}

#if !defined(__CUDACC__)
/// Kernel: one lane is the service, for a number of looks.
struct serve_as_a_lane {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap* heap, u32 looks) const {
    for (u32 i = 0; i < looks; ++i) {
      heap->serve();
      simt::pause(2000);
    }
  }
};

/// Kernel: one lane is the service until it has mapped memory, and says how much that was.
struct serve_once {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap* heap, u64* mapped) const {
    while ((*mapped = heap->serve()) == 0) simt::pause(2000);
  }
};

TEST(PolledHeap, IsServedWithAllThatACallLackedAlsoWhileItsKernelRuns) {
  test::for_each_schedule(300, [&] {
    polled_heap heap{growth{.initial = 0, .limit = 8 * granule, .chunk = granule}};
    device_buffer<u64> const mapped(1);
    stream const ours, theirs;
    launch(ours, {1, 1}, ask_in_vain{}, heap.ref(), 5 * granule, 1u);
    launch(theirs, {1, 1}, serve_once{}, &heap, mapped.data());
    synchronize();
    EXPECT_EQ(mapped[0], 5 * granule);
  });
}

TEST(PolledHeap, CountsARefusedCallOnceAlsoWhileMemoryComes) {
  test::for_each_schedule(60, [&] {
    polled_heap heap{growth{.initial = 0, .limit = 4 * granule, .chunk = granule}};
    constexpr launch_shape few{3, 20};
    device_buffer<u64*> const blocks(60);
    stream const ours, theirs;
    launch(ours, few, take_each{}, heap.ref(), 3 * granule, blocks.data());
    launch(theirs, {1, 1}, serve_as_a_lane{}, &heap, 40u);
    synchronize();
    EXPECT_LE(heap.requested_bytes(), 60 * 3 * granule);
    EXPECT_GE(heap.requested_bytes(), 59 * 3 * granule);
  });
}

template <class Creation>
class WaitingHeapOf : public testing::Test {};
using policies_that_grow =
    testing::Types<creation::slab_bitmap<>, creation::tbuddy<>, creation::halloc<>, creation::throughput<>>;
class policy_names {
 public:
  template <class Creation>
  static std::string GetName(int) {  // NOLINT(readability-identifier-naming): GoogleTest calls it
    return Creation::name;
  }
};
TYPED_TEST_SUITE(WaitingHeapOf, policies_that_grow, policy_names);

// Seeded schedules of request, map and deadline. A pool of two parts: the second is there for some
// and comes too late for others.
TYPED_TEST(WaitingHeapOf, ServesOrRefusesUnderEverySchedule) {
  using heap_type = basic_heap<growing_allocator_with<oom::grow_on_demand<wait_20_ms>, TypeParam>>;
  u64 served = 0, refused = 0;
  test::for_each_schedule(150, [&] {
    heap_type heap{growth{.initial = 0, .limit = 2 * granule, .chunk = granule}};
    launch_shape const few{3, 20};
    device_buffer<u64*> const blocks(60);
    stream const ours, theirs;
    launch(ours, few, take_each{}, heap.ref(), granule / 16, blocks.data());
    launch(theirs, {1, 1}, serve_as_a_lane{}, &heap, test::schedule_seed() % 3 == 0 ? 1u : 40u);
    synchronize();
    auto all = blocks.to_host();
    std::erase(all, nullptr);
    EXPECT_EQ(std::set<u64*>(all.begin(), all.end()).size(), all.size());
    EXPECT_LE(all.size(), 32u);
    served += all.size();
    refused += 60 - all.size();
    EXPECT_EQ(heap.statistics().live_blocks, all.size());
    EXPECT_THAT(heap.check_invariants(), testing::IsEmpty());
    give_back(heap, few, blocks);
    heap.grow(2 * granule);
    heap.poll();  // what calls had left
    synchronize();
    EXPECT_EQ(heap.available_slots(granule / 16), 32u);
  });
  EXPECT_GT(served, 0u);
  EXPECT_GT(refused, 0u);
}

// The host refuses what was asked beyond the limit while lanes still make blocks of the last
// memory. Calls that believed it at once got nullptr beside free blocks.
TYPED_TEST(WaitingHeapOf, RefusesNobodyWhileMemoryComesIn) {
  using heap_type = basic_heap<growing_allocator_with<oom::grow_on_demand<wait_a_minute>, TypeParam>>;
  test::for_each_schedule(300, [&] {
    auto roomy = host::current_execution();  // the service runs beside all that wait for it
    roomy.sm_count = 8;
    roomy.blocks_per_sm = 4;
    host::scoped_execution const use{roomy};
    heap_type heap{growth{.initial = 0, .limit = 2 * granule, .chunk = granule}};
    launch_shape const few{4, 7};
    device_buffer<u64*> const blocks(28);
    stream const ours, theirs;
    launch(ours, few, take_each{}, heap.ref(), granule / 16, blocks.data());
    launch(theirs, {1, 1}, serve_as_a_lane{}, &heap, 300u);
    synchronize();
    auto const all = blocks.to_host();
    EXPECT_EQ(std::count(all.begin(), all.end(), nullptr), 0);
    give_back(heap, few, blocks);
  });
}
#endif

}  // namespace growth_requests_test
