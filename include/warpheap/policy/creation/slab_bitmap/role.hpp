// What `free` needs to know of a slab, in a read-mostly word of its own: reading the class in the descriptor, which
// everybody changes, cost 30%.
//
//    31 30   28 27           7 6          0
//   |R |   0   | reciprocal  | class + 1  |    R clear: blocks of one size; 0: never had a class
//   |R |         length                   |    R set: first slab of a run of `length` slabs
//
// The reciprocal of the block's units makes the index of a block one multiplication. For an offset of q < 2^17 units and
// m = ceil(2^20 / units), q * m / 2^20 exceeds q / units by less than q * units / 2^20 / units < 1 / units.
#pragma once

#include "../../../structure/size_class.hpp"

namespace warpheap {

struct slab_role {
  u32 word = 0;

  static constexpr u32 run_bit = 1u << 31;

  WARPHEAP_HOST_DEVICE static constexpr slab_role of_class(u32 size_class) {
    u32 const units = class_units(size_class);
    return {((1u << 20) + units - 1) / units << 7 | (size_class + 1)};
  }
  WARPHEAP_HOST_DEVICE static constexpr slab_role of_run(u32 slabs) { return {run_bit | slabs}; }

  WARPHEAP_HOST_DEVICE constexpr bool is_none() const { return word == 0; }
  WARPHEAP_HOST_DEVICE constexpr bool is_run() const { return word & run_bit; }
  /// Slabs of the run that starts here.
  WARPHEAP_HOST_DEVICE constexpr u32 length() const { return word & ~run_bit; }
  WARPHEAP_HOST_DEVICE constexpr u32 size_class() const { return (word & 127) - 1; }
  /// Whether the slab has blocks of `its_class`.
  WARPHEAP_HOST_DEVICE constexpr bool is_of(u32 its_class) const { return !is_run() && (word & 127) == its_class + 1; }

  /// Index of the block that starts at `offset` bytes in the slab; no_block if none does.
  WARPHEAP_HOST_DEVICE constexpr u32 index_at(u32 offset) const {
    u32 const unit_log2 = class_unit_log2(size_class());
    u32 const quotient = offset >> unit_log2;
    u32 const index = static_cast<u32>((u64{quotient << 12} * ((word >> 7) & 0x1fffff)) >> 32);
    return (index * class_units(size_class())) << unit_log2 == offset ? index : no_block;
  }
  static constexpr u32 no_block = ~0u;
};

static_assert(slab_role::of_class(0).index_at(16 * 77) == 77 && slab_role::of_class(2).index_at(48 * 5) == 5);
static_assert(slab_role::of_class(2).index_at(40) == slab_role::no_block && slab_role::of_class(63).size_class() == 63);

}  // namespace warpheap
