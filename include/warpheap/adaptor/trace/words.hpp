// SPDX-License-Identifier: Apache-2.0
// One record of a trace as it lies in device memory: three words.
//
//            63   60   59    58        53 52  48 47                  0
//   call    |  kind  | first | log2 align |  -   |       bytes        |
//   address |                     of the block                        |
//   place   | grid 22 | thread 10 |           thread block 32         |
//
// `first` is set in the record of the first lane of a group: the lanes that called together, whose
// records follow each other. A word `call` of 0 is a record that was reserved and never written.
// realloc has two records. `realloc_begins` has the old block, and `realloc` the new one; `bytes`
// of the latter is the place of the former in the trace.
#pragma once

#include "../../platform/types.hpp"

namespace warpheap {

/// What a record is of. The numbers stand in files.
enum class call_kind : u32 {
  none = 0,
  malloc = 1,
  calloc = 2,
  aligned_alloc = 3,
  realloc = 4,
  free = 5,
  kernel = 6,         ///< a kernel begins; only in files
  reset = 7,          ///< everything is freed
  realloc_begins = 8  ///< only in device memory
};

namespace trace_parts {

/// Bytes that a record can hold. A call for more counts as one for this many.
inline constexpr u64 most_bytes = (u64{1} << 48) - 1;

WARPHEAP_HOST_DEVICE constexpr u64 call_word(call_kind kind, bool first, u32 log2_alignment, u64 bytes) {
  return u64{static_cast<u32>(kind)} << 60 | u64{first} << 59 | u64{log2_alignment} << 53 |
         (bytes < most_bytes ? bytes : most_bytes);
}
WARPHEAP_HOST_DEVICE constexpr u64 place_word(u64 grid, u32 thread, u32 thread_block) {
  return grid << 42 | u64{thread} << 32 | thread_block;
}

/// A record with its words taken apart.
struct log_entry {
  call_kind kind = call_kind::none;
  bool first = false;
  u32 log2_alignment = 0;
  u64 bytes = 0;
  u64 address = 0;
  u32 grid = 0;
  u32 thread = 0;
  u32 thread_block = 0;
};

WARPHEAP_HOST_DEVICE constexpr log_entry entry_of(u64 call, u64 address, u64 place) {
  return {.kind = static_cast<call_kind>(call >> 60),
          .first = (call >> 59 & 1) != 0,
          .log2_alignment = static_cast<u32>(call >> 53 & 63),
          .bytes = call & most_bytes,
          .address = address,
          .grid = static_cast<u32>(place >> 42),
          .thread = static_cast<u32>(place >> 32 & 1023),
          .thread_block = static_cast<u32>(place)};
}

}  // namespace trace_parts
}  // namespace warpheap
