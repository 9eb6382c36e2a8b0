// The five policies composed: how a block is created, how the requests of a warp are distributed, what happens out of
// memory, where the pool comes from, and how requests are aligned. What a kernel holds and calls.
// Source: Eckert 2014, chapter 3; the default creation policy serves a warp's requests together by itself.
#pragma once

#include "../platform/simt.hpp"
#include "../policy/creation/report.hpp"
#include "warp_copy.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {

/// What the creation slot takes: a trivially copyable handle whose copies serve one heap.
template <class P>
concept creation_policy = requires(P policy, size_t bytes, void* memory) {
  P::name;
  P::traits.alignment;
  { policy.create(bytes) } -> same_type<void*>;
  policy.destroy(memory);
};

template <class P>
concept distribution_policy = requires(P policy, size_t bytes, void* memory) {
  P::name;
  { policy.collect(bytes) } -> same_type<size_t>;
  { policy.distribute(memory) } -> same_type<void*>;
};

template <class P>
concept oom_policy = requires(size_t bytes) {
  P::name;
  { P::handle(bytes) } -> same_type<void*>;
};

template <class P>
concept alignment_policy = requires(size_t bytes) {
  P::name;
  P::bytes;
  { P::pad(bytes) } -> same_type<size_t>;
};

/// Creation policies that can tell a block's size from its address.
template <class P>
concept knows_block_size = requires(P policy, void const* memory) {
  policy.usable_size(memory);
};

/// Pads blocks no finer than the creation policy aligns them, so that a size never promises more than its block.
template <class Creation, class Alignment>
concept alignment_serves_creation = Alignment::bytes >= 1 && Alignment::bytes <= Creation::traits.alignment;

/// Device memory allocation for kernels, by value. Any thread may call any function at any time, converged or not, with
/// no lock held; any thread may free what another allocated.
template <creation_policy Creation, distribution_policy Distribution, oom_policy Oom, class ReservePool,
          alignment_policy Alignment>
  requires alignment_serves_creation<Creation, Alignment>
class allocator {
 public:
  using creation_type = Creation;
  using distribution_type = Distribution;
  using oom_type = Oom;
  using reserve_pool_type = ReservePool;
  using alignment_type = Alignment;
  static constexpr allocator_traits traits = Creation::traits;

  allocator() = default;
  WARPHEAP_HOST_DEVICE explicit allocator(Creation creation) : creation_{creation} {}

  /// At least `bytes` bytes, uninitialised, aligned to 16 (and a power of two up to 4 KiB to itself, where the traits say
  /// so); nullptr for 0 bytes, and when there is no memory.
  WARPHEAP_DEVICE void* malloc(size_t bytes) const {
    Distribution distribution;
    size_t const wanted = distribution.collect(Alignment::pad(bytes));
    void* memory = creation_.create(wanted);
    if (!memory) memory = wanted ? Oom::handle(wanted) : nullptr;
    return distribution.distribute(memory);
  }

  /// Gives a block back. nullptr does nothing; what is no block of this heap, or was freed already, is counted and
  /// ignored where the traits say so.
  WARPHEAP_DEVICE void free(void* memory) const { creation_.destroy(memory); }

  /// `count` objects of `size` bytes, zeroed; nullptr if the product overflows or there is no memory.
  WARPHEAP_DEVICE void* calloc(size_t count, size_t size) const {
    if (size && count > ~size_t{0} / size) return nullptr;
    void* const memory = malloc(count * size);
    warp_fill_zero(memory, memory ? count * size : 0);
    return memory;
  }

  /// Changes the size of a block whose caller knows that it holds `old_bytes` bytes: in place if usable_size() allows,
  /// else in a new block with the contents copied, by the lanes that are there together. nullptr if there is no memory;
  /// the old block is then untouched. A null `memory` allocates; 0 bytes free and return nullptr.
  WARPHEAP_DEVICE void* realloc(void* memory, size_t old_bytes, size_t bytes) const {
    void* moved = nullptr;
    bool const stays = memory && bytes && fits_in_place(memory, bytes);
    if (!stays) moved = malloc(bytes);
    bool const copies = memory && moved;
    warp_copy(moved, memory, copies ? (old_bytes < bytes ? old_bytes : bytes) : 0);
    bool const drops = memory && (copies || bytes == 0);
    free(drops ? memory : nullptr);
    return stays ? memory : moved;
  }

  /// The same for creation policies that know how large a block is.
  WARPHEAP_DEVICE void* realloc(void* memory, size_t bytes) const requires knows_block_size<Creation> {
    return realloc(memory, memory ? usable_size(memory) : 0, bytes);
  }

  /// At least `bytes` bytes at a multiple of `alignment`, a power of two; nullptr if it is none, or out of memory.
  WARPHEAP_DEVICE void* aligned_alloc(size_t alignment, size_t bytes) const requires requires(Creation c) {
    c.create_aligned(alignment, bytes);
  }
  {
    if (alignment == 0 || (alignment & (alignment - 1))) return nullptr;
    size_t const wanted = Alignment::pad(bytes);
    void* const memory = creation_.create_aligned(alignment, wanted);
    return memory || !wanted ? memory : Oom::handle(wanted);
  }

  /// One call of a whole group: every lane of `mask` calls it with the same mask, each with its own size, and gets its own
  /// block. Saves the search for company that malloc makes.
  WARPHEAP_DEVICE void* malloc_warp(u32 mask, size_t bytes) const requires requires(Creation c) {
    c.create_warp(mask, bytes);
  }
  {
    size_t const wanted = Alignment::pad(bytes);
    void* const memory = creation_.create_warp(mask, wanted);
    return memory || !wanted ? memory : Oom::handle(wanted);
  }

  /// Bytes a caller may use at `memory`, a live block of this heap; 0 for anything else.
  WARPHEAP_DEVICE size_t usable_size(void const* memory) const requires knows_block_size<Creation> {
    return creation_.usable_size(memory);
  }

  /// Whether `memory` is a live block of this heap.
  WARPHEAP_DEVICE bool owns(void const* memory) const requires requires(Creation c) { c.owns(memory); }
  { return creation_.owns(memory); }

  /// Blocks of `bytes` that could be allocated now; exact when the heap is quiet. Visits every slab: not for inner loops.
  WARPHEAP_DEVICE u64 available_slots(size_t bytes) const requires requires(Creation c) { c.available_slots(bytes); }
  { return creation_.available_slots(Alignment::pad(bytes)); }

  WARPHEAP_HOST_DEVICE Creation const& creation() const { return creation_; }

 private:
  /// A block stays if the new size fits and would not be served by a block half as large.
  WARPHEAP_DEVICE bool fits_in_place(void const* memory, size_t bytes) const {
    if constexpr (knows_block_size<Creation>) {
      size_t const usable = creation_.usable_size(memory);
      return bytes <= usable && bytes > usable / 2;
    } else {
      return false;
    }
  }

  Creation creation_;
};

}  // namespace warpheap::inline WARPHEAP_BACKEND
