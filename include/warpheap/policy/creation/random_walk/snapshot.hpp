// SPDX-License-Identifier: Apache-2.0
// A quiet random_walk seen from the host: its metadata copied once, and counted.
#pragma once

#include "../report.hpp"
#include "table.hpp"

#if !defined(__CUDACC_RTC__)
#include <string>
#include <vector>

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace random_walk_parts {

template <creation::random_walk_config Config>
class snapshot {
  using table_type = table<Config>;

 public:
  explicit snapshot(table_type const& table) : table_{table}, words_(table.metadata_bytes() / 8) {
    backend::copy_bytes(words_.data(), table.metadata(), 8 * words_.size());
  }

  u64 available() const {
    u64 free = 0;
    for (u32 i = 0; i < table_.words(); ++i) free += popcount(word(i).free(table_type::valid));
    return free;
  }

  heap_statistics statistics() const {
    heap_statistics counted{.pool_bytes = table_.pool_bytes(), .metadata_bytes = table_.metadata_bytes()};
    counted.live_blocks = table_.pages() - available();
    counted.live_bytes = counted.live_blocks * table_type::page_bytes;
    counted.double_frees = count(table_type::count::double_frees);
    counted.foreign_frees = count(table_type::count::foreign_frees);
    counted.failures = count(table_type::count::failures);
    return counted;
  }

  /// Calls visit(address, bytes) for every page that is taken, in address order.
  template <class Visitor>
  void for_each_live(Visitor visit) const {
    for (u32 page = 0; page < table_.pages(); ++page)
      if (word(page / table_type::word_pages).free(table_type::bit_of(page)) == 0)
        visit(table_.address(page), table_type::page_bytes);
  }

  /// One line for every invariant that does not hold.
  invariant_report check_invariants() const {
    invariant_report report;
    for (u32 i = 0; i < table_.words(); ++i) {
      if (table_type::word_pages <= 32 && word(i).locked())
        report.push_back("walk.K2: word " + std::to_string(i) + " is locked, and nobody is there");
      if (word(i).word & ~(walk_word::lock_bit | table_type::valid))
        report.push_back("walk.K3: word " + std::to_string(i) + " has bits that no page has");
    }
    u32 const rest = table_.pages() % table_type::word_pages;
    if (rest != 0 && (word(table_.words() - 1).free(table_type::valid) & ~low_mask(rest)) != 0)
      report.push_back("walk.K3: a page that does not exist is free");
    return report;
  }

 private:
  walk_word word(u32 index) const { return walk_word{words_[table_type::words_offset / 8 + index]}; }
  u64 count(typename table_type::count which) const { return words_[static_cast<u32>(which)]; }

  table_type table_;
  std::vector<u64> words_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::random_walk_parts

#endif
