// SPDX-License-Identifier: Apache-2.0
// The chunks of a heap of index queues: where they and their words lie, and how pages and whole
// chunks change hands.
//
//   pool       chunk 0 | chunk 1 | ...   starts at a multiple of a chunk (unit_pool.hpp)
//   metadata   counts
//              pass                      searches that saw all and found nothing
//              words                     8 bytes for 32 of the smallest pages
//              free chunks               the queue of chunks without a class
//              indexes                   a queue a class, and its items' bits
//
//   queue.C1  a chunk without a class is in the queue of free chunks, or has a queue's slots
//       (queue.W4), or is in the hands of a running thread: one that popped it and gives it a class
//       or slots, or one that found it empty and is to push it, or to put its words back.
//   queue.C2  a thread takes the class from a chunk word by word, the first word first, and only
//       from words without a taken page. It gives a class the last word first, after the first word
//       says which. So the first word is not live while another may be in transit, and has the
//       class of every word that is.
//
// Zeroed words belong to chunks without a class.
#pragma once

#include "../../../sync/shared_pass.hpp"
#include "../shared/unit_pool.hpp"
#include "config.hpp"
#include "index.hpp"
#include "words.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace queue_parts {

/// Kernel: queues all chunks.
struct fill_free_chunks {
  WARPHEAP_DEVICE void operator()(ring_queue queue) const {
    queue.fill(0, global_thread_index(), u64{simt::block_dim()} * simt::grid_dim());
  }
};

/// View of a heap; 16 bytes, trivially copyable, owns nothing.
template <creation::queue_config Config>
class table : public creation::unit_pool<Config.chunk_bytes, Config.chunk_bytes, u32, 1> {
  using base_type = creation::unit_pool<Config.chunk_bytes, Config.chunk_bytes, u32, 1>;

 public:
  using base_type::base_type, base_type::none, base_type::metadata, base_type::pool;

  static constexpr bool by_pages = Config.element == creation::queue_element::page;
  static constexpr u32 least_log2 = log2_floor(Config.least_bytes), chunk_log2 = log2_floor(Config.chunk_bytes);
  static constexpr u32 classes = chunk_log2 - least_log2 + 1;
  /// Pages of the smallest class in a chunk; and words of a chunk.
  static constexpr u32 most_pages = 1u << (classes - 1);
  static constexpr u32 chunk_words = most_pages > word_pages ? most_pages / word_pages : 1;
  static constexpr u32 max_chunks = ring_queue::max_items / (by_pages ? most_pages : chunk_words);
  using pass_type = shared_pass<classes>;
  static constexpr bool is_virtual = Config.form == creation::queue_form::virtual_array;

  /// The chunks that have the slots of a class's queue.
  struct slot_storage {
    u8* base;
    u32 chunks, size_class;

    static constexpr u32 entries = static_cast<u32>(Config.chunk_bytes / sizeof(u32));

    WARPHEAP_DEVICE u32* slots_of(u32 chunk) const {
      return reinterpret_cast<u32*>(heap().pool() + (u64{chunk} << chunk_log2));
    }
    WARPHEAP_DEVICE bool may_acquire() const { return heap().free_chunks().available() != 0; }
    WARPHEAP_DEVICE u32 acquire() const {
      u32 const chunk = heap().free_chunks().pop(group_of(lane_bit(simt::lane_id())));
      if (chunk != none) set(chunk, true);
      return chunk;
    }
    WARPHEAP_COLD static void release(slot_storage self, u32 chunk) {
      self.set(chunk, false);
      self.heap().free_chunks().push(group_of(lane_bit(simt::lane_id())), chunk);
    }

   private:
    WARPHEAP_DEVICE table heap() const { return {base, chunks}; }
    WARPHEAP_DEVICE void set(u32 chunk, bool has_slots) const {
      auto const first = heap().word(first_word(chunk));
      // relaxed, both: the chunk is ours, and the queue of free chunks orders its owners.
      u32 const last = chunk_word{first.load(order::relaxed)}.size_class();
      auto const next = has_slots ? chunk_word::slots_of(size_class, last) : chunk_word::without_class(last);
      first.store(next.word, order::relaxed);
    }
  };
  using queue_type = typename queue_for<is_virtual, slot_storage>::type;
  using popped = typename class_index<queue_type>::popped;

  WARPHEAP_HOST_DEVICE constexpr u32 chunks() const { return this->units(); }
  WARPHEAP_HOST_DEVICE constexpr u64 metadata_bytes() const { return index_offset(classes); }
  /// Metadata for 1,000 bytes of a large pool: most right above a power of two chunks.
  WARPHEAP_HOST_DEVICE static constexpr u32 metadata_permille() {
    table const most{nullptr, max_chunks / 2 + 1};
    return static_cast<u32>(1000 * most.metadata_bytes() / most.pool_bytes() + 1);
  }

  // Sizes.
  WARPHEAP_HOST_DEVICE static constexpr u32 class_of(size_t bytes) {
    return bytes <= Config.least_bytes ? 0 : log2_ceil(bytes) - least_log2;
  }
  WARPHEAP_HOST_DEVICE static constexpr size_t page_bytes(u32 size_class) { return Config.least_bytes << size_class; }
  WARPHEAP_HOST_DEVICE static constexpr u32 pages_log2(u32 size_class) { return classes - 1 - size_class; }
  WARPHEAP_HOST_DEVICE static constexpr u32 pages(u32 size_class) { return 1u << pages_log2(size_class); }
  /// Words of a chunk that have pages of the class.
  WARPHEAP_HOST_DEVICE static constexpr u32 words(u32 size_class) {
    return pages(size_class) > word_pages ? pages(size_class) / word_pages : 1;
  }
  /// Pages of the class that a word has (queue.W3).
  WARPHEAP_HOST_DEVICE static constexpr u32 existing(u32 size_class) {
    return pages(size_class) < word_pages ? low_mask32(pages(size_class)) : ~0u;
  }
  WARPHEAP_HOST_DEVICE static constexpr chunk_word empty_word(u32 size_class) {
    return chunk_word::of(size_class, ~existing(size_class));
  }

  // Places.
  WARPHEAP_HOST_DEVICE static constexpr u32 first_word(u32 chunk) { return chunk * chunk_words; }
  WARPHEAP_HOST_DEVICE static constexpr u32 chunk_of(u32 word) { return word / chunk_words; }
  WARPHEAP_HOST_DEVICE void* address(u32 word, u32 page, u32 size_class) const {
    u64 const inside = u64{word % chunk_words * word_pages + page} << (least_log2 + size_class);
    return pool() + (u64{chunk_of(word)} << chunk_log2) + inside;
  }
  /// The page of the class that starts at an offset of the pool; no page if none does.
  WARPHEAP_DEVICE taken_pages page_at(u64 offset, u32 size_class) const {
    u32 const inside = static_cast<u32>(offset & low_mask(chunk_log2)), log2 = least_log2 + size_class;
    u32 const page = inside >> log2;
    if (page << log2 != inside) return {};
    return {first_word(static_cast<u32>(offset >> chunk_log2)) + page / word_pages, 1u << page % word_pages};
  }
  /// The item of the first page of a word.
  WARPHEAP_DEVICE static u32 item_of(u32 word, u32 size_class) {
    if constexpr (!by_pages) return chunk_of(word);
    return (chunk_of(word) << pages_log2(size_class)) + word % chunk_words * word_pages;
  }
  /// The page that an item stands for, where items are pages.
  WARPHEAP_DEVICE static taken_pages page_of(u32 item, u32 size_class) {
    u32 const page = item & low_mask32(pages_log2(size_class));
    return {first_word(item >> pages_log2(size_class)) + page / word_pages, 1u << page % word_pages};
  }

  WARPHEAP_DEVICE atomic_ref<u64> word(u32 number) const {
    return atomic_ref<u64>{reinterpret_cast<u64*>(metadata() + words_offset)[number]};
  }
  /// What a word held lately: a hint.
  WARPHEAP_DEVICE chunk_word look_at(u32 number) const { return {word(number).load(order::relaxed)}; }
  /// What it holds now: a read-modify-write reads the newest value.
  WARPHEAP_DEVICE chunk_word newest(u32 number) const { return {word(number).fetch_or(0, order::relaxed)}; }

  /// Takes up to `most` of the pages `wanted` of a word. Any lane alone; a round that fails saw the
  /// word change.
  WARPHEAP_DEVICE taken_pages take(u32 number, u32 wanted, u32 most, u32 size_class) const {
    chunk_word seen = look_at(number);
    while (u32 const available = seen.free_for(size_class) & wanted) {
      u32 const pages = static_cast<u32>(lowest_bits(available, most));
      // acquire: what the last owners did to the pages happens before us; pairs with the releases
      // in clear() and give_class().
      if (word(number).compare_exchange(seen.word, seen.word | pages, order::acquire, order::relaxed))
        return {number, pages};
    }
    return {};
  }

  /// Takes up to `most` pages of one word of a chunk, if the chunk has the class and a free page.
  WARPHEAP_DEVICE taken_pages take_from_chunk(u32 chunk, u32 most, u32 size_class) const {
    WARPHEAP_NO_UNROLL
    for (u32 i = 0; i < words(size_class); ++i) {
      taken_pages const got = take(first_word(chunk) + i, ~0u, most, size_class);
      if (got.pages != 0) return got;
    }
    return {};
  }
  /// Whether a chunk has the class and a free page: a hint.
  WARPHEAP_DEVICE bool has_room(u32 chunk, u32 size_class) const {
    u32 free = 0;
    WARPHEAP_NO_UNROLL
    for (u32 i = 0; i < words(size_class) && free == 0; ++i) free = look_at(first_word(chunk) + i).free_for(size_class);
    return free != 0;
  }

  /// Pages of the class that a quiet chunk could give.
  WARPHEAP_DEVICE u32 free_pages(u32 chunk, u32 size_class) const {
    chunk_word const first = look_at(first_word(chunk));
    if (!first.live()) return pages(size_class);
    u32 const its_class = first.size_class();
    u32 taken = 0;
    WARPHEAP_NO_UNROLL
    for (u32 i = 0; i < words(its_class); ++i)
      taken += popcount(look_at(first_word(chunk) + i).taken() & existing(its_class));
    if (its_class == size_class) return pages(size_class) - taken;
    return taken == 0 ? pages(size_class) : 0;
  }

  /// What clear() did.
  struct cleared {
    u32 pages = 0;       ///< that were taken
    bool empty = false;  ///< the word has no taken page left
  };
  /// Frees those of `pages` that are taken. Any lane alone.
  WARPHEAP_DEVICE cleared clear(u32 number, u32 pages, u32 size_class) const {
    // relaxed: a hint, which may be stale if the pointer came by a shuffle or a relaxed operation.
    chunk_word seen = look_at(number);
    for (;;) {
      if ((seen.taken_of(size_class) & pages) == 0) seen = newest(number);
      u32 const freed = seen.taken_of(size_class) & pages;
      if (freed == 0) return {};
      u64 const next = seen.word & ~u64{freed};
      // release: what the owners did to the pages happens before the next owners; pairs with the
      // acquires in take() and take_class().
      if (word(number).compare_exchange(seen.word, next, order::release, order::relaxed))
        return {freed, next == empty_word(size_class).word};
    }
  }

  /// Takes the class from a chunk that has no taken page (queue.C2); false if it has one, or
  /// another class. The chunk is the caller's then. Any lane alone.
  WARPHEAP_DEVICE bool take_class(u32 chunk, u32 size_class) const {
    WARPHEAP_NO_UNROLL
    for (u32 i = 0; i < words(size_class); ++i)
      if (look_at(first_word(chunk) + i).word != empty_word(size_class).word) return false;
    WARPHEAP_NO_UNROLL
    for (u32 i = 0; i < words(size_class); ++i) {
      u64 empty = empty_word(size_class).word;
      // acquire: pairs with the release in clear().
      if (word(first_word(chunk) + i)
              .compare_exchange(empty, chunk_word::without_class(size_class).word, order::acquire, order::relaxed))
        continue;
      set_words(chunk, i, size_class, empty_word(size_class).taken());
      return false;
    }
    return true;
  }

  /// Gives a chunk of the caller's a class, and the caller its first `mine` pages, up to a word's.
  WARPHEAP_DEVICE taken_pages give_class(u32 chunk, u32 size_class, u32 mine) const {
    u32 const pages = low_mask32(mine);
    // relaxed: the releases of set_words() bring it to the next owners of other words' pages.
    word(first_word(chunk)).store(chunk_word::without_class(size_class).word, order::relaxed);
    set_words(chunk, words(size_class), size_class, empty_word(size_class).taken() | pages);
    return {first_word(chunk), pages};
  }

  WARPHEAP_HOST_DEVICE ring_queue free_chunks() const {
    return {reinterpret_cast<u32*>(metadata() + free_chunks_offset()), chunks()};
  }
  WARPHEAP_HOST_DEVICE u32 items(u32 size_class) const {
    return by_pages ? chunks() << pages_log2(size_class) : chunks();
  }
  WARPHEAP_HOST_DEVICE class_index<queue_type> index(u32 size_class) const {
    u32* const words = reinterpret_cast<u32*>(metadata() + index_offset(size_class));
    u32* const queued = words + queue_words(u64{1} << log2_ceil(items(size_class)));
    if constexpr (is_virtual) {
      slot_storage const storage{metadata(), chunks(), size_class};
      return {{words, items(size_class), storage}, queued};
    } else {
      return {{words, items(size_class)}, queued};
    }
  }

  WARPHEAP_HOST_DEVICE pass_type pass() const { return pass_type{reinterpret_cast<u64*>(metadata() + pass_offset)}; }

  // Offsets in the metadata.
  static constexpr u64 pass_offset = 128;
  static constexpr u64 words_offset = pass_offset + pass_type::bytes;
  WARPHEAP_HOST_DEVICE constexpr u64 free_chunks_offset() const {
    return align_up(words_offset + 8 * u64{chunks()} * chunk_words, 128);
  }
  /// An index has the words of its queue, and those of its items' bits.
  WARPHEAP_HOST_DEVICE constexpr u64 index_offset(u32 size_class) const {
    // The items of all classes before this one, each rounded up to a power of two. Where they are
    // pages, they double from one class to the one before it.
    u32 const log2 = log2_ceil(chunks());
    u64 const pages = (u64{2} << (log2 + classes - 1)) - (u64{2} << (log2 + classes - 1 - size_class));
    u64 const before = by_pages ? pages : u64{size_class} << log2;
    return align_up(free_chunks_offset() + 4 * ring_queue::words_for(chunks()), 128) +
           4 * (size_class * (queue_words(0) + 32) + queue_words(before) - queue_words(0) + before / 32);
  }
  /// Words for a queue of up to `items` items, a power of two or a sum of such: for several queues
  /// no less than for each of them alone.
  WARPHEAP_HOST_DEVICE static constexpr u64 queue_words(u64 items) {
    if constexpr (is_virtual)
      return queue_type::index_words + 8 * queue_type::entry_words +
             2 * queue_type::entry_words * (items / slot_storage::entries);
    else return ring_queue::index_words + items;
  }

  /// Makes every chunk free, in order on stream `on`.
  WARPHEAP_HOST void initialize(stream_view on) const {
    backend::fill_bytes(metadata(), 0, metadata_bytes(), on);
    launch(on, {chunks() < 4096 ? 1u : 256u, 256}, fill_free_chunks{}, free_chunks());
  }

 private:
  /// Writes the words [0, end) of a chunk whose words are the caller's, the last one first
  /// (queue.C2); the first has `taken`, the others have no page taken.
  WARPHEAP_DEVICE void set_words(u32 chunk, u32 end, u32 size_class, u32 taken) const {
    WARPHEAP_NO_UNROLL
    for (u32 i = end; i-- != 0;) {
      auto const value = i == 0 ? chunk_word::of(size_class, taken) : empty_word(size_class);
      // release: what we acquired with the chunk happens before the pages' next owners; pairs with
      // the acquire in take().
      word(first_word(chunk) + i).store(value.word, order::release);
    }
  }
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::queue_parts
