// SPDX-License-Identifier: Apache-2.0
// A quiet heap seen from the host.
#pragma once

#include "../shared/quiet_view.hpp"
#include "claim.hpp"

#if !defined(__CUDACC_RTC__)
#include <algorithm>
#include <utility>
#endif

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace halloc_parts {

#if !defined(__CUDACC_RTC__)

/// Reads what a heap counted of its work, and sets these counts to 0. Refused and misused calls are
/// statistics, not work.
template <class Table>
class work_counts {
 public:
  explicit work_counts(Table const& table)
      : first_{table.metadata() + table.geometry().counts_offset() + 8 * static_cast<u32>(count::replacements)} {}

  creation::halloc_work read() const {
    creation::halloc_work work;
    backend::copy_bytes(&work, first_, sizeof work);
    return work;
  }
  void clear(stream_view on) const { backend::fill_bytes(first_, 0, sizeof(creation::halloc_work), on); }

 private:
  // The members are in the order of the counts.
  static_assert(sizeof(creation::halloc_work) == 8 * (count_kinds - static_cast<u32>(count::replacements)));

  u8* first_;
};

template <class Table>
class view : public metadata_copy {
 public:
  /// `metadata_bytes` are the heap's, its pages' among them.
  view(Table const& table, u64 metadata_bytes)
      : metadata_copy{table.metadata(), table.geometry().metadata_bytes()},
        table_{table},
        large_{table.large().snapshot()},
        geometry_{table.geometry()},
        metadata_bytes_{metadata_bytes} {}

  /// Every piece of the pool as large as a slab counts as one, whether it serves as one or not.
  heap_statistics figures() const {
    auto found = add_calls<count>(large_.figures(), geometry_.counts_offset());
    found.failures = at(geometry_.counts_offset())[static_cast<u32>(count::failures)];
    found.metadata_bytes = metadata_bytes_;
    found.slabs = is_split ? geometry_.slabs() : found.pool_bytes >> slab_log2();
    if (is_split) found.pool_bytes += found.slabs << slab_log2();
    return found;
  }

  u8* pool() const { return table_.pool(); }
  u32 slab_log2() const { return geometry_.slab_log2(); }
  quiet_slab use_of(u32 slab) const { return state(slab).live() ? quiet_slab::blocks : quiet_slab::free; }

  /// TBuddy's blocks; in place of a slab, the blocks in it.
  template <class Visitor>
  void for_each_taken(Visitor visit) const {
    large_.for_each_taken([&](void* first, u64 bytes, u64 taken) {
      u64 const slab = table_.slab_at(table_.offset_of(first));
      if (!is_split && slab < geometry_.slabs() && state(static_cast<u32>(slab)).phase() != slab_phase::none)
        visit_slab(static_cast<u32>(slab), visit);
      else visit(first, bytes, taken);
    });
    for (u32 slab = 0; is_split && slab < geometry_.slabs(); ++slab) visit_slab(slab, visit);
  }

  void check_all(invariant_check& expect) const {
    for (u32 slab = 0; slab < geometry_.slabs(); ++slab) check_slab(slab, expect);
    for (u32 which = 0; which < slab_geometry::sets; ++which)
      expect(slab_set::is_upper_bound(set(which), geometry_.slabs()), "slab_set.S3: set ", which, " is not summed up");
    for (u32 entry = 0; entry < geometry_.rows() * sizes; ++entry)
      expect(row(entry)[Table::lock_word] < row_lock, "halloc.P3: row ", entry, " is locked");
    expect.add("pages: ", large_.check_invariants());
  }

 private:
  static constexpr bool is_split = Table::config.split_percent != 0;

  u64 const* record(u32 slab) const { return at(geometry_.records_offset() + slab * geometry_.record_bytes()); }
  slab_state state(u32 slab) const { return {*record(slab)}; }
  u64 note(u32 slab) const { return record(slab)[1]; }
  u64 word(u32 slab, u32 i) const { return record(slab)[slab_geometry::spacing / 8 + i]; }
  u64 const* row(u32 entry) const { return at(u64{entry} * slab_geometry::spacing); }
  u64 const* set(u32 which) const { return at(geometry_.sets_offset() + which * geometry_.set_bytes()); }
  u32 role(u32 slab) const { return at<u32>(geometry_.roles_offset())[slab]; }

  template <class Visitor>
  void visit_slab(u32 slab, Visitor visit) const {
    slab_state const now = state(slab);
    if (!now.live()) return;
    for (u32 i = 0; i < geometry_.words(now.kind()); ++i) {
      u64 const bits = word(slab, i);
      for (u32 rest = live_starts(bits, ~0u, now.kind()); rest != 0; rest &= rest - 1)
        visit(table_.address(slab, now.kind(), word_chunks * i + lowest_bit(rest)),
              u64{popcount(chunks_at(bits, rest & (0 - rest)))} * chunk_bytes(now.kind()), 1);
    }
  }

  void check_slab(u32 slab, invariant_check& tell) const {
    slab_state const now = state(slab);
    auto const expect = [&](bool holds, char const* what) { tell(holds, "slab ", slab, " ", what); };
    u32 bits = 0, most = static_cast<u32>((geometry_.record_bytes() - slab_geometry::spacing) / 8);
    bool broken = false;
    for (u32 i = 0; i < most; ++i) {
      u64 const here = word(slab, i);
      bits += popcount(taken(here));
      broken = broken || !holds_together(here, now.kind());
      expect(!now.live() || (taken(here) & ~existing(geometry_.capacity(now.kind()), i)) == 0,
             "halloc.C4: chunks beyond the last");
    }
    expect(!broken, "halloc.C2, halloc.C3, halloc.C5: joined bits that are no block's, or of another kind");
    expect(now.phase() != slab_phase::locked, "halloc.A3: locked");
    expect(now.used() == bits, "halloc.A1: its count is not what is taken");
    expect(set_has(Table::free_slabs, slab) == (now.phase() == slab_phase::free),
           "halloc.A8: free, or in the set, but not both");
    u64 const live_only = slab_state::version_unit - 1 - slab_state::used_mask - slab_state::of(slab_phase::locked);
    expect(now.live() || (now.word & live_only) == 0, "halloc.A5: not live, but with what only live slabs have");
    bool const is_tbuddys = now.phase() == slab_phase::none;
    expect(is_tbuddys == (role(slab) == 0) || (!is_tbuddys && is_split), "role: not that of its phase");
    if (now.live()) check_live(slab, now, expect);
  }

  template <class Expect>
  void check_live(u32 slab, slab_state now, Expect const& expect) const {
    expect(role(slab) == 1 + now.kind(), "role: not its kind");
    for (u32 length = 0; length < 4; ++length)
      expect(!now.is_full_by(note(slab), length) || !has_room(slab, now.kind(), length),
             "halloc.A4: it is noted to have no room");
    if (now.head()) return expect(is_known_head(slab), "halloc.P2: a head of no row");
    expect(now.used() != 0, "halloc.A3: empty, but not free");
    bool listed = set_has(Table::sparse(now.kind()), slab) || set_has(Table::busy(now.kind()), slab);
    for (u32 length = 0; length < 4; ++length)
      listed = listed || set_has(Table::normal(size_of(now.kind(), length)), slab);
    expect(listed, "halloc.A7: in no set");
  }

  bool has_room(u32 slab, u32 kind, u32 length) const {
    u32 starts = 0;
    for (u32 i = 0; i < geometry_.words(kind); ++i)
      starts |= starts_in(~taken(word(slab, i)) & existing(geometry_.capacity(kind), i), length);
    return starts != 0;
  }

  bool is_known_head(u32 slab) const {
    bool known = false;
    for (u32 entry = 0; entry < geometry_.rows() * sizes; ++entry) {
      u64 const* const next = row(entry) + Table::next_word;
      known = known || head_of(*row(entry)) == slab + 1 ||
              std::find(next, next + Table::most_ahead, slab + 1) != next + Table::most_ahead;
    }
    return known;
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
};

template <class Table>
using snapshot = quiet_view<view<Table>>;

#endif

}}}  // namespace warpheap::WARPHEAP_BACKEND::halloc_parts
