// SPDX-License-Identifier: Apache-2.0
// A traced heap: every call of a kernel has its record, in an order that a program can have, with
// the lanes that called together. Recorders that lose records or number them in a wrong order are
// found out.
#include "warpheap/adaptor/trace.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "support/schedules.hpp"
#include "warpheap/warpheap.hpp"

namespace trace_test {

using namespace warpheap;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr size_t one_mib = size_t{1} << 20;
constexpr traced_config few_records{.most_records = 4096};
using traced_heap = traced<heap, few_records>;

static_assert(sizeof(traced_heap::ref_type) == 32);
static_assert(traced_heap::ref_type::traits.detects_misuse && traced_heap::ref_type::traits.exact_out_of_memory);

/// The kinds of a trace's records in their order.
std::vector<call_kind> kinds_of(call_trace const& trace) {
  std::vector<call_kind> kinds;
  kinds.reserve(trace.calls.size());
  for (auto const& call : trace.calls) kinds.push_back(call.kind);
  return kinds;
}

/// Kernel: one call of each kind by thread 37 of thread block 1.
struct call_each {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap) const {
    if (simt::block_index() != 1 || simt::thread_index() != 37) return;
    void* const block = heap.malloc(20);
    void* const zeroed = heap.calloc(3, 10);
    void* const aligned = heap.aligned_alloc(512, 40);
    void* const moved = heap.realloc(block, 20, 3000);
    void* const made = heap.realloc(nullptr, 0, 50);
    heap.realloc(made, 50, 0);
    heap.free(moved);
    heap.free(aligned);
    heap.free(zeroed);
    heap.free(nullptr);
    heap.malloc(0);
    heap.malloc(~size_t{0} / 2);
    heap.calloc(~size_t{0} / 2, 3);
    heap.aligned_alloc(3, 10);
  }
};

TEST(Traced, RecordsEachCallWithItsSizeItsPlaceAndItsBlock) {
  traced_heap const heap{one_mib};
  launch({2, 64}, call_each{}, heap.ref());
  synchronize();
  auto const trace = heap.trace();
  using enum call_kind;
  EXPECT_THAT(kinds_of(trace),
              ElementsAre(kernel, malloc, calloc, aligned_alloc, realloc, malloc, free, free, free, free, malloc));
  auto const& calls = trace.calls;
  for (auto const& call : calls) {
    if (!call.is_call()) continue;
    EXPECT_EQ(call.thread, 37u);
    EXPECT_EQ(call.thread_block, 1u);
    EXPECT_TRUE(call.first);
    EXPECT_EQ(call.refused, &call == &calls.back());
  }
  EXPECT_EQ(calls[1].bytes, 20u);
  EXPECT_EQ(calls[2].bytes, 30u);
  EXPECT_EQ(calls[3].bytes, 40u);
  EXPECT_EQ(calls[3].log2_alignment, 9u);
  EXPECT_EQ(calls[4].bytes, 3000u);
  EXPECT_EQ(calls[4].block, 1u);
  EXPECT_EQ(calls[5].bytes, 50u);
  EXPECT_EQ(calls[6].block, 5u);
  EXPECT_EQ(calls[7].block, 4u);
  EXPECT_EQ(calls[8].block, 3u);
  EXPECT_EQ(calls[9].block, 2u);
  EXPECT_EQ(trace.lost + trace.unmatched_frees + trace.unseen_frees, 0u);
  EXPECT_EQ(trace.pool_bytes, heap.pool_bytes());
  EXPECT_EQ(fault_of(trace), "");
}

/// Kernel: every thread of the grid asks.
struct ask {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap, void** blocks) const {
    blocks[global_thread_index()] = heap.malloc(16 + global_thread_index());
  }
};
/// Kernel: every thread frees the block of another one.
struct give_back {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap, void* const* blocks, u64 count) const {
    heap.free(blocks[(global_thread_index() + 1) % count]);
  }
};

TEST(Traced, TellsKernelsApart) {
  test::for_each_schedule(4, [] {
    traced_heap const heap{one_mib};
    device_buffer<void*> const blocks(100);
    for (u32 i = 0; i < 2; ++i) {
      launch({2, 50}, ask{}, heap.ref(), blocks.data());
      launch({2, 50}, give_back{}, heap.ref(), blocks.data(), u64{100});
    }
    synchronize();
    auto const trace = heap.trace();
    ASSERT_EQ(trace.calls.size(), 404u);
    for (size_t i = 0; i < trace.calls.size(); ++i) {
      auto const& call = trace.calls[i];
      EXPECT_EQ(call.kind == call_kind::kernel, i % 101 == 0) << i;
      if (call.kind != call_kind::free) continue;
      // of the thread behind the one that asked, which shows in the size
      u64 const freer = u64{call.thread_block} * 50 + call.thread;
      EXPECT_EQ(trace.calls[call.block].bytes, 16 + (freer + 1) % 100);
    }
  });
}

TEST(Traced, KeepsTheLanesTogetherThatCallTogether) {
  traced_heap const heap{one_mib};
  constexpr u32 threads = warp_lanes + 18;
  device_buffer<void*> const blocks(2 * threads);
#if !defined(__CUDACC__)
  auto run = test::schedule_of(0);
  run.masks = host::mask_policy::maximal;
  host::scoped_execution const use{run};
#endif
  launch({2, threads}, ask{}, heap.ref(), blocks.data());
  synchronize();
  u32 groups = 0;
  for (auto const& call : heap.trace().calls) groups += call.is_call() && call.first;
  EXPECT_GE(groups, 4u);
  EXPECT_LE(groups, test::on_gpu ? 20u : 4u) << "a GPU may part lanes within malloc";
}

TEST(Traced, SaysHowManyRecordsItHadNoRoomFor) {
  constexpr traced_config two{.most_records = 150};
  traced<warpheap::heap, two> heap{one_mib};
  device_buffer<void*> const blocks(100);
  launch({2, 50}, ask{}, heap.ref(), blocks.data());
  launch({2, 50}, give_back{}, heap.ref(), blocks.data(), u64{100});
  synchronize();
  auto const trace = heap.trace();
  EXPECT_EQ(trace.lost, 50u);
  EXPECT_EQ(trace.calls.size(), 152u);
  EXPECT_EQ(fault_of(trace), "") << "the beginning of a trace is one";
  heap.forget();
  EXPECT_THAT(heap.trace().calls, IsEmpty());
}

TEST(Traced, CountsFreesOfBlocksThatItDoesNotHave) {
  traced_heap heap{one_mib};
  device_buffer<void*> const blocks(10);
  launch({1, 10}, ask{}, heap.ref(), blocks.data());
  heap.forget();
  launch({1, 10}, give_back{}, heap.ref(), blocks.data(), u64{10});
  synchronize();
  EXPECT_EQ(heap.trace().unmatched_frees, 10u);
  EXPECT_THAT(heap.trace().calls, IsEmpty());
  EXPECT_EQ(heap.statistics().live_blocks, 0u);
}

TEST(Traced, EndsAllBlocksWhereTheHeapWasReset) {
  traced_heap heap{one_mib};
  device_buffer<void*> const blocks(10);
  for (u32 i = 0; i < 2; ++i) {
    launch({1, 10}, ask{}, heap.ref(), blocks.data());
    heap.reset();
  }
  synchronize();
  auto const trace = heap.trace();
  EXPECT_EQ(trace.calls[11].kind, call_kind::reset);
  EXPECT_EQ(trace.calls.size(), 24u);
  EXPECT_EQ(trace.unseen_frees, 0u) << "the same addresses came again";
  EXPECT_EQ(heap.statistics().live_blocks, 0u);
}

/// Kernel: blocks go from thread to thread through mailboxes, and each is freed or moved by the
/// thread that takes it out. A block's size is its thread's number and 16, until it is moved.
struct pass_blocks {
  static constexpr u32 boxes = 4;

  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap, void** mailbox, u32 rounds) const {
    u64 const me = global_thread_index();
    for (u32 round = 0; round < rounds; ++round) {
      void* const made = heap.malloc(16 + me);
      // relaxed: a pointer may come to the thread that frees it in any way.
      void* const taken = atomic_ref<void*>{mailbox[(me + round) % boxes]}.exchange(made, order::relaxed);
      bool const moves = taken && round % 3 == 1;
      void* const moved = moves ? heap.realloc(taken, 16, 16 + me) : nullptr;
      heap.free(moves ? moved : taken);
    }
  }
};

constexpr u32 rounds = 3, threads = 80;

/// Runs pass_blocks, with `Ref` around the recorder's.
template <template <class> class Ref>
call_trace traced_passing() {
  traced_heap const heap{one_mib};
  device_buffer<void*> const mailbox(pass_blocks::boxes);
  launch({2, threads / 2}, pass_blocks{}, Ref<traced_heap::ref_type>{heap.ref()}, mailbox.data(), rounds);
  synchronize();
  return heap.trace();
}

/// What is wrong with a trace of pass_blocks; empty if nothing is.
std::string fault_of_passing(call_trace const& trace) {
  if (auto const fault = fault_of(trace); !fault.empty()) return fault;
  if (trace.lost || trace.unmatched_frees || trace.unseen_frees) return "calls do not fit";
  u64 asked = 0, ended = 0;
  for (auto const& call : trace.calls) {
    asked += call.kind == call_kind::malloc;
    ended += call.kind == call_kind::free;
    if (call.asks() && call.bytes != 16 + u64{call.thread_block} * (threads / 2) + call.thread) return "wrong size";
  }
  if (asked != u64{rounds} * threads) return "a malloc has no record";
  if (ended != asked - pass_blocks::boxes) return "a free has no record";
  return {};
}

template <class Ref>
struct as_it_is : Ref {
  WARPHEAP_HOST_DEVICE explicit as_it_is(Ref ref) : Ref{ref} {}
};
/// Broken: the block is the heap's again before its free has a ticket (trace.T2).
template <class Ref>
struct frees_first : as_it_is<Ref> {
  using as_it_is<Ref>::as_it_is;
  WARPHEAP_DEVICE void free(void* memory) const {
    this->upstream().free(memory);
    if (memory) this->log().add(call_kind::free, 0, memory);
  }
};
/// Broken: a free by every seventh thread has no record.
template <class Ref>
struct loses_frees : as_it_is<Ref> {
  using as_it_is<Ref>::as_it_is;
  WARPHEAP_DEVICE void free(void* memory) const {
    if (global_thread_index() % 7 == 0) this->upstream().free(memory);
    else as_it_is<Ref>::free(memory);
  }
};
/// Broken: so has a malloc.
template <class Ref>
struct loses_mallocs : as_it_is<Ref> {
  using as_it_is<Ref>::as_it_is;
  WARPHEAP_DEVICE void* malloc(size_t bytes) const {
    return global_thread_index() % 7 == 0 ? this->upstream().malloc(bytes) : as_it_is<Ref>::malloc(bytes);
  }
};

/// Kernel: every thread asks for so much that only few are served, and frees it.
struct take_turns {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap) const {
    for (u32 round = 0; round < 4; ++round) heap.free(heap.malloc(200'000));
  }
};

/// Runs take_turns in the same way. Addresses come again at once.
template <template <class> class Ref>
call_trace traced_turns() {
  traced_heap const heap{one_mib};
  launch({4, 20}, take_turns{}, Ref<traced_heap::ref_type>{heap.ref()});
  synchronize();
  return heap.trace();
}

/// Whether every free is of the block that the same thread was given last.
bool are_turns_sound(call_trace const& trace) {
  bool sound = trace.lost + trace.unmatched_frees + trace.unseen_frees == 0 && fault_of(trace).empty();
  for (auto const& call : trace.calls) {
    auto const& made = trace.calls[call.block];
    sound &= call.kind != call_kind::free || (made.thread == call.thread && made.thread_block == call.thread_block);
  }
  return sound;
}

// trace.T1, trace.T3
TEST(Traced, HasAllCallsInAnOrderThatTheProgramCanHaveMadeThem) {
  test::for_each_schedule(48, [] { EXPECT_EQ(fault_of_passing(traced_passing<as_it_is>()), ""); });
  test::for_each_schedule(48, [] { EXPECT_TRUE(are_turns_sound(traced_turns<as_it_is>())); });
}

#if !defined(__CUDACC__)
template <template <class> class Ref>
bool is_loss_caught() {
  return test::find_failing_schedule(48, [] { return fault_of_passing(traced_passing<Ref>()).empty(); }).has_value();
}

TEST(Traced, MutantsThatLoseOrMisplaceRecordsAreCaught) {
  EXPECT_TRUE(test::find_failing_schedule(48, [] { return are_turns_sound(traced_turns<frees_first>()); }));
  EXPECT_TRUE(is_loss_caught<loses_frees>());
  EXPECT_TRUE(is_loss_caught<loses_mallocs>());
}
#endif

/// Kernel: every member, once each.
struct question_all {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap, u32* good) const {
    auto* const block = static_cast<u8*>(heap.malloc_warp(full_mask, 100));
    bool const known = heap.owns(block) && heap.contains(block) && heap.usable_size(block) >= 100;
    bool const counts = heap.available_slots(100) > 0 && heap.available_slots_warp(full_mask, 100) > 0;
    auto* const moved = heap.realloc(block, 5000);
    heap.free(moved);
    if (known && counts && moved) atomic_ref<u32>{*good}.fetch_add(1, order::relaxed);
  }
};

TEST(Traced, HasTheMembersOfTheHeapBelow) {
  traced_heap const heap{one_mib};
  device_buffer<u32> const good(1);
  launch({1, 32}, question_all{}, heap.ref(), good.data());
  synchronize();
  EXPECT_EQ(good[0], 32u);
  EXPECT_EQ(heap.trace().calls.size(), 1 + 3 * 32u);
  EXPECT_EQ(fault_of(heap.trace()), "");
  EXPECT_EQ(heap.statistics().live_blocks, 0u);
  EXPECT_THAT(heap.check_invariants(), IsEmpty());
  EXPECT_GT(heap.available_slots(100), 0u);
  EXPECT_GT(heap.metadata_bytes(), heap.upstream().metadata_bytes() + 24 * few_records.most_records);
  EXPECT_EQ(heap.info().find("traced; creation slab_bitmap"), 0u);
}

/// Kernel: grows its block beyond the pool.
struct grow_too_much {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap) const {
    void* const block = heap.malloc(100);
    heap.realloc(block, 100, size_t{1} << 30);
    heap.free(block);
  }
};

TEST(Traced, KnowsThatARefusedReallocLeavesTheBlock) {
  traced_heap const heap{one_mib};
  launch({1, 1}, grow_too_much{}, heap.ref());
  synchronize();
  auto const trace = heap.trace();
  using enum call_kind;
  ASSERT_THAT(kinds_of(trace), ElementsAre(kernel, malloc, realloc, free));
  EXPECT_TRUE(trace.calls[2].refused);
  EXPECT_EQ(trace.calls[3].block, 1u);
  EXPECT_EQ(trace.unmatched_frees, 0u);
}

}  // namespace trace_test
