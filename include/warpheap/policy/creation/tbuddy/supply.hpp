// SPDX-License-Identifier: Apache-2.0
// Blocks of a tbuddy heap by order, for one lane alone, in two stages. A unit of the order's
// semaphore says that there is a block for us, but not which one. Then the tree finds the block,
// which is sure to be there.
//
// A thread that finds no unit, and none being made, is elected to make two: it takes a block of the
// order above in the same way, and splits it into halves. A thread that frees a block whose buddy
// is available takes the buddy's unit, and gives back the two blocks as one.
//
//   tbuddy.W1  a merge promises a unit at the order above before it takes its buddy's unit: a lane
//       that looks from small orders to large ones finds the one or the other.
//   tbuddy.W2  a thread that has acquired a unit takes a block for it: no unit is given back
//       unused.
//   tbuddy.W3  at rest an order has as many units as available nodes.
//
// nullptr is exact. A lane that went up to the largest order and down again without a unit compares
// the epoch. If no thread raised it meanwhile, then (tbuddy.P2) all blocks that the lane could have
// missed are in the hands of calls that have not returned. The lane leaves an exhaustion note, by
// which later callers know the same without a search. Source: Gelado and Garland 2019, section 4.1.
// Differs: tbuddy.W1, the exhaustion note: docs/design/tbuddy.md.
#pragma once

#include "table.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace tbuddy_parts {

/// Takes and gives back blocks, as nodes of the tree. The caller records which are live
/// (tbuddy.P1).
template <class Table, class Tree = buddy_tree>
class block_supply {
 public:
  /// No node.
  static constexpr u32 none = 0;

  WARPHEAP_DEVICE explicit block_supply(Table const& table)
      : table_{table}, tree_{table.tree().records(), table.pages()} {}

  /// A block of the order; `none` if at one instant of the call there was none for us. Any lane
  /// alone.
  WARPHEAP_DEVICE u32 take(u32 order) const {
    if (u32 const node = try_take(order); node != none) return node;
    backoff nap;
    for (;; nap.after_race()) {
      if (is_known_exhausted(order)) return none;
      u64 const before = table_.epoch();
      if (u32 const node = climb(order); node != none) return node;
      if (table_.newest_epoch() != before) continue;
      // release: a thread that relies on the exhaustion note knows every raise that we counted;
      // pairs with the acquire in is_known_exhausted().
      table_.exhausted_at(order).store(before + 1, order::release);
      return none;
    }
  }

  /// A block of the order; `none` if we met none, which proves nothing. Any lane alone.
  WARPHEAP_DEVICE u32 try_take(u32 order) const { return is_known_empty(order) ? none : climb(order); }

  /// Whether it is known without a search that there is no block of the order, nor a larger one.
  WARPHEAP_DEVICE bool is_known_empty(u32 order) const {
    // One load answers while there are units.
    return table_.semaphore(order).available() == 0 && is_known_exhausted(order);
  }

  /// A block of the order that starts where a block of the larger order `aligned` may: the first
  /// part of such a block. The other parts are given back at once. Any lane alone.
  WARPHEAP_DEVICE u32 take_aligned(u32 order, u32 aligned) const {
    // As in tbuddy.W1: the parts that are not for us are promised first, so that no other thread
    // misses them.
    for (u32 part = order; part != aligned; ++part) table_.semaphore(part).promise(1);
    u32 const node = take(aligned);
    if (node != none) return cut(node, aligned, order);
    for (u32 part = order; part != aligned; ++part) table_.semaphore(part).signal(0, 1);
    return none;
  }

  /// Gives a block back. Returns when others can take it. Any lane alone.
  WARPHEAP_DEVICE void release(u32 node) const {
    merge_claims claims{table_, false};
    u32 const order = tree_.order_of(tree_.release(node, claims));
    table_.semaphore(order).signal(1, claims.merged ? 1 : 0);
    table_.raise_epoch();  // tbuddy.P2
  }

  /// The largest order, from `least` up, of which there are blocks: a hint. 0 if there are none.
  WARPHEAP_DEVICE u32 largest_in_sight(u32 least) const {
    u32 found = 0;
    for (u32 order = least; order <= tree_.top_order(); ++order)
      if (table_.semaphore(order).available() != 0) found = order;
    return found;
  }

 protected:
  WARPHEAP_DEVICE Table const& table() const { return table_; }
  WARPHEAP_DEVICE Tree const& tree() const { return tree_; }

  /// The units that a block takes and promises while it is merged on its way up.
  struct merge_claims {
    Table table;
    bool merged;  ///< a unit is promised at the order that the block has reached: the block itself

    WARPHEAP_DEVICE bool may_claim(u32 of) const { return table.semaphore(of).available() != 0; }

    WARPHEAP_DEVICE bool try_claim(u32 of) {
      if (!may_claim(of)) return false;
      table.semaphore(of + 1).promise(1);  // tbuddy.W1
      if (!table.semaphore(of).try_wait(1)) {
        table.semaphore(of + 1).signal(0, 1);
        return false;
      }
      // The unit promised at this order becomes part of the one promised at the next.
      if (merged) table.semaphore(of).signal(0, 1);
      merged = true;
      return true;
    }
  };

  /// Goes up to the first order that has a unit, and splits its block down to `order`.
  WARPHEAP_DEVICE u32 climb(u32 order) const {
    u32 const top = tree_.top_order();
    WARPHEAP_ASSERT(order <= top, "tbuddy: an order larger than the pool");
    u32 at = order;
    while (table_.semaphore(at).wait(1, table_.batch(at)) == wait_result::make_batch) {
      if (at != top) {
        ++at;
        continue;
      }
      // There is no larger block to split. A unit that came back meanwhile, here or on the way
      // down, serves as well.
      while (!table_.semaphore(at).withdraw(1, table_.batch(at))) {
        if (at == order) return none;
        --at;
      }
      break;
    }
    u32 const node = tree_.take(at, scattered());
    return at == order ? node : cut(node, at, order);
  }

  /// The first part, of order `to`, of a node of order `from`. The other parts go to threads that
  /// wait for them.
  WARPHEAP_DEVICE u32 cut(u32 node, u32 from, u32 to) const {
    u32 const mine = tree_.split(node, from - to);
    // bulk.B2: of each batch of two, one half was split further or is ours. Or
    // take_aligned() promised as much.
    for (u32 order = from; order-- != to;) table_.semaphore(order).signal(1, 1);
    table_.raise_epoch();  // tbuddy.P2
    return mine;
  }

  WARPHEAP_DEVICE static u32 scattered() { return mix32(simt::sm_id() << 16 ^ simt::warp_id() << 5 ^ simt::lane_id()); }

  /// Whether a search found nothing of the order, and no room has appeared since.
  WARPHEAP_DEVICE bool is_known_exhausted(u32 order) const {
    // acquire: pairs with the release in take(); the raises that were counted there happen before
    // we count.
    u64 const seen = table_.exhausted_at(order).load(order::acquire);
    return seen != 0 && seen == table_.epoch() + 1;
  }

 private:
  Table table_;
  Tree tree_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::tbuddy_parts
