// SPDX-License-Identifier: Apache-2.0
// The settings of a halloc heap, and which are valid.
#pragma once

#include "../../../structure/hash_probe.hpp"
#include "../../config_text.hpp"
#include "../../defaults.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace creation {

/// Settings of halloc. Name the fields that differ from the defaults; a named constexpr value
/// serves as template argument.
struct halloc_config {
  /// Bytes of the largest slabs, a power of two, 16 KiB to 8 MiB; a pool has at least 64 slabs if
  /// possible.
  u32 slab_bytes{WARPHEAP_HALLOC_SLAB_BYTES};
  /// A head is replaced when this many thousandths of its chunks are taken, 835 in the paper.
  u32 replace_at{WARPHEAP_HALLOC_REPLACE_AT};
  /// A slab with more of them taken is busy: it becomes a head only if there are no others.
  u32 busy_above{WARPHEAP_HALLOC_BUSY_ABOVE};
  /// A slab with at most this many taken is sparse: it may change to another block length.
  u32 sparse_up_to{WARPHEAP_HALLOC_SPARSE_UP_TO};
  /// The hash that chooses where in a slab to look for blocks.
  hash_parameters hash{.run = WARPHEAP_HALLOC_HASH_RUN,
                       .multiplier = WARPHEAP_HALLOC_HASH_MULTIPLIER,
                       .step = WARPHEAP_HALLOC_HASH_STEP,
                       .modulus = WARPHEAP_HALLOC_HASH_MODULUS};
  /// Places that one lane tries before it looks elsewhere.
  u32 probes{WARPHEAP_HALLOC_PROBES};
  /// Probes after which a lane checks whether the slab has room at all.
  u32 check_every{WARPHEAP_HALLOC_CHECK_EVERY};
  /// The most heads of each size; multiprocessors share them. The paper has one.
  u32 most_rows{WARPHEAP_HALLOC_MOST_ROWS};
  /// The fewest slabs for each head of a size.
  u32 slabs_per_row{WARPHEAP_HALLOC_SLABS_PER_ROW};
  /// Percentage of the pool for slabs alone, fixed, as in the paper (75); 0: slabs and large blocks
  /// share the pool.
  u32 split_percent{WARPHEAP_HALLOC_SPLIT_PERCENT};
  /// Counts replacements of heads, probes and searches: halloc::work().
  bool counts_work{WARPHEAP_HALLOC_COUNTS_WORK};
};

#if !defined(__CUDACC_RTC__)
/// The settings in words, for info().
inline std::string describe(halloc_config const& config) {
  return config_text("slab_bytes", config.slab_bytes, "replace_at", config.replace_at, "busy_above", config.busy_above,
                     "sparse_up_to", config.sparse_up_to, "hash_run", config.hash.run, "hash_multiplier",
                     config.hash.multiplier, "hash_step", config.hash.step, "hash_modulus", config.hash.modulus,
                     "probes", config.probes, "check_every", config.check_every, "most_rows", config.most_rows,
                     "slabs_per_row", config.slabs_per_row, "split_percent", config.split_percent, "counts_work",
                     config.counts_work);
}
#endif

/// Work counts of a heap with counts_work.
struct halloc_work {
  u64 replacements = 0;  ///< heads replaced
  u64 probes = 0;        ///< places tried in vain
  u64 searches = 0;      ///< of all slabs
  u64 looks = 0;         ///< of searches at slabs
  u64 word_looks = 0;    ///< of searches at words of slabs
  u64 dry_rows = 0;      ///< replacements of rows in use for which no next head was ready
  u64 waits = 0;         ///< sleeps of groups while others replaced their head
  /// Cycles for replacing heads: from locking the row until it is in service again.
  u64 replacing_cycles = 0;
  u64 longest_replacing_cycles = 0;  ///< the most that one took
  u64 caching_cycles = 0;            ///< until the next head is found as well
  u64 longest_caching_cycles = 0;    ///< the most that one took
};

/// Whether the settings are within their limits.
WARPHEAP_HOST_DEVICE constexpr bool is_valid(halloc_config const& config) {
  bool const slabs = is_power_of_two(config.slab_bytes) && config.slab_bytes >= 16384 && config.slab_bytes <= 8u << 20;
  bool const fill =
      config.sparse_up_to < config.busy_above && config.busy_above < config.replace_at && config.replace_at <= 1000;
  bool const runs = is_power_of_two(config.hash.run) && config.hash.run <= 8;
  bool const multiplier = hash_probe::is_prime(config.hash.multiplier) && config.hash.multiplier < 256;
  bool const steps = config.hash.step >= 1 && config.hash.modulus >= 2 && config.hash.modulus < 1024;
  bool const probes = config.probes >= 1 && config.check_every >= 1;
  bool const rows = is_power_of_two(config.most_rows) && config.most_rows <= 256 && config.slabs_per_row >= 1;
  return slabs && fill && runs && multiplier && steps && probes && rows && config.split_percent <= 95;
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::creation
