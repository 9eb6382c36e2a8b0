// SPDX-License-Identifier: Apache-2.0
// A quiet throughput heap seen from the host: its bins, and TBuddy's blocks, of which some are the
// chunks that hold the bins.
#pragma once

#include "../shared/bins/snapshot.hpp"

#if !defined(__CUDACC_RTC__)

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace throughput_parts {

template <class Layout, class Buddy>
class view : public bins::view<Layout> {
 public:
  view(bins::table<Layout> const& table, Buddy const& buddy) : bins::view<Layout>{table}, blocks_{buddy.snapshot()} {}

  /// A slab, in these counts, is a piece of the pool as large as a chunk, whether it is a chunk or
  /// not.
  heap_statistics figures() const {
    auto found = bins::view<Layout>::figures();
    auto const pages = blocks_.figures();
    found.pool_bytes = pages.pool_bytes;
    found.metadata_bytes += pages.metadata_bytes;
    found.slabs = pages.pool_bytes >> this->slab_log2();
    found.double_frees += pages.double_frees;
    found.foreign_frees += pages.foreign_frees;
    return found;
  }

  /// TBuddy's blocks; in place of a chunk, the blocks in it.
  template <class Visitor>
  void for_each_taken(Visitor visit) const {
    blocks_.for_each_taken([&](void* first, u64 bytes, u64 taken) {
      u64 const offset = offset_of(first);
      if (this->owner_at(offset) == 0) visit(first, bytes, taken);
      else this->for_each_taken_of(static_cast<u32>(offset >> this->slab_log2()), visit);
    });
  }

  void check_all(invariant_check& expect) const {
    bins::view<Layout>::check_all(expect);
    expect.add("pages: ", blocks_.check_invariants());
    u64 const chunk_bytes = u64{1} << this->slab_log2();
    u64 chunks = 0;
    blocks_.for_each_live([&](void* memory, u64 bytes) {
      u64 const offset = offset_of(memory);
      chunks += this->owner_at(offset) != 0 && offset % chunk_bytes == 0 && bytes == chunk_bytes;
    });
    expect(chunks == this->chunks().size(), "throughput.H1: ", this->chunks().size(), " chunks, of which ", chunks,
           " are blocks");
  }

 private:
  u64 offset_of(void* memory) const { return static_cast<u64>(static_cast<u8*>(memory) - this->pool()); }

  decltype(std::declval<Buddy const&>().snapshot()) blocks_;
};

template <class Layout, class Buddy>
using snapshot = quiet_view<view<Layout, Buddy>>;

}}}  // namespace warpheap::WARPHEAP_BACKEND::throughput_parts

#endif
