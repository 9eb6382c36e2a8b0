// SPDX-License-Identifier: Apache-2.0
// Which words one lane changes while another accesses them.
#pragma once

#include <memory_resource>
#include <vector>

#include "../platform/types.hpp"
#include "../util/random.hpp"

namespace warpheap::explore {

/// Words of 8 bytes, found by address. A word once shared stays so.
class shared_words {
 public:
  explicit shared_words(std::pmr::memory_resource* memory) : words_(1024, memory) {}

  /// Lane `lane`, [0, 64), accesses a word, and changes it or not.
  void add(u64 address, u64 lane, bool changes) {
    if (2 * (used_ + 1) > words_.size()) grow();
    auto& found = place_of(address >> 3);
    used_ += found.key == 0;
    found.key = address >> 3;
    bool const was = found.is_shared();
    found.lanes |= u64{1} << lane;
    found.is_changed |= changes;
    has_grown_ |= found.is_shared() && !was;
  }

  /// Fences and collectives, address 0, are no words.
  bool is_shared(u64 address) const { return address != 0 && place_of(address >> 3).is_shared(); }

  /// Whether a word became shared since the last call.
  bool has_grown() {
    bool const grown = has_grown_;
    has_grown_ = false;
    return grown;
  }

 private:
  struct word {
    u64 key = 0;
    u64 lanes = 0;
    bool is_changed = false;
    bool is_shared() const { return is_changed && (lanes & (lanes - 1)) != 0; }
  };

  word& place_of(u64 key) { return words_[index_of(key)]; }
  word const& place_of(u64 key) const { return words_[index_of(key)]; }

  size_t index_of(u64 key) const {
    u64 const mask = words_.size() - 1;
    u64 place = mix(key) & mask;
    while (words_[place].key != 0 && words_[place].key != key) place = (place + 1) & mask;
    return place;
  }

  void grow() {
    std::pmr::vector<word> old(2 * words_.size(), words_.get_allocator());
    old.swap(words_);
    for (auto const& each : old)
      if (each.key != 0) place_of(each.key) = each;
  }

  std::pmr::vector<word> words_;
  u64 used_ = 0;
  bool has_grown_ = false;
};

}  // namespace warpheap::explore
