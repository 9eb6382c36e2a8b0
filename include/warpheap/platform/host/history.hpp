// The last few values of every word that lanes access atomically, found by address.
//
// A word is 8 bytes of memory: one 8-byte location or two 4-byte ones. Memory that is accessed in
// both widths is `mixed`: its loads always get the newest value, and each change there synchronizes
// as a read-modify-write of the whole word.
#pragma once

#include <deque>
#include <vector>

#include "lane.hpp"
#include "view.hpp"

namespace warpheap::host::detail {

/// A value that a location held, since step `step`.
struct message {
  u64 value = 0;
  u64 step = 0;
  view* released = nullptr;              // what an acquire of it learns
  thread_block const* writer = nullptr;  // null: before the run
  bool block_scope = false;              // released to the writer's thread block alone
};

/// Values of one location, newest last.
struct location {
  static constexpr u32 depth = 4;

  u32 id = 0;
  u32 count = 0;
  message messages[depth];

  message& newest() { return messages[count - 1]; }
};

struct word_history {
  enum class width : u8 { unknown, wide, narrow, mixed };

  width accessed = width::unknown;
  location parts[2];
};

class history_table {
 public:
  word_history& word_of(u64 address) {
    if (words_.size() * 2 >= slots_.size()) grow();
    auto& slot = slot_of(address >> 3);
    if (!slot.word) {
      auto& made = words_.emplace_back();
      made.parts[0].id = static_cast<u32>(2 * words_.size());
      made.parts[1].id = made.parts[0].id + 1;
      slot = {address >> 3, &made};
    }
    return *slot.word;
  }

 private:
  struct slot {
    u64 key = 0;
    word_history* word = nullptr;
  };

  slot& slot_of(u64 key) {
    u64 const mask = slots_.size() - 1;
    for (u64 i = key * 0x9e37'79b9'7f4a'7c15ull >> 20;; ++i) {
      auto& found = slots_[i & mask];
      if (!found.word || found.key == key) return found;
    }
  }

  void grow() {
    std::vector<slot> old(slots_.empty() ? 1024 : 4 * slots_.size());
    old.swap(slots_);
    for (auto const& each : old) {
      if (each.word) slot_of(each.key) = each;
    }
  }

  std::deque<word_history> words_;
  std::vector<slot> slots_;
};

}  // namespace warpheap::host::detail
