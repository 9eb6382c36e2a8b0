// A quiet random_walk seen from the host: its metadata copied once, and counted.
#pragma once

#include "walk_pages.hpp"

#if !defined(__CUDACC_RTC__)
#include <string>
#include <vector>

namespace warpheap::inline WARPHEAP_BACKEND {

template <creation::random_walk_config Config>
class walk_snapshot {
  using pages_type = walk_pages<Config>;

 public:
  explicit walk_snapshot(pages_type const& pages) : pages_{pages}, words_(pages.metadata_bytes() / 8) {
    backend::copy_bytes(words_.data(), pages.metadata(), 8 * words_.size());
  }

  u64 available() const {
    u64 free = 0;
    for (u32 i = 0; i < pages_.words(); ++i) free += popcount(word(i).free(pages_type::valid));
    return free;
  }

  heap_statistics statistics() const {
    heap_statistics counted{.pool_bytes = pages_.pool_bytes(), .metadata_bytes = pages_.metadata_bytes()};
    counted.live_blocks = pages_.pages() - available();
    counted.live_bytes = counted.live_blocks * pages_type::page_bytes;
    counted.double_frees = count(walk_count::double_frees);
    counted.foreign_frees = count(walk_count::foreign_frees);
    counted.failures = count(walk_count::failures);
    return counted;
  }

  /// Calls visit(address, bytes) for every page that is taken, in address order.
  template <class Visitor>
  void for_each_live(Visitor visit) const {
    for (u32 page = 0; page < pages_.pages(); ++page)
      if (word(page / pages_type::word_pages).free(pages_type::bit_of(page)) == 0)
        visit(pages_.address(page), pages_type::page_bytes);
  }

  /// One line for every invariant that does not hold.
  invariant_report check_invariants() const {
    invariant_report report;
    for (u32 i = 0; i < pages_.words(); ++i) {
      if (pages_type::word_pages <= 32 && word(i).locked())
        report.push_back("K2: word " + std::to_string(i) + " is locked, and nobody is there");
      if (word(i).word & ~(walk_word::lock_bit | pages_type::valid))
        report.push_back("K3: word " + std::to_string(i) + " has bits that no page has");
    }
    u32 const rest = pages_.pages() % pages_type::word_pages;
    if (rest != 0 && (word(pages_.words() - 1).free(pages_type::valid) & ~low_mask(rest)) != 0)
      report.push_back("K3: a page that does not exist is free");
    return report;
  }

 private:
  walk_word word(u32 index) const { return walk_word{words_[pages_type::words_offset / 8 + index]}; }
  u64 count(walk_count which) const { return words_[static_cast<u32>(which)]; }

  pages_type pages_;
  std::vector<u64> words_;
};

}  // namespace warpheap::inline WARPHEAP_BACKEND

#endif
