// SPDX-License-Identifier: Apache-2.0
// A quiet tbuddy heap seen from the host.
#pragma once

#include "../shared/quiet_view.hpp"
#include "table.hpp"

#if !defined(__CUDACC_RTC__)

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace tbuddy_parts {

template <size_t PageBytes>
class view : public metadata_copy {
  using table_type = table<PageBytes>;

 public:
  explicit view(table_type const& table) : metadata_copy{table.metadata(), table.metadata_bytes()}, table_{table} {}

  /// Memory of the pool is what is committed (tbuddy.P3).
  heap_statistics figures() const {
    heap_statistics found{.pool_bytes = table_.pool_bytes(), .metadata_bytes = table_.metadata_bytes()};
    for (u64 page = 0; page < table_.pages(); page += u64{1} << table_type::unit_order)
      found.pool_bytes -= is_uncommitted(static_cast<u32>(page)) ? unit_bytes : 0;
    return add_calls<count>(found, table_type::count_offset(count::double_frees));
  }

  /// An entry where no block can be is damage, not a block.
  template <class Visitor>
  void for_each_taken(Visitor visit) const {
    for (u32 page = 0; page < table_.pages(); ++page)
      if (u32 const order = order_at(page); can_be_block(page, order))
        visit(table_.address(page), PageBytes << order, 1);
  }

  void check_all(invariant_check& expect) const {
    std::vector<u64> available(table_type::orders);
    std::vector<u8> blocks(table_.pages());  // how many hold each page, live or available
    // nodes with records of their own, except those beyond the last page
    u32 const inner = 1u << tree().height();
    for (u32 node = 0; node < inner && node < buddy_tree::records_for(table_.pages()); ++node) {
      expect((record(node) & buddy_record::locked) == 0, "buddy.T4: record ", node, " is locked");
      if (node != 0) check_node(node, expect);
      for (u32 const child : {2 * node, 2 * node + 1})
        if (orders_at(child) == 1u << order_at_node(child)) {
          ++available[order_at_node(child)];
          note_block(tree().first_page(child), order_at_node(child), "available", blocks, expect);
        }
    }
    for (u32 page = 0; page < table_.pages(); ++page)
      if (is_uncommitted(page)) note_block(page, table_type::unit_order, "uncommitted", blocks, expect);
      else if (u32 const order = order_at(page); order != table_type::none)
        note_block(page, order, "live", blocks, expect);
    for (u32 page = 0; page < table_.pages(); ++page)
      expect(blocks[page] == 1, "tbuddy.P1: page ", page, " is part of ", blocks[page], " blocks");
    for (u32 order = 0; order < table_type::orders; ++order) {
      u64 const seen = *at(table_type::semaphore_offset(order)), units = bulk_semaphore_state::available(seen);
      expect(bulk_semaphore_state::check_at_rest(seen), "bulk.B3: order ", order, " has an outlook of ",
             bulk_semaphore_state::outlook(seen));
      expect(units == available[order], "tbuddy.W3: order ", order, " has ", units, " units and ", available[order],
             " available nodes");
    }
  }

 private:
  buddy_tree tree() const { return {nullptr, table_.pages()}; }
  u64 record(u32 node) const { return at(table_.tree_offset())[node]; }
  /// The available orders at a node, and the order of a node. 0 is no node.
  u32 orders_at(u32 node) const { return buddy_record::orders_of(record(node / 2), node); }
  u32 order_at_node(u32 node) const { return node == 0 ? table_type::orders : tree().order_of(node); }

  /// Both order bytes of a page, as those of page 0 would be.
  u32 order_bytes(u32 page) const {
    return at<u32>(table_type::order_bytes_offset)[page / 2] >> 16 * (page % 2) & 0xffff;
  }

  u32 order_at(u32 page) const {
    u32 const both = order_bytes(page);
    // At most one live block starts at a page. If both bytes are set, the result is a wrong order,
    // which check_invariants() reports.
    return order_byte(both, 0, block_owner::caller) + order_byte(both, 0, block_owner::allocator) - 1;
  }
  bool is_uncommitted(u32 page) const {
    return order_byte(order_bytes(page), 0, block_owner::allocator) == uncommitted;
  }

  bool can_be_block(u32 page, u32 order) const {
    return order < table_type::orders && page % (u64{1} << order) == 0 && page + (u64{1} << order) <= table_.pages();
  }

  /// buddy.T1, buddy.T2 and buddy.T3 of a node with a record.
  void check_node(u32 node, invariant_check& expect) const {
    u32 const order = tree().order_of(node), mine = orders_at(node), below = buddy_record::below(record(node));
    u32 const half = 1u << (order - 1);
    bool const is_available = mine == 1u << order;
    expect(orders_at(2 * node) != half || orders_at(2 * node + 1) != half,
           "buddy.T1: two buddies are available at node ", node);
    expect(!is_available || below == 0, "buddy.T2: something is available below what is at node ", node);
    expect(is_available || mine == below, "buddy.T3: what is said to be available below is not at node ", node);
  }

  void note_block(u32 page, u32 order, char const* what, std::vector<u8>& blocks, invariant_check& expect) const {
    bool const can_be = can_be_block(page, order);
    expect(can_be, "tbuddy.P1: ", what, " block of order ", order, " at page ", page);
    for (u64 i = page; can_be && i < page + (u64{1} << order); ++i)
      blocks[i] = static_cast<u8>(blocks[i] + (blocks[i] != 255));
  }

  table_type table_;
};

template <size_t PageBytes>
using snapshot = quiet_view<view<PageBytes>>;

}}}  // namespace warpheap::WARPHEAP_BACKEND::tbuddy_parts

#endif
