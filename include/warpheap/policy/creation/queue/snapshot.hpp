// SPDX-License-Identifier: Apache-2.0
// A quiet heap of index queues seen from the host.
#pragma once

#include "../shared/quiet_ring.hpp"
#include "table.hpp"

#if !defined(__CUDACC_RTC__)

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace queue_parts {

template <creation::queue_config Config>
class view : public metadata_copy {
  using table_type = table<Config>;

 public:
  explicit view(table_type const& table) : metadata_copy{table.metadata(), table.metadata_bytes()}, table_{table} {}

  heap_statistics figures() const {
    return add_calls<typename table_type::count>(
        {.pool_bytes = table_.pool_bytes(), .metadata_bytes = table_.metadata_bytes(), .slabs = table_.chunks()}, 0);
  }

  // Its slabs are the chunks.
  u8* pool() const { return table_.pool(); }
  static constexpr u32 slab_log2() { return table_type::chunk_log2; }
  quiet_slab use_of(u32 chunk) const { return word_of(chunk, 0).live() ? quiet_slab::blocks : quiet_slab::free; }

  template <class Visitor>
  void for_each_taken(Visitor visit) const {
    for (u32 chunk = 0; chunk < table_.chunks(); ++chunk) {
      chunk_word const first = word_of(chunk, 0);
      u32 const size_class = first.size_class();
      if (!first.live() || size_class >= table_type::classes) continue;
      for (u32 i = 0; i < table_type::words(size_class); ++i)
        if (chunk_word const seen = word_of(chunk, i); seen.live())
          visit(table_.address(table_type::first_word(chunk) + i, 0, size_class), table_type::page_bytes(size_class),
                seen.taken() & table_type::existing(size_class));
    }
  }

  /// Items in the queue of a class.
  u64 queued(u32 size_class) const {
    return copy_of(table_.index(size_class).queue.words())[table_type::queue_type::available_word];
  }

  void check_all(invariant_check& expect) const {
    auto const free = check_queue(expect, "the queue of free chunks", table_.free_chunks(), nullptr);
    for (u32 chunk = 0; chunk < table_.chunks(); ++chunk)
      check_chunk(expect, chunk, free[chunk / 32] >> chunk % 32 & 1);
    std::vector<bool> has_slots(table_.chunks());
    for (u32 c = 0; c < table_type::classes; ++c) {
      std::string const name = "the queue of class " + std::to_string(c);
      auto const index = table_.index(c);
      if constexpr (table_type::is_virtual) check_virtual(expect, name, c, index, has_slots);
      else check_queue(expect, name, index.queue, index.queued);
    }
    for (u32 chunk = 0; chunk < table_.chunks(); ++chunk)
      expect(word_of(chunk, 0).has_slots() == has_slots[chunk], "queue.W4: the slots of chunk ", chunk);
  }

 private:
  void check_chunk(invariant_check& tell, u32 chunk, bool is_queued) const {
    auto const expect = [&](bool holds, char const* what) { tell(holds, what, " in chunk ", chunk); };
    chunk_word const first = word_of(chunk, 0);
    expect(first.live() + is_queued + first.has_slots() == 1, "queue.C1: a class and no class, or neither,");
    bool const has_class = !first.live() || first.size_class() < table_type::classes;
    expect(has_class, "queue.W2: no such class");
    if (!has_class) return;
    u32 const live_words = first.live() ? table_type::words(first.size_class()) : 0;
    u32 const missing = table_type::empty_word(first.size_class()).taken();
    for (u32 i = 0; i < table_type::chunk_words; ++i) {
      chunk_word const seen = word_of(chunk, i);
      expect(seen.live() == (i < live_words), "queue.W2: a word that is live and should not, or should");
      expect(seen.live() || seen.has_slots() || seen.taken() == 0, "queue.W2: a page taken in a word without a class");
      expect(!seen.live() || seen.same_role(first), "queue.W2: words of two classes");
      expect(!seen.live() || (seen.taken() & missing) == missing, "queue.W3: a page that does not exist is free");
    }
  }

  /// Checks a queue as check_ring() does, and `queued`, a bit for each item that is in it, if it is
  /// not nullptr.
  std::vector<u32> check_queue(invariant_check& expect, std::string const& name, ring_queue const& queue,
                               u32 const* queued) const {
    auto const seen = check_ring(expect, queue, copy_of(queue.words()), "ring_queue.Q5, queue.H1: slot ", name);
    for (u32 word = 0; queued && word < seen.size(); ++word)
      if (u32 const differ = seen[word] ^ copy_of(queued)[word]; differ != 0)
        expect(false, "queue.H1: the bit of item ", 32 * word + lowest_bit(differ), " of ", name);
    return seen;
  }

  /// Checks the counts and the directory of a virtual queue, and notes the chunks that have its
  /// slots.
  void check_virtual(invariant_check& expect, std::string const& name, u32 size_class,
                     class_index<typename table_type::queue_type> const& index, std::vector<bool>& has_slots) const {
    using queue = typename table_type::queue_type;
    u32 const* const words = copy_of(index.queue.words());
    u32 const pushes = words[queue::pushes_word], pops = words[queue::pops_word];
    u32 const installed = words[queue::installed_word], end = installed * queue::entries;
    expect(words[queue::available_word] == pushes - pops, "queue.V2: available items of ", name);
    expect(words[queue::room_word] == end - pushes, "queue.V1: the room of ", name);
    u32 queued = 0;
    for (u32 word = 0; word < (u64{index.queue.items()} + 31) / 32; ++word)
      queued += popcount(copy_of(index.queued)[word]);
    expect(queued <= pushes - pops, "queue.H1: more bits than items of ", name);
    u32 const segments = queue::segments_for(index.queue.items()), first = pops / queue::entries;
    for (u32 i = 0; i < segments; ++i) {
      u32 const segment = first + i;
      u32 const* const entry = words + queue::index_words + queue::entry_words * (segment % segments);
      u32 const chunk = entry[queue::chunk_word] - 1,
                left = i == 0 ? queue::entries - pops % queue::entries : queue::entries;
      bool const is_there =
          segment * queue::entries + (i == 0 ? pops % queue::entries : 0) != end && segment < installed;
      expect(is_there == (entry[queue::chunk_word] != 0), "queue.V3: segment ", segment, " of ", name);
      if (!is_there || chunk >= table_.chunks()) continue;
      expect(entry[0] == segment + 1 && entry[queue::left_word] == left && word_of(chunk, 0).taken() == size_class,
             "queue.V2: the entry of segment ", segment, " of ", name);
      has_slots[chunk] = true;
    }
  }

  chunk_word word_of(u32 chunk, u32 i) const {
    return chunk_word{at(table_type::words_offset)[table_type::first_word(chunk) + i]};
  }
  /// What the heap's metadata at an address was when it was copied.
  u32 const* copy_of(u32 const* place) const {
    return at<u32>(static_cast<u64>(reinterpret_cast<u8 const*>(place) - table_.metadata()));
  }

  table_type table_;
};

template <creation::queue_config Config>
using snapshot = quiet_view<view<Config>>;

}}}  // namespace warpheap::WARPHEAP_BACKEND::queue_parts

#endif
