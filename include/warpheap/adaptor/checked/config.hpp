// SPDX-License-Identifier: Apache-2.0
// A checked heap's settings, and the errors that it finds.
#pragma once

#include "../../platform/types.hpp"

namespace warpheap {

/// The reaction to an error.
enum class on_error {
  record,  ///< it is counted and put into the table of reports, and the kernel continues
  trap     ///< it is recorded, and then ends the kernel with its description
};

/// Settings of a checked heap.
struct checked_config {
  /// Bytes after each block that are watched for overruns.
  u32 redzone_bytes = 32;
  /// Bytes before each block that are watched for underruns; a multiple of 16. The block's header
  /// lies before them.
  u32 front_redzone_bytes = 16;
  /// The most freed blocks in quarantine. With 0, a second free of a block is found only as a free
  /// of an address that is no block.
  u32 quarantine_blocks = 1024;
  /// The most bytes of blocks in quarantine.
  u64 quarantine_bytes = u64{64} << 20;
  /// Sizes that the heap aligns to more than 16 keep that alignment up to this, a power of two from
  /// 16 on. It costs a block that many bytes.
  u32 keeps_alignment_up_to = 4096;
  /// Reports that are kept; all are counted.
  u32 most_reports = 256;
  /// What an error does to its kernel.
  on_error reaction = on_error::record;
  /// Whether the heap's destructor prints errors and leaks to standard error.
  bool prints_at_end = false;
};

/// Whether the settings are within their limits.
WARPHEAP_HOST_DEVICE constexpr bool is_valid(checked_config const& config) {
  return config.redzone_bytes >= 1 && config.redzone_bytes <= 65536 && config.front_redzone_bytes >= 16 &&
         config.front_redzone_bytes <= 65536 && config.front_redzone_bytes % 16 == 0 &&
         config.keeps_alignment_up_to >= 16 &&
         (config.keeps_alignment_up_to & (config.keeps_alignment_up_to - 1)) == 0 && config.most_reports >= 1;
}

/// The errors that a checked heap distinguishes.
enum class memory_error : u32 {
  overrun,         ///< bytes after a block were written
  underrun,        ///< bytes before a block were written
  damaged_header,  ///< a write before a block went beyond its redzone
  use_after_free,  ///< a freed block was written
  double_free,     ///< a freed block was freed again
  inner_free,      ///< an address inside a block was freed
  foreign_free     ///< an address was freed that belongs to no block of this heap
};
/// Kinds of errors.
inline constexpr u32 memory_errors = 7;

/// The operation that found an error.
enum class found_in : u32 {
  free,        ///< a thread freed the block
  quarantine,  ///< the block left the quarantine
  check        ///< the host asked for a check of all blocks
};

}  // namespace warpheap
