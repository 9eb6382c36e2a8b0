// SPDX-License-Identifier: Apache-2.0
// A quiet throughput heap seen from the host: its bins, and TBuddy's blocks, of which some are the
// chunks that hold the bins.
#pragma once

#include "../shared/bins/snapshot.hpp"

#if !defined(__CUDACC_RTC__)
#include <utility>

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace throughput_parts {

template <class Layout, class Buddy>
class snapshot {
 public:
  snapshot(bins::table<Layout> const& table, Buddy const& buddy)
      : table_{table}, bins_{table}, blocks_{buddy.snapshot()} {}

  /// A slab, in these counts, is a piece of the pool as large as a chunk, whether it is a chunk or
  /// not.
  heap_statistics statistics() const {
    auto const blocks = blocks_.statistics();
    heap_statistics found{.pool_bytes = blocks.pool_bytes,
                          .metadata_bytes = blocks.metadata_bytes + table_.words_bytes(),
                          .slabs = blocks.pool_bytes >> table_.chunk().log2};
    found.double_frees = blocks.double_frees;
    found.foreign_frees = blocks.foreign_frees;
    bins_.add_to(found);
    std::vector<bool> used(table_.chunks() + 1);
    for_each_live([&](void* memory, size_t bytes) {
      u64 const offset = offset_of(memory);
      if (bins_.owner_at(offset) == 0) {
        ++found.live_blocks;
        found.live_bytes += bytes;
      }
      for (u64 at = offset; at < offset + bytes; at += table_.chunk().bytes()) used[at >> table_.chunk().log2] = true;
    });
    for (u32 chunk = 0; chunk < found.slabs; ++chunk)
      if (!used[chunk]) ++(bins_.owner(chunk) == 0 ? found.free_slabs : found.empty_slabs);
    return found;
  }

  /// Calls visit(address, bytes) for every block that a caller holds, in address order; in place of
  /// a chunk, for the blocks in it.
  template <class Visitor>
  void for_each_live(Visitor visit) const {
    blocks_.for_each_live([&](void* memory, size_t bytes) {
      u64 const offset = offset_of(memory);
      if (bins_.owner_at(offset) == 0) return visit(memory, bytes);
      for (auto const& [block, its_bytes] : bins_.live_blocks_of(static_cast<u32>(offset >> table_.chunk().log2)))
        visit(block, its_bytes);
    });
  }

  /// One line for every invariant that does not hold.
  invariant_report check_invariants() const {
    auto report = bins_.check_invariants();
    for (auto const& line : blocks_.check_invariants()) report.push_back("pages: " + line);
    u64 chunks = 0;
    blocks_.for_each_live([&](void* memory, size_t bytes) {
      u64 const offset = offset_of(memory);
      chunks += bins_.owner_at(offset) != 0 && offset % table_.chunk().bytes() == 0 && bytes == table_.chunk().bytes();
    });
    if (chunks != bins_.chunks().size())
      report.push_back("throughput.H1: " + std::to_string(bins_.chunks().size()) + " chunks, of which " +
                       std::to_string(chunks) + " are blocks");
    return report;
  }

 private:
  u64 offset_of(void* memory) const { return static_cast<u64>(static_cast<u8*>(memory) - table_.pool()); }

  bins::table<Layout> table_;
  bins::snapshot<Layout> bins_;
  decltype(std::declval<Buddy const&>().snapshot()) blocks_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::throughput_parts

#endif
