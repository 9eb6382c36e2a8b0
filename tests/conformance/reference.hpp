// SPDX-License-Identifier: Apache-2.0
// The contract kept by the simplest means: pages under one spin lock, found first fit. Slow and
// right, so that the suite itself can be tested: this allocator must pass it, and each of its
// faults, chosen at compile time, must be caught by the check that is there for it.
//
//   owners[page]   0 free; else the pages of the block at its first page, and `inner` at its others
#pragma once

#include "warpheap/heap/heap.hpp"
#include "warpheap/platform/backoff.hpp"
#include "warpheap/policy/alignment/shrink.hpp"
#include "warpheap/policy/creation/report.hpp"
#include "warpheap/policy/distribution/none.hpp"
#include "warpheap/policy/oom/return_null.hpp"
#include "warpheap/policy/reserve_pool/device_memory.hpp"
#include "warpheap/util/bits.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace conformance {

enum class fault {
  none,
  overlaps,        ///< the last page of a block may be another's first
  misaligns,       ///< results are 8 bytes off
  loses_blocks,    ///< every eighth free leaves the block without an owner
  gives_up,        ///< nullptr when the lock is busy
  believes_frees,  ///< any address that is freed counts as a live block
  starts_again,    ///< looks again as long as a block was freed since the last look
  stays_full,      ///< once full, full for ever
  unordered,       ///< the lock excludes, but orders no memory
  loses_refreed,   ///< a free block that is freed again has no owner
  stays_locked,    ///< a free block that is freed again leaves the lock taken, at times
  looks_unlocked,  ///< a free looks at the block without the lock, and believes what it saw
};

template <fault Fault = fault::none>
class first_fit {
 public:
  static constexpr char const* name = "first_fit";
  static constexpr allocator_traits traits{.alignment = 16,
                                           .self_aligned_up_to = 1024,
                                           .detects_misuse = true,
                                           .exact_out_of_memory = true,
                                           .one_pass_refusals = true,
                                           .whole_pool = true};

  WARPHEAP_DEVICE void* create(size_t bytes) const { return create_aligned(traits.alignment, bytes); }
  WARPHEAP_DEVICE void* create_warp(u32, size_t bytes) const { return create(bytes); }

  WARPHEAP_DEVICE void* create_aligned(size_t alignment, size_t bytes) const {
    if (bytes == 0) return nullptr;
    for (;;) {
      u64 const before = frees();
      void* const memory = look(alignment, bytes);
      if (memory || Fault != fault::starts_again) return memory;
      for (u32 step = 0; step < 50; ++step) simt::pause(1);
      if (frees() == before) return nullptr;
    }
  }

  WARPHEAP_DEVICE void destroy(void* memory) const {
    if (!memory) return;
    u64 const page = page_of(memory);
    if (Fault == fault::starts_again) atomic_ref<u64>{head_->frees}.fetch_add(1, order::relaxed);
    if (Fault == fault::looks_unlocked && page < pages_ && owner(page).load(order::relaxed) == 0) {
      atomic_ref<u64>{head_->double_frees}.fetch_add(1, order::relaxed);
      return;
    }
    lock(false);
    bool const starts_page = page < pages_ && (reinterpret_cast<u64>(memory) % page_bytes == 0 || forgives);
    u32 const pages = starts_page ? owners()[page] : inner;
    if (Fault == fault::believes_frees && page < pages_) release(page);
    else if (pages == inner) ++head_->foreign_frees;
    else if (pages == 0) ++head_->double_frees;
    else release(page);
    if (Fault == fault::loses_refreed && pages == 0) owner(page).store(inner, order::relaxed);
    if (Fault == fault::stays_locked && pages == 0 && head_->double_frees > 2) return;
    unlock();
  }

  WARPHEAP_DEVICE size_t usable_size(void const* memory) const {
    u64 const page = page_of(memory);
    bool const starts_page = page < pages_ && (reinterpret_cast<u64>(memory) % page_bytes == 0 || forgives);
    u32 const owner = starts_page ? owners()[page] : 0;
    return owner == inner ? 0 : owner * page_bytes;
  }

  WARPHEAP_DEVICE bool owns(void const* memory) const { return usable_size(memory) != 0; }
  WARPHEAP_DEVICE u64 available_slots(size_t bytes) const { return slots(owners(), pages_, bytes); }
  u64 slot_places() const { return 1; }
  WARPHEAP_DEVICE slot_part count_slots(size_t bytes, slot_share share) const {
    return {.count = share.part == 0 ? available_slots(bytes) : 0};
  }

  static size_t required_bytes(size_t pool_bytes) { return metadata(pool_bytes / page_bytes) + pool_bytes; }

  static first_fit place(void* memory, size_t pool_bytes) {
    first_fit made;
    made.head_ = static_cast<header*>(memory);
    made.pages_ = pool_bytes / page_bytes;
    return made;
  }

  u8* first_page() const { return base(); }

  void initialize(stream_view on) const { backend::fill_bytes(head_, 0, sizeof(header) + pages_ * sizeof(u32), on); }
  size_t pool_bytes() const { return pages_ * page_bytes; }
  size_t metadata_bytes() const { return metadata(pages_); }

  /// The policy itself answers what a snapshot answers.
  first_fit const& snapshot() const { return *this; }
  heap_statistics statistics() const {
    header head;
    backend::copy_bytes(&head, head_, sizeof head);
    heap_statistics counts{.pool_bytes = pool_bytes(), .metadata_bytes = metadata_bytes()};
    for_each_live([&](void*, size_t bytes) {
      ++counts.live_blocks;
      counts.live_bytes += bytes;
    });
    counts.double_frees = head.double_frees;
    counts.foreign_frees = head.foreign_frees;
    counts.failures = head.failures;
    return counts;
  }

  invariant_report check_invariants() const {
    auto const owners = host_owners();
    for (u64 page = 0; page < pages_; page += owners[page] ? owners[page] : 1)
      if (owners[page] == inner) return {"page " + std::to_string(page) + " lies in a block that starts nowhere"};
    return {};
  }

  template <class Visitor>
  void for_each_live(Visitor visit) const {
    auto const owners = host_owners();
    for (u64 page = 0; page < pages_; ++page)
      if (owners[page] && owners[page] != inner) visit(base() + page * page_bytes, owners[page] * page_bytes);
  }

 private:
  struct header {
    u64 locked, failures, double_frees, foreign_frees, frees;
  };

  static constexpr u64 page_bytes = 1024;
  static constexpr u32 inner = ~0u;
  /// The fault that hands out odd addresses takes them back.
  static constexpr bool forgives = Fault == fault::misaligns;

  /// Bytes of the header, the owners, and the padding that aligns the pages to 4 KiB.
  static size_t metadata(u64 pages) { return sizeof(header) + pages * sizeof(u32) + 4096; }

  WARPHEAP_HOST_DEVICE u32* owners() const { return reinterpret_cast<u32*>(head_ + 1); }
  WARPHEAP_HOST_DEVICE u8* base() const {
    return reinterpret_cast<u8*>(align_up(reinterpret_cast<u64>(owners() + pages_), 4096));
  }
  WARPHEAP_DEVICE atomic_ref<u32> owner(u64 page) const { return atomic_ref<u32>{owners()[page]}; }
  WARPHEAP_DEVICE u64 page_of(void const* memory) const {
    return (reinterpret_cast<u64>(memory) - reinterpret_cast<u64>(base())) / page_bytes;
  }

  WARPHEAP_DEVICE u64 frees() const {
    return Fault == fault::starts_again ? atomic_ref<u64>{head_->frees}.load(order::relaxed) : 0;
  }

  WARPHEAP_DEVICE void* look(size_t alignment, size_t bytes) const {
    if (!lock(Fault == fault::gives_up)) return nullptr;
    u64 const pages = div_ceil(bytes, page_bytes);
    bool const refuses = Fault == fault::stays_full && head_->failures != 0;
    u64 const first = refuses ? pages_ : find(pages, alignment);
    if (first < pages_) mark(first, pages);
    else ++head_->failures;
    unlock();
    constexpr u64 shift = Fault == fault::misaligns ? 8 : 0;
    return first < pages_ ? base() + first * page_bytes + shift : nullptr;
  }

  WARPHEAP_DEVICE bool lock(bool gives_up) const {
    // acquire: what the last holder did happens before us; pairs with the release in unlock().
    constexpr order how = Fault == fault::unordered ? order::relaxed : order::acquire;
    backoff wait;
    while (atomic_ref<u64>{head_->locked}.exchange(1, how) != 0) {
      if (gives_up) return false;
      wait.while_working();
    }
    return true;
  }
  WARPHEAP_DEVICE void unlock() const {
    // release: what we did happens before the next holder; pairs with the acquire in lock().
    atomic_ref<u64>{head_->locked}.exchange(0, Fault == fault::unordered ? order::relaxed : order::release);
  }

  /// First of `pages` free pages at a multiple of `alignment`; pages_ if there are none.
  WARPHEAP_DEVICE u64 find(u64 pages, u64 alignment) const {
    u64 free = 0;
    for (u64 page = 0; page < pages_; ++page) {
      bool const may_start = reinterpret_cast<u64>(base() + page * page_bytes) % alignment == 0;
      free = owners()[page] == 0 && (free || may_start) ? free + 1 : 0;
      if (free == pages) return page + 1 - pages;
    }
    return pages_;
  }

  WARPHEAP_DEVICE void mark(u64 first, u64 pages) const {
    owner(first).store(static_cast<u32>(pages), order::relaxed);  // relaxed: under the lock
    u64 const marked = Fault == fault::overlaps ? pages - 1 : pages;
    for (u64 page = first + 1; page < first + marked; ++page) owners()[page] = inner;
  }

  WARPHEAP_DEVICE void release(u64 page) const {
    if (Fault == fault::loses_blocks && page % 8 == 7) return;
    owner(page++).store(0, order::relaxed);  // relaxed: under the lock
    while (page < pages_ && owners()[page] == inner) owners()[page++] = 0;
  }

  WARPHEAP_HOST_DEVICE static u64 slots(u32 const* owners, u64 pages, size_t bytes) {
    u64 const wanted = div_ceil(bytes, page_bytes);
    u64 found = 0, free = 0;
    for (u64 page = 0; wanted && page < pages; ++page) {
      free = owners[page] == 0 ? free + 1 : 0;
      if (free != wanted) continue;
      ++found;
      free = 0;
    }
    return found;
  }

  std::vector<u32> host_owners() const {
    std::vector<u32> copy(pages_);
    backend::copy_bytes(copy.data(), owners(), pages_ * sizeof(u32));
    return copy;
  }

  header* head_ = nullptr;
  u64 pages_ = 0;
};

/// first_fit with the plainest other four policies.
template <fault Fault = fault::none>
using reference = allocator<first_fit<Fault>, distribution::none, oom::return_null, reserve_pool::device_memory,
                            alignment::shrink<16>>;

}}}  // namespace warpheap::WARPHEAP_BACKEND::conformance
