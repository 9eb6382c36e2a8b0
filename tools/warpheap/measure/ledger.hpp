// SPDX-License-Identifier: Apache-2.0
// A record of every block that contending threads hold, for kernels that fill a heap to the last
// block and give part of it back. Entry n·threads + t is thread t's n-th block, or null. Threads
// have room for equal shares of what the pool can hold, so an allocator without a limit stops
// there.
#pragma once

#include <algorithm>
#include <numeric>

#include "blocks.hpp"
#include "measure.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

/// What kernels take of a ledger.
struct ledger_view {
  void** entries;
  u32* changed;   ///< by thread: entries that the last kernel filled or emptied
  u64* failures;  ///< calls that returned nullptr, since cleared
  u64 threads;
  u32 room;  ///< entries of a thread
};

/// Kernel: every thread fills its empty entries until it gets nullptr or, if `stop` is given, until
/// any thread does.
struct take_all {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, size_draw draw, ledger_view ledger, u32* stop) const {
    u64 const thread = global_thread_index();
    if (thread >= ledger.threads) return;
    u32 taken = 0;
    for (u64 entry = thread; entry < ledger.room * ledger.threads && !stopped(stop); entry += ledger.threads) {
      if (ledger.entries[entry]) continue;
      void* const block = heap.malloc(draw.of(entry));
      if (!block) {
        count(*ledger.failures);
        // relaxed: it says only that a thread got nullptr
        if (stop) atomic_ref<u32>{*stop}.store(1, order::relaxed);
        break;
      }
      ledger.entries[entry] = block;
      ++taken;
    }
    ledger.changed[thread] = taken;
  }

 private:
  WARPHEAP_DEVICE static bool stopped(u32* stop) { return stop && atomic_ref<u32>{*stop}.load(order::relaxed); }
};

/// Kernel: every thread empties every `step`-th entry of the thread `shift` places after it.
struct give_back {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, ledger_view ledger, u32 step, u64 shift) const {
    if (global_thread_index() >= ledger.threads) return;
    u64 const thread = (global_thread_index() + shift) % ledger.threads;
    u32 freed = 0;
    for (u64 n = 0; n < ledger.room; n += step) {
      void*& block = ledger.entries[n * ledger.threads + thread];
      freed += block != nullptr;
      heap.free(block);
      block = nullptr;
    }
    ledger.changed[thread] = freed;
  }
};

/// What one kernel did.
struct ledger_change {
  double time_us = 0;
  u64 blocks = 0;
  u64 failures = 0;
};

/// The blocks of one heap that contending threads hold.
template <class Allocator>
class ledger {
 public:
  /// Room for all that `heap`, of `pool_bytes`, can hold of a draw's mean size.
  ledger(basic_heap<Allocator>& heap, size_draw draw, u64 pool_bytes, u64 most_threads)
      : heap_{heap},
        draw_{draw},
        threads_{threads_for(blocks_in(pool_bytes, draw), most_threads)},
        room_{static_cast<u32>(blocks_in(pool_bytes, draw) / threads_ + 1)},
        entries_(threads_ * room_),
        changed_(threads_),
        failures_(1) {}

  u64 threads() const { return threads_; }

  /// Fills the heap until any thread gets nullptr.
  ledger_change take_until_first_null() {
    device_buffer<u32> stop(1);
    return run([&](launch_shape shape) { launch(shape, take_all{}, heap_.ref(), draw_, view(), stop.data()); });
  }

  /// Fills the heap until every thread got nullptr, or has no room.
  ledger_change take_until_all_null() {
    return run(
        [&](launch_shape shape) { launch(shape, take_all{}, heap_.ref(), draw_, view(), static_cast<u32*>(nullptr)); });
  }

  /// Gives back every `step`-th block; each is freed by another thread than the one that took it.
  ledger_change give_back_every(u32 step) {
    return run([&](launch_shape shape) { launch(shape, give_back{}, heap_.ref(), view(), step, threads_ / 2 + 1); });
  }

  /// Bytes that were asked for of the blocks that are held.
  u64 bytes() const {
    auto const blocks = entries_.to_host();
    u64 sum = 0;
    for (u64 i = 0; i < blocks.size(); ++i)
      if (blocks[i]) sum += draw_.of(i);
    return sum;
  }

  /// Stamps and looks at every block. Empty entries count as failures there.
  findings examine() const { return bench::examine<Allocator>(entries_, draw_); }

 private:
  static u64 blocks_in(u64 pool_bytes, size_draw draw) {
    return pool_bytes / std::max<u64>(draw.mean(), Allocator::alignment_type::bytes);
  }

  /// Few enough threads that the blocks in their hands at the first nullptr are a thousandth of
  /// all.
  static u64 threads_for(u64 blocks, u64 most) {
    u64 const few = blocks / 1024;
    return few < warp_lanes ? warp_lanes : std::min(few, most);
  }

  ledger_view view() const { return {entries_.data(), changed_.data(), failures_.data(), threads_, room_}; }

  template <class Work>
  ledger_change run(Work work) {
    failures_ = device_buffer<u64>(1);
    ledger_change change;
    change.time_us = watch_.microseconds([&] { work(shape_for(threads_)); });
    auto const changed = changed_.to_host();
    change.blocks = std::accumulate(changed.begin(), changed.end(), u64{0});
    change.failures = failures_[0];
    return change;
  }

  basic_heap<Allocator>& heap_;
  size_draw draw_;
  u64 threads_;
  u32 room_;
  device_buffer<void*> entries_;
  device_buffer<u32> changed_;
  device_buffer<u64> failures_;
  stopwatch watch_;
};

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
