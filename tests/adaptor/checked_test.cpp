// SPDX-License-Identifier: Apache-2.0
// A checked heap: each error of a kernel is found once and described with its places. Correct
// kernels are not accused, and the quarantine costs no caller a block.
#include "warpheap/adaptor/checked.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "support/message_of.hpp"
#include "support/refusals.hpp"
#include "support/schedules.hpp"
#include "warpheap/all.hpp"

namespace checked_test {

using namespace warpheap;
using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;

using checked_heap = checked<heap>;
constexpr size_t one_mib = size_t{1} << 20;

constexpr allocator_traits upstream = heap_ref::traits, kept = checked_heap::ref_type::traits;
static_assert(kept.alignment == 16 && kept.self_aligned_up_to == 4096 && kept.multiples_aligned_up_to == 4096);
static_assert(kept.exact_out_of_memory && kept.one_pass_refusals && kept.detects_misuse);
static_assert(kept.largest_bytes == upstream.largest_bytes, "without a limit upstream there is none");
static_assert(sizeof(checked_heap::ref_type) == 24);

/// Few blocks in quarantine, so that threads meet there.
constexpr checked_config few_held{.quarantine_blocks = 4, .quarantine_bytes = 700};
using crowded_heap = checked<heap, few_held>;

/// The errors that a kernel makes: their names in the program, and what the text must say.
enum class bug : u32 {
  overrun,
  long_overrun,
  underrun,
  broken_header,
  write_after_free,
  double_free,
  inner_free,
  stray_free,
  host_free,
  realloc_of_freed
};

constexpr u32 line_of_malloc = __LINE__ + 6;
/// Kernel: thread 5 of thread block 1 makes one error with a block of 20 bytes.
struct make {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap, bug which) const {
    if (simt::block_index() != 1 || simt::thread_index() != 5) return;
    auto* const block = static_cast<u8*>(heap.malloc(20));
    u32 const far = which == bug::long_overrun ? 40 : 0, behind = which == bug::overrun ? 3 : far;
    for (u32 i = 0; i < behind; ++i) block[20 + i] = 1;
    if (which == bug::underrun) block[-4] = 1;
    for (int i = 17; which == bug::broken_header && i < 40; ++i) block[-i] = 1;
    if (which == bug::inner_free) heap.free(block + 8);
    if (which == bug::stray_free) heap.free(block + 4096);
    if (which == bug::host_free) heap.free(&heap.state());
    heap.free(block, "the end");
    if (which == bug::write_after_free) block[7] = block[9] = 1;
    if (which == bug::double_free) heap.free(block);
    if (which == bug::realloc_of_freed) block[0] = heap.realloc(block, 20, 30) ? 1 : block[0];
  }
};

/// The text of the one error that `make` makes, found by the kernel or by the host's check.
std::string text_of(bug which) {
  checked_heap const heap{one_mib};
  launch({2, 32}, make{}, heap.ref(), which);
  synchronize();
  auto const found = heap.check_blocks().size();
  auto const reports = heap.reports();
  EXPECT_EQ(reports.size(), 1u);
  EXPECT_EQ(heap.error_count(), 1u);
  EXPECT_EQ(found, which == bug::write_after_free ? 1u : 0u);
  EXPECT_TRUE(heap.check_blocks().empty()) << "reported once";
  return reports.empty() ? "" : reports[0].describe();
}

std::string const allocated =
    "allocated by thread 5 of thread block 1 at .*checked_test.cpp:" + std::to_string(line_of_malloc);
std::string const by_us = " by thread 5 of thread block 1 ";

TEST(Checked, FindsAnOverrunWhenTheBlockIsFreed) {
  EXPECT_THAT(text_of(bug::overrun), MatchesRegex("overrun by 3 bytes behind a block of 20 bytes at 0x[0-9a-f]+: " +
                                                  allocated + ", found in free" + by_us + "in the end"));
  EXPECT_THAT(text_of(bug::long_overrun), HasSubstr("overrun by at least 32 bytes behind a block of 20 bytes"));
}

TEST(Checked, FindsAnUnderrunWhenTheBlockIsFreed) {
  EXPECT_THAT(text_of(bug::underrun), MatchesRegex("underrun by 4 bytes before a block of 20 bytes at 0x[0-9a-f]+: " +
                                                   allocated + ", found in free" + by_us + "in the end"));
}

TEST(Checked, DoesNotBelieveAHeaderThatWasOverwritten) {
  EXPECT_THAT(
      text_of(bug::broken_header),
      MatchesRegex("the header was overwritten before a block at 0x[0-9a-f]+: found in free" + by_us + "in the end"));
}

TEST(Checked, FindsAWriteToAFreedBlock) {
  EXPECT_THAT(
      text_of(bug::write_after_free),
      MatchesRegex("use after free: 2 bytes from byte 7 on were written of a block of 20 bytes at 0x[0-9a-f]+: " +
                   allocated + ", freed" + by_us + "in the end, found by a check from the host"));
}

TEST(Checked, FindsFreesOfWhatIsNoLiveBlock) {
  EXPECT_THAT(text_of(bug::double_free),
              MatchesRegex("double free of a block of 20 bytes at 0x[0-9a-f]+: " + allocated + ", freed" + by_us +
                           "in the end, freed again" + by_us + "at .*checked_test.cpp:[0-9]+"));
  EXPECT_THAT(text_of(bug::realloc_of_freed), HasSubstr("double free of a block of 20 bytes"));
  EXPECT_THAT(text_of(bug::inner_free),
              MatchesRegex("free of an address 8 bytes into a block of 20 bytes at 0x[0-9a-f]+: " + allocated +
                           ", freed" + by_us + "at .*"));
  EXPECT_THAT(text_of(bug::stray_free), HasSubstr(", at which no block of this heap starts: freed" + by_us));
  EXPECT_THAT(text_of(bug::host_free), HasSubstr(", which lies outside of this heap: freed" + by_us));
}

/// Kernel: leaks in two places and by name, and frees the rest.
struct leak {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap) const {
    heap.malloc(10, "a library");
    if (simt::thread_index() < 2) heap.malloc(1000);
    heap.free(heap.malloc(500));
  }
};

TEST(Checked, ListsLeaksByPlaceThoseOfMostBytesFirst) {
  checked_heap heap{one_mib};
  launch({1, 40}, leak{}, heap.ref());
  synchronize();
  auto const leaks = heap.leaks();
  ASSERT_EQ(leaks.size(), 2u);
  EXPECT_THAT(leaks[0].describe(),
              MatchesRegex("2000 bytes leaked in 2 blocks of 1000 bytes: the first allocated by thread [01] of thread "
                           "block 0 at .*checked_test.cpp:[0-9]+"));
  EXPECT_THAT(leaks[1].describe(),
              HasSubstr("400 bytes leaked in 40 blocks of 10 bytes: the first allocated by thread "));
  EXPECT_THAT(leaks[1].describe(), HasSubstr(" in a library"));
  EXPECT_EQ(heap.statistics().live_blocks, 42u);
  EXPECT_EQ(heap.statistics().live_bytes, 2400u);
  heap.reset();
  synchronize();
  EXPECT_TRUE(heap.leaks().empty());
  EXPECT_EQ(heap.upstream().statistics().live_blocks, 0u);
  EXPECT_EQ(heap.error_count(), 0u);
}

constexpr checked_config one_report{.most_reports = 1};

TEST(Checked, CountsTheErrorsThatItHasNoRoomFor) {
  checked<heap, one_report> const heap{one_mib};
  for (u32 i = 0; i < 3; ++i) launch({2, 32}, make{}, heap.ref(), bug::overrun);
  synchronize();
  EXPECT_EQ(heap.reports().size(), 1u);
  EXPECT_EQ(heap.error_count(), 3u);
  EXPECT_EQ(heap.error_count(memory_error::overrun), 3u);
}

/// Kernel: every thread overruns a block, each by as much as its warp says. Two threads free theirs
/// twice.
struct err_together {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap) const {
    auto* const block = static_cast<u8*>(heap.malloc(20));
    for (u32 i = 0; i <= simt::warp_id(); ++i) block[20 + i] = 1;
    heap.free(block);
    if (simt::thread_index() == 7) heap.free(block);
  }
};

TEST(Checked, GroupsErrorsThatAreAlike) {
  checked_heap const heap{one_mib};
  launch({2, 64}, err_together{}, heap.ref());
  launch({2, 32}, make{}, heap.ref(), bug::overrun);
  synchronize();
  auto groups = heap.error_groups();
  ASSERT_EQ(groups.size(), 3u);
  std::stable_sort(groups.begin(), groups.end(), [](auto& a, auto& b) { return a.errors > b.errors; });
  EXPECT_EQ(groups[0].errors, 128u);
  EXPECT_EQ(groups[0].threads, 128u);
  EXPECT_THAT(groups[0].describe(), MatchesRegex("overrun by .*; 128 such errors of 128 threads"));
  EXPECT_EQ(groups[0].first.describe(), heap.reports()[0].describe());
  EXPECT_EQ(groups[1].first.kind, memory_error::double_free);
  EXPECT_EQ(groups[1].errors, 2u);
  EXPECT_EQ(groups[1].threads, 2u);
  EXPECT_EQ(groups[2].errors, 1u);
  EXPECT_EQ(groups[2].describe(), groups[2].first.describe());
}

constexpr checked_config printing{.prints_at_end = true};

TEST(Checked, PrintsErrorsAndLeaksAtItsEndIfAsked) {
  testing::internal::CaptureStderr();
  {
    checked<heap, printing> made{one_mib};
    launch({2, 32}, make{}, made.ref(), bug::overrun);
    launch({1, 1}, leak{}, made.ref());
    synchronize();
    checked<heap, printing> const moved = std::move(made);
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              MatchesRegex("warpheap: overrun by 3 bytes [^\n]*\nwarpheap: 1000 bytes leaked [^\n]*\n"
                           "warpheap: 10 bytes leaked [^\n]*\n"));
}

/// What a call of each kind yielded.
struct results {
  u32 good = 0;
};

/// Kernel: every member, with sizes of all kinds; counts what is as promised.
struct use_all {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap, results* out) const {
    u64 const me = global_thread_index();
    size_t const bytes = 1 + me * 13 % 300;
    auto* memory = static_cast<u8*>(me % 2 == 0 ? heap.malloc(bytes) : heap.calloc(1, bytes));
    if (!memory) return;
    bool good = heap.owns(memory) && heap.contains(memory) && heap.usable_size(memory) == bytes;
    good = good && !heap.owns(memory + 16) && heap.usable_size(memory + 1) == 0;
    good = good && reinterpret_cast<u64>(memory) % 16 == 0 && (me % 2 == 0 || memory[bytes - 1] == 0);
    for (size_t i = 0; i < bytes; ++i) memory[i] = static_cast<u8>(me);
    auto* const moved = static_cast<u8*>(heap.realloc(memory, bytes + 50));
    if (!moved) return heap.free(memory);
    good = good && moved != memory && moved[0] == static_cast<u8>(me) && moved[bytes - 1] == static_cast<u8>(me);
    void* const aligned = heap.aligned_alloc(1024, 40);
    void* const power = heap.malloc(256);
    good = good && reinterpret_cast<u64>(aligned) % 1024 == 0 && reinterpret_cast<u64>(power) % 256 == 0;
    heap.free(moved);
    heap.free(aligned);
    heap.free(power);
    good = good && heap.malloc(0) == nullptr && heap.malloc(~size_t{0} - 3) == nullptr &&
           heap.realloc(nullptr, 8, 0) == nullptr && heap.aligned_alloc(3, 8) == nullptr;
    void* const together = heap.malloc_warp(full_mask, bytes);
    good = good && heap.usable_size(together) == bytes;
    heap.free(together);
    if (good) atomic_ref<u32>{out->good}.fetch_add(1, order::relaxed);
  }
};

TEST(Checked, HasTheMembersOfTheHeapBelowAndAccusesNoCorrectKernel) {
  checked_heap const heap{4 * one_mib};
  device_buffer<results> const out(1);
  launch({2, 32}, use_all{}, heap.ref(), out.data());
  synchronize();
  EXPECT_EQ(out[0].good, 64u);
  EXPECT_EQ(heap.check_blocks().size(), 0u);
  EXPECT_EQ(heap.error_count(), 0u);
  EXPECT_EQ(heap.statistics().live_blocks, 0u);
}

/// Kernel: blocks go from thread to thread through a mailbox. The thread that takes one out frees
/// it, into a quarantine that has no room for all.
struct pass_blocks {
  static constexpr u32 boxes = 8;

  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap, u8** mailbox, u32 rounds, u32* refused) const {
    u64 const me = global_thread_index();
    for (u32 round = 0; round < rounds; ++round) {
      size_t const bytes = 16 + (me + round) * 24 % 200;
      auto* const made = static_cast<u8*>(heap.malloc(bytes));
      if (!made) atomic_ref<u32>{*refused}.fetch_add(1, order::relaxed);
      // relaxed: a pointer may come to the thread that frees it in any way.
      heap.free(atomic_ref<u8*>{mailbox[(me + round) % boxes]}.exchange(made, order::relaxed));
    }
  }
};

TEST(Checked, AccusesNobodyWhileManyThreadsFreeEachOthersBlocks) {
  test::for_each_schedule(12, [] {
    crowded_heap const heap{one_mib};
    device_buffer<u8*> const mailbox(pass_blocks::boxes);
    device_buffer<u32> const refused(1);
    launch({2, 40}, pass_blocks{}, heap.ref(), mailbox.data(), 3u, refused.data());
    synchronize();
    heap.check_blocks();
    for (auto const& error : heap.reports()) ADD_FAILURE() << error.describe();
    EXPECT_EQ(refused[0], 0u);
    EXPECT_EQ(heap.statistics().live_blocks, pass_blocks::boxes);
    EXPECT_LE(heap.upstream().statistics().live_blocks, pass_blocks::boxes + few_held.quarantine_blocks);
    EXPECT_TRUE(heap.check_invariants().empty());
  });
}

/// Kernel: all threads free one block; one of them is right.
struct free_one_block {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap, void** block) const {
    heap.free(*block);
  }
};
struct allocate {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap, size_t bytes, void** out) const {
    out[global_thread_index()] = heap.malloc(bytes);
  }
};

// checked.M3
TEST(Checked, LetsOneOfSeveralFreesOfABlockEndItsLife) {
  test::for_each_schedule(12, [] {
    crowded_heap const heap{one_mib};
    device_buffer<void*> const block(1);
    launch({1, 1}, allocate{}, heap.ref(), size_t{20}, block.data());
    launch({2, 20}, free_one_block{}, heap.ref(), block.data());
    synchronize();
    EXPECT_EQ(heap.error_count(memory_error::double_free), 39u);
    EXPECT_EQ(heap.error_count(), 39u);
    EXPECT_EQ(heap.statistics().live_blocks, 0u);
  });
}

/// Kernel: every thread has one block after another, each in the place that another thread's block
/// has just left, and keeps the last.
struct take_turns {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap, u32 turns, void** kept) const {
    void* mine = heap.malloc(1000);
    for (u32 i = 0; i < turns; ++i) {
      heap.free(mine);
      mine = heap.malloc(1000);
    }
    kept[global_thread_index()] = mine;
  }
};

/// Kernel, one thread: how many blocks the map knows.
struct count_known {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap, u64* known) const {
    checked_parts::visit_blocks(heap.state().map, [&](void*, u64) { ++*known; });
  }
};

/// Compares the map with the blocks that threads hold, and with those of the upstream heap, after
/// all schedules (checked.M1, checked.M2).
template <checked_config Config>
void expect_map_of_all_that_live() {
  test::for_each_schedule(100, [] {
    checked<heap, Config> const checked_heap{one_mib};
    device_buffer<void*> const kept(2 * 6);
    device_buffer<u64> const known(1);
    launch({2, 6}, take_turns{}, checked_heap.ref(), 4u, kept.data());
    launch({1, 1}, count_known{}, checked_heap.ref(), known.data());
    synchronize();
    std::vector<void*> listed;
    checked_heap.for_each_live([&](void* memory, size_t) { listed.push_back(memory); });
    EXPECT_THAT(listed, testing::UnorderedElementsAreArray(kept.to_host()));
    EXPECT_EQ(known[0], checked_heap.upstream().statistics().live_blocks) << "with those in quarantine";
    EXPECT_EQ(checked_heap.error_count(), 0u);
  });
}

TEST(Checked, KnowsAfterwardsAllBlocksThatLiveAndNoOthers) {
  expect_map_of_all_that_live<checked_config{.quarantine_bytes = 0}>();
  expect_map_of_all_that_live<checked_config{.quarantine_blocks = 2, .quarantine_bytes = 4000}>();
}

// checked.Q1
TEST(Checked, RefusesOnlyWhatWouldBeRefusedWithoutAQuarantine) {
  constexpr size_t bytes = 60'000;
  u64 served = 0, refused = 0;
  test::for_each_schedule(12, [&] {
    checked_heap heap{one_mib};
    auto const room = static_cast<u32>(heap.available_slots(bytes));
    ASSERT_GE(room, 4u);
    device_buffer<void*> const blocks(room);
    launch({1, room}, allocate{}, heap.ref(), bytes, blocks.data());
    auto const places = test::addresses_of(blocks.to_host());
    heap.reset();
    synchronize();
    auto const found = test::refusals_of(heap.ref(), {2, room}, places, bytes, 3, test::schedule_seed());
    served += found.served;
    refused += found.refused;
    EXPECT_EQ(found.unfounded, 0u);
    EXPECT_EQ(heap.error_count(), 0u);
  });
  EXPECT_GT(served, refused);
  EXPECT_GT(refused + test::on_gpu, 0u);
}

/// Kernel: makes a block 7 bytes smaller, and writes the byte behind it.
struct shrink {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap, void** block, u64* size) const {
    size_t const bytes = heap.usable_size(*block) - 7;
    *size = heap.realloc(*block, bytes) == *block ? heap.usable_size(*block) - bytes : ~u64{0};
    static_cast<u8*>(*block)[bytes] = 1;
  }
};

TEST(Checked, ShrinksABlockInPlaceWhereThereIsNoMemoryToMoveIt) {
  checked_heap const heap{one_mib};
  device_buffer<void*> const block(1);
  launch({1, 1}, allocate{}, heap.ref(), heap.pool_bytes() * 3 / 4, block.data());
  EXPECT_NE(block[0], nullptr);
  device_buffer<u64> const size(1);
  launch({1, 1}, shrink{}, heap.ref(), block.data(), size.data());
  synchronize();
  EXPECT_EQ(size[0], 0u);
  auto const found = heap.check_blocks();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].describe(), HasSubstr("overrun by 1 byte behind a block of "));
}

/// A checked heap around a second kind of heap: a small pool with another one behind it.
using small_second = plain_allocator<creation::rw_malloc<>>;
using overflowing = basic_heap<allocator<creation::scatter<>, distribution::none, oom::overflow_to<small_second>,
                                         reserve_pool::device_memory, alignment::shrink<16>>>;

TEST(Checked, KnowsTheBlocksOfBothHeapsWhereOneOverflows) {
  checked<overflowing> const heap{2 * one_mib};
  device_buffer<void*> const blocks(64);
  launch({2, 32}, allocate{}, heap.ref(), size_t{20000}, blocks.data());
  launch({2, 32}, make{}, heap.ref(), bug::double_free);
  synchronize();
  std::vector<void*> held;
  for (void* block : blocks.to_host())
    if (block) held.push_back(block);
  EXPECT_EQ(heap.statistics().live_blocks, held.size());
  EXPECT_GT(held.size(), 40u) << "blocks from both";
  EXPECT_EQ(heap.error_count(), 1u);
}

#if !defined(__CUDACC__)
constexpr checked_config trapping{.reaction = on_error::trap};

TEST(Checked, TrapsWithTheDescriptionAsTheReasonIfAsked) {
  checked<heap, trapping> const heap{one_mib};
  auto const message = test::message_of<host::trap_error>([&] {
    launch({2, 32}, make{}, heap.ref(), bug::overrun);
    synchronize();
  });
  EXPECT_THAT(message, AllOf(HasSubstr("overrun by 3 bytes behind a block of 20 bytes"),
                             HasSubstr("checked_test.cpp:" + std::to_string(line_of_malloc))));
}
#endif

}  // namespace checked_test
