// SPDX-License-Identifier: Apache-2.0
// A kernel's view of a heap set: its own GPU's heap, and a table of where the blocks and mailboxes
// of all heaps are. The host's side is heap_set.hpp.
#pragma once

#include "../policy/oom/drain_mailbox.hpp"
#include "allocator.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// The most heaps of a set.
inline constexpr u32 most_set_members = 16;

/// In the memory of each member's GPU.
template <class Mailbox>
struct heap_set_table {
  u32 members;                      ///< how many
  u32 self;                         ///< the member whose table this is
  Mailbox boxes[most_set_members];  ///< of each

  /// The member whose pool contains `memory`; `members` if there is none.
  WARPHEAP_DEVICE u32 owner_of(void const* memory) const {
    u32 member = 0;
    WARPHEAP_NO_UNROLL
    while (member < members && !boxes[member].contains(memory)) ++member;
    return member;
  }
};

/// A heap set as kernels of one member's GPU see it, by value: trivially copyable, valid as long as
/// the set lives. Blocks come from the GPU's own heap; any GPU of the set may use and free them.
/// Any thread, converged or not.
template <class Allocator>
class heap_set_ref : public typed_calls<heap_set_ref<Allocator>> {
  using mailbox_type = typename Allocator::oom_type::mailbox_type;
  using table_type = heap_set_table<mailbox_type>;

 public:
  /// What the members' heaps promise.
  static constexpr allocator_traits traits = Allocator::traits;

  /// A null reference, which must not be called.
  heap_set_ref() = default;
  /// Made by heap sets.
  WARPHEAP_HOST_DEVICE heap_set_ref(Allocator local, table_type const* table) : local_{local}, table_{table} {}

  /// At least `bytes` bytes from this GPU's heap; nullptr for 0 bytes, or if there is no memory,
  /// even after all frees that other GPUs posted before the call were made.
  WARPHEAP_DEVICE void* malloc(size_t bytes) const { return local_.malloc(bytes); }

  /// `count` objects of `size` bytes, zeroed; nullptr if the product overflows or there is no
  /// memory.
  WARPHEAP_DEVICE void* calloc(size_t count, size_t size) const { return local_.calloc(count, size); }

  /// Frees a block of any member. nullptr does nothing. A block of another member is free once that
  /// member drains its mailbox: by the set's drain(), or when a call there finds no memory. An
  /// address that is no block is counted and ignored, as far as the allocator's traits say so.
  WARPHEAP_DEVICE void free(void* memory) const {
    if (!memory) return;
    if (local_.contains(memory) || !post(table_, memory)) local_.free(memory);
  }

  /// The member whose pool contains `memory`; size() if there is none.
  WARPHEAP_DEVICE u32 owner(void const* memory) const {
    return local_.contains(memory) ? table_->self : table_->owner_of(memory);
  }

  /// Whether `memory` lies in the pool of any member, in a block or not.
  WARPHEAP_DEVICE bool contains(void const* memory) const { return owner(memory) != size(); }

  /// How many members there are.
  WARPHEAP_DEVICE u32 size() const { return table_->members; }
  /// The member of this GPU.
  WARPHEAP_DEVICE u32 self() const { return table_->self; }

  /// This GPU's heap alone: for realloc(), usable_size() and so on, on its own blocks.
  WARPHEAP_HOST_DEVICE Allocator const& local() const { return local_; }

 private:
  /// Posts the free of another member's block. Returns false if `memory` is certainly no member's
  /// block.
  WARPHEAP_COLD static bool post(table_type const* table, void* memory) {
    u32 const owner = table->owner_of(memory);
    return owner < table->members && owner != table->self && table->boxes[owner].post(memory);
  }

  Allocator local_;
  table_type const* table_ = nullptr;
};

}}  // namespace warpheap::WARPHEAP_BACKEND
