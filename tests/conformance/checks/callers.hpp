// SPDX-License-Identifier: Apache-2.0
// Callers in all shapes: lanes in branches and loops of their own, some allocating while others
// free, warps with lanes missing, and long random lives side by side.
#pragma once

#include "blocks.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace conformance {

inline constexpr u64 slots_a_lane = 4;

/// Every lane calls from a branch of its own, a different number of times; the blocks that it keeps
/// go to its slots of `list`.
struct call_divergently {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, holding* list, u64, u64 seed) const {
    holding* const mine = list + global_thread_index() * slots_a_lane;
    u64 const kind = mix(seed + global_thread_index() * 7) % 5;
    if (kind == 0) return;
    if (kind == 1) {
      keep(mine[0], heap.malloc(mine[0].bytes));
    } else if (kind == 2) {
      for (u64 i = 0; i <= global_thread_index() % slots_a_lane; ++i) keep(mine[i], heap.malloc(mine[i].bytes));
    } else if (kind == 3) {
      for (u64 i = 0;; ++i) {
        void* const passing = heap.malloc(mine[i].bytes / 2 + 1);
        if (i == slots_a_lane - 1 || (mix(seed ^ i) + simt::lane_id()) % 3 == 0) {
          heap.free(passing);
          break;
        }
        keep(mine[i], heap.malloc(mine[i].bytes));
        heap.free(passing);
      }
    } else {
      void* const first = heap.malloc(mine[1].bytes);
      if (simt::lane_id() % 2) heap.free(first);
      else keep(mine[1], first);
    }
  }

  WARPHEAP_DEVICE static void keep(holding& slot, void* memory) { slot.address = reinterpret_cast<u64>(memory); }
};

/// In every warp one half frees what the list holds while the other half allocates into it.
struct free_in_one_half {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, holding* list, u64 count, u32 freeing_half) const {
    for (u64 i = global_thread_index(); i < count; i += grid_threads()) {
      if (simt::lane_id() / (warp_lanes / 2) == freeing_half) {
        heap.free(list[i].memory());
        list[i].address = 0;
      } else {
        list[i].address = reinterpret_cast<u64>(heap.malloc(list[i].bytes));
      }
    }
  }
};

struct churn_counts {
  u64 served, refused, damaged;
};

/// Random sizes and lifetimes: in every round each lane frees, after a look at its contents, or
/// fills a random slot.
struct churn {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, holding* list, u64, u64 rounds, u64 most, u64 seed,
                                  churn_counts* counts) const {
    holding* const mine = list + global_thread_index() * slots_a_lane;
    random_sequence random{seed ^ global_thread_index()};
    u64 served = 0, refused = 0, damaged = 0;
    for (u64 round = 0; round < rounds; ++round) {
      u32 const slot = random.below(slots_a_lane);
      u64 const tag = global_thread_index() * slots_a_lane + slot;
      if (mine[slot].address) {
        damaged += !holds_pattern(mine[slot], tag);
        heap.free(mine[slot].memory());
        mine[slot].address = 0;
      } else {
        mine[slot].bytes = 1 + random.below(static_cast<u32>(most));
        mine[slot].address = reinterpret_cast<u64>(heap.malloc(mine[slot].bytes));
        if (mine[slot].address) write_pattern(mine[slot], tag);
        ++(mine[slot].address ? served : refused);
      }
    }
    atomic_ref<u64>{counts->served}.fetch_add(served, order::relaxed);
    atomic_ref<u64>{counts->refused}.fetch_add(refused, order::relaxed);
    atomic_ref<u64>{counts->damaged}.fetch_add(damaged, order::relaxed);
  }
};

template <class Allocator>
verdict serves_divergent_callers(scenario const& with) {
  harness<Allocator> bench{with};
  verdict found;
  u64 const slots = with.lanes() * slots_a_lane;
  u64 const most = bench.capped(std::min<u64>(1000, with.pool_bytes / 8 / slots));
  for (u64 round = 0; round < 3; ++round) {
    auto const list =
        bench.transform(call_divergently{}, uniform(slots, 1, most, with.seed + round), with.seed + round);
    auto const blocks = served(list);
    found.include(keeps_patterns(bench, blocks));
    // A lane may have drawn a branch that keeps nothing.
    if (with.lanes() > 8) found.at_least("blocks", blocks.size(), with.lanes() / 8);
    found.include(accounts_for(bench, blocks));
  }
  return found;
}

template <class Allocator>
verdict serves_one_half_while_the_other_frees(scenario const& with) {
  harness<Allocator> bench{with};
  verdict found;
  // A multiple of the grid, so that an entry keeps its half of the warp in every round.
  auto list = same(4 * with.lanes(), bench.capped(std::min<u64>(256, with.pool_bytes / 16 / with.lanes())));
  for (u32 round = 0; round < 5; ++round) {
    list = bench.transform(free_in_one_half{}, list, round % 2);
    auto const blocks = served(list);
    if (with.shape.threads >= warp_lanes || round % 2) found.at_least("blocks", blocks.size(), with.lanes());
    found.include(apart_and_aligned(blocks, bench.traits));
    found.include(keeps_patterns(bench, blocks, round));
    found.include(bench.quiet(blocks.size()));
  }
  bench.free(served(list));
  found.include(bench.empty());
  return found;
}

/// The verdict on a churn with these lists and counts; at least `least` blocks must have been
/// served.
template <class Allocator>
verdict churn_was_sound(harness<Allocator>& bench, holdings const& left, churn_counts counts, u64 least) {
  verdict found;
  found.at_least("blocks served", counts.served, least);
  found.equal("damaged blocks", counts.damaged, 0u);
  found.include(accounts_for(bench, served(left)));
  return found;
}

/// Roomy: a pool that holds all that can be live. Tight: one that runs out all the time.
template <class Allocator>
verdict survives_churn(harness<Allocator> bench, u64 demanded_part_of_room, u64 rounds) {
  auto const& with = bench.with();
  u64 const slots = with.lanes() * slots_a_lane;
  u64 const most = std::clamp<u64>(bench.room_bytes() * demanded_part_of_room / 2 / slots, 16, bench.capped(40'000));
  device_buffer<holding> const list(slots);
  device_buffer<churn_counts> const counts(1);
  bench.run(churn{}, bench.ref(), list.data(), slots, rounds, most, with.seed, counts.data());
  return churn_was_sound(bench, list.to_host(), counts[0], with.lanes() * rounds / 32);
}

template <class Allocator>
verdict survives_roomy_churn(scenario const& with) {
  return survives_churn(harness<Allocator>{with}, 1, with.small ? 24 : 64);
}

template <class Allocator>
verdict survives_churn_that_runs_out(scenario const& with) {
  return survives_churn(harness<Allocator>::cramped(with.less_contended()), 16, with.small ? 24 : 16);
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::conformance
