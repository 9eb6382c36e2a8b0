// SPDX-License-Identifier: Apache-2.0
// A quiet scatter heap seen from the host: its metadata copied once, and counted.
#pragma once

#include "../report.hpp"
#include "table.hpp"

#if !defined(__CUDACC_RTC__)
#include <string>
#include <vector>

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace scatter_parts {

/// A copy of a heap's metadata.
template <creation::scatter_config Config>
class snapshot {
 public:
  using table_type = table<Config>;
  using layout = typename table_type::layout;

  explicit snapshot(table_type const& table) : table_{table}, bytes_(table.metadata_bytes()) {
    backend::copy_bytes(bytes_.data(), table.metadata(), bytes_.size());
  }

  heap_statistics statistics() const {
    heap_statistics counted;
    counted.pool_bytes = table_.pool_bytes();
    counted.metadata_bytes = table_.metadata_bytes();
    counted.slabs = table_.pages();
    for (u32 page = 0; page < table_.pages(); ++page) {
      page_word const now = word(page);
      counted.free_slabs += now.is_free();
      counted.run_slabs += !now.is_free() && !now.has_chunks();
      counted.empty_slabs += now.has_chunks() && now.low() == 0;
      u64 const blocks = now.is_run() ? 1 : taken(now);
      counted.live_blocks += blocks;
      counted.live_bytes += blocks * bytes_of_block(now);
    }
    for (u32 row = 0; row < table_type::count_rows; ++row) {
      u64 const* const counts = at(table_.counts_offset()) + table_type::spread * row;
      counted.double_frees += counts[static_cast<u32>(table_type::count::double_frees)];
      counted.foreign_frees += counts[static_cast<u32>(table_type::count::foreign_frees)];
      counted.failures += counts[static_cast<u32>(table_type::count::failures)];
    }
    return counted;
  }

  /// Calls visit(address, bytes) for every live block in address order.
  template <class Visitor>
  void for_each_live(Visitor visit) const {
    for (u32 page = 0; page < table_.pages(); ++page) {
      page_word const now = word(page);
      size_t const bytes = bytes_of_block(now);
      if (now.is_run()) visit(static_cast<void*>(table_.data(page)), bytes);
      if (!now.has_chunks()) continue;
      for (u32 index = 0; index < layout::capacity(now.units()); ++index)
        if ((field(page, now, index / 32) >> (index % 32)) & 1)
          visit(static_cast<void*>(table_.data(page) + index * bytes), bytes);
    }
  }

  /// One line for every invariant that does not hold.
  invariant_report check_invariants() const {
    invariant_report report;
    for (u32 page = 0; page < table_.pages(); ++page) check_page(page, report);
    check_runs(report);
    check_counts(report);
    return report;
  }

 private:
  u64 const* at(u64 offset) const { return reinterpret_cast<u64 const*>(bytes_.data() + offset); }
  page_word word(u32 page) const { return {at(0)[page]}; }
  u32 stored_field(u32 page, u32 segment) const {
    return reinterpret_cast<u32 const*>(at(u64{table_.pages()} * 8))[u64{page} * layout::fields + segment];
  }
  u32 field(u32 page, page_word now, u32 segment) const {
    return layout::is_flat(now.units()) ? now.low() : stored_field(page, segment);
  }
  static u32 taken(page_word now) {
    if (!now.has_chunks()) return 0;
    return layout::is_flat(now.units()) ? popcount(now.low()) : now.low();
  }
  static u64 bytes_of_block(page_word now) {
    return now.is_run() ? u64{now.low()} * layout::page_bytes : u64{now.units()} * layout::unit_bytes;
  }

  static void expect(bool holds, invariant_report& report, char const* invariant, u64 where) {
    if (!holds) report.push_back(invariant + (" " + std::to_string(where)));
  }

  void check_page(u32 page, invariant_report& report) const {
    page_word const now = word(page);
    u32 const capacity = now.has_chunks() ? layout::capacity(now.units()) : 0;
    bool const flat = now.has_chunks() && layout::is_flat(now.units());
    u32 set = 0, stray = 0;
    for (u32 segment = 0; segment < layout::fields; ++segment) {
      u32 const valid = flat ? 0 : layout::valid_mask(capacity, segment);
      set += popcount(stored_field(page, segment) & valid);
      stray += popcount(stored_field(page, segment) & ~valid);
    }
    if (flat) stray += popcount(now.low() & ~low_mask32(capacity));
    expect(stray == 0, report, "scatter.S2: a bit is set where there is no chunk, in page", page);
    expect(flat || set == taken(now), report, "scatter.S2: promised chunks are not the bits set, in page", page);
    bool const full = now.has_chunks() ? taken(now) == capacity : !now.is_free();
    expect(now.is_full() == full, report, "F does not say whether all is taken, in page", page);
    expect(!now.is_free() || now.low() == 0, report, "scatter.S3: a free page holds something, page", page);
    expect(!now.has_chunks() || taken(now) != 0 || !Config.reset_freed_pages, report,
           "scatter.S3: the last chunk was given back, and its size stayed, in page", page);
    expect(!now.has_chunks() || now.units() <= layout::page_units, report, "scatter.S3: chunks larger than page", page);
  }

  void check_runs(invariant_report& report) const {
    u64 inside = 0;  // pages that the last run still has
    for (u32 page = 0; page < table_.pages(); ++page) {
      page_word const now = word(page);
      bool const inner = !now.is_free() && !now.has_chunks() && !now.is_run();
      expect(inner == (inside != 0), report, "scatter.R2: in no run, or missing in one, page", page);
      inside = now.is_run() ? now.low() - u64{1} : inside != 0 ? inside - 1 : 0;
    }
    expect(inside == 0, report, "scatter.R1: the last run reaches beyond the pool, pages", inside);
  }

  void check_counts(invariant_report& report) const {
    for (u32 access_block = 0; access_block < table_.access_blocks(); ++access_block) {
      u32 full_regions = 0;
      for (u32 i = 0; i < table_.regions_of(access_block); ++i) {
        u32 const region = access_block * table_.access_block_regions() + i;
        u32 full = 0;
        for (u32 page = 0; page < table_.pages_of(region); ++page)
          full += word(region * Config.region_pages + page).is_full();
        full_regions += full == table_.pages_of(region);
        fill_count const counted{at(table_.regions_offset())[region]};
        expect(counted.counts_all(full), report, "scatter.F1: full pages are not those counted, in region", region);
      }
      fill_count const counted{at(table_.access_blocks_offset())[u64{table_type::spread} * access_block]};
      expect(counted.counts_all(full_regions), report,
             "scatter.F1: full regions are not those counted, in access block", access_block);
    }
  }

  table_type table_;
  std::vector<u8> bytes_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::scatter_parts

#endif
