// SPDX-License-Identifier: Apache-2.0
// The contract of a lane on a CPU: identity from the lane's record, collectives as rendezvous of
// fibers.
#pragma once

#include <cstring>

#if !defined(__x86_64__)
#include <ctime>
#endif

#include "active_mask.hpp"
#include "block_memory.hpp"

namespace warpheap::host {

/// Of the kernel that the calling lane runs.
WARPHEAP_NO_TSAN inline launch_shape const& current_shape() { return detail::this_lane().block->of->shape; }

struct simt {
  WARPHEAP_NO_TSAN static u32 thread_index() { return detail::this_lane().thread; }
  WARPHEAP_NO_TSAN static u32 block_index() { return detail::this_lane().block->index; }
  WARPHEAP_NO_TSAN static u32 block_dim() { return current_shape().threads; }
  WARPHEAP_NO_TSAN static u32 grid_dim() { return current_shape().blocks; }
  WARPHEAP_NO_TSAN static u64 grid_id() { return detail::this_lane().block->of->id; }
  WARPHEAP_NO_TSAN static u32 lane_id() { return detail::this_lane().id; }
  WARPHEAP_NO_TSAN static lane_mask lanes_below() { return lane_bit(lane_id()) - 1; }
  WARPHEAP_NO_TSAN static u32 warp_id() { return detail::this_lane().group->index; }
  WARPHEAP_NO_TSAN static u32 sm_id() { return detail::this_lane().block->sm; }
  static u32 sm_count() { return current_execution().sm_count; }
  /// Deterministic mode counts scheduling points and paused nanoseconds, so that a replay reads the
  /// same.
  WARPHEAP_NO_TSAN static u64 clock() {
    auto* const here = detail::this_worker();
    return here && here->deterministic() ? here->time() : processor_clock();
  }

  /// In deterministic mode as clock(). Else a lane that reads it may wait for a time.
  WARPHEAP_NO_TSAN static u64 nanoseconds() {
    auto* const here = detail::this_worker();
    if (here && here->deterministic()) return here->time();
    if (here) here->note_progress();
    return monotonic_nanoseconds();
  }

  /// Never inlined: its return address is the call site that lanes meet at.
  [[gnu::noinline]] static lane_mask active_mask() {
    return detail::park_for_mask(__builtin_return_address(0), __builtin_frame_address(0));
  }
  [[gnu::always_inline]] static lane_mask ballot(lane_mask mask, bool predicate) {
    return static_cast<lane_mask>(detail::meet(detail::operation::ballot, mask, predicate, 0));
  }
  [[gnu::always_inline]] static lane_mask match_any(lane_mask mask, u32 key) {
    return static_cast<lane_mask>(detail::meet(detail::operation::match_any_u32, mask, key, 0));
  }
  [[gnu::always_inline]] static lane_mask match_any(lane_mask mask, u64 key) {
    return static_cast<lane_mask>(detail::meet(detail::operation::match_any_u64, mask, key, 0));
  }
  template <class T>
  [[gnu::always_inline]] static T shuffle(lane_mask mask, T value, u32 lane) {
    static_assert(sizeof(T) <= sizeof(u64) && __is_trivially_copyable(T));
    u64 bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    bits = detail::meet(detail::operation::shuffle, mask, bits, lane);
    std::memcpy(&value, &bits, sizeof(T));
    return value;
  }
  [[gnu::always_inline]] static u32 reduce_or(lane_mask mask, u32 value) {
    return static_cast<u32>(detail::meet(detail::operation::reduce_or, mask, value, 0));
  }
  [[gnu::always_inline]] static void sync_warp(lane_mask mask) {
    detail::meet(detail::operation::sync_warp, mask, 0, 0);
  }
  static void sync_block() { detail::meet_block(); }

  static u32 dynamic_shared_bytes() { return current_shape().shared_bytes; }
  static void* dynamic_shared() {
    static constexpr char site = 0;
    u32 const bytes = dynamic_shared_bytes();
    return bytes == 0 ? nullptr : shared_memory().object(&site, bytes, false);
  }
  /// What WARPHEAP_SHARED declares where the type `Site` is made.
  template <class T, class Site>
  static T& declared_shared(Site) {
    static_assert(__is_trivially_constructible(T) && std::is_trivially_destructible_v<T>,
                  "no constructor or destructor runs for an object in shared memory");
    static constexpr char site = 0;
    auto& memory = shared_memory();
    void* const object = memory.object(&site, sizeof(T), true);
    check_room(memory.declared_bytes());
    return *static_cast<T*>(object);
  }

  WARPHEAP_NO_TSAN static void pause(u32 nanoseconds) {
    detail::this_lane();  // outside a kernel: an error, not a crash
    auto& here = *detail::this_worker();
    if (here.deterministic()) here.record(detail::operation::pause, 0, 0, 0);
    here.pause(nanoseconds);
  }

  /// Unlike a pause, it waits for no change: a lane that has lost a race has something to do.
  WARPHEAP_NO_TSAN static void spin(u32 clocks) {
    detail::this_lane().watched.any = true;
    pause(clocks);
  }

  [[noreturn]] static void trap(char const* reason) {
    detail::this_lane();
    detail::this_worker()->trap(describe_trap(reason));
  }

 private:
  WARPHEAP_NO_TSAN static std::string describe_trap(char const* reason) {
    u32 const block = block_index(), thread = thread_index();
    return detail::format_message({reason, " (thread block ", block, ", thread ", thread, ")"});
  }

  WARPHEAP_NO_TSAN static detail::block_memory& shared_memory() {
    auto& block = *detail::this_lane().block;
    if (!block.shared) block.shared = new detail::block_memory;
    return *block.shared;
  }
  static void check_room(u32 declared) {
    using memory = detail::block_memory;
    if (declared <= memory::most_declared_bytes && declared + dynamic_shared_bytes() <= memory::most_bytes) return;
    detail::this_worker()->fail(detail::format_message(
        {"a thread block declares ", declared, " bytes of shared memory beside ", dynamic_shared_bytes(),
         " dynamic ones: ", memory::most_declared_bytes, " may be declared, and ", memory::most_bytes, " be there"}));
  }

  static u64 monotonic_nanoseconds() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<u64>(now.tv_sec) * 1'000'000'000 + static_cast<u64>(now.tv_nsec);
  }

  static u64 processor_clock() {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();  // <x86intrin.h> would cost a third of a second to compile
#else
    return monotonic_nanoseconds();
#endif
  }
};

}  // namespace warpheap::host
