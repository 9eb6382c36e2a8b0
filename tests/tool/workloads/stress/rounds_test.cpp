// SPDX-License-Identifier: Apache-2.0
// `stress` reports each kind of fault, on allocators that have one injected, and none of a right
// one.
#include "workloads/stress/backend/rounds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <optional>

#include "tool/measured_fixture.hpp"
#include "warpheap/warpheap.hpp"

namespace warpheap::tool { namespace stress_test {

using testing::HasSubstr;
using testing::IsEmpty;

enum class injected { nothing, same_block, one_byte, leak, refusal, small_blocks, odd_address, second_free, invariant };

/// The default policy with one fault. Faults come with every 50th call.
class broken_policy : public creation::slab_bitmap<> {
 public:
  static inline injected fault = injected::nothing;
  static inline std::atomic<u64> calls{0};
  static inline std::atomic<u64> last{0};  ///< address of a block

  static constexpr allocator_traits traits = [] {
    auto promised = slab_bitmap<>::traits;
    promised.self_aligned_up_to = 0;
    return promised;
  }();

  broken_policy() = default;
  static broken_policy place(void* memory, size_t bytes) { return broken_policy{slab_bitmap<>::place(memory, bytes)}; }

  void* create(size_t bytes) const {
    bool const now = calls.fetch_add(1) % 50 == 49;
    if (now && fault == injected::refusal) return nullptr;
    if (now && fault == injected::small_blocks) return slab_bitmap<>::create((bytes + 1) / 2);
    if (now && fault == injected::same_block && usable_size(reinterpret_cast<void*>(last.load())) >= bytes)
      return reinterpret_cast<void*>(last.load());
    void* const block = slab_bitmap<>::create(bytes);
    if (now && fault == injected::one_byte && last) ++*reinterpret_cast<u8*>(last.load());
    if (block) last = reinterpret_cast<u64>(block);
    return block;
  }

  void destroy(void* memory) const {
    bool const now = memory && calls.fetch_add(1) % 50 == 49;
    if (now && fault == injected::leak) return;
    slab_bitmap<>::destroy(memory);
    if (now && fault == injected::second_free) slab_bitmap<>::destroy(memory);
  }

  struct snapshot_type {
    slab_bitmap_parts::snapshot sound;

    heap_statistics statistics() const { return sound.statistics(); }
    invariant_report check_invariants() const {
      if (fault == injected::invariant) return {"S1: an injected violation"};
      return sound.check_invariants();
    }
    template <class Visitor>
    void for_each_live(Visitor visit) const {
      sound.for_each_live(visit);
    }
  };
  snapshot_type snapshot() const { return {slab_bitmap<>::snapshot()}; }

 private:
  explicit broken_policy(slab_bitmap<> sound) : slab_bitmap<>{sound} {}
};

/// An allocator whose malloc, calloc or realloc may be wrong. Its own aligned copies and fills do
/// not meet the address that malloc injects: they would crash before a check looks at it.
struct broken_allocator : plain_allocator<broken_policy> {
  using plain_allocator<broken_policy>::plain_allocator;
  static inline bool keeps_zeroes_away = false, forgets_contents = false;
  static constexpr u64 odd_bytes = 4;

  void* malloc(size_t bytes) const {
    void* const block = plain_allocator<broken_policy>::malloc(bytes);
    bool const moves = broken_policy::fault == injected::odd_address && broken_policy::calls.fetch_add(1) % 50 == 49;
    return block && moves ? static_cast<u8*>(block) + odd_bytes : block;
  }
  void* calloc(size_t count, size_t size) const {
    if (keeps_zeroes_away) return malloc(count * size);
    return plain_allocator<broken_policy>::calloc(count, size);
  }
  void* realloc(void* memory, size_t bytes) const {
    bool const is_odd = reinterpret_cast<u64>(memory) % traits.alignment == odd_bytes;
    if (is_odd) memory = static_cast<u8*>(memory) - odd_bytes;
    if (!forgets_contents) return plain_allocator<broken_policy>::realloc(memory, bytes);
    void* const moved = malloc(bytes);
    free(moved ? memory : nullptr);
    return moved;
  }
};

stress_request asked(u64 seed = 1) {
  return {.pool_bytes = 2 * mebibyte, .seed = seed, .threads = 64, .streams = 2, .rounds = 60};
}

/// One schedule for an injected fault: under others its consequences may be found first.
stress_row run_with(injected fault, stress_request const& request) {
  std::optional<host::scoped_execution> one_schedule;
  if (fault != injected::nothing)
    one_schedule.emplace(host::execution{.mode = host::execution_mode::deterministic, .seed = 1});
  basic_heap<broken_allocator> heap{request.pool_bytes};
  broken_policy::calls = broken_policy::last = 0;
  broken_policy::fault = fault;
  auto const row = stress_run<broken_allocator>{heap, "broken", request}.run();
  broken_policy::fault = injected::nothing;
  return row;
}

/// The fault that was found is of the kind, and its line says the round, the seed and the kind.
void expect_found(stress_row const& row, u64 stress_faults::*kind) {
  EXPECT_GT(row.faults.*kind, 0u) << row.fault;
  for (auto const& [name, each] : stress_faults::kinds)
    if (each == kind) {
      EXPECT_THAT(row.fault, HasSubstr(" " + std::string{name} + " "));
    }
  EXPECT_THAT(row.fault, HasSubstr("round " + std::to_string(row.rounds - 1) + ", seed 1:"));
}

TEST(StressRounds, FindNothingWrongWithARightAllocatorAndMakeEveryCall) {
  for (bool const misuse : {false, true}) {
    auto request = asked(2);
    request.misuse = misuse;
    auto const row = run_with(injected::nothing, request);
    EXPECT_THAT(row.fault, IsEmpty());
    EXPECT_EQ(row.rounds, 60u);
    EXPECT_GT(row.fills, 5u);
    for (auto const& [name, number] : stress_counts::calls)
      EXPECT_EQ(row.counts.*number > 0, misuse || number != &stress_counts::misuses) << name;
    EXPECT_GT(row.counts.refused, 0u);
    EXPECT_GT(row.counts.verified_bytes, u64{1} << 20);
    EXPECT_THAT(row.left_out, IsEmpty());
  }
}

template <class Allocator>
stress_row run_growing(stress_request const& request) {
  basic_heap<Allocator> heap{growth{.initial = mebibyte, .limit = request.pool_bytes}};
  return stress_run<Allocator>{heap, "growing", request}.run();
}

TEST(StressRounds, GrowAPoolUnderTheirKernelsAndTrimItBetweenThem) {
  auto request = asked(3);
  request.pool_bytes = 16 * mebibyte;
  request.misuse = true;
  auto const row = run_growing<bench::patient_allocator<>>(request);
  EXPECT_THAT(row.fault, IsEmpty());
  EXPECT_EQ(row.rounds, 60u);
  EXPECT_GT(row.fills, 5u);
  EXPECT_GT(row.counts.refused, 0u);
  ASSERT_TRUE(row.growth);
  EXPECT_EQ(row.growth->limit_bytes, request.pool_bytes);
  EXPECT_LT(row.growth->initial_bytes, request.pool_bytes);
  EXPECT_EQ(row.growth->most_bytes, request.pool_bytes) << "a heap was filled";
  EXPECT_EQ(row.growth->least_bytes, row.growth->initial_bytes) << "a heap was emptied";
  EXPECT_GT(row.growth->growths, 5u);
  EXPECT_GT(row.growth->trims, 5u);
}

TEST(StressRounds, FindARefusalByAPoolThatMightHaveGrown) {
  auto request = asked();
  request.pool_bytes = 16 * mebibyte;
  auto const row = run_growing<polled_allocator>(request);  // its calls do not wait
  expect_found(row, &stress_faults::refused_too_soon);
}

/// Has an error when it is to grow while kernels wait, which is by less than all.
struct failing_pool : reserve_pool::growing {
  using reserve_pool::growing::growing;
  void commit(size_t bytes) {
    if (bytes < limit()) throw std::runtime_error{"an injected error"};
    reserve_pool::growing::commit(bytes);
  }
};

inline constexpr oom::grow_on_demand_config wait_a_moment{.deadline_us = 1000};

TEST(StressRounds, FindThatTheServiceHasEnded) {
  auto request = asked();
  request.pool_bytes = 16 * mebibyte;
  auto const row =
      run_growing<allocator<creation::slab_bitmap<>, distribution::none, oom::grow_on_demand<wait_a_moment>,
                            failing_pool, alignment::shrink<16>>>(request);
  expect_found(row, &stress_faults::ended_by_error);
  EXPECT_THAT(row.fault, HasSubstr("an injected error"));
}

TEST(StressRounds, FindOneBlockHandedOutTwice) {
  auto const row = run_with(injected::same_block, asked());
  EXPECT_GT(row.faults.damaged + row.faults.lost_blocks + row.faults.overlapping, 0u) << row.fault;
}

TEST(StressRounds, FindAByteThatAnotherHasWritten) {
  auto const row = run_with(injected::one_byte, asked());
  expect_found(row, &stress_faults::damaged);
  EXPECT_THAT(row.fault, HasSubstr("; first in slot "));
}

TEST(StressRounds, FindLostBlocks) { expect_found(run_with(injected::leak, asked()), &stress_faults::lost_blocks); }

TEST(StressRounds, FindARefusalByAHeapThatHasRoom) {
  expect_found(run_with(injected::refusal, asked()), &stress_faults::refused_with_room);
}

TEST(StressRounds, FindBlocksThatAreTooSmall) {
  expect_found(run_with(injected::small_blocks, asked()), &stress_faults::too_small);
}

TEST(StressRounds, FindMisalignedBlocks) {
  expect_found(run_with(injected::odd_address, asked()), &stress_faults::misaligned);
}

TEST(StressRounds, FindFreesThatAreCountedAsMisuse) {
  expect_found(run_with(injected::second_free, asked()), &stress_faults::miscounted_frees);
}

TEST(StressRounds, FindAViolatedInvariant) {
  auto const row = run_with(injected::invariant, asked());
  expect_found(row, &stress_faults::broken_invariants);
  EXPECT_EQ(row.rounds, 1u);
  EXPECT_THAT(row.fault, HasSubstr("S1: an injected violation"));
}

TEST(StressRounds, FindCallocThatLeavesWhatWasThere) {
  broken_allocator::keeps_zeroes_away = true;
  auto const row = run_with(injected::nothing, asked());
  broken_allocator::keeps_zeroes_away = false;
  expect_found(row, &stress_faults::not_zeroed);
}

TEST(StressRounds, FindReallocThatLosesContents) {
  broken_allocator::forgets_contents = true;
  auto const row = run_with(injected::nothing, asked());
  broken_allocator::forgets_contents = false;
  expect_found(row, &stress_faults::damaged);
}

TEST(StressRounds, EndWhenTheyAreTold) {
  auto request = asked();
  u64 told = 0;
  request.proceed = [&](stress_row const& row) {
    told = row.rounds;
    return row.rounds < 3;
  };
  EXPECT_EQ(run_with(injected::nothing, request).rounds, 3u);
  EXPECT_EQ(told, 3u);
}

TEST(StressRounds, VisitEverySlotOnce) {
  for (u32 log2 = 1; log2 < 12; ++log2)
    for (u64 seed = 0; seed < 20; ++seed) {
      stress_round const round{.seed = seed, .slots_log2 = log2};
      std::vector<bool> seen(round.slots());
      for (u64 place = 0; place < round.slots(); ++place) seen.at(round.slot_at(place)) = true;
      EXPECT_THAT(seen, testing::Each(true)) << log2 << " " << seed;
    }
}

TEST(StressContents, CoverEveryByteOfABlockOfUpTo4KiB) {
  for (u64 const bytes : {1, 7, 8, 9, 16, 100, 511, 4095, 4096}) {
    block_contents const contents{5, 6, bytes};
    std::vector<u64> memory(bytes / 8 + 2, 0x55);
    contents.write(memory.data());
    EXPECT_TRUE(contents.stand_in(memory.data(), bytes));
    EXPECT_EQ(contents.written_bytes(), bytes);
    auto* const first = reinterpret_cast<u8*>(memory.data());
    for (u64 at = 0; at < bytes; ++at) {
      first[at] ^= 1;
      EXPECT_FALSE(contents.stand_in(memory.data(), bytes)) << bytes << " " << at;
      EXPECT_TRUE(contents.stand_in(memory.data(), at / 8 * 8)) << bytes << " " << at;
      first[at] ^= 1;
    }
    EXPECT_NE(first[bytes - 1], 0x55);
    EXPECT_TRUE(first[bytes] == 0x55 || bytes % 8 != 0) << "written behind the end";
    EXPECT_FALSE((block_contents{5, 7, bytes}.stand_in(memory.data(), bytes)));
    EXPECT_FALSE((block_contents{6, 6, bytes}.stand_in(memory.data(), bytes)));
  }
}

TEST(StressContents, ReachTheEndOfALargeBlock) {
  for (u64 const bytes : {4097u, 5000u, 100'000u, 1'000'003u}) {
    block_contents const contents{1, 2, bytes};
    std::vector<u64> memory(bytes / 8 + 1);
    EXPECT_TRUE(contents.are_zero_in(memory.data()));
    contents.write(memory.data());
    u64 const words = static_cast<u64>(std::count_if(memory.begin(), memory.end(), [](u64 word) { return word != 0; }));
    EXPECT_GE(words, 512u);
    EXPECT_LE(words, 1026u);
    EXPECT_NEAR(static_cast<double>(contents.written_bytes()), static_cast<double>(words * 8), 16);
    for (u64 const at : {u64{0}, bytes / 8 * 8 - 8, bytes - 1}) {
      auto damaged = memory;
      reinterpret_cast<u8*>(damaged.data())[at] ^= 1;
      EXPECT_FALSE(contents.stand_in(damaged.data(), bytes)) << bytes << " " << at;
      EXPECT_FALSE(contents.are_zero_in(damaged.data()));
    }
  }
}

}}  // namespace warpheap::tool::stress_test
