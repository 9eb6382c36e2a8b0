// SPDX-License-Identifier: Apache-2.0
// A quiet heap of index queues seen from the host: its metadata is copied once, then read by plain
// code.
#pragma once

#include "table.hpp"

#if !defined(__CUDACC_RTC__)

#include <string>
#include <vector>

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace queue_parts {

template <creation::queue_config Config>
class snapshot {
  using table_type = table<Config>;

 public:
  explicit snapshot(table_type const& table) : table_{table}, bytes_(table.metadata_bytes()) {
    backend::copy_bytes(bytes_.data(), table.metadata(), bytes_.size());
  }

  heap_statistics statistics() const {
    heap_statistics found{
        .pool_bytes = table_.pool_bytes(), .metadata_bytes = table_.metadata_bytes(), .slabs = table_.chunks()};
    for (u32 chunk = 0; chunk < table_.chunks(); ++chunk) {
      chunk_word const role = word_of(chunk, 0);
      u64 const live = live_pages(chunk);
      found.free_slabs += !role.live();
      found.empty_slabs += role.live() && live == 0;
      found.live_blocks += live;
      found.live_bytes += live * table_type::page_bytes(role.size_class());
    }
    found.double_frees = counted(table_type::count::double_frees);
    found.foreign_frees = counted(table_type::count::foreign_frees);
    found.failures = counted(table_type::count::failures);
    return found;
  }

  /// Items in the queue of a class.
  u64 queued(u32 size_class) const {
    return copy_of(table_.index(size_class).queue.words())[table_type::queue_type::available_word];
  }

  /// Calls visit(address, bytes) for every owned page in address order.
  template <class Visitor>
  void for_each_live(Visitor visit) const {
    for (u32 chunk = 0; chunk < table_.chunks(); ++chunk) {
      u32 const size_class = word_of(chunk, 0).size_class();
      for (u32 page = 0; page < table_type::pages(size_class); ++page)
        if (is_live(chunk, page))
          visit(table_.pool() + u64{chunk} * Config.chunk_bytes + page * table_type::page_bytes(size_class),
                table_type::page_bytes(size_class));
    }
  }

  /// One line for every invariant that does not hold.
  invariant_report check_invariants() const {
    invariant_report report;
    auto const free = check_queue(report, "the queue of free chunks", table_.free_chunks(), nullptr);
    for (u32 chunk = 0; chunk < table_.chunks(); ++chunk)
      check_chunk(report, chunk, free[chunk / 32] >> chunk % 32 & 1);
    std::vector<bool> has_slots(table_.chunks());
    for (u32 c = 0; c < table_type::classes; ++c) {
      std::string const name = "the queue of class " + std::to_string(c);
      auto const index = table_.index(c);
      if constexpr (table_type::is_virtual) check_virtual(report, name, c, index, has_slots);
      else check_queue(report, name, index.queue, index.queued);
    }
    for (u32 chunk = 0; chunk < table_.chunks(); ++chunk)
      if (word_of(chunk, 0).has_slots() != has_slots[chunk])
        report.push_back("queue.W4: the slots of chunk " + std::to_string(chunk));
    return report;
  }

 private:
  void check_chunk(invariant_report& report, u32 chunk, bool is_queued) const {
    auto const wrong = [&](char const* what) { report.push_back(what + (" in chunk " + std::to_string(chunk))); };
    chunk_word const first = word_of(chunk, 0);
    if (first.live() + is_queued + first.has_slots() != 1) wrong("queue.C1: a class and no class, or neither,");
    if (first.live() && first.size_class() >= table_type::classes) return wrong("queue.W2: no such class");
    u32 const live_words = first.live() ? table_type::words(first.size_class()) : 0;
    u32 const missing = table_type::empty_word(first.size_class()).taken();
    for (u32 i = 0; i < table_type::chunk_words; ++i) {
      chunk_word const seen = word_of(chunk, i);
      if (seen.live() != (i < live_words)) wrong("queue.W2: a word that is live and should not, or should");
      if (!seen.live() && !seen.has_slots() && seen.taken() != 0)
        wrong("queue.W2: a page taken in a word without a class");
      if (seen.live() && !seen.same_role(first)) wrong("queue.W2: words of two classes");
      if (seen.live() && (seen.taken() & missing) != missing) wrong("queue.W3: a page that does not exist is free");
    }
  }

  /// Checks a queue and returns a bit for each item, set if the item is in it; `queued` has the
  /// bits that say so, or is nullptr. There may be 2^30 items: bits are compared by words.
  std::vector<u32> check_queue(invariant_report& report, std::string const& name, ring_queue const& queue,
                               u32 const* queued) const {
    u32 const* const words = copy_of(queue.words());
    u32 const *const ring = words + ring_queue::index_words, count = queue.slot_count();
    u32 const pops = words[ring_queue::pops_word], size = words[ring_queue::pushes_word] - pops;
    std::vector<u32> seen((u64{queue.items()} + 31) / 32);
    if (words[ring_queue::available_word] != size || size > queue.items())
      report.push_back("ring_queue.Q1, ring_queue.Q3: counts of " + name);
    auto const wrong = [&](u32 i) {
      report.push_back("ring_queue.Q5, queue.H1: slot " + std::to_string(i) + " of " + name);
    };
    for (u32 i = 0; i < size && i < count; ++i) {
      u32 const item = ring[(pops + i) & (count - 1)] - 1, bit = 1u << item % 32;
      if (item >= queue.items() || (seen[item / 32] & bit)) wrong(i);
      else seen[item / 32] |= bit;
    }
    for (u32 slot = 0; slot < count; ++slot) {
      u32 const i = (slot - pops) & (count - 1);
      if (ring[slot] != 0 && i >= size) wrong(i);
    }
    for (u32 word = 0; queued && word < seen.size(); ++word)
      if (u32 const differ = seen[word] ^ copy_of(queued)[word]; differ != 0)
        report.push_back("queue.H1: the bit of item " + std::to_string(32 * word + lowest_bit(differ)) + " of " + name);
    return seen;
  }

  /// Checks the counts and the directory of a virtual queue, and notes the chunks that have its
  /// slots.
  void check_virtual(invariant_report& report, std::string const& name, u32 size_class,
                     class_index<typename table_type::queue_type> const& index, std::vector<bool>& has_slots) const {
    using queue = typename table_type::queue_type;
    u32 const* const words = copy_of(index.queue.words());
    u32 const pushes = words[queue::pushes_word], pops = words[queue::pops_word];
    u32 const installed = words[queue::installed_word], end = installed * queue::entries;
    if (words[queue::available_word] != pushes - pops) report.push_back("queue.V2: available items of " + name);
    if (words[queue::room_word] != end - pushes) report.push_back("queue.V1: the room of " + name);
    u32 queued = 0;
    for (u32 word = 0; word < (u64{index.queue.items()} + 31) / 32; ++word)
      queued += popcount(copy_of(index.queued)[word]);
    if (queued > pushes - pops) report.push_back("queue.H1: more bits than items of " + name);
    u32 const segments = queue::segments_for(index.queue.items()), first = pops / queue::entries;
    for (u32 i = 0; i < segments; ++i) {
      u32 const segment = first + i;
      u32 const* const entry = words + queue::index_words + queue::entry_words * (segment % segments);
      u32 const chunk = entry[queue::chunk_word] - 1,
                left = i == 0 ? queue::entries - pops % queue::entries : queue::entries;
      bool const is_there =
          segment * queue::entries + (i == 0 ? pops % queue::entries : 0) != end && segment < installed;
      if (is_there != (entry[queue::chunk_word] != 0))
        report.push_back("queue.V3: segment " + std::to_string(segment) + " of " + name);
      if (!is_there || entry[queue::chunk_word] == 0) continue;
      if (entry[0] != segment + 1 || entry[queue::left_word] != left || word_of(chunk, 0).taken() != size_class)
        report.push_back("queue.V2: the entry of segment " + std::to_string(segment) + " of " + name);
      has_slots[chunk] = true;
    }
  }

  chunk_word word_of(u32 chunk, u32 i) const {
    u64 const at = table_type::words_offset + 8 * u64{table_type::first_word(chunk) + i};
    return {*reinterpret_cast<u64 const*>(bytes_.data() + at)};
  }
  bool is_live(u32 chunk, u32 page) const {
    chunk_word const seen = word_of(chunk, page / word_pages);
    return seen.live() && (seen.taken() >> page % word_pages & 1) != 0;
  }
  u64 live_pages(u32 chunk) const {
    chunk_word const first = word_of(chunk, 0);
    if (!first.live()) return 0;
    u32 const missing = table_type::empty_word(first.size_class()).taken();
    u64 live = 0;
    for (u32 i = 0; i < table_type::words(first.size_class()); ++i)
      live += word_of(chunk, i).live() ? popcount(word_of(chunk, i).taken() & ~missing) : 0;
    return live;
  }
  /// What the heap's metadata at an address was when it was copied.
  u32 const* copy_of(u32 const* place) const {
    return reinterpret_cast<u32 const*>(bytes_.data() + (reinterpret_cast<u8 const*>(place) - table_.metadata()));
  }
  u64 counted(typename table_type::count which) const {
    return reinterpret_cast<u64 const*>(bytes_.data())[static_cast<u32>(which)];
  }

  table_type table_;
  std::vector<u8> bytes_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::queue_parts

#endif
