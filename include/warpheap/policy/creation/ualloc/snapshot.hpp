// SPDX-License-Identifier: Apache-2.0
// A quiet ualloc seen from the host: its bins, and the chunks that no arena has.
#pragma once

#include "../shared/bins/snapshot.hpp"
#include "chunk_set.hpp"

#if !defined(__CUDACC_RTC__)

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace ualloc_parts {

template <class Layout>
class snapshot {
 public:
  explicit snapshot(bins::table<Layout> const& table)
      : table_{table}, bins_{table}, chunk_set_(supply_type::words_bytes(table.chunks()) / 8) {
    backend::copy_bytes(chunk_set_.data(), table.words() + table.words_bytes(), 8 * chunk_set_.size());
  }

  heap_statistics statistics() const {
    heap_statistics found{.pool_bytes = table_.pool_bytes(),
                          .metadata_bytes = table_.words_bytes() + supply_type::words_bytes(table_.chunks()),
                          .slabs = table_.chunks()};
    bins_.add_to(found);
    found.free_slabs = table_.chunks() - bins_.chunks().size();
    for (u32 const chunk : bins_.chunks()) found.empty_slabs += bins_.is_empty(chunk);
    return found;
  }

  /// Calls visit(address, bytes) for every live block in address order.
  template <class Visitor>
  void for_each_live(Visitor visit) const {
    for (u32 const chunk : bins_.chunks())
      for (auto const& [memory, bytes] : bins_.live_blocks_of(chunk)) visit(memory, bytes);
  }

  /// One line for every invariant that does not hold.
  invariant_report check_invariants() const {
    auto report = bins_.check_invariants();
    if (chunk_set_[0] != table_.chunks() - bins_.chunks().size())
      report.push_back("ualloc.T2: " + std::to_string(chunk_set_[0]) +
                       " chunks available, and as many taken as are arenas'");
    for (u32 chunk = 0; chunk < table_.chunks(); ++chunk)
      if ((chunk_set_[1 + chunk / 64] >> chunk % 64 & 1) != (bins_.owner(chunk) != 0))
        report.push_back("ualloc.T2: chunk " + std::to_string(chunk) +
                         " is no arena's and taken, or the other way round");
    return report;
  }

 private:
  using supply_type = chunk_set<Layout>;

  bins::table<Layout> table_;
  bins::snapshot<Layout> bins_;
  std::vector<u64> chunk_set_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::ualloc_parts

#endif
