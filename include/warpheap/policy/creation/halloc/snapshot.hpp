// SPDX-License-Identifier: Apache-2.0
// A quiet heap seen from the host: its words are copied once, then read by plain code.
#pragma once

#include "../report.hpp"
#include "claim.hpp"

#if !defined(__CUDACC_RTC__)
#include <algorithm>
#include <string>
#include <utility>
#include <vector>
#endif

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace halloc_parts {

#if !defined(__CUDACC_RTC__)

/// Reads what a heap counted of its work, and sets these counts to 0.
template <class Table>
class work_counts {
 public:
  explicit work_counts(Table const& table) : first_{table.metadata() + table.geometry().counts_offset()} {}

  creation::halloc_work read() const {
    u64 words[count_kinds];
    backend::copy_bytes(words, first_, sizeof words);
    auto const counted = [&](count which) { return words[static_cast<u32>(which)]; };
    return {.replacements = counted(count::replacements),
            .probes = counted(count::probes),
            .searches = counted(count::searches),
            .looks = counted(count::looks),
            .word_looks = counted(count::word_looks),
            .dry_rows = counted(count::dry_rows),
            .waits = counted(count::waits),
            .replacing_cycles = counted(count::replacing),
            .longest_replacing_cycles = counted(count::longest_replacing),
            .caching_cycles = counted(count::caching),
            .longest_caching_cycles = counted(count::longest_caching)};
  }

  void clear(stream_view on) const {
    // Refused and misused calls are statistics, not work.
    constexpr size_t kept = 8 * static_cast<size_t>(count::replacements);
    backend::fill_bytes(first_ + kept, 0, 8 * count_kinds - kept, on);
  }

 private:
  u8* first_;
};

template <class Table>
class snapshot {
 public:
  /// `metadata_bytes` are the heap's, its pages' among them.
  snapshot(Table const& table, u64 metadata_bytes)
      : table_{table},
        large_{table.large().snapshot()},
        geometry_{table.geometry()},
        metadata_bytes_{metadata_bytes},
        words_(geometry_.metadata_bytes() / 8) {
    backend::copy_bytes(words_.data(), table.metadata(), 8 * words_.size());
  }

  /// Every piece of the pool as large as a slab counts as one, whether it serves as one or not.
  heap_statistics statistics() const {
    auto const pages = large_.statistics();
    bool const is_split = Table::config.split_percent != 0;
    u64 const slab_log2 = geometry_.slab_log2(),
              committed = is_split ? geometry_.slabs() : pages.pool_bytes >> slab_log2;
    heap_statistics counted{.pool_bytes = pages.pool_bytes + (is_split ? committed << slab_log2 : 0),
                            .metadata_bytes = metadata_bytes_,
                            .slabs = committed};
    counted.double_frees = pages.double_frees + counted_words(count::double_frees);
    counted.foreign_frees = pages.foreign_frees + counted_words(count::foreign_frees);
    counted.failures = counted_words(count::failures);
    std::vector<bool> used(geometry_.slabs());
    for_each_live([&](void* memory, size_t bytes) {
      ++counted.live_blocks;
      counted.live_bytes += bytes;
      for (u64 at = table_.offset_of(memory), end = at + bytes; at < end; at += u64{1} << slab_log2)
        if (table_.slab_at(at) < used.size()) used[table_.slab_at(at)] = true;
    });
    for (u32 slab = 0; slab < committed; ++slab)
      if (!used[slab]) ++(state(slab).live() ? counted.empty_slabs : counted.free_slabs);
    return counted;
  }

  /// Calls visit(address, bytes) for every live block in address order; in place of a slab, for the
  /// blocks of the slab.
  template <class Visitor>
  void for_each_live(Visitor visit) const {
    large_.for_each_live([&](void* memory, size_t bytes) {
      if (!is_slab(memory)) visit(memory, bytes);
      else visit_slab(static_cast<u32>(table_.slab_at(table_.offset_of(memory))), visit);
    });
    if constexpr (Table::config.split_percent != 0)
      for (u32 slab = 0; slab < geometry_.slabs(); ++slab) visit_slab(slab, visit);
  }

  /// One line for every invariant that does not hold.
  invariant_report check_invariants() const {
    invariant_report report;
    for (u32 slab = 0; slab < geometry_.slabs(); ++slab) check_slab(slab, report);
    for (u32 which = 0; which < slab_geometry::sets; ++which)
      if (!slab_set::is_upper_bound(set(which), geometry_.slabs()))
        say(report, "slab_set.S3: set ", which, "is not summed up");
    for (u32 entry = 0; entry < geometry_.rows() * sizes; ++entry)
      if (row(entry)[Table::lock_word] >= row_lock) say(report, "halloc.P3: row ", entry, "is locked");
    for (auto const& line : large_.check_invariants()) report.push_back("pages: " + line);
    return report;
  }

 private:
  static void say(invariant_report& report, char const* what, u64 which, char const* more) {
    report.push_back(what + std::to_string(which) + " " + more);
  }

  u64 const* at(u64 offset) const { return words_.data() + offset / 8; }
  u64 const* record(u32 slab) const { return at(geometry_.records_offset() + slab * geometry_.record_bytes()); }
  slab_state state(u32 slab) const { return {*record(slab)}; }
  u64 note(u32 slab) const { return record(slab)[1]; }
  u64 word(u32 slab, u32 i) const { return record(slab)[slab_geometry::spacing / 8 + i]; }
  u64 const* row(u32 entry) const { return at(u64{entry} * slab_geometry::spacing); }
  u64 const* set(u32 which) const { return at(geometry_.sets_offset() + which * geometry_.set_bytes()); }
  u32 role(u32 slab) const { return reinterpret_cast<u32 const*>(at(geometry_.roles_offset()))[slab]; }
  u64 counted_words(count which) const { return at(geometry_.counts_offset())[static_cast<u32>(which)]; }

  bool is_slab(void const* memory) const {
    u64 const slab = table_.slab_at(table_.offset_of(memory));
    return Table::config.split_percent == 0 && slab < geometry_.slabs() &&
           state(static_cast<u32>(slab)).phase() != slab_phase::none;
  }

  template <class Visitor>
  void visit_slab(u32 slab, Visitor visit) const {
    slab_state const now = state(slab);
    if (!now.live()) return;
    for (u32 i = 0; i < geometry_.words(now.kind()); ++i) {
      u64 const bits = word(slab, i);
      for (u32 rest = live_starts(bits, ~0u, now.kind()); rest != 0; rest &= rest - 1)
        visit(table_.address(slab, now.kind(), word_chunks * i + lowest_bit(rest)),
              size_t{popcount(chunks_at(bits, rest & (0 - rest)))} * chunk_bytes(now.kind()));
    }
  }

  void check_slab(u32 slab, invariant_report& report) const {
    slab_state const now = state(slab);
    auto const wrong = [&](char const* what) { say(report, "slab ", slab, what); };
    u32 bits = 0, most = static_cast<u32>((geometry_.record_bytes() - slab_geometry::spacing) / 8);
    bool broken = false;
    for (u32 i = 0; i < most; ++i) {
      u64 const here = word(slab, i);
      bits += popcount(taken(here));
      broken = broken || !holds_together(here, now.kind());
      if (now.live() && (taken(here) & ~existing(geometry_.capacity(now.kind()), i)) != 0)
        wrong("halloc.C4: chunks beyond the last");
    }
    if (broken) wrong("halloc.C2, halloc.C3, halloc.C5: joined bits that are no block's, or of another kind");
    if (now.phase() == slab_phase::locked) wrong("halloc.A3: locked");
    if (now.used() != bits) wrong("halloc.A1: its count is not what is taken");
    if (set_has(Table::free_slabs, slab) != (now.phase() == slab_phase::free))
      wrong("halloc.A8: free, or in the set, but not both");
    u64 const live_only = slab_state::version_unit - 1 - slab_state::used_mask - slab_state::of(slab_phase::locked);
    if (now.live()) check_live(slab, now, report);
    else if ((now.word & live_only) != 0) wrong("halloc.A5: not live, but with what only live slabs have");
    bool const is_tbuddys = now.phase() == slab_phase::none;
    if (is_tbuddys != (role(slab) == 0) && (is_tbuddys || Table::config.split_percent == 0))
      wrong("role: not that of its phase");
  }

  void check_live(u32 slab, slab_state now, invariant_report& report) const {
    auto const wrong = [&](char const* what) { say(report, "slab ", slab, what); };
    if (role(slab) != 1 + now.kind()) wrong("role: not its kind");
    for (u32 length = 0; length < 4; ++length)
      for (u32 i = 0; now.is_full_by(note(slab), length) && i < geometry_.words(now.kind()); ++i)
        if (starts_in(~taken(word(slab, i)) & existing(geometry_.capacity(now.kind()), i), length) != 0) {
          wrong("halloc.A4: it is noted to have no room");
          break;
        }
    if (now.head()) {
      bool known = false;
      for (u32 entry = 0; entry < geometry_.rows() * sizes; ++entry)
        known = known || head_of(*row(entry)) == slab + 1 || is_next(row(entry), slab);
      if (!known) wrong("halloc.P2: a head of no row");
      return;
    }
    if (now.used() == 0) wrong("halloc.A3: empty, but not free");
    bool listed = set_has(Table::sparse(now.kind()), slab) || set_has(Table::busy(now.kind()), slab);
    for (u32 length = 0; length < 4; ++length)
      listed = listed || set_has(Table::normal(size_of(now.kind(), length)), slab);
    if (!listed) wrong("halloc.A7: in no set");
  }

  static bool is_next(u64 const* row, u32 slab) {
    u64 const* const next = row + Table::next_word;
    return std::find(next, next + Table::most_ahead, slab + 1) != next + Table::most_ahead;
  }

  bool set_has(u32 which, u32 slab) const { return slab_set::contains(set(which), slab); }

  /// Whether a word names the right kind (halloc.C5), and all its joined bits are those of blocks
  /// at the right places (halloc.C2, halloc.C3).
  static bool holds_together(u64 word, u32 kind) {
    if (taken(word) == 0) return word == 0;
    u32 seen = 0;
    for (u32 rest = live_starts(word, ~0u, kind); rest != 0; rest &= rest - 1) {
      u32 const all = chunks_at(word, rest & (0 - rest)), length = popcount(all);
      if (!is_power_of_two(length) || lowest_bit(rest) % length != 0) return false;
      seen |= all;
    }
    return seen == taken(word) && (joined(word) & ~seen) == 0;
  }

  Table table_;
  decltype(std::declval<Table const&>().large().snapshot()) large_;
  slab_geometry geometry_;
  u64 metadata_bytes_;
  std::vector<u64> words_;
};

#endif

}}}  // namespace warpheap::WARPHEAP_BACKEND::halloc_parts
