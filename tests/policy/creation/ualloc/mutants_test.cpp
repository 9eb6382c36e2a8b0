// SPDX-License-Identifier: Apache-2.0
// Mutants: a step of the protocol left out or turned around must be seen by the test that
// guards it.
#include <algorithm>

#include "pool_fixture.hpp"

namespace warpheap::test { namespace {

using creation::ualloc;
using layout = bins::layout<tight>;

#if !defined(__CUDACC__)

// bins.Y2 left out: a bin is reclaimed although other lanes hold some of its units.
struct takes_no_units : bins::no_faults {
  WARPHEAP_DEVICE static bool take_all(bulk_semaphore, u32) { return true; }
};

// The barrier left out: a bin gets another use while readers stand on it.
struct waits_for_no_reader : bins::no_faults {
  template <class Reclaim>
  WARPHEAP_DEVICE static void retire(srcu const&, srcu_node& node, Reclaim reclaim) {
    reclaim(node);
  }
};

// Tails in turn: what lies in the tail of one bin is given back to its neighbour.
struct mistaken_tails : layout {
  WARPHEAP_HOST_DEVICE static constexpr bins::place place_of(bins::chunk_shape chunk, u32 offset) {
    auto const at = chunk.place_of(offset);
    bool const in_tail = at.page != bins::place::none && at.offset >= bins::page_bytes;
    if (!in_tail) return at;
    u32 const next = at.page + 1 < chunk.pages() ? at.page + 1 : chunk.specials();
    return {next, at.offset};
  }
};

// bins.W1 left out where units that a search has missed reappear.
struct tells_of_no_units : bins::no_faults {
  WARPHEAP_DEVICE static void tell_of_units(bins::room_watch const&) {}
};

using in_silence = ualloc<tight, layout, tells_of_no_units>;
using without_units = ualloc<tight, layout, takes_no_units>;
using without_barrier = ualloc<tight, layout, waits_for_no_reader>;
using with_mistaken_tails = ualloc<tight, mistaken_tails>;

#endif

/// Whether lanes that come and go leave the heap as it was, find what they wrote, and end at all.
template <class Allocator>
bool survives_churn(u32 chunks, launch_shape shape, tagged_churn<doubled_sizes> body) {
  bin_pool<Allocator> const pool{chunks * small_chunk};
  auto const report = report_of(pool, shape, body);
  return report.broken == 0 && report.served != 0 && pool.is_quiet(0);
}

template <class Allocator>
bool survives_large_blocks() {
  return survives_churn<Allocator>(1, {3, 11}, {.rounds = 8, .sizes = {256, 2}, .seed = 7});
}
template <class Allocator>
bool survives_tails() {
  return survives_churn<Allocator>(1, {2, 33}, {.rounds = 6, .sizes = {64, 1}, .seed = 7});
}

/// The first thread walks a list again and again and stays long. The bin that it stands on must be
/// of that list's class all the time. The others come and go.
struct stand_on_bins {
  tagged_churn<doubled_sizes> churn;

  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, lanes_report* report) const {
    if (global_thread_index() != 0) return churn(heap, report);
    auto const& table = heap.table();
    bins::bin_list<layout, bins::known_place> const list{table, 0, size_class};
    for (u32 round = 0; round < 30; ++round) {
      u32 const section = table.srcu(0).read_lock();
      for (u32 page = list.first(); page != 0; page = list.after(page))
        for (u32 turn = 0; turn < 30; ++turn) {
          simt::pause(100);
          bins::bin_role const role = table.bin(page).role();
          bool const is_same = role.is_live() && role.size_class() == size_class;
          if (!is_same) atomic_ref<u32>{report->broken}.fetch_add(1, order::relaxed);
        }
      table.srcu(0).read_unlock(section);
    }
  }

  static constexpr u32 size_class = layout::class_of(1024);
};

template <class Allocator>
bool stays_what_readers_stand_on() {
  bin_pool<Allocator> const pool{2 * small_chunk};
  auto const report = report_of(pool, {3, 5}, stand_on_bins{{.rounds = 10, .sizes = {512, 1}, .seed = 7}});
  return report.broken == 0 && report.served != 0 && pool.is_quiet(0);
}

/// A full heap but for three blocks. Three lanes that ask together race with one that takes two
/// units, gives one back, looks for units as a search does, and says that there are none.
struct miss_units {
  static constexpr u32 size_class = layout::class_of(1024);

  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, u64 seed, lanes_report* report) const {
    auto const& table = heap.table();
    if (simt::block_index() == 0) {
      atomic_ref<u32>{heap.create(1024) ? report->served : report->refused}.fetch_add(1, order::relaxed);
      return;
    }
    if (simt::thread_index() != 0) return;
    // Lanes that ask together take some steps until they look at the semaphore.
    for (u32 looks = random_sequence{seed}.below(4); looks != 0; --looks)
      static_cast<void>(table.room(0).load(order::relaxed));
    auto semaphore = table.semaphore(0, size_class);
    if (!semaphore.try_wait(2)) return;
    semaphore.signal(1, 0);
    table.class_watch(size_class).room_appeared();  // bins.W1: a search may have ended meanwhile
    u64 const blocks = table.class_watch(size_class).watch();
    bool const none = semaphore.available_newest() == 0;
    u64 const pages = table.pages_watch().look();
    if (none && table.class_watch(size_class).unchanged(blocks))
      table.exhausted_at(size_class).store(bins::room_watch_word::exhaustion_of(pages, blocks), order::release);
  }
};

/// Kernel of one lane: whether a class is said to have no units and has some.
struct look_at_exhaustion {
  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, lanes_report* report) const {
    auto const& table = heap.table();
    constexpr u32 of = miss_units::size_class;
    u64 const said = table.exhausted_at(of).load(order::relaxed);
    u64 const now = bins::room_watch_word::exhaustion_of(table.pages_watch().look(), table.class_watch(of).look());
    if (said != 0 && said == now && table.semaphore(0, of).available() != 0) report->broken = 1;
  }
};

/// Whether each refusal was because there were no units, and no exhaustion note says that there are
/// none while there are some.
template <class Allocator>
bool tells_of_units() {
  bin_pool<Allocator> const pool{small_chunk};
  auto blocks = allocate(pool, {1, 21}, 1024);
  std::sort(blocks.begin(), blocks.end());
  // One of each of three bins, so that none is empty.
  release(pool, {blocks[0], blocks[3], blocks[6]});
  device_buffer<lanes_report> const report(1);
  launch({2, 3}, miss_units{}, pool.allocator(), schedule_seed(), report.data());
  launch({1, 1}, look_at_exhaustion{}, pool.allocator(), report.data());
  synchronize();
  return report[0].broken == 0 && report[0].served + report[0].refused == 3 && report[0].served != 0;
}

// bins.V3
TEST(UallocMutants, WhoMadeASearchMissUnitsSaysSo) {
  for_each_schedule(2000, [] { EXPECT_TRUE(tells_of_units<ualloc<tight>>()); });
}

TEST(UallocMutants, TheAllocatorItselfSurvives) {
  for_each_schedule(200, [] { EXPECT_TRUE(survives_large_blocks<ualloc<tight>>()); });
  for_each_schedule(50, [] { EXPECT_TRUE(survives_tails<ualloc<tight>>()); });
  for_each_schedule(100, [] { EXPECT_TRUE(stays_what_readers_stand_on<ualloc<tight>>()); });
}

/// Lanes with as many blocks between them as they want. Each lowers the count, claims a bit and
/// gives both back.
struct claim_and_give_back {
  bool counts_first;

  WARPHEAP_DEVICE void operator()(bins::bin_header* header, u32 rounds, u32* owners, lanes_report* report) const {
    bins::bin_view const bin{header};
    for (u32 round = 0; round < rounds; ++round) {
      bool exhausted = false;
      if (counts_first && bin.try_take(1, exhausted) == 0) continue;
      // bins.N1: there is a bit for a lane that lowered the count, though others may be faster a
      // few times.
      u64 mine = 0;
      for (u32 turn = 0; turn < 64 && mine == 0; ++turn) mine = bin.claim(0, 1, 0b111, turn);
      if (mine == 0) {
        atomic_ref<u32>{report->refused}.fetch_add(1, order::relaxed);
        if (counts_first) bin.life().fetch_add(bins::bin_life::one_block, order::relaxed);
        continue;
      }
      if (!counts_first) bin.try_take(1, exhausted);
      u32& owner = owners[lowest_bit(mine)];
      if (atomic_ref<u32>{owner}.exchange(1, order::relaxed) != 0)
        atomic_ref<u32>{report->broken}.fetch_add(1, order::relaxed);
      atomic_ref<u32>{owner}.exchange(0, order::relaxed);
      bin.give_back(0, mine);
      bin.life().fetch_add(bins::bin_life::one_block, order::relaxed);
      atomic_ref<u32>{report->served}.fetch_add(1, order::relaxed);
      // bins.N1 as any lane may check it at any time: no more bits set than blocks that are not
      // free.
      u32 const free = bins::bin_life::free_blocks(bin.life().load(order::relaxed));
      if (free > 3) atomic_ref<u32>{report->broken}.fetch_add(1, order::relaxed);
    }
  }
};

/// Whether a lane that lowered the count always found a bit, and the count never exceeded the
/// blocks.
bool finds_what_was_counted(bool counts_first) {
  device_buffer<bins::bin_header> const bin(1);
  bins::bin_header empty{};
  empty.life = bins::bin_life::of({}, 3);
  backend::copy_bytes(bin.data(), &empty, sizeof empty);
  device_buffer<u32> owners(3);
  device_buffer<lanes_report> report(1);
  launch({4, 2}, claim_and_give_back{counts_first}, bin.data(), u32{6}, owners.data(), report.data());
  synchronize();
  bins::bin_header const left = bin.to_host()[0];
  return report[0].refused == 0 && report[0].broken == 0 && report[0].served != 0 && left.life == empty.life &&
         left.bits[0] == 0;
}

TEST(UallocMutants, WhoLoweredTheCountFindsABit) {
  for_each_schedule(200, [] { EXPECT_TRUE(finds_what_was_counted(true)); });
}

#if !defined(__CUDACC__)
/// Faults after which a lane that hangs is stopped.
constexpr u64 few_bin_steps = 400'000;

TEST(UallocMutants, ABinReclaimedWithoutItsUnitsIsNoticed) {
  EXPECT_TRUE(find_failing_schedule(
      100, [] { return survives_large_blocks<without_units>(); }, few_bin_steps));
}
TEST(UallocMutants, ABinReclaimedUnderAReaderIsNoticed) {
  EXPECT_TRUE(find_failing_schedule(
      100, [] { return stays_what_readers_stand_on<without_barrier>(); }, few_bin_steps));
}
TEST(UallocMutants, UnitsThatAppearAgainInSilenceAreNoticed) {
  EXPECT_TRUE(find_failing_schedule(
      40'000, [] { return tells_of_units<in_silence>(); }, few_bin_steps));
}
TEST(UallocMutants, ATailOfAnotherBinIsNoticed) {
  EXPECT_TRUE(find_failing_schedule(
      20, [] { return survives_tails<with_mistaken_tails>(); }, few_bin_steps));
}
TEST(UallocMutants, ACountLoweredAfterTheBitIsNoticed) {
  EXPECT_TRUE(find_failing_schedule(
      200, [] { return finds_what_was_counted(false); }, few_bin_steps));
}
#endif

}}  // namespace warpheap::test
