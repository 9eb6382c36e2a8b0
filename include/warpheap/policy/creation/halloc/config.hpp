// What may be chosen about a halloc heap, and which choices make sense.
#pragma once

#include "../../../structure/hash_probe.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {
namespace creation {

/// Tuning of halloc. Name the fields that differ from the defaults; a named constexpr value serves as template argument.
struct halloc_config {
  u32 slab_bytes = 4u << 20;  ///< largest slab, a power of two, 16 KiB to 8 MiB; a pool has at least 64 where it can
  u32 replace_at = 835;       ///< a head is replaced when so many thousandths of its chunks are taken
  u32 busy_above = 600;    ///< a slab with more taken is busy: no head is found among the busy, but for want of others
  u32 sparse_up_to = 250;  ///< a slab with no more taken is sparse: it may go over to another block length
  hash_parameters hash = {};  ///< where in a slab blocks are looked for
  u32 probes = 8;             ///< places that one lane tries before it looks elsewhere
  u32 check_every = 4;        ///< probes after which a lane looks whether the slab has room at all
  u32 most_rows = 16;         ///< heads of each size, at most: multiprocessors share them
  u32 slabs_per_row = 64;     ///< and at most one for so many slabs
  u32 split_percent =
      0;  ///< of the pool for slabs alone, fixed, as in the paper (75); 0: slabs and large blocks share it
  bool counts_work = false;  ///< counts replacements of heads, probes and searches: halloc::work()
};

/// What halloc did that is not seen from outside.
struct halloc_work {
  u64 replacements = 0;  ///< heads replaced
  u64 probes = 0;        ///< places tried in vain
  u64 searches = 0;      ///< of all slabs
  u64 looks = 0;         ///< of searches at slabs
  u64 word_looks = 0;    ///< of searches at words of slabs
  u64 dry_rows = 0;      ///< replacements of rows in use for which no next head was ready
  u64 waits = 0;         ///< naps of groups while others replaced their head
  /// Cycles of who replaced a head, in all and the longest: from when it had the row to when the row was in service again, and
  /// to when the next head was found as well.
  u64 replacing_cycles = 0, longest_replacing_cycles = 0, caching_cycles = 0, longest_caching_cycles = 0;
};

/// Whether every part of the allocator can work with `config`; static_assert tells which rule is broken.
template <halloc_config Config>
struct checked_halloc_config {
  static_assert(is_power_of_two(Config.slab_bytes) && Config.slab_bytes >= 16384 && Config.slab_bytes <= 8u << 20,
                "halloc: slabs are a power of two of 16 KiB to 8 MiB");
  static_assert(Config.sparse_up_to < Config.busy_above && Config.busy_above < Config.replace_at &&
                    Config.replace_at <= 1000,
                "halloc: sparse is less than busy, busy less than where heads are replaced, and that at most 1000");
  static_assert(is_power_of_two(Config.hash.run) && Config.hash.run <= 8, "halloc: runs of 1, 2, 4 or 8 places");
  static_assert(hash_probe::is_prime(Config.hash.multiplier) && Config.hash.multiplier < 256,
                "halloc: the hash's multiplier is a prime below 256");
  static_assert(Config.hash.step >= 1 && Config.hash.modulus >= 2 && Config.hash.modulus < 1024,
                "halloc: the hash's step is 1 or more, its modulus 2 to 1,023");
  static_assert(Config.probes >= 1 && Config.check_every >= 1, "halloc: at least one probe");
  static_assert(is_power_of_two(Config.most_rows) && Config.most_rows <= 256 && Config.slabs_per_row >= 1,
                "halloc: rows are a power of two up to 256");
  static_assert(Config.split_percent <= 95, "halloc: large blocks need some of the pool");
  static constexpr halloc_config value = Config;
};

}  // namespace creation
}  // namespace warpheap::inline WARPHEAP_BACKEND
