// SPDX-License-Identifier: Apache-2.0
// A quiet rw_malloc seen from the host: its metadata copied once, and counted.
#pragma once

#include "../report.hpp"
#include "table.hpp"

#if !defined(__CUDACC_RTC__)
#include <algorithm>
#include <string>
#include <vector>

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace rw_malloc_parts {

template <creation::rw_malloc_config Config>
class snapshot {
  using table_type = table<Config>;

 public:
  explicit snapshot(table_type const& table) : table_{table}, words_(table.metadata_bytes() / 8) {
    backend::copy_bytes(words_.data(), table.metadata(), 8 * words_.size());
  }

  heap_statistics statistics() const {
    heap_statistics counted{.pool_bytes = table_.pool_bytes(), .metadata_bytes = table_.metadata_bytes()};
    for_each_live([&](void*, size_t bytes) {
      ++counted.live_blocks;
      counted.live_bytes += bytes;
    });
    counted.double_frees = count(table_type::count::double_frees);
    counted.foreign_frees = count(table_type::count::foreign_frees);
    counted.failures = count(table_type::count::failures);
    return counted;
  }

  /// Calls visit(address, bytes) for every live block in address order.
  template <class Visitor>
  void for_each_live(Visitor visit) const {
    u64 start = table_type::none;
    for (u32 i = 0; i < table_.words(); ++i)
      for (u32 rest = marks(i).starts() | marks(i).ends(); rest != 0; rest &= rest - 1) {
        u32 const bit = lowest_bit(rest);
        u64 const unit = u64{32} * i + bit;
        if (marks(i).has_start(bit)) start = unit;
        if (!marks(i).has_end(bit) || start == table_type::none) continue;
        visit(table_.address(start), (unit - start + 1) * table_type::unit_bytes);
        start = table_type::none;
      }
  }

  /// One line for every invariant that does not hold.
  invariant_report check_invariants() const {
    invariant_report report;
    block_at at;
    for (u32 i = 0; i < table_.words(); ++i) check_word(i, at, report);
    if (at.inside) report.push_back("rw.U1: a block without an end");
    for (u32 i = 0; i < table_.words(); ++i) {
      bool const may_have_one = i < extents_seen_.size() && extents_seen_[i];
      if (!may_have_one && unit_word::extent(word(i)) != 0)
        report.push_back("rw.U3: an extent at word " + std::to_string(i));
    }
    for (u64 group = 0; group < table_.groups(); ++group) check_group(group, report);
    return report;
  }

 private:
  /// Where a pass over the units is.
  struct block_at {
    bool inside = false;  ///< a block
    u64 start = 0;        ///< of the last one
  };

  void check_word(u32 i, block_at& at, invariant_report& report) const {
    if (word(i).locked()) report.push_back("walk.K2: a locked word at unit " + std::to_string(u64{32} * i));
    // most words of a large heap
    if (marks(i).word == 0 && word(i).free() == (at.inside ? 0 : full_mask)) return;
    for (u32 bit = 0; bit < 32; ++bit) {
      bool const starts = marks(i).has_start(bit), ends = marks(i).has_end(bit);
      bool const taken = !(word(i).free() >> bit & 1);
      u64 const unit = u64{32} * i + bit;
      if (unit < table_.units()) check_unit(unit, starts, ends, taken, at, report);
      else if (!taken || starts || ends)
        report.push_back("walk.K3: a unit that does not exist at unit " + std::to_string(unit));
    }
  }

  void check_unit(u64 unit, bool starts, bool ends, bool taken, block_at& at, invariant_report& report) const {
    auto const say = [&](char const* what) { report.push_back(what + (" at unit " + std::to_string(unit))); };
    if (starts && at.inside) say("rw.U1: a block starts in another");
    if (starts) at.start = unit;
    at.inside = at.inside || starts;
    if (taken != at.inside) say(taken ? "rw.U1: a lost unit" : "rw.U1: a block's unit is free");
    if (ends && !at.inside) say("rw.U1: an end without a start");
    if (ends) check_extents(unit_run{at.start, unit - at.start + 1}, report);
    at.inside = at.inside && !ends;
  }

  void check_group(u64 group, invariant_report& report) const {
    group_word const noted{words_[table_type::words_offset / 8 + 2 * u64{table_.words()} + group]};
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
    if (!watched || longest > noted.longest() || at_start > noted.at_start() || length > noted.at_end())
      report.push_back("rw.G1: what is noted of group " + std::to_string(group));
  }

  void check_extents(unit_run run, invariant_report& report) const {
    if (run.words() < 3) return;
    extents_seen_.resize(table_.words());
    extents_seen_[run.first_word() + 1] = true;
    if (unit_word::extent(word(run.first_word() + 1)) != run.words())
      report.push_back("rw.U3: the extent of the block at unit " + std::to_string(run.first));
  }

  walk_word word(u32 index) const { return walk_word{words_[table_type::words_offset / 8 + index]}; }
  unit_marks marks(u32 index) const {
    return unit_marks{words_[table_type::words_offset / 8 + table_.words() + index]};
  }
  u64 count(typename table_type::count which) const { return words_[static_cast<u32>(which)]; }

  table_type table_;
  std::vector<u64> words_;
  mutable std::vector<bool> extents_seen_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::rw_malloc_parts

#endif
