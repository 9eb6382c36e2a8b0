// SPDX-License-Identifier: Apache-2.0
// A quiet ualloc seen from the host: its bins, and the chunks that no arena has.
#pragma once

#include "../shared/bins/snapshot.hpp"
#include "chunk_set.hpp"

#if !defined(__CUDACC_RTC__)

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace ualloc_parts {

template <class Layout>
class view : public bins::view<Layout> {
 public:
  explicit view(bins::table<Layout> const& table)
      : bins::view<Layout>{table}, chunks_{table.chunks()}, chunk_set_(chunk_set<Layout>::words_bytes(chunks_) / 8) {
    backend::copy_bytes(chunk_set_.data(), table.words() + table.words_bytes(), 8 * chunk_set_.size());
  }

  heap_statistics figures() const {
    auto found = bins::view<Layout>::figures();
    found.metadata_bytes += 8 * chunk_set_.size();
    return found;
  }

  void check_all(invariant_check& expect) const {
    bins::view<Layout>::check_all(expect);
    expect(chunk_set_[0] == chunks_ - this->chunks().size(), "ualloc.T2: ", chunk_set_[0],
           " chunks available, and as many taken as are arenas'");
    for (u32 chunk = 0; chunk < chunks_; ++chunk)
      expect((chunk_set_[1 + chunk / 64] >> chunk % 64 & 1) == (this->owner(chunk) != 0), "ualloc.T2: chunk ", chunk,
             " is no arena's and taken, or the other way round");
  }

 private:
  u32 chunks_;
  std::vector<u64> chunk_set_;
};

template <class Layout>
using snapshot = quiet_view<view<Layout>>;

}}}  // namespace warpheap::WARPHEAP_BACKEND::ualloc_parts

#endif
