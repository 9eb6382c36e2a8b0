// SPDX-License-Identifier: Apache-2.0
// The five policies composed: how a block is created, how the requests of a warp are distributed,
// what happens out of memory, where the pool comes from, and how requests are aligned. Kernels hold
// and call an allocator. Source: Eckert 2014, chapter 3; the default creation policy serves a
// warp's requests together by itself.
#pragma once

#include "../sync/same_object.hpp"
#include "access_guard.hpp"
#include "block_source.hpp"
#include "typed_calls.hpp"
#include "warp_copy.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// Device memory allocation for kernels, by value. Any thread may call any function at any time,
/// converged or not, with no lock held; any thread may free what another allocated. A function that
/// only some policies support exists only with those.
template <creation_policy Creation, distribution_policy Distribution, oom_policy Oom, class ReservePool,
          alignment_policy Alignment>
  requires policies_go_together<Creation, Distribution, Oom, ReservePool, Alignment>
class allocator : public typed_calls<allocator<Creation, Distribution, Oom, ReservePool, Alignment>> {
  using source_type = block_source<Creation, Oom>;
  static constexpr bool as_created = hands_out_as_created<Distribution>;
  static constexpr bool frames = frames_parts<Distribution>;

 public:
  /// How a block is created.
  using creation_type = Creation;
  /// How a warp's requests are distributed.
  using distribution_type = Distribution;
  /// What a call does when there is no memory.
  using oom_type = Oom;
  /// Where the pool comes from.
  using reserve_pool_type = ReservePool;
  /// How sizes are padded.
  using alignment_type = Alignment;

  /// Whether AddressSanitizer knows the blocks: access_guard.hpp.
  static constexpr bool guards_access = detail::guards_access<Creation, Distribution>;

  /// The creation policy's promises, as far as the other policies keep them.
  static constexpr allocator_traits traits =
      traits_through<Alignment>(traits_through<Distribution>(source_type::traits));

  /// A null reference, which must not be called.
  allocator() = default;
  /// Made by heaps.
  WARPHEAP_HOST_DEVICE explicit allocator(Creation creation, Oom oom = {}) : source_{creation, oom} {}

  /// At least `bytes` bytes, uninitialised, aligned to 16 (and a power of two up to 4 KiB to
  /// itself, where the traits say so); nullptr for 0 bytes, and when there is no memory.
  WARPHEAP_DEVICE void* malloc(size_t bytes) const {
    size_t const padded = Alignment::pad(bytes);
    Distribution distribution;
    if constexpr (frames) return share_out(distribution, distribution.collect(padded, same_heap()), padded);
    else return opened(distribution.distribute(source_.create(distribution.collect(padded))), bytes);
  }

  /// Frees a block. nullptr does nothing. An address that is no block of this heap, or was freed
  /// already, is counted and ignored where the traits say so.
  WARPHEAP_DEVICE void free(void* memory) const {
    if constexpr (frames && knows_its_pool<source_type>) {
      // not in our pool, so we must not read it
      if (!source_.contains(memory)) return source_.destroy(memory);
      if (!may_be_sub_block(memory)) return;
    }
    if constexpr (guards_access) close(memory);
    source_.destroy(Distribution::release(memory));
  }

  /// `count` objects of `size` bytes, zeroed; nullptr if the product overflows or there is no
  /// memory.
  WARPHEAP_DEVICE void* calloc(size_t count, size_t size) const {
    if (size && count > ~size_t{0} / size) return nullptr;
    void* const memory = malloc(count * size);
    warp_fill_zero<traits.alignment>(memory, memory ? count * size : 0);
    return memory;
  }

  /// Changes the size of a block that the caller knows to hold `old_bytes` bytes: in place if
  /// usable_size() allows, else in a new block, to which the converged lanes copy the contents
  /// together. nullptr if there is no memory and the old block, which is then unchanged, is too
  /// small. A null `memory` allocates; 0 bytes free and return nullptr.
  WARPHEAP_DEVICE void* realloc(void* memory, size_t old_bytes, size_t bytes) const {
    size_t room = 0;  // unknown: then nothing is known to fit
    if constexpr (frames || (as_created && knows_block_size<source_type>))
      if (memory && bytes) room = usable_size(memory);
    return resize(memory, old_bytes, room, bytes);
  }

  /// Changes the size of a block whose old size the caller need not know: for policies that know
  /// how large a block is.
  WARPHEAP_DEVICE void* realloc(void* memory, size_t bytes) const
      requires(frames || (as_created && knows_block_size<source_type>)) {
    size_t const room = memory ? usable_size(memory) : 0;
    return resize(memory, room, room, bytes);
  }

  /// At least `bytes` bytes at a multiple of `alignment`; nullptr if `alignment` is no power of
  /// two, or if there is no memory.
  WARPHEAP_DEVICE void* aligned_alloc(size_t alignment, size_t bytes) const
      requires((frames || as_created) && creates_aligned<source_type>) {
    if (alignment == 0 || (alignment & (alignment - 1))) return nullptr;
    size_t const padded = Alignment::pad(bytes);
    if constexpr (frames) {
      size_t const framed = Distribution::framed_bytes(padded, alignment);
      return Distribution::frame(source_.create_aligned(alignment, framed), padded, alignment);
    } else {
      return opened(source_.create_aligned(alignment, padded), bytes);
    }
  }

  /// One call of a whole group: every lane of `mask` calls it with the same mask, each with its own
  /// size, and gets its own block. Saves malloc's search for lanes that call at the same time.
  WARPHEAP_DEVICE void* malloc_warp(lane_mask mask, size_t bytes) const
      requires(frames || (as_created && creates_by_warp<source_type>)) {
    size_t const padded = Alignment::pad(bytes);
    if constexpr (frames) {
      Distribution distribution;
      return share_out(distribution, distribution.collect_warp(mask, padded, same_heap()), padded);
    } else {
      return opened(source_.create_warp(mask, padded), bytes);
    }
  }

  /// Bytes a caller may use at `memory`, a live block of this heap; 0 for any other address, if
  /// owns() exists too.
  WARPHEAP_DEVICE size_t usable_size(void const* memory) const
      requires(frames || (as_created && knows_block_size<source_type>)) {
    if constexpr (frames) return may_be_sub_block(memory) ? Distribution::usable_size(memory) : 0;
    else return opened_size(memory);
  }

  /// Whether `memory` is a live block of this heap.
  WARPHEAP_DEVICE bool owns(void const* memory) const
      requires((as_created || (frames && knows_its_pool<source_type>)) && knows_its_blocks<source_type>) {
    if constexpr (frames) return usable_size(memory) != 0 && source_.owns(Distribution::created(memory));
    else return source_.owns(memory);
  }

  /// Whether `memory` lies in this heap's pool, in a block or not.
  WARPHEAP_DEVICE bool contains(void const* memory) const requires knows_its_pool<source_type> {
    return source_.contains(memory);
  }

  /// Blocks of `bytes` that could be allocated now, by lanes that call alone; exact when the heap
  /// is quiet. Visits every slab: not for inner loops.
  WARPHEAP_DEVICE u64 available_slots(size_t bytes) const
      requires((frames || as_created) && counts_slots<source_type>) {
    return source_.available_slots(created_bytes(bytes));
  }

  /// available_slots() by a whole group: every lane of `mask` calls it with the same mask, each
  /// with its own size, and gets the count for that size. Lanes with the same size share the work.
  WARPHEAP_DEVICE u64 available_slots_warp(lane_mask mask, size_t bytes) const
      requires((frames || as_created) && counts_slots_by_warp<source_type>) {
    return source_.available_slots_warp(mask, created_bytes(bytes));
  }

  /// Bytes requested from the creation policy when a lane alone requests `bytes` bytes.
  WARPHEAP_HOST_DEVICE static constexpr size_t created_bytes(size_t bytes) {
    size_t const padded = Alignment::pad(bytes);
    if constexpr (frames) return Distribution::framed_bytes(padded, 1);
    else return padded;
  }

  /// The creation policy, for calls that bypass the others.
  WARPHEAP_HOST_DEVICE Creation const& creation() const { return source_.creation(); }
  /// The out-of-memory policy, if a call may try twice.
  WARPHEAP_HOST_DEVICE Oom const& oom() const requires(overflow_policy<Oom> || retries<Oom>) { return source_.oom(); }

 private:
  /// A filter for masks of converged lanes: it keeps those that call with this heap.
  WARPHEAP_DEVICE auto same_heap() const {
    return [this](lane_mask mask) { return lanes_with_same(mask, creation()); };
  }

  /// This lane's part of a block of `wanted` bytes, created for its whole group or for itself. If
  /// there is no block for the whole group, there may be one for each lane alone.
  WARPHEAP_DEVICE void* share_out(Distribution& distribution, size_t wanted, size_t padded) const {
    bool const together = distribution.combined();
    void* const mine = distribution.distribute(together ? creation().create(wanted) : source_.create(wanted));
    if (mine || !together) return mine;
    return Distribution::frame(source_.create(Distribution::framed_bytes(padded, 1)), padded, 1);
  }

  /// Whether the bytes before `memory`, which say whether a part starts there, can be read.
  WARPHEAP_DEVICE bool may_be_sub_block(void const* memory) const {
    if constexpr (knows_its_pool<source_type>)
      return source_.contains(memory) && source_.contains(static_cast<u8 const*>(memory) - Distribution::alignment) &&
             reinterpret_cast<u64>(memory) % Distribution::alignment == 0;
    else return memory != nullptr;
  }

  /// Whether `memory` is a block that this allocator guards, and not the second heap.
  WARPHEAP_DEVICE bool is_guarded(void const* memory) const {
    if constexpr (overflow_policy<Oom>) return memory && oom().first_holds(memory);
    else return memory != nullptr;
  }

  /// `memory`, after the requested bytes became accessible (guard.A2).
  WARPHEAP_DEVICE void* opened(void* memory, [[maybe_unused]] size_t bytes) const {
    if constexpr (guards_access)
      if (is_guarded(memory)) backend::allow_access(memory, bytes);
    return memory;
  }

  /// The size of a block, all of which is then accessible (guard.A2).
  WARPHEAP_DEVICE size_t opened_size(void const* memory) const {
    size_t const bytes = source_.usable_size(memory);
    if constexpr (guards_access)
      if (is_guarded(memory)) backend::allow_access(memory, bytes);
    return bytes;
  }

  /// A block that is about to be freed becomes inaccessible (guard.A1).
  WARPHEAP_DEVICE void close(void const* memory) const {
    if (is_guarded(memory)) backend::forbid_access(memory, creation().usable_size(memory));
  }

  /// realloc() of a block with room for `room` bytes. It stays if the new size fits and no block
  /// half as large would do, or there is no memory for one.
  WARPHEAP_DEVICE void* resize(void* memory, size_t old_bytes, size_t room, size_t bytes) const {
    bool const fits = bytes - 1 < room;
    void* moved = nullptr;
    // No block is smaller than the alignment.
    if (!fits || (bytes <= room / 2 && room > traits.alignment)) moved = malloc(bytes);
    bool const copies = memory && moved;
    size_t const kept = old_bytes < bytes ? old_bytes : bytes;
    warp_copy<traits.alignment>(moved, memory, copies ? kept : 0);
    bool const drops = memory && (copies || bytes == 0);
    free(drops ? memory : nullptr);
    return fits && !moved ? memory : moved;
  }

  source_type source_;
};

}}  // namespace warpheap::WARPHEAP_BACKEND
