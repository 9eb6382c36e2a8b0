// SPDX-License-Identifier: Apache-2.0
// A heap of bins over a handful of chunks, and lanes that take and free blocks in it.
#pragma once

#include "policy/creation/quiet_pool_fixture.hpp"

namespace warpheap::test {

/// The smallest chunks, whose seven bins go back at once when they are empty; as many arenas as the
/// pool has room for.
inline constexpr creation::ualloc_config tight{.chunk_log2 = 15, .idle_bins = 0};
/// Two empty bins of a class are kept.
inline constexpr creation::ualloc_config keeping{.chunk_log2 = 15, .idle_bins = 2};
/// Bins as wide as their class wants, in chunks that hold some.
inline constexpr creation::ualloc_config tight_and_wide{.chunk_log2 = 17, .wide_bins = true, .idle_bins = 0};
inline constexpr u64 small_chunk = u64{1} << 15;

/// Owns the memory of a pool; `Allocator` is a creation policy.
template <class Allocator>
class bin_pool : public quiet_pool<Allocator> {
 public:
  explicit bin_pool(u64 bytes) : quiet_pool<Allocator>{bytes, 40} {}
};

/// A churn in chunks of 32 KiB, of `least` doubled up to `doublings` times.
struct bin_churn_case {
  u32 chunks, blocks, threads, rounds, least, doublings;
};

template <class Allocator>
void expect_clean_churn(bin_churn_case shape, unsigned seeds) {
  using pool_type = bin_pool<Allocator>;
  expect_clean_churn(
      seeds, [&] { return pool_type{shape.chunks * small_chunk}; }, {shape.blocks, shape.threads}, shape.rounds,
      doubled_sizes{shape.least, shape.doublings},
      [](pool_type const& pool) {
        pool.expect_quiet(0);
        u64 const bytes = pool.allocator().pool_bytes();
        if (is_power_of_two(bytes) && bytes <= Allocator::traits.largest_bytes) {
          EXPECT_EQ(count_slots_by_grid(pool.allocator(), bytes), 1u);
        }
      });
}

/// Every lane takes one block of one of `sizes` sizes and frees it, again and again; no lane holds
/// two.
struct take_one_and_give_it_back {
  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, u32 rounds, u64 least, u32 step_log2, u32 sizes,
                                  lanes_report* report) const {
    u32 const me = static_cast<u32>(global_thread_index());
    for (u32 round = 0; round < rounds; ++round) {
      u64 const bytes = least << (me + round) * 7 % sizes * step_log2;
      void* const block = heap.create(bytes);
      atomic_ref<u32>{block ? report->served : report->refused}.fetch_add(1, order::relaxed);
      heap.destroy(block);
    }
  }
};

/// There is room for as many blocks as there are lanes, each of which holds at most one. So no lane
/// is ever refused, whatever arena the memory belongs to, whatever class it had, and wherever on
/// its way back it is.
template <class Allocator>
void expect_no_refusal(u32 chunks, launch_shape shape, u64 least, u32 step_log2, u32 sizes, unsigned seeds) {
  for_each_schedule(seeds, [&] {
    bin_pool<Allocator> const pool{chunks * small_chunk};
    device_buffer<lanes_report> const report(1);
    launch(shape, take_one_and_give_it_back{}, pool.allocator(), u32{5}, least, step_log2, sizes, report.data());
    synchronize();
    EXPECT_EQ(report[0].refused, 0u);
    EXPECT_EQ(report[0].served, 5 * shape.blocks * shape.threads);
    pool.expect_quiet(0);
  });
}

}  // namespace warpheap::test
