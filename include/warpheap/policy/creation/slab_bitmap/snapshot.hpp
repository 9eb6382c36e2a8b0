// SPDX-License-Identifier: Apache-2.0
// A quiet heap seen from the host.
#pragma once

#include "../shared/quiet_view.hpp"
#include "table.hpp"

#if !defined(__CUDACC_RTC__)
#include <algorithm>

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace slab_bitmap_parts {

/// What the host asks of the heap whose words are `table`'s.
class view : public metadata_copy {
 public:
  explicit view(slab_table const& table)
      : metadata_copy{table.metadata(), table.geometry().metadata_bytes()},
        table_{table},
        geometry_{table.geometry()} {}

  heap_statistics figures() const {
    return add_calls<slab_table::count>({.pool_bytes = geometry_.pool_bytes(),
                                         .metadata_bytes = geometry_.metadata_bytes(),
                                         .slabs = geometry_.slabs()},
                                        counts_offset());
  }

  u8* pool() const { return table_.pool(); }
  u32 slab_log2() const { return geometry_.slab_log2(); }
  quiet_slab use_of(u32 slab) const {
    if (is_absent(slab)) return quiet_slab::absent;
    if (state(slab).kind() == slab_kind::run) return quiet_slab::run;
    return state(slab).is_live() ? quiet_slab::blocks : quiet_slab::free;
  }

  template <class Visitor>
  void for_each_taken(Visitor visit) const {
    for (u32 slab = 0; slab < geometry_.slabs(); ++slab) {
      slab_state const now = state(slab);
      if (u32 const length = run_length(slab)) visit(table_.data(slab), u64{length} << slab_log2(), 1);
      if (!now.is_live()) continue;
      u64 const bytes = class_bytes(now.size_class());
      u32 const capacity = geometry_.capacity(now.size_class());
      for (u32 word = 0; 64 * word < capacity; ++word)
        visit(table_.data(slab) + 64 * word * bytes, bytes,
              bitmap_word(slab, word) & slab_table::valid_mask(capacity, word));
    }
  }

  /// Bytes of the largest block that one call could get now; 0 if the heap is full.
  u64 largest_available() const {
    u64 run = 0, longest = 0, block = 0;
    for (u32 slab = 0; slab < geometry_.slabs(); ++slab) {
      slab_state const now = state(slab);
      run = now.is_reclaimable() ? run + geometry_.slab_bytes() : 0;
      longest = (std::max)(longest, run);
      if (now.is_live() && now.used() < geometry_.capacity(now.size_class()))
        block = (std::max)(block, u64{class_bytes(now.size_class())});
    }
    return longest != 0 ? longest : block;
  }

  u64 largest_failed_bytes() const {
    return at(counts_offset())[static_cast<u32>(slab_table::count::largest_failed_bytes)];
  }

  void check_all(invariant_check& expect) const {
    for (u32 slab = 0; slab < geometry_.slabs(); ++slab) check_slab(slab, expect);
    check_runs(expect);
    check_summaries(slab_table::free_slabs, expect);
    check_covers(slab_table::reclaimable, expect);
    for (u32 size_class = 0; size_class < geometry_.classes(); ++size_class) {
      check_summaries(slab_table::partial(size_class), expect);
      check_covers(slab_table::maybe_available(size_class), expect);
      expect(slab_supply{at(geometry_.control_offset())[size_class]}.openers() == 0, "class ", size_class,
             ": a slab is being opened at rest");
    }
  }

 private:
  u64 counts_offset() const { return geometry_.control_offset() + 8 * geometry_.classes(); }
  u64 const* record(u32 slab) const { return at(u64{slab} * geometry_.record_bytes()); }
  u64 const* index(u32 which) const { return at(geometry_.indexes_offset()) + which * geometry_.index_words(); }
  slab_state state(u32 slab) const { return {*record(slab)}; }
  u64 bitmap_word(u32 slab, u32 word) const { return record(slab)[slab_geometry::bitmap_offset / 8 + word]; }
  slab_header header(u32 slab) const { return slab_header{record(slab)[slab_geometry::header_offset / 8]}; }
  bool is_in(u32 which, u32 slab) const { return (index(which)[slab / 64] >> (slab % 64)) & 1; }

  /// Whether the slab has no memory (slab.R3).
  bool is_absent(u32 slab) const { return state(slab).kind() == slab_kind::run && header(slab).is_absent(); }

  /// Slabs of the run that starts here; 0 if none does.
  u32 run_length(u32 slab) const {
    bool const is_head = state(slab).kind() == slab_kind::run && header(slab).is_run();
    return is_head ? header(slab).length() : 0;
  }

  void check_slab(u32 slab, invariant_check& tell) const {
    slab_state const now = state(slab);
    auto const expect = [&](bool holds, char const* invariant) {
      if (!holds) tell(false, invariant, " in slab ", slab, ", descriptor ", describe(now));
    };
    bool const live = now.is_live();
    u32 const capacity = live ? geometry_.capacity(now.size_class()) : 0;
    u32 set = 0, stray = 0;
    for (u32 word = 0; word < geometry_.words(); ++word) {
      u64 const valid = slab_table::valid_mask(capacity, word);
      set += popcount(bitmap_word(slab, word) & valid);
      stray += popcount(bitmap_word(slab, word) & ~valid);
    }
    expect(now.kind() != slab_kind::locked, "slab.D3: locked at rest");
    expect(now.used() == set, "slab.D1, slab.D2: reserved blocks are not the bits set");
    expect(stray == 0, "slab.D7: a bit is set where there is no block");
    expect(is_in(slab_table::free_slabs, slab) == (now.kind() == slab_kind::free),
           "slab.D4: the index of free slabs is wrong");
    expect(is_in(slab_table::reclaimable, slab) || !now.is_reclaimable(), "slab.I2: not in the reclaimable index");
    expect(is_in(slab_table::reclaimable, slab) || !now.is_in_reclaimable(),
           "slab.I5: T, and not in the reclaimable index");
    for (u32 size_class = 0; size_class < geometry_.classes(); ++size_class) {
      bool const serves = now.serves(size_class);
      expect(is_in(slab_table::partial(size_class), slab) == (serves && !now.is_unlisted()),
             "slab.D4: the index of its class is wrong");
      expect(is_in(slab_table::maybe_available(size_class), slab) || !serves || now.is_full(),
             "slab.I1: no bit in the index of slabs that may be available");
    }
    expect(!now.is_index_locked(), "slab.I3: C at rest");
    if (!live) return;
    expect(!now.is_unlisted() || now.used() > slab_limits{capacity}.low, "slab.D4: off the index without need");
    expect(!now.is_full() || now.used() == capacity, "slab.D5: said to be full, and is not");
    expect(header(slab).word == slab_header::of_class(now.size_class()).word, "the header does not name the class");
  }

  void check_runs(invariant_check& expect) const {
    u32 inside = 0;  // slabs that the last head still claims
    for (u32 slab = 0; slab < geometry_.slabs(); ++slab) {
      bool const is_run = state(slab).kind() == slab_kind::run && !is_absent(slab);
      u32 const length = inside == 0 ? run_length(slab) : 0;
      if (length != 0) inside = length;
      expect(is_run == (inside != 0), "slab.R1: slab ", slab, " is in no run, or missing in one");
      if (inside != 0) --inside;
    }
  }

  void check_summaries(u32 which, invariant_check& expect) const {
    u64 const* const words = index(which);
    u32 const width = slab_index::width(geometry_.slabs());
    for (u32 i = 0; i < width; ++i)
      expect(((words[width + i / 64] >> (i % 64)) & 1) == (words[i] != 0), "slab.X2: index ", which, ", summary bit ",
             i);
  }

  void check_covers(u32 which, invariant_check& expect) const {
    u64 const* const words = index(which);
    u32 const width = slab_index::width(geometry_.slabs()), each = slab_index::words_a_summary;
    for (u32 i = 0; i < width; ++i)
      expect(words[i] == 0 || ((words[width + i / each] >> (i % each)) & 1) != 0, "slab.X3: index ", which, ", word ",
             i);
    for (u32 i = 0; i < slab_index::summaries(geometry_.slabs()); ++i)
      expect((words[width + i] >> each) == 0, "slab.X3: index ", which, ", C at rest");
  }

  static std::string describe(slab_state now) {
    static constexpr char const* kinds[] = {"free", "locked", "live", "run"};
    return std::string{kinds[static_cast<u32>(now.kind())]} + ", class " + std::to_string(now.size_class()) +
           ", used " + std::to_string(now.used()) + (now.is_unlisted() ? ", U" : "") + (now.is_full() ? ", F" : "");
  }

  slab_table table_;
  slab_geometry geometry_;
};

using snapshot = quiet_view<view>;

}}}  // namespace warpheap::WARPHEAP_BACKEND::slab_bitmap_parts

#endif
