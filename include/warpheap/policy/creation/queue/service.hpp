// SPDX-License-Identifier: Apache-2.0
// How lanes that ask for one class get their pages: from the items of its queue; else from chunks
// without a class; else by a search.
//
// A lane that holds an item takes pages for itself and for the lanes after it, as many as the item
// may stand for: one page, or a chunk's pages, up to a word's. The pages that a chunk has left are
// queued before its holder returns.
#pragma once

#include "../../../sync/warp_aggregate.hpp"
#include "table.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace queue_parts {

/// Steps that a request is served by. Stateless; all lanes of `mask`, which have one heap and one
/// class, call together. `served` is a lane's page, nullptr if it needs one.
template <class Table>
class supply {
 public:
  WARPHEAP_DEVICE supply(Table const& table, lane_mask mask, u32 size_class)
      : table_{table}, group_{group_of(mask)}, size_class_{size_class} {}

  /// Pages of the queue's items. False if the queue had no item; true does not say that the items
  /// had pages.
  WARPHEAP_DEVICE bool from_queue(void*& served) const {
    u32 const each = Table::by_pages ? 1 : lanes_a_chunk();
    lane_mask const holders = holders_of(each);
    auto const popped = is_in(holders) ? table_.index(size_class_).pop(group_of(holders)) : typename Table::popped{};
    if (simt::ballot(group_.mask, popped.any) == 0) return false;
    u32 const item = popped.item;
    taken_pages got;
    if constexpr (Table::by_pages) {
      got = take_items(item);
    } else {
      if (item != Table::none) got = table_.take_from_chunk(item, needed(each), size_class_);
      // queue.H2: we cleared the item's bit, and look whether it is to be set.
      bool const has_room = item != Table::none && table_.has_room(item, size_class_);
      table_.index(size_class_).push(group_, has_room, item);
    }
    served = deal(each, got);
    return true;
  }

  /// Pages of chunks that get the class. False if no chunk is free.
  WARPHEAP_DEVICE bool from_free_chunks(void*& served) const {
    u32 const each = lanes_a_chunk();
    lane_mask const holders = holders_of(each);
    u32 const chunk = is_in(holders) ? table_.free_chunks().pop(group_of(holders)) : Table::none;
    lane_mask const made = simt::ballot(group_.mask, chunk != Table::none);
    if (made == 0) return false;
    taken_pages got;
    if (chunk != Table::none) got = table_.give_class(chunk, size_class_, needed(each));
    queue_rest(made, chunk);
    served = deal(each, got);
    return true;
  }

  /// Queues the free pages of the `chunk` of each lane of `which`.
  WARPHEAP_DEVICE void queue_rest(lane_mask which, u32 chunk) const {
    auto const index = table_.index(size_class_);
    if constexpr (!Table::by_pages) {
      bool const has_room = is_in(which) && table_.has_room(chunk, size_class_);
      index.push(group_, has_room, chunk);
    } else {
      WARPHEAP_NO_UNROLL
      for (; which != 0; which &= which - 1) {
        u32 const first = Table::first_word(simt::shuffle(group_.mask, chunk, lowest_bit(which)));
        WARPHEAP_NO_UNROLL
        for (u32 word = first; word < first + Table::words(size_class_); ++word)
          index.push_all(group_, Table::item_of(word, size_class_), table_.look_at(word).free_for(size_class_));
      }
    }
  }

 private:
  /// Lanes that a chunk serves at a time: a word's pages.
  WARPHEAP_DEVICE u32 lanes_a_chunk() const {
    return Table::pages(size_class_) < word_pages ? Table::pages(size_class_) : word_pages;
  }
  /// Of the lanes from our own on, those that a holder serves; every `each`-th lane is a holder.
  WARPHEAP_DEVICE u32 needed(u32 each) const {
    return each < group_.size - group_.rank ? each : group_.size - group_.rank;
  }

  WARPHEAP_DEVICE lane_mask holders_of(u32 each) const {
    return simt::ballot(group_.mask, (group_.rank & (each - 1)) == 0);
  }
  WARPHEAP_DEVICE static bool is_in(lane_mask mask) { return (mask >> simt::lane_id() & 1) != 0; }

  /// Pages of the lanes' items that are free, one a lane. One operation takes all pages of a word.
  /// Its lanes share them in turn: an item that was popped and queued again may be two lanes'.
  WARPHEAP_DEVICE taken_pages take_items(u32 item) const {
    taken_pages const wanted = item != Table::none ? Table::page_of(item, size_class_) : taken_pages{};
    lane_group const same = group_by(group_.mask, wanted.word);
    u32 const all = union_of_groups(group_.mask, same, wanted.pages);
    u32 got = 0;
    if (same.leads && all != 0) got = table_.take(wanted.word, all, word_pages, size_class_).pages;
    got = simt::shuffle(group_.mask, got, same.leader);
    return {wanted.word, same.rank < popcount(got) ? 1u << nth_bit(got, same.rank) : 0};
  }

  /// A page for each lane, of those that the holder before it took.
  WARPHEAP_DEVICE void* deal(u32 each, taken_pages got) const {
    // All lanes get what the holders acquired.
    simt::sync_warp(group_.mask);
    u32 const turn = group_.rank & (each - 1), holder = nth_bit(group_.mask, group_.rank - turn);
    u32 const word = simt::shuffle(group_.mask, got.word, holder);
    u32 const pages = simt::shuffle(group_.mask, got.pages, holder);
    return turn < popcount(pages) ? table_.address(word, nth_bit(pages, turn), size_class_) : nullptr;
  }

  Table table_;
  lane_group group_;
  u32 size_class_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::queue_parts
