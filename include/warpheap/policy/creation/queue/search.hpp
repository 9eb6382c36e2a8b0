// SPDX-License-Identifier: Apache-2.0
// The certain answer when the queues have nothing: one pass over all chunks, by the lanes of a warp
// side by side. A chunk without a taken page, of whatever class, serves too. So pages that no queue
// knows are found, and chunks go to the class that needs them.
//
// A chunk has nothing for us if each of its pages was seen taken, or if it has another class and a
// page of it was seen taken. A chunk whose words are in transit (queue.C1) shows neither, and the
// search waits for the thread that has it. A chunk that has slots of a queue is taken from the
// queue, with the items in them. A search gives up when a pass that began after it found nothing
// (sync/shared_pass.hpp).
#pragma once

#include "../../../platform/backoff.hpp"
#include "service.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace queue_parts {

template <class Table>
class search {
 public:
  /// A page for each lane of `mask`, as long as one stayed free during the whole call. All of them
  /// call, with one heap and one class.
  WARPHEAP_COLD static void* run(Table table, lane_mask mask, u32 size_class) {
    search self{table, mask, size_class};
    self.look(table.pass().begin(mask));
    // This lane gets what the lane that took its page acquired.
    simt::sync_warp(mask);
    return self.served_;
  }

 private:
  static constexpr u32 steps_between_questions = 8;

  /// What a lane knows of a chunk.
  enum class view : u32 { nothing, page, whole, transit, queue };

  WARPHEAP_DEVICE search(Table const& table, lane_mask mask, u32 size_class)
      : table_{table}, group_{group_of(mask)}, size_class_{size_class} {}

  WARPHEAP_DEVICE bool all_served() const { return simt::ballot(group_.mask, !served_) == 0; }

  /// Looks at all chunks, until every lane has a page or another pass has the answer.
  WARPHEAP_DEVICE void look(u64 number) {
    u32 const chunks = table_.chunks(), start = multiply_high(static_cast<u32>(number) * 0x9e37'79b9u, chunks);
    u32 turn = 0;
    WARPHEAP_NO_UNROLL
    for (u32 done = 0; done < chunks; done += group_.size) {
      u32 const mine = done + group_.rank;
      u32 chunk = Table::none;
      if (mine < chunks) chunk = start < chunks - mine ? start + mine : start - (chunks - mine);
      empty(chunk);
      if (all_served()) return;
      if (++turn % steps_between_questions != 0) continue;
      if (simt::ballot(group_.mask, table_.pass().answers(number, {size_class_})) != 0) return;
    }
    if (group_.leads) table_.pass().publish(number, {size_class_});
  }

  /// Deals out the pages of each lane's chunk, `none` for no chunk, as long as lanes need them. One
  /// chunk at a time, so that no more is taken than is needed.
  WARPHEAP_DEVICE void empty(u32 chunk) {
    bool hopes = chunk != Table::none && view_of(chunk) != view::nothing;
    WARPHEAP_NO_UNROLL
    while (lane_mask const hopeful = simt::ballot(group_.mask, hopes)) {
      lane_mask const needing = simt::ballot(group_.mask, !served_);
      u32 const holder = lowest_bit(hopeful);
      if (needing == 0) return;
      if constexpr (Table::is_virtual) drain_queue_of(simt::shuffle(group_.mask, chunk, holder));
      taken_pages got;
      if (simt::lane_id() == holder) got = take_certainly(chunk, popcount(needing), hopes);
      u32 const word = simt::shuffle(group_.mask, got.word, holder);
      u32 const pages = simt::shuffle(group_.mask, got.pages, holder);
      if (pages == 0) continue;
      u32 const turn = popcount(needing & simt::lanes_below());
      if (!served_ && turn < popcount(pages)) served_ = table_.address(word, nth_bit(pages, turn), size_class_);
      // The chunk may have pages that no queue knows.
      supply<Table>{table_, group_.mask, size_class_}.queue_rest(lane_bit(holder), Table::chunk_of(word));
    }
  }

  /// If a chunk has slots of a queue, takes the queue's items or its room.
  WARPHEAP_DEVICE void drain_queue_of(u32 chunk) const {
    chunk_word const seen{broadcast(group_, table_.look_at(Table::first_word(chunk)).word)};
    if (seen.has_slots()) table_.index(seen.taken()).drain(group_);
  }

  /// What a look at a chunk shows. Each word that it passes over was seen without a page for us.
  WARPHEAP_DEVICE view view_of(u32 chunk) const {
    chunk_word const first = table_.look_at(Table::first_word(chunk));
    if (first.has_slots()) return view::queue;
    if (!first.live()) return view::transit;
    u32 const its_class = first.size_class();
    WARPHEAP_NO_UNROLL
    for (u32 i = 0; i < Table::words(its_class); ++i) {
      chunk_word const seen = i == 0 ? first : table_.look_at(Table::first_word(chunk) + i);
      if (!seen.same_role(first)) return view::transit;
      bool const is_empty = seen.word == Table::empty_word(its_class).word;
      if (its_class == size_class_ && ~seen.taken() != 0) return view::page;
      if (its_class != size_class_ && !is_empty) return view::nothing;
    }
    return its_class == size_class_ ? view::nothing : view::whole;
  }

  /// Up to `most` pages of one word of a chunk, or of another that was free. None only if the chunk
  /// has nothing for us, which ends the hopes, or has slots of a queue. Any lane alone; waits for
  /// threads that have the chunk in hand (queue.C1).
  WARPHEAP_DEVICE taken_pages take_certainly(u32 chunk, u32 most, bool& hopes) const {
    u32 const at_once = most < Table::pages(size_class_) ? most : Table::pages(size_class_);
    backoff wait;
    for (;;) {
      view const seen = view_of(chunk);
      if (seen == view::nothing) {
        hopes = false;
        return {};
      }
      if (seen == view::page) {
        taken_pages const got = table_.take_from_chunk(chunk, most, size_class_);
        if (got.pages != 0) return got;
      } else if (seen == view::whole) {
        u32 const its_class = table_.look_at(Table::first_word(chunk)).size_class();
        if (table_.take_class(chunk, its_class)) return table_.give_class(chunk, size_class_, at_once);
      } else {
        u32 const free = table_.free_chunks().pop(group_of(lane_bit(simt::lane_id())));
        if (free != Table::none) return table_.give_class(free, size_class_, at_once);
        wait.while_working();
        if (seen == view::queue) return {};
      }
    }
  }

  Table table_;
  lane_group group_;
  u32 size_class_;
  void* served_ = nullptr;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::queue_parts
