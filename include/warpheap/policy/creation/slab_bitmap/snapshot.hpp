// SPDX-License-Identifier: Apache-2.0
// A quiet heap seen from the host: its words copied once, then counted and checked.
#pragma once

#include "../report.hpp"
#include "table.hpp"

#if !defined(__CUDACC_RTC__)
#include <algorithm>
#include <string>
#include <vector>

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace slab_bitmap_parts {

/// What the host asks of the heap whose words are `table`'s.
class snapshot {
 public:
  explicit snapshot(slab_table const& table)
      : table_{table}, geometry_{table.geometry()}, words_(geometry_.metadata_bytes() / 8) {
    backend::copy_bytes(words_.data(), table.metadata(), 8 * words_.size());
  }

  heap_statistics statistics() const {
    heap_statistics counted;
    counted.metadata_bytes = geometry_.metadata_bytes();
    for (u32 slab = 0; slab < geometry_.slabs(); ++slab) {
      if (is_absent(slab)) continue;
      slab_state const now = state(slab);
      counted.slabs += 1;
      counted.pool_bytes += geometry_.slab_bytes();
      counted.free_slabs += now.kind() == slab_kind::free;
      counted.run_slabs += now.kind() == slab_kind::run;
      counted.empty_slabs += now.is_live() && now.used() == 0;
      if (now.is_live()) {
        counted.live_blocks += now.used();
        counted.live_bytes += u64{now.used()} * class_bytes(now.size_class());
      } else if (u32 const length = run_length(slab)) {
        counted.live_blocks += 1;
        counted.live_bytes += u64{length} << geometry_.slab_log2();
      }
    }
    counted.double_frees = count(slab_table::count::double_frees);
    counted.foreign_frees = count(slab_table::count::foreign_frees);
    counted.failures = count(slab_table::count::failures);
    return counted;
  }

  /// Bytes of the largest block that one call could get now; 0 if the heap is full.
  u64 largest_available() const {
    if (u32 const slabs = longest_reclaimable()) return u64{slabs} << geometry_.slab_log2();
    u32 largest = 0;
    for (u32 slab = 0; slab < geometry_.slabs(); ++slab) {
      slab_state const now = state(slab);
      if (now.is_live() && now.used() < geometry_.capacity(now.size_class()))
        largest = (std::max)(largest, class_bytes(now.size_class()));
    }
    return largest;
  }

  u64 largest_failed_bytes() const { return count(slab_table::count::largest_failed_bytes); }

  /// Calls visit(address, bytes) for every live block in address order.
  template <class Visitor>
  void for_each_live(Visitor visit) const {
    for (u32 slab = 0; slab < geometry_.slabs(); ++slab) {
      slab_state const now = state(slab);
      u8* const start = table_.data(slab);
      if (u32 const length = run_length(slab))
        visit(static_cast<void*>(start), size_t{length} << geometry_.slab_log2());
      if (!now.is_live()) continue;
      size_t const bytes = class_bytes(now.size_class());
      for (u32 index = 0; index < geometry_.capacity(now.size_class()); ++index)
        if ((bitmap_word(slab, index / 64) >> (index % 64)) & 1)
          visit(static_cast<void*>(start + index * bytes), bytes);
    }
  }

  /// One line for every invariant that does not hold.
  invariant_report check_invariants() const {
    invariant_report report;
    for (u32 slab = 0; slab < geometry_.slabs(); ++slab) check_slab(slab, report);
    check_runs(report);
    check_summaries(slab_table::free_slabs, report);
    check_covers(slab_table::reclaimable, report);
    for (u32 size_class = 0; size_class < geometry_.classes(); ++size_class)
      check_summaries(slab_table::partial(size_class), report),
          check_covers(slab_table::maybe_available(size_class), report);
    check_supplies(report);
    return report;
  }

 private:
  u64 const* at(u64 offset) const { return words_.data() + offset / 8; }
  u64 const* record(u32 slab) const { return at(u64{slab} * geometry_.record_bytes()); }
  u64 const* control() const { return at(geometry_.control_offset()); }
  u64 const* index(u32 which) const { return at(geometry_.indexes_offset()) + which * geometry_.index_words(); }
  u64 count(slab_table::count which) const { return control()[geometry_.classes() + static_cast<u32>(which)]; }
  slab_state state(u32 slab) const { return {*record(slab)}; }
  u64 bitmap_word(u32 slab, u32 word) const { return record(slab)[slab_geometry::bitmap_offset / 8 + word]; }
  slab_header header(u32 slab) const { return {record(slab)[slab_geometry::header_offset / 8]}; }
  bool is_in(u32 which, u32 slab) const { return (index(which)[slab / 64] >> (slab % 64)) & 1; }

  /// Whether the slab has no memory (slab.R3).
  bool is_absent(u32 slab) const { return state(slab).kind() == slab_kind::run && header(slab).is_absent(); }

  /// Slabs of the run that starts here; 0 if none does.
  u32 run_length(u32 slab) const {
    bool const is_head = state(slab).kind() == slab_kind::run && header(slab).is_run();
    return is_head ? header(slab).length() : 0;
  }

  /// Slabs of the longest stretch that a run could take.
  u32 longest_reclaimable() const {
    u32 longest = 0, here = 0;
    for (u32 slab = 0; slab < geometry_.slabs(); ++slab) {
      here = state(slab).is_reclaimable() ? here + 1 : 0;
      longest = (std::max)(longest, here);
    }
    return longest;
  }

  void check_slab(u32 slab, invariant_report& report) const {
    slab_state const now = state(slab);
    auto const expect = [&](bool holds, char const* invariant) {
      if (!holds) report.push_back(invariant + (" in slab " + std::to_string(slab)) + ", descriptor " + describe(now));
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

  void check_runs(invariant_report& report) const {
    u32 inside = 0;  // slabs that the last head still claims
    for (u32 slab = 0; slab < geometry_.slabs(); ++slab) {
      bool const is_run = state(slab).kind() == slab_kind::run && !is_absent(slab);
      u32 const length = inside == 0 ? run_length(slab) : 0;
      if (length != 0) inside = length;
      if (is_run != (inside != 0))
        report.push_back("slab.R1: slab " + std::to_string(slab) + " is in no run, or missing in one");
      if (inside != 0) --inside;
    }
  }

  void check_summaries(u32 which, invariant_report& report) const {
    u64 const* const words = index(which);
    u32 const width = slab_index::width(geometry_.slabs());
    for (u32 i = 0; i < width; ++i)
      if (((words[width + i / 64] >> (i % 64)) & 1) != (words[i] != 0))
        report.push_back("slab.X2: index " + std::to_string(which) + ", summary bit " + std::to_string(i));
  }

  void check_covers(u32 which, invariant_report& report) const {
    u64 const* const words = index(which);
    u32 const width = slab_index::width(geometry_.slabs()), each = slab_index::words_a_summary;
    for (u32 i = 0; i < width; ++i)
      if (words[i] != 0 && ((words[width + i / each] >> (i % each)) & 1) == 0)
        report.push_back("slab.X3: index " + std::to_string(which) + ", word " + std::to_string(i));
    for (u32 i = 0; i < slab_index::summaries(geometry_.slabs()); ++i)
      if ((words[width + i] >> each) != 0) report.push_back("slab.X3: index " + std::to_string(which) + ", C at rest");
  }

  void check_supplies(invariant_report& report) const {
    for (u32 size_class = 0; size_class < geometry_.classes(); ++size_class)
      if (slab_supply{control()[size_class]}.openers() != 0)
        report.push_back("class " + std::to_string(size_class) + ": a slab is being opened at rest");
  }

  static std::string describe(slab_state now) {
    static constexpr char const* kinds[] = {"free", "locked", "live", "run"};
    return std::string{kinds[static_cast<u32>(now.kind())]} + ", class " + std::to_string(now.size_class()) +
           ", used " + std::to_string(now.used()) + (now.is_unlisted() ? ", U" : "") + (now.is_full() ? ", F" : "");
  }

  slab_table table_;
  slab_geometry geometry_;
  std::vector<u64> words_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::slab_bitmap_parts

#endif
