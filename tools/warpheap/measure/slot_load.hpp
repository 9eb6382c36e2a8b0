// SPDX-License-Identifier: Apache-2.0
// A load of blocks that live across kernels, in slots that hold a block each. In every step one
// kernel frees a quarter of them, and another asks for new blocks of other sizes. What a step does
// is a pure function of the seed, its number and the slot. So the same load can be run with checks,
// by the clock, or by the stopwatch, on every allocator.
//
//   constant   sizes are drawn from the whole range, and all slots are in use
//   drifting   sizes are drawn from two octaves, which move from the least of the range to the most
//              and back; as they grow, fewer slots are in use
//
// slot_load.L1  The number of slots is that of blocks of the range's mean size that make up the
//     level, a share of the pool. A level above 1 asks for more than there is.
// slot_load.L2  The bytes asked for stay at or below the level on average: a step leaves as many
//     slots in use as blocks of its mean size make up the level. Slots that it does not choose keep
//     blocks of earlier steps, of which the same is true.
// slot_load.L3  Of four neighbouring slots a step chooses one, by a hash: the slot of call i, which
//     thread i makes. So all lanes of a warp call, and the calls of a step are known beforehand.
#pragma once

#include "log_uniform.hpp"
#include "warpheap/util/random.hpp"

namespace warpheap::bench {

/// A level or another share, in thousandths, as results name it.
inline u64 permille_of(double share) { return static_cast<u64>(std::lround(1000 * share)); }

/// Sizes of step `number`, drawn from two octaves that move from the least of the range to the most
/// and back in the course of `steps`.
inline log_uniform_draw drifting_sizes(size_range range, u64 number, u64 steps) {
  double const least = static_cast<double>(range.least), most = static_cast<double>(range.most);
  double const octaves = std::log2(most / least), window = std::min(octaves, 2.0);
  double const turned = 2.0 * static_cast<double>(number % steps) / static_cast<double>(steps);
  // 0 at the least of the range, 1 at the most
  double const way = turned < 1 ? turned : 2 - turned;
  double const from = least * std::exp2((octaves - window) * way);
  return log_uniform_draw::from({static_cast<u64>(std::llround(from)),
                                 std::min(range.most, static_cast<u64>(std::llround(from * std::exp2(window))))});
}

/// Slots of which one is chosen.
inline constexpr u64 slot_group = 4;

/// What one step does.
struct slot_step {
  u64 key;  ///< a random number of this step
  /// Slots [0, used) ask for a block, the others are only emptied; a multiple of slot_group.
  u64 used;
  log_uniform_draw sizes;  ///< of the blocks that are asked for
  bool every_slot;         ///< chooses all, not a quarter

  constexpr u64 calls(u64 slots) const { return every_slot ? slots : slots / slot_group; }
  /// Calls of malloc among them.
  constexpr u64 mallocs() const { return every_slot ? used : used / slot_group; }

  WARPHEAP_HOST_DEVICE constexpr u64 slot_of(u64 call) const {
    return every_slot ? call : call * slot_group + (mix(key + call) >> 62);
  }
  /// 0: nothing.
  WARPHEAP_HOST_DEVICE constexpr u64 bytes(u64 slot) const {
    return slot < used ? sizes.of(static_cast<u32>(mix(key - 1 - slot) >> 32)) : 0;
  }
};

enum class load_kind { constant, drifting };

class slot_load {
 public:
  /// `steps` of a drift from the smallest sizes to the largest and back.
  slot_load(load_kind kind, size_range range, u64 pool_bytes, double level, u64 steps, u64 seed)
      : kind_{kind},
        range_{range},
        bytes_{level * static_cast<double>(pool_bytes)},
        slots_{slots_of(log_uniform_draw::from(range))},
        steps_{steps},
        seed_{seed} {}

  u64 slots() const { return slots_; }

  /// The step that fills the empty slots, before the first step.
  slot_step filling() const {
    auto first = step(0);
    first.every_slot = true;
    return first;
  }
  /// The step that frees all blocks.
  static slot_step emptying() { return {.key = 0, .used = 0, .sizes = {}, .every_slot = true}; }

  /// Step `number`, from 1.
  slot_step step(u64 number) const {
    auto const sizes = sizes_at(number);
    return {.key = mix(seed_ ^ mix(number + 1)),
            .used = std::min(slots_, slots_of(sizes)),
            .sizes = sizes,
            .every_slot = false};
  }

 private:
  /// slot_load.L1, slot_load.L2
  u64 slots_of(log_uniform_draw sizes) const {
    u64 const groups = static_cast<u64>(bytes_ / sizes.mean()) / slot_group;
    return std::max<u64>(groups, 1) * slot_group;
  }

  log_uniform_draw sizes_at(u64 number) const {
    return kind_ == load_kind::constant ? log_uniform_draw::from(range_) : drifting_sizes(range_, number, steps_);
  }

  load_kind kind_;
  size_range range_;
  double bytes_;  ///< of the level
  u64 slots_;
  u64 steps_;
  u64 seed_;
};

/// The pool whose share `level` is filled by blocks of mean size in `slots` slots, but at least
/// `least_bytes` and at most `most_bytes`. Rounded up to a multiple of a power of two that is less
/// than a hundredth of it, so that allocators that cut a pool into slabs leave nothing over.
inline u64 pool_for_level(u64 slots, double mean_bytes, double level, u64 least_bytes, u64 most_bytes) {
  double const exact = std::ceil(static_cast<double>(slots) * mean_bytes / level);
  if (exact >= static_cast<double>(most_bytes)) return most_bytes;
  u64 const bytes = std::max(static_cast<u64>(exact), least_bytes);
  u64 unit = 1;
  while (unit * 2 * 128 <= bytes) unit *= 2;
  return std::min((bytes + unit - 1) / unit * unit, most_bytes);
}

}  // namespace warpheap::bench
