// SPDX-License-Identifier: Apache-2.0
// A hash join of `warpheap join`: its tables, what it is asked for, and the names of outputs that
// are no allocators of the backend.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "measure/result.hpp"
#include "warpheap/adaptor/trace/calls.hpp"

namespace warpheap::tool {

/// A table of a join, by columns of the same length.
struct join_table {
  std::vector<u32> keys = {}, payloads = {};

  u64 tuples() const { return keys.size(); }
};

/// A result of a join as a checksum that does not depend on the order of its tuples.
struct join_sum {
  u64 tuples = 0;
  u64 checksum = 0;

  friend bool operator==(join_sum const&, join_sum const&) = default;
};

/// Rows of a join's result, by columns of the same length.
struct join_rows {
  std::vector<u32> keys = {}, build_payloads = {}, probe_payloads = {};
};

/// One hash join. The tables outlive it.
struct join_settings {
  join_table const* build = nullptr;
  join_table const* probe = nullptr;
  join_sum expected = {};  ///< the result that is expected
  u64 page_bytes = 256;    ///< of the output
  u32 lanes_a_chain = 32;  ///< lanes that share a chain of pages: a whole warp, or 1
  u32 partition_bits = 0;  ///< both tables are cut into 2^partition_bits partitions
  u64 pool_bytes = 0;
  u32 repeat = 3;
  bench::progress report = [](std::string const&, u64, u64) {};
  /// If set, it is given every row of the last round's result once, in batches and in no order.
  std::function<void(join_rows const&)> take_rows = {};
  /// If set, the calls of the default allocator are recorded, and it is given their trace at the
  /// end.
  std::function<void(call_trace const&)> take_trace = {};
};

/// The name under which join() takes its pages from an array in its order, and from no allocator.
inline constexpr char const* direct_output = "direct";
/// Direct output in which the lanes of a warp that take a page together make one addition.
inline constexpr char const* direct_output_by_warp = "direct_warp";
/// Names that only join() knows: the random walks with pages of 256 bytes, as Pham et al. 2022
/// joined. rw, rw_bitmap and corw have pages of 8 KiB.
inline constexpr char const* join_walks[] = {"rw_256", "rw_bitmap_256", "corw_256"};

/// A backend's part: times of whole joins, of their part that allocates, and of freeing.
struct join_job {
  std::vector<bench::result> (*run)(std::string const& allocator, join_settings const& settings);
};

}  // namespace warpheap::tool
