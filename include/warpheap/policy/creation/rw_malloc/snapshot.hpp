// SPDX-License-Identifier: Apache-2.0
// A quiet rw_malloc seen from the host.
#pragma once

#include "../shared/quiet_view.hpp"
#include "table.hpp"

#if !defined(__CUDACC_RTC__)
#include <algorithm>

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace rw_malloc_parts {

template <creation::rw_malloc_config Config>
class view : public metadata_copy {
  using table_type = table<Config>;

 public:
  explicit view(table_type const& table) : metadata_copy{table.metadata(), table.metadata_bytes()}, table_{table} {}

  heap_statistics figures() const {
    return add_calls<typename table_type::count>(
        {.pool_bytes = table_.pool_bytes(), .metadata_bytes = table_.metadata_bytes()}, 0);
  }

  template <class Visitor>
  void for_each_taken(Visitor visit) const {
    u64 start = table_type::none;
    for (u32 i = 0; i < table_.words(); ++i)
      for (u32 rest = marks(i).starts() | marks(i).ends(); rest != 0; rest &= rest - 1) {
        u32 const bit = lowest_bit(rest);
        u64 const unit = u64{32} * i + bit;
        if (marks(i).has_start(bit)) start = unit;
        if (!marks(i).has_end(bit) || start == table_type::none) continue;
        visit(table_.address(start), (unit - start + 1) * table_type::unit_bytes, 1);
        start = table_type::none;
      }
  }

  void check_all(invariant_check& expect) const {
    unit_pass at_unit{.has_extent = std::vector<bool>(table_.words())};
    for (u32 i = 0; i < table_.words(); ++i) check_word(i, at_unit, expect);
    expect(!at_unit.inside, "rw.U1: a block without an end");
    for (u32 i = 0; i < table_.words(); ++i)
      expect(at_unit.has_extent[i] || unit_word::extent(word(i)) == 0, "rw.U3: an extent at word ", i);
    for (u64 group = 0; group < table_.groups(); ++group) check_group(group, expect);
  }

 private:
  /// Where a pass over the units is.
  struct unit_pass {
    bool inside = false;           ///< a block
    u64 start = 0;                 ///< of the last one
    std::vector<bool> has_extent;  ///< words that must have one
  };

  void check_word(u32 i, unit_pass& at, invariant_check& expect) const {
    expect(!word(i).locked(), "walk.K2: a locked word at unit ", u64{32} * i);
    // most words of a large heap
    if (marks(i).word == 0 && word(i).free() == (at.inside ? 0 : full_word)) return;
    for (u32 bit = 0; bit < 32; ++bit) {
      bool const starts = marks(i).has_start(bit), ends = marks(i).has_end(bit);
      bool const taken = !(word(i).free() >> bit & 1);
      u64 const unit = u64{32} * i + bit;
      if (unit < table_.units()) check_unit(unit, starts, ends, taken, at, expect);
      else expect(taken && !starts && !ends, "walk.K3: a unit that does not exist at unit ", unit);
    }
  }

  void check_unit(u64 unit, bool starts, bool ends, bool taken, unit_pass& at, invariant_check& expect) const {
    expect(!starts || !at.inside, "rw.U1: a block starts in another at unit ", unit);
    if (starts) at.start = unit;
    at.inside = at.inside || starts;
    expect(!taken || at.inside, "rw.U1: a lost unit at unit ", unit);
    expect(taken || !at.inside, "rw.U1: a block's unit is free at unit ", unit);
    expect(!ends || at.inside, "rw.U1: an end without a start at unit ", unit);
    if (ends) check_extents(unit_run{at.start, unit - at.start + 1}, at, expect);
    at.inside = at.inside && !ends;
  }

  void check_group(u64 group, invariant_check& expect) const {
    group_word const noted{at(table_type::words_offset)[2 * u64{table_.words()} + group]};
    if (!noted.noted()) return;
    u64 const first = group * Config.group_words, end = first + table_.units_of_group(group) / 32;
    u32 length = 0, longest = 0, at_start = 0;
    bool watched = true, stopped = false;
    for (u64 i = first; i < end; ++i) {
      walk_word const seen = word(static_cast<u32>(i));
      watched = watched && unit_word::is_watched(seen);
      for (u32 bit = 0; bit < 32; bit += seen.free() == 0 ? 32u : 1u) {
        length = seen.free() >> bit & 1 ? length + 1 : 0;
        longest = (std::max)(longest, length);
        stopped = stopped || length == 0;
        if (!stopped) at_start = length;
      }
    }
    expect(watched && longest <= noted.longest() && at_start <= noted.at_start() && length <= noted.at_end(),
           "rw.G1: what is noted of group ", group);
  }

  void check_extents(unit_run run, unit_pass& at, invariant_check& expect) const {
    if (run.words() < 3) return;
    at.has_extent[run.first_word() + 1] = true;
    expect(unit_word::extent(word(run.first_word() + 1)) == run.words(), "rw.U3: the extent of the block at unit ",
           run.first);
  }

  walk_word word(u32 index) const { return walk_word{at(table_type::words_offset)[index]}; }
  unit_marks marks(u32 index) const { return unit_marks{at(table_type::words_offset)[table_.words() + index]}; }

  table_type table_;
};

template <creation::rw_malloc_config Config>
using snapshot = quiet_view<view<Config>>;

}}}  // namespace warpheap::WARPHEAP_BACKEND::rw_malloc_parts

#endif
