// SPDX-License-Identifier: Apache-2.0
// Where the words of a heap of bins lie: beside the pool, apart from the headers in it.
//
//   words    counts                  double and foreign frees, failed requests; where the pool is
//            watches                 one for pages, and one with its exhaustion note for each class
//            arena 0 | arena 1 ...   room, chunk list, SRCU; a semaphore and a list for each class,
//                                    128 bytes apart
//            chunk 0 | chunk 1 ...   arena + 1 if that chunk of the pool is cut into bins, else 0
#pragma once

#include "../../../../sync/bulk_semaphore.hpp"
#include "../../../../sync/collective_mutex.hpp"
#include "../unit_pool.hpp"
#include "header.hpp"
#include "room_watch.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace bins {

using creation::count;

/// Where a heap lies, by value: for the paths that every call takes.
struct known_place {
  u8* pool_start = nullptr;
  u8* words_start = nullptr;
  /// What a pool is cut into.
  ///
  ///   63     32 31     16 15   8 7            0
  ///  |  chunks |  arenas |   0  | log2 of one  |
  u64 shape_word = 0;

  WARPHEAP_HOST_DEVICE u8* pool() const { return pool_start; }
  WARPHEAP_HOST_DEVICE u8* words() const { return words_start; }
  WARPHEAP_HOST_DEVICE u64 shape() const { return shape_word; }
};

/// As known_place, but read from the words where it is needed: each of several nested calls then
/// holds two registers in place of six.
struct far_place {
  u8* words_start;

  // Both words are written before any other kernel begins.
  WARPHEAP_HOST_DEVICE u8* pool() const { return *reinterpret_cast<u8**>(words_start + pool_offset); }
  WARPHEAP_HOST_DEVICE u8* words() const { return words_start; }
  WARPHEAP_HOST_DEVICE u64 shape() const { return *reinterpret_cast<u64*>(words_start + shape_offset); }

  static constexpr u64 pool_offset = 32, shape_offset = 40;
  /// Where a supply may keep its own state, up to 64 bytes.
  static constexpr u64 supply_offset = 64;
};

template <class Layout, class Place>
class basic_table;

/// View of a heap of bins: 24 bytes, trivially copyable, owns nothing.
template <class Layout>
using table = basic_table<Layout, known_place>;
/// As table, for calls off the common path: 8 bytes.
template <class Layout>
using far_table = basic_table<Layout, far_place>;

template <class Layout, class Place>
class basic_table {
 public:
  using layout = Layout;
  using count = bins::count;

  basic_table() = default;
  WARPHEAP_HOST_DEVICE explicit basic_table(Place const& place) : place_{place} {}

  WARPHEAP_HOST_DEVICE static constexpr u64 shape_of(u32 chunks, u32 arenas, u32 chunk_log2) {
    return u64{chunks} << 32 | u64{arenas} << 16 | chunk_log2;
  }
  WARPHEAP_HOST_DEVICE far_table<Layout> as_far() const { return far_table<Layout>{far_place{words()}}; }

  WARPHEAP_HOST_DEVICE u8* pool() const { return place_.pool(); }
  WARPHEAP_HOST_DEVICE u8* words() const { return place_.words(); }
  WARPHEAP_HOST_DEVICE u64 shape() const { return place_.shape(); }
  WARPHEAP_HOST_DEVICE u32 chunks() const { return static_cast<u32>(shape() >> 32); }
  WARPHEAP_HOST_DEVICE u32 arenas() const { return static_cast<u32>(shape() >> 16) & 0xffff; }
  WARPHEAP_HOST_DEVICE chunk_shape chunk() const { return {static_cast<u32>(shape()) & 0xff}; }
  WARPHEAP_HOST_DEVICE u64 pool_bytes() const { return u64{chunks()} << chunk().log2; }

  WARPHEAP_HOST_DEVICE bool contains(void const* memory) const {
    return reinterpret_cast<u64>(memory) - reinterpret_cast<u64>(pool()) < pool_bytes();
  }

  WARPHEAP_HOST_DEVICE static u64 words_bytes(u32 chunks, u32 arenas) {
    return arenas_offset + u64{arenas} * arena_bytes + align_up(4 * u64{chunks}, 128);
  }
  WARPHEAP_HOST_DEVICE u64 words_bytes() const { return words_bytes(chunks(), arenas()); }

  // Pages are numbered through all chunks of the pool. Page 0 is special and begins no bin, so 0
  // can stand for no page.
  WARPHEAP_HOST_DEVICE u32 chunk_of(u32 page) const { return page >> (chunk().log2 - page_log2); }
  WARPHEAP_HOST_DEVICE u32 page_in_chunk(u32 page) const { return page & (chunk().pages() - 1); }
  WARPHEAP_HOST_DEVICE u32 first_page(u32 chunk_number) const { return chunk_number << (chunk().log2 - page_log2); }
  WARPHEAP_HOST_DEVICE u8* chunk_address(u32 chunk_number) const {
    return pool() + (u64{chunk_number} << chunk().log2);
  }
  WARPHEAP_HOST_DEVICE u32 chunk_at(void const* memory) const {
    return static_cast<u32>((reinterpret_cast<u64>(memory) - reinterpret_cast<u64>(pool())) >> chunk().log2);
  }
  WARPHEAP_HOST_DEVICE bin_header* header(u32 page) const {
    return reinterpret_cast<bin_header*>(pool() + (u64{page} << page_log2));
  }
  WARPHEAP_HOST_DEVICE chunk_header* header_of_chunk(u32 chunk_number) const {
    return reinterpret_cast<chunk_header*>(chunk_address(chunk_number));
  }
  WARPHEAP_DEVICE bin_view bin(u32 page) const { return bin_view{header(page)}; }
  /// The role of the bin that begins, or began, at a page; 0 if there is none, or if the page is in
  /// no chunk of an arena. By read-modify-writes, which return the newest values.
  WARPHEAP_DEVICE bin_role newest_role(u32 page) const {
    u32 const chunk_number = chunk_of(page), at = page_in_chunk(page);
    // relaxed, here and below: none of the three changes while we own a block of the bin.
    u32 const owner = arena_of_chunk(chunk_number).fetch_or(0, order::relaxed);
    if (owner == 0) return {};
    if constexpr (Layout::config.wide_bins)
      if ((heads(chunk_number, at / 64).fetch_or(0, order::relaxed) >> at % 64 & 1) == 0) return {};
    bin_role const role = bin_life::role_of(bin(page).life().fetch_or(0, order::relaxed));
    return is_role_in(role, owner) ? role : bin_role{};
  }
  /// Whether a word may be the role of a bin in a chunk of arena `owner` - 1. Memory that is not
  /// such a chunk, or no longer, may hold any value.
  WARPHEAP_HOST_DEVICE static constexpr bool is_role_in(bin_role role, u32 owner) {
    return role.was_bin() && role.size_class() < Layout::classes && role.arena() + 1 == owner;
  }
  WARPHEAP_DEVICE atomic_ref<u64> heads(u32 chunk_number, u32 word) const {
    return atomic_ref<u64>{header_of_chunk(chunk_number)->heads[word]};
  }

  /// The block `index` of the bin at `page`.
  WARPHEAP_HOST_DEVICE void* block(u32 page, u32 size_class, u32 index) const {
    u32 const offset = Layout::block_offset(size_class, index);
    return chunk_address(chunk_of(page)) + Layout::chunk_offset(chunk(), size_class, page_in_chunk(page), offset);
  }

  // Of the whole heap.
  WARPHEAP_DEVICE room_watch pages_watch() const { return room_watch{at<u64>(watches_offset)}; }
  WARPHEAP_DEVICE room_watch class_watch(u32 size_class) const {
    return room_watch{at<u64>(watches_offset + line * (1 + size_class))};
  }
  /// What a search that found nothing leaves: the two watches that it ended with.
  WARPHEAP_DEVICE atomic_ref<u64> exhausted_at(u32 size_class) const {
    return atomic_ref<u64>{at<u64>(watches_offset + line * (1 + size_class) + 64)};
  }
  /// The exhaustion note for blocks larger than those of bins: the watch of the pages.
  WARPHEAP_DEVICE atomic_ref<u64> pages_exhausted_at() const { return atomic_ref<u64>{at<u64>(watches_offset + 64)}; }
  WARPHEAP_DEVICE atomic_ref<u32> arena_of_chunk(u32 chunk_number) const {
    return atomic_ref<u32>{at<u32>(arenas_offset + u64{arenas()} * arena_bytes + 4 * u64{chunk_number})};
  }
  WARPHEAP_DEVICE void add_count(count which, u64 more) const {
    // relaxed: no thread reads it before the kernel ends.
    atomic_ref<u64>{at<u64>(8 * static_cast<u32>(which))}.fetch_add(more, order::relaxed);
  }

  // Of one arena.
  WARPHEAP_DEVICE atomic_ref<u64> room(u32 arena) const { return atomic_ref<u64>{at<u64>(arena_offset(arena))}; }
  WARPHEAP_DEVICE collective_mutex chunk_mutex(u32 arena) const {
    return collective_mutex{at<u32>(arena_offset(arena) + 32)};
  }
  WARPHEAP_DEVICE atomic_ref<u32> first_chunk(u32 arena) const {
    return atomic_ref<u32>{at<u32>(arena_offset(arena) + 64)};
  }
  WARPHEAP_DEVICE warpheap::srcu srcu(u32 arena) const {
    return warpheap::srcu{at<srcu_state>(arena_offset(arena) + line)};
  }
  WARPHEAP_DEVICE bulk_semaphore semaphore(u32 arena, u32 size_class) const {
    return bulk_semaphore{at<u64>(class_offset(arena, size_class))};
  }
  WARPHEAP_DEVICE atomic_ref<u32> first_bin(u32 arena, u32 size_class) const {
    return atomic_ref<u32>{at<u32>(class_offset(arena, size_class) + 32)};
  }
  WARPHEAP_DEVICE spin_mutex list_mutex(u32 arena, u32 size_class) const {
    return spin_mutex{at<u32>(class_offset(arena, size_class) + 64)};
  }

  /// The arena of the multiprocessor that we run on.
  WARPHEAP_DEVICE u32 my_arena() const { return simt::sm_id() % arenas(); }

  // Offsets that the snapshot of a quiet heap reads.
  static constexpr u32 line = 128;
  static constexpr u64 watches_offset = line;
  static constexpr u64 arenas_offset = watches_offset + line * (1 + Layout::classes);
  static constexpr u64 arena_bytes = line * (2 + Layout::classes);
  WARPHEAP_HOST_DEVICE static u64 arena_offset(u32 arena) { return arenas_offset + arena * arena_bytes; }
  WARPHEAP_HOST_DEVICE static u64 class_offset(u32 arena, u32 size_class) {
    return arena_offset(arena) + line * (2 + size_class);
  }
  WARPHEAP_HOST_DEVICE u64 chunk_table_offset() const { return arenas_offset + u64{arenas()} * arena_bytes; }

 private:
  template <class Word>
  WARPHEAP_DEVICE Word& at(u64 offset) const {
    return *reinterpret_cast<Word*>(words() + offset);
  }

  Place place_;
};

/// Kernel of one thread: writes what a far_place reads, and opens the supply.
struct write_place {
  template <class Layout, class Supply>
  WARPHEAP_DEVICE void operator()(table<Layout> table, Supply supply) const {
    *reinterpret_cast<u8**>(table.words() + far_place::pool_offset) = table.pool();
    *reinterpret_cast<u64*>(table.words() + far_place::shape_offset) = table.shape();
    supply.open();
  }
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::bins
