// SPDX-License-Identifier: Apache-2.0
// A quiet random_walk seen from the host.
#pragma once

#include "../shared/quiet_view.hpp"
#include "table.hpp"

#if !defined(__CUDACC_RTC__)

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace random_walk_parts {

template <creation::random_walk_config Config>
class view : public metadata_copy {
  using table_type = table<Config>;

 public:
  explicit view(table_type const& table) : metadata_copy{table.metadata(), table.metadata_bytes()}, table_{table} {}

  heap_statistics figures() const {
    return add_calls<typename table_type::count>(
        {.pool_bytes = table_.pool_bytes(), .metadata_bytes = table_.metadata_bytes()}, 0);
  }

  template <class Visitor>
  void for_each_taken(Visitor visit) const {
    for (u32 i = 0; i < table_.words(); ++i) {
      u32 const first = i * table_type::word_pages, left = table_.pages() - first;
      u64 const pages = low_mask(left < table_type::word_pages ? left : table_type::word_pages);
      visit(table_.address(first), table_type::page_bytes, word(i).word & pages);
    }
  }

  void check_all(invariant_check& expect) const {
    for (u32 i = 0; i < table_.words(); ++i) {
      expect(table_type::word_pages > 32 || !word(i).locked(), "walk.K2: word ", i, " is locked, and nobody is there");
      expect((word(i).word & ~(walk_word::lock_bit | table_type::valid)) == 0, "walk.K3: word ", i,
             " has bits that no page has");
    }
    u32 const rest = table_.pages() % table_type::word_pages;
    expect(rest == 0 || (word(table_.words() - 1).free(table_type::valid) & ~low_mask(rest)) == 0,
           "walk.K3: a page that does not exist is free");
  }

 private:
  walk_word word(u32 index) const { return walk_word{at(table_type::words_offset)[index]}; }

  table_type table_;
};

template <creation::random_walk_config Config>
using snapshot = quiet_view<view<Config>>;

}}}  // namespace warpheap::WARPHEAP_BACKEND::random_walk_parts

#endif
