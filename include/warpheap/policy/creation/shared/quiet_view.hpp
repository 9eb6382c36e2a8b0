// SPDX-License-Identifier: Apache-2.0
// A quiet heap seen from the host: its metadata copied once, then read by plain code. An allocator
// writes a view, which says what is its own, and quiet_view<View> is its snapshot (report.hpp). A
// view has
//
//   figures()               memory, slabs and failed calls
//   for_each_taken(visit)   visit(first, bytes, taken) for up to 64 blocks of `bytes` bytes side by
//                           side from `first` on, of which those in the mask `taken` are live; in
//                           address order
//   check_all(expect)       expect(holds, words...) for each invariant
//
// and, if figures() has slabs,
//
//   use_of(slab), slab_log2(), pool()
#pragma once

#include "../../../platform/simt.hpp"
#include "../../../util/bits.hpp"
#include "../report.hpp"

#if !defined(__CUDACC_RTC__)
#include <string>
#include <vector>

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// Collects a line for each invariant that does not hold.
class invariant_check {
 public:
  /// Adds a line of the parts, words and numbers, unless the invariant holds.
  template <class... Parts>
  void operator()(bool holds, Parts const&... parts) {
    if (!holds) report_.push_back((text(parts) + ...));
  }
  /// Adds the report of a part of the heap.
  void add(std::string const& part, invariant_report const& report) {
    for (auto const& line : report) report_.push_back(part + line);
  }

  invariant_report const& report() const { return report_; }

 private:
  static std::string text(std::string const& words) { return words; }
  static std::string text(char const* words) { return words; }
  template <class Number>
  static std::string text(Number number) {
    return std::to_string(number);
  }

  invariant_report report_;
};

/// A copy of a heap's metadata.
class metadata_copy {
 public:
  metadata_copy(void const* metadata, u64 bytes) : words_(div_ceil(bytes, 8)) {
    backend::copy_bytes(words_.data(), metadata, bytes);
  }

 protected:
  /// What is `offset` bytes behind the beginning.
  template <class T = u64>
  T const* at(u64 offset) const {
    return reinterpret_cast<T const*>(reinterpret_cast<u8 const*>(words_.data()) + offset);
  }

  /// `found` and the failed calls that are counted at an offset.
  template <class Count>
  heap_statistics add_calls(heap_statistics found, u64 offset) const {
    found.double_frees += at(offset)[static_cast<u32>(Count::double_frees)];
    found.foreign_frees += at(offset)[static_cast<u32>(Count::foreign_frees)];
    found.failures += at(offset)[static_cast<u32>(Count::failures)];
    return found;
  }

 private:
  std::vector<u64> words_;
};

/// What a slab is used for.
enum class quiet_slab {
  free,    ///< nothing, or a part of a block that is no slab's
  blocks,  ///< blocks of a size class
  run,     ///< a part of a block larger than a slab
  absent   ///< nothing: it has no memory
};

template <class View>
class quiet_view : public View {
 public:
  using View::View;

  heap_statistics statistics() const {
    heap_statistics found = this->figures();
    std::vector<bool> in_use(found.slabs);
    this->for_each_taken([&](void* first, u64 bytes, u64 taken) {
      found.live_blocks += popcount(taken);
      found.live_bytes += popcount(taken) * bytes;
      if constexpr (has_slabs)
        if (taken != 0) mark(in_use, static_cast<u8*>(first), bytes);
    });
    if constexpr (has_slabs) count_slabs(found, in_use);
    return found;
  }

  /// Calls visit(address, bytes) for every live block in address order.
  template <class Visitor>
  void for_each_live(Visitor visit) const {
    this->for_each_taken([&](void* first, size_t bytes, u64 taken) {
      for (; taken != 0; taken &= taken - 1)
        visit(static_cast<void*>(static_cast<u8*>(first) + lowest_bit(taken) * bytes), bytes);
    });
  }

  /// One line for every invariant that does not hold.
  invariant_report check_invariants() const {
    invariant_check expect;
    this->check_all(expect);
    return expect.report();
  }

 private:
  static constexpr bool has_slabs = requires(View const& view) { view.use_of(0); };

  /// Notes the slabs of a block. Damaged metadata may say that it reaches beyond the last.
  void mark(std::vector<bool>& in_use, u8 const* first, u64 bytes) const {
    u64 const offset = static_cast<u64>(first - this->pool()), last = (offset + bytes - 1) >> this->slab_log2();
    for (u64 slab = offset >> this->slab_log2(); slab <= last && slab < in_use.size(); ++slab) in_use[slab] = true;
  }

  void count_slabs(heap_statistics& found, std::vector<bool> const& in_use) const {
    for (u32 slab = 0; slab < in_use.size(); ++slab) {
      quiet_slab const use = this->use_of(slab);
      found.run_slabs += use == quiet_slab::run;
      found.slabs -= use == quiet_slab::absent;
      found.pool_bytes -= u64{use == quiet_slab::absent} << this->slab_log2();
      if (in_use[slab]) continue;
      found.free_slabs += use == quiet_slab::free;
      found.empty_slabs += use == quiet_slab::blocks;
    }
  }
};

}}  // namespace warpheap::WARPHEAP_BACKEND

#endif
