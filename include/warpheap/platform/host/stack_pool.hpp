// SPDX-License-Identifier: Apache-2.0
// Stacks of lanes, mapped 64 at a time and kept between launches.
//
// Under each stack lies a guard that no other lane uses. It is larger than any frame that CUDA
// allows, because a frame may touch its far end alone.
//
// host.S1  the first 16,384 stacks of a process have a guard without access: an overflow faults.
//     Each costs two mappings, and Linux gives a process 65,530.
// host.S2  a later stack's guard is memory, so an overflow harms no other lane. A lane that
//     switches there ends the run. So does a canary, the stack's lowest word, when the lane ends.
//
// Tops are staggered by cache lines: stacks that all start at one offset in a page share a few
// cache sets, and a thousand lanes evict each other.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <string>

#include "../errors.hpp"
#include "format_message.hpp"
#include "sanitizer.hpp"

namespace warpheap::host::detail {

inline size_t page_bytes() {
  static size_t const page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return page;
}

/// Below each stack: all of the local memory that CUDA allows a thread, and a page, so that tops of
/// stacks fall into all sets of the TLB.
inline size_t guard_bytes() { return 512 * 1024 + page_bytes(); }

struct fiber_stack {
  u8* bottom = nullptr;
  size_t bytes = 0;
  size_t stagger = 0;
  fiber_stack* next = nullptr;
  void* tsan_fiber = nullptr;
  bool guarded = false;

  u8* top() const { return bottom + bytes - stagger; }
  size_t usable_bytes() const { return bytes - stagger; }
  /// The lowest word, which stays zero as it was mapped: a canary that costs no memory.
  u64& canary() const { return *reinterpret_cast<u64*>(bottom); }
  bool overflowed() const { return !guarded && canary() != 0; }
  /// Whether an access at `address` ran off the end of this stack, and not of another one.
  bool ends_above(u64 address) const { return reinterpret_cast<u64>(bottom) - address <= guard_bytes() + bytes; }
};

/// The stacks of one OS thread's lanes. Last in, first out, so that a short run stays in cache.
class stack_pool {
 public:
  static constexpr size_t guarded_limit = 16'384;

  stack_pool() = default;
  stack_pool(stack_pool const&) = delete;
  stack_pool& operator=(stack_pool const&) = delete;
  ~stack_pool() {
    while (chunks_) unmap_newest();
  }

  /// Stacks are of `bytes`, in whole pages, from here on. All must be in the pool.
  void resize(size_t bytes) {
    bytes = (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
    if (bytes == stack_bytes_) return;
    trim(0);
    stack_bytes_ = bytes;
  }

  /// Throws out_of_memory if the system has no more, and backend_error past ThreadSanitizer's limit
  /// of fibers.
  fiber_stack& take() {
    if (!free_) map_chunk();
    auto& taken = *free_;
    free_ = taken.next;
    prepare_sanitizer(taken);
    return taken;
  }

  void give_back(fiber_stack& stack) {
    stack.next = free_;
    free_ = &stack;
  }

  /// Takes back a stack whose lane was abandoned half way.
  WARPHEAP_NO_TSAN void give_back_abandoned(fiber_stack& stack) {
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(stack.bottom, stack.bytes);
#endif
#if defined(__SANITIZE_THREAD__)
    // The lane's actions happen before whatever follows the failed launch. Its shadow call stack is
    // deep in functions that never return, so the next lane here gets another fiber.
    void* const own = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(stack.tsan_fiber, 0);
    __tsan_switch_to_fiber(own, 0);
    __tsan_destroy_fiber(stack.tsan_fiber);
    stack.tsan_fiber = nullptr;
    tsan_fibers_.fetch_sub(1, std::memory_order_relaxed);
#endif
    if (stack.overflowed()) stack.canary() = 0;
    give_back(stack);
  }

  /// Gives stacks above `kept` back to the system. All stacks must be in the pool.
  void trim(size_t kept) {
    if (chunk_count_ * chunk_stacks <= kept) return;
    while (chunk_count_ * chunk_stacks > kept) unmap_newest();
    free_ = nullptr;
    for (auto* each = chunks_; each; each = each->older) {
      for (auto& stack : each->stacks) give_back(stack);
    }
  }

 private:
  static constexpr size_t chunk_stacks = 64;
  // GCC 12's runtime dies past 8,128 threads and fibers
  static constexpr size_t tsan_fiber_limit = 8'000;

  struct chunk {
    void* memory;
    size_t bytes;
    bool guarded;
    chunk* older;
    fiber_stack stacks[chunk_stacks];
  };

  void map_chunk() {
    // host.S1
    bool guarded = guarded_stacks_.fetch_add(chunk_stacks, std::memory_order_relaxed) < guarded_limit;
    size_t const guard = guard_bytes(), stride = guard + stack_bytes_, bytes = stride * chunk_stacks;
    void* const memory = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    auto* const first = static_cast<u8*>(memory) + guard;
    if (memory != MAP_FAILED) {
      madvise(memory, bytes, MADV_NOHUGEPAGE);  // a lane touches a page or two of its 16
      for (size_t i = 0; guarded && i < chunk_stacks; ++i) guarded = allow(first + i * stride, stack_bytes_);
    }
    if (!guarded) guarded_stacks_.fetch_sub(chunk_stacks, std::memory_order_relaxed);
    if (memory == MAP_FAILED || (!guarded && !allow(memory, bytes))) {
      if (memory != MAP_FAILED) munmap(memory, bytes);
      throw out_of_memory{format_message({"mapping ", bytes, " bytes for stacks of lanes failed; this thread has ",
                                          chunk_count_ * chunk_stacks, " stacks of ", stack_bytes_, " bytes"})};
    }
    auto* const made = new chunk{memory, bytes, guarded, chunks_, {}};
    chunks_ = made;
    for (size_t i = chunk_stacks; i-- > 0;) {
      auto& stack = made->stacks[i];
      stack.guarded = guarded;
      stack.bottom = first + i * stride;
      stack.bytes = stack_bytes_;
      stack.stagger = (i % 8) * 256;
      give_back(stack);
    }
    ++chunk_count_;
  }

  static bool allow(void* memory, size_t bytes) { return mprotect(memory, bytes, PROT_READ | PROT_WRITE) == 0; }

  void unmap_newest() {
    auto* const gone = chunks_;
    chunks_ = gone->older;
    --chunk_count_;
#if defined(__SANITIZE_THREAD__)
    for (auto& stack : gone->stacks) {
      if (!stack.tsan_fiber) continue;
      __tsan_destroy_fiber(stack.tsan_fiber);
      tsan_fibers_.fetch_sub(1, std::memory_order_relaxed);
    }
#endif
    if (gone->guarded) guarded_stacks_.fetch_sub(chunk_stacks, std::memory_order_relaxed);
#if defined(__SANITIZE_ADDRESS__)
    for (auto& stack : gone->stacks) __asan_unpoison_memory_region(stack.bottom, stack.bytes);
#endif
    munmap(gone->memory, gone->bytes);
    delete gone;
  }

  static void prepare_sanitizer([[maybe_unused]] fiber_stack& stack) {
#if defined(__SANITIZE_THREAD__)
    if (stack.tsan_fiber) return;
    if (tsan_fibers_.fetch_add(1, std::memory_order_relaxed) >= tsan_fiber_limit) {
      tsan_fibers_.fetch_sub(1, std::memory_order_relaxed);
      throw backend_error{format_message({"ThreadSanitizer allows ", tsan_fiber_limit,
                                          " resident lanes; run fewer, or lower sm_count and blocks_per_sm"})};
    }
    stack.tsan_fiber = __tsan_create_fiber(0);
#endif
  }

  inline static std::atomic<size_t> guarded_stacks_{0};
  inline static std::atomic<size_t> tsan_fibers_{0};
  fiber_stack* free_ = nullptr;
  chunk* chunks_ = nullptr;
  size_t chunk_count_ = 0;
  size_t stack_bytes_ = 0;
};

}  // namespace warpheap::host::detail
