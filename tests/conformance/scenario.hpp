// SPDX-License-Identifier: Apache-2.0
// The circumstances in which a claim is tested: how many lanes, in which grid, on how large a pool.
// On the host backend, few lanes on the smallest pool under hundreds of seeded schedules, and
// thousands of lanes in parallel; on a GPU, as many as the field's benchmarks use.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "support/schedules.hpp"
#include "warpheap/platform/simt.hpp"
#include "warpheap/util/random.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace conformance {

struct scenario {
  launch_shape shape;
  size_t pool_bytes;
  u64 seed;
  bool small;  ///< every step is scheduled one by one: do little

  u64 lanes() const { return static_cast<u64>(shape.blocks) * shape.threads; }

  scenario with_shape(launch_shape other) const { return {other, pool_bytes, seed, small}; }
  scenario with_pool(size_t bytes) const { return {shape, bytes, seed, small}; }

  /// This scenario in a grid that is resident as a whole: all lanes run at once.
  scenario resident() const {
#if defined(__CUDACC__)
    constexpr launch_shape most{64, 256};
#else
    constexpr launch_shape most{4, 64};
#endif
    return with_shape(small ? launch_shape{1, shape.threads} : most);
  }

  /// This scenario with at most as many lanes as a heap that is always full can be expected to
  /// answer soon.
  scenario less_contended() const;

  /// This scenario for an allocator that may serve no more than some ten thousand calls a second: a
  /// sixteenth of the lanes and a quarter of the pool. The smaller pool keeps the sizes that checks
  /// derive from lanes and pool small, where such allocators are faster.
  scenario sparse() const { return {{std::max(shape.blocks / 16, 1u), shape.threads}, pool_bytes / 4, seed, small}; }
};

inline constexpr size_t mebibyte = size_t{1} << 20;

inline scenario scenario::less_contended() const {
  if (lanes() <= 64 * 256) return *this;
  return {{64, 256}, 64 * mebibyte, seed, small};
}

/// Blocks a lane that checks want to have room for.
inline constexpr u64 roomy_blocks_a_lane = 8;

/// `with`, for an allocator that serves no more than `largest` bytes and may take that much for
/// every block: a pool with room for the lanes' blocks, up to sixteen times as large, and no more
/// lanes than that pool serves.
inline scenario fitted(scenario const& with, size_t largest) {
  if (largest == ~size_t{0}) return with;
  u64 const most = 16 * with.pool_bytes, a_lane = roomy_blocks_a_lane * largest;
  if (with.lanes() * a_lane <= most) return with.with_pool(std::max<u64>(with.pool_bytes, with.lanes() * a_lane));
  u64 const blocks = std::max<u64>(most / (a_lane * with.shape.threads), 1);
  return with.with_shape({static_cast<u32>(blocks), with.shape.threads}).with_pool(most);
}

/// One lane, a warp less one and plus one, several warps, partial last warps, several thread
/// blocks.
inline scenario small_scenario(u64 seed) {
  constexpr u32 warp = warp_lanes;
  constexpr launch_shape shapes[] = {{1, warp},     {1, 1},    {1, warp - 1}, {1, warp + 1},
                                     {1, 2 * warp}, {3, warp}, {2, 40},       {4, 17}};
  return {shapes[mix(seed) % (sizeof shapes / sizeof shapes[0])], mebibyte, seed, true};
}

/// Scheduling points after which a kernel of a small scenario counts as hung; those of this suite
/// take a hundredth of it.
inline constexpr u64 hung_after_steps = 50'000'000;

/// How many lanes an allocator meets on a GPU: those of the scenario, or of scenario::sparse().
enum class contention { full, sparse };

/// Calls `body(scenario)` under `seeds` deterministic schedules and in parallel; on a GPU once for
/// each grid.
template <class Body>
void for_each_scenario(u32 seeds, contention on_gpu, Body body) {
#if defined(__CUDACC__)
  static_cast<void>(seeds);
  // The larger pool first: the toolkit's cannot grow once it is used.
  for (auto const& with :
       {scenario{{1024, 1024}, 512 * mebibyte, 1, false}, scenario{{250, 250}, 64 * mebibyte, 2, false}}) {
    auto const here = on_gpu == contention::sparse ? with.sparse() : with;
    SCOPED_TRACE(std::to_string(here.shape.blocks) + " x " + std::to_string(here.shape.threads));
    body(here);
  }
#else
  static_cast<void>(on_gpu);
  test::for_each_schedule(seeds, [&] {
    auto const& how = host::current_execution();
    if (how.mode == host::execution_mode::deterministic) {
      auto capped = how;
      capped.step_cap = hung_after_steps;
      host::scoped_execution const use{capped};
      body(small_scenario(how.seed));
    } else {
      body(scenario{{20, 50}, 4 * mebibyte, how.seed, false});
    }
  });
#endif
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::conformance
