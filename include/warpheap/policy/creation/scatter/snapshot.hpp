// SPDX-License-Identifier: Apache-2.0
// A quiet scatter heap seen from the host.
#pragma once

#include "../shared/quiet_view.hpp"
#include "table.hpp"

#if !defined(__CUDACC_RTC__)

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace scatter_parts {

template <creation::scatter_config Config>
class view : public metadata_copy {
  using table_type = table<Config>;
  using layout = typename table_type::layout;

 public:
  explicit view(table_type const& table) : metadata_copy{table.metadata(), table.metadata_bytes()}, table_{table} {}

  heap_statistics figures() const {
    heap_statistics found{
        .pool_bytes = table_.pool_bytes(), .metadata_bytes = table_.metadata_bytes(), .slabs = table_.pages()};
    for (u32 row = 0; row < table_type::count_rows; ++row)
      found = add_calls<typename table_type::count>(found, table_.counts_offset() + 8 * table_type::spread * row);
    return found;
  }

  // Its slabs are the pages.
  u8* pool() const { return table_.pool(); }
  static constexpr u32 slab_log2() { return layout::page_log2; }
  quiet_slab use_of(u32 page) const {
    if (word(page).is_free()) return quiet_slab::free;
    return word(page).has_chunks() ? quiet_slab::blocks : quiet_slab::run;
  }

  template <class Visitor>
  void for_each_taken(Visitor visit) const {
    for (u32 page = 0; page < table_.pages(); ++page) {
      page_word const now = word(page);
      if (now.is_run()) visit(table_.data(page), u64{now.low()} * layout::page_bytes, 1);
      if (!now.has_chunks()) continue;
      u64 const bytes = u64{now.units()} * layout::unit_bytes;
      u32 const capacity = layout::capacity(now.units());
      for (u32 segment = 0; segment * 32 < capacity; ++segment)
        visit(table_.data(page) + segment * 32 * bytes, bytes,
              (layout::is_flat(now.units()) ? now.low() : stored_field(page, segment)) &
                  layout::valid_mask(capacity, segment));
    }
  }

  void check_all(invariant_check& expect) const {
    for (u32 page = 0; page < table_.pages(); ++page) check_page(page, expect);
    check_runs(expect);
    check_counts(expect);
  }

 private:
  page_word word(u32 page) const { return page_word{at(0)[page]}; }
  u32 stored_field(u32 page, u32 segment) const {
    return at<u32>(u64{table_.pages()} * 8)[u64{page} * layout::fields + segment];
  }
  static u32 taken(page_word now) {
    if (!now.has_chunks()) return 0;
    return layout::is_flat(now.units()) ? popcount(now.low()) : now.low();
  }

  void check_page(u32 page, invariant_check& expect) const {
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
    expect(stray == 0, "scatter.S2: a bit is set where there is no chunk, in page ", page);
    expect(flat || set == taken(now), "scatter.S2: promised chunks are not the bits set, in page ", page);
    bool const full = now.has_chunks() ? taken(now) == capacity : !now.is_free();
    expect(now.is_full() == full, "F does not say whether all is taken, in page ", page);
    expect(!now.is_free() || now.low() == 0, "scatter.S3: a free page holds something, page ", page);
    expect(!now.has_chunks() || taken(now) != 0 || !Config.reset_freed_pages,
           "scatter.S3: the last chunk was given back, and its size stayed, in page ", page);
    expect(!now.has_chunks() || now.units() <= layout::page_units, "scatter.S3: chunks larger than page ", page);
  }

  void check_runs(invariant_check& expect) const {
    u64 inside = 0;  // pages that the last run still has
    for (u32 page = 0; page < table_.pages(); ++page) {
      page_word const now = word(page);
      bool const inner = !now.is_free() && !now.has_chunks() && !now.is_run();
      expect(inner == (inside != 0), "scatter.R2: in no run, or missing in one, page ", page);
      if (now.is_run()) inside = now.low();
      if (inside != 0) --inside;
    }
    expect(inside == 0, "scatter.R1: the last run reaches beyond the pool, pages ", inside);
  }

  void check_counts(invariant_check& expect) const {
    for (u32 access_block = 0; access_block < table_.access_blocks(); ++access_block) {
      u32 full_regions = 0;
      for (u32 i = 0; i < table_.regions_of(access_block); ++i) {
        u32 const region = access_block * table_.access_block_regions() + i;
        u32 full = 0;
        for (u32 page = 0; page < table_.pages_of(region); ++page)
          full += word(region * Config.region_pages + page).is_full();
        full_regions += full == table_.pages_of(region);
        fill_count const counted{at(table_.regions_offset())[region]};
        expect(counted.counts_all(full), "scatter.F1: full pages are not those counted, in region ", region);
      }
      fill_count const counted{at(table_.access_blocks_offset())[u64{table_type::spread} * access_block]};
      expect(counted.counts_all(full_regions), "scatter.F1: full regions are not those counted, in access block ",
             access_block);
    }
  }

  table_type table_;
};

template <creation::scatter_config Config>
using snapshot = quiet_view<view<Config>>;

}}}  // namespace warpheap::WARPHEAP_BACKEND::scatter_parts

#endif
