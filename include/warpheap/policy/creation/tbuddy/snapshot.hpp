// SPDX-License-Identifier: Apache-2.0
// A quiet tbuddy heap seen from the host: its metadata copied once, counts of it, and a check of
// the invariants.
#pragma once

#include "table.hpp"

#if !defined(__CUDACC_RTC__)

#include <string>
#include <vector>

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace tbuddy_parts {

template <size_t PageBytes>
class snapshot {
  using table_type = table<PageBytes>;

 public:
  explicit snapshot(table_type const& table) : table_{table}, words_(table.metadata_bytes() / 8) {
    backend::copy_bytes(words_.data(), table.metadata(), 8 * words_.size());
  }

  heap_statistics statistics() const {
    heap_statistics found{.pool_bytes = committed_bytes(), .metadata_bytes = table_.metadata_bytes()};
    for_each_live([&](void*, size_t bytes) {
      ++found.live_blocks;
      found.live_bytes += bytes;
    });
    found.double_frees = counted(count::double_frees);
    found.foreign_frees = counted(count::foreign_frees);
    found.failures = counted(count::failures);
    return found;
  }

  /// Bytes of the pool that have memory (tbuddy.P3).
  u64 committed_bytes() const {
    u64 bytes = table_.pool_bytes();
    for (u64 page = 0; page < table_.pages(); page += u64{1} << table_type::unit_order)
      bytes -= is_uncommitted(static_cast<u32>(page)) ? unit_bytes : 0;
    return bytes;
  }

  /// Calls visit(address, bytes) for every live block in address order. What does not lie where a
  /// block can lie is damage, and no block.
  template <class Visitor>
  void for_each_live(Visitor visit) const {
    for (u32 page = 0; page < table_.pages(); ++page)
      if (u32 const order = order_at(page); can_be_block(page, order)) visit(table_.address(page), PageBytes << order);
  }

  /// One line for every invariant that does not hold.
  invariant_report check_invariants() const {
    invariant_report report;
    std::vector<u64> available(table_type::orders);
    std::vector<u8> blocks(table_.pages());  // how many hold each page, live or available
    // nodes with records of their own, except those beyond the last page
    u32 const inner = 1u << tree().height();
    for (u32 node = 0; node < inner && node < buddy_tree::records_for(table_.pages()); ++node) {
      if (record(node) & buddy_record::locked)
        report.push_back("buddy.T4: record " + std::to_string(node) + " is locked");
      if (node != 0) check_node(node, report);
      for (u32 const child : {2 * node, 2 * node + 1})
        if (orders_at(child) == 1u << order_at_node(child)) {
          ++available[order_at_node(child)];
          note_block(tree().first_page(child), order_at_node(child), "available", blocks, report);
        }
    }
    for (u32 page = 0; page < table_.pages(); ++page)
      if (is_uncommitted(page)) note_block(page, table_type::unit_order, "uncommitted", blocks, report);
      else if (u32 const order = order_at(page); order != table_type::none)
        note_block(page, order, "live", blocks, report);
    for (u32 page = 0; page < table_.pages(); ++page)
      if (blocks[page] != 1)
        report.push_back("tbuddy.P1: page " + std::to_string(page) + " is part of " + std::to_string(blocks[page]) +
                         " blocks");
    for (u32 order = 0; order < table_type::orders; ++order) check_semaphore(order, available[order], report);
    return report;
  }

 private:
  buddy_tree tree() const { return {nullptr, table_.pages()}; }
  u64 word(u64 offset) const { return words_[offset / 8]; }
  u64 record(u32 node) const { return word(table_.tree_offset() + 8 * u64{node}); }
  u64 counted(count which) const { return word(table_type::count_offset(which)); }
  /// The available orders at a node, and the order of a node. 0 is no node.
  u32 orders_at(u32 node) const { return buddy_record::orders_of(record(node / 2), node); }
  u32 order_at_node(u32 node) const { return node == 0 ? table_type::orders : tree().order_of(node); }

  /// Both order bytes of a page, as those of page 0 would be.
  u32 order_bytes(u32 page) const {
    u64 const offset = table_type::order_bytes_offset + 2 * u64{page};
    return static_cast<u32>(word(offset) >> (8 * (offset % 8))) & 0xffff;
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
  void check_node(u32 node, invariant_report& report) const {
    u32 const order = tree().order_of(node), mine = orders_at(node), below = buddy_record::below(record(node));
    u32 const half = 1u << (order - 1);
    auto const say = [&](char const* what) { report.push_back(what + (" at node " + std::to_string(node))); };
    if (orders_at(2 * node) == half && orders_at(2 * node + 1) == half) say("buddy.T1: two buddies are available");
    if (mine == 1u << order && below != 0) say("buddy.T2: something is available below what is");
    if (mine != 1u << order && mine != below) say("buddy.T3: what is said to be available below is not");
  }

  void note_block(u32 page, u32 order, char const* what, std::vector<u8>& blocks, invariant_report& report) const {
    if (!can_be_block(page, order)) {
      report.push_back("tbuddy.P1: " + std::string{what} + " block of order " + std::to_string(order) + " at page " +
                       std::to_string(page));
      return;
    }
    for (u64 i = page; i < page + (u64{1} << order); ++i) blocks[i] = static_cast<u8>(blocks[i] + (blocks[i] != 255));
  }

  void check_semaphore(u32 order, u64 available, invariant_report& report) const {
    u64 const seen = word(table_type::semaphore_offset(order));
    if (!bulk_semaphore_state::check_at_rest(seen))
      report.push_back("bulk.B3: order " + std::to_string(order) + " has an outlook of " +
                       std::to_string(bulk_semaphore_state::outlook(seen)));
    if (bulk_semaphore_state::available(seen) != available)
      report.push_back("tbuddy.W3: order " + std::to_string(order) + " has " +
                       std::to_string(bulk_semaphore_state::available(seen)) + " units and " +
                       std::to_string(available) + " available nodes");
  }

  table_type table_;
  std::vector<u64> words_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::tbuddy_parts

#endif
