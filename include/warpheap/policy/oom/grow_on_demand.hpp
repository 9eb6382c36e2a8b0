// SPDX-License-Identifier: Apache-2.0
// A heap over a growing pool, whose calls ask the host for more when memory runs out. A refused
// call posts how many bytes it lacked. Then it returns nullptr, and the host grows the pool between
// kernels (basic_heap::poll()); or it waits, at most until a deadline, for a host thread that
// serves the heap while the kernel runs (growth_service).
//
// The requests of all threads are one sum, so that they are served together. The waiting threads
// themselves add the memory that the host maps while the kernel runs: a kernel for that might never
// start. Source: ours.
#pragma once

#include "../../platform/backoff.hpp"
#include "../config_text.hpp"
#include "../growth_state.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace oom {

/// Settings of grow_on_demand.
struct grow_on_demand_config {
  /// The longest that a call waits for memory, in microseconds; 0: not at all.
  u32 deadline_us = 0;
};

#if !defined(__CUDACC_RTC__)
/// The settings in words.
inline std::string describe(grow_on_demand_config const& config) {
  return config_text("deadline_us", config.deadline_us);
}
#endif

/// A call that finds no memory asks the host for more. Copies serve one heap.
template <grow_on_demand_config Config = grow_on_demand_config{}>
class grow_on_demand {
 public:
  static constexpr char const* name = "grow_on_demand";
  static constexpr grow_on_demand_config config = Config;
  static constexpr bool asks_host = true;

  /// A refused call's state until it is served or gives up.
  struct request {
    u64 began = 0;  ///< nanoseconds
    u64 added = 0;  ///< when the call last tried
    bool is_over = false;
    u64 ticket = 0;          ///< the sum with our bytes in it; 0: not posted
    u64 next_try = 1000000;  ///< nanoseconds since it began
  };

  grow_on_demand() = default;
  WARPHEAP_HOST_DEVICE explicit grow_on_demand(growth_state* state) : state_{state} {}

  /// For `bytes` bytes that were refused. No pool grows beyond its limit.
  WARPHEAP_DEVICE request begin(u64 bytes) const {
    // relaxed: what came before this does not count as new; the tries acquire what they use.
    return {simt::nanoseconds(), word(state_->added).load(order::relaxed), bytes > state_->limit};
  }

  /// Posts a request for these bytes, and waits as the configuration says. Returns whether to try
  /// again: memory has been added, or the wait is over. `pool.add_committed(from, to)` makes blocks
  /// of committed bytes of the pool. Any lane alone.
  template <class Pool>
  WARPHEAP_DEVICE bool more_may_be_there(request& mine, u64 bytes, Pool pool) const {
    if (mine.is_over) return false;
    bool must_tell = mine.ticket == 0;
    if (must_tell) mine.ticket = post(bytes);
    WARPHEAP_NO_UNROLL
    for (backoff wait{256, 8192};; wait.for_long()) {
      exchange_with_host(must_tell);
      must_tell = false;
      // acquire: what was mapped before the refusal is committed; pairs with exchange_with_host().
      bool const refused = word(state_->refused).load(order::acquire) >= mine.ticket;
      u64 const committed = add_committed(pool);
      // acquire: the new slabs come before our next try; pairs with the release in add_committed().
      u64 const added = word(state_->added).load(order::acquire);
      // While other threads add memory, it is too early to try, and to believe the refusal.
      bool const all_is_in = added >= committed;
      if (all_is_in && added != mine.added) {
        mine.added = added;
        if (waits) mine.ticket = 0;  // if that was not enough, more is requested
        return true;
      }
      u64 const waited = simt::nanoseconds() - mine.began;
      // A last try after a while: blocks may have been freed.
      mine.is_over = !waits || (refused && all_is_in) || waited >= u64{1000} * Config.deadline_us;
      if (mine.is_over) return waits;
      if (waited >= mine.next_try) {
        mine.next_try = 2 * waited;
        return true;
      }
    }
  }

 private:
  static constexpr bool waits = Config.deadline_us != 0;
  static constexpr u64 step = u64{1} << 24;  // bytes that a lane adds at a time

  WARPHEAP_DEVICE static atomic_ref<u64> word(u64& of_state) { return atomic_ref<u64>{of_state}; }
  WARPHEAP_DEVICE atomic_ref<u64, scope::system> shared(u32 which) const {
    return atomic_ref<u64, scope::system>{state_->shared[which]};
  }

  /// Adds a request to the sum. Returns the sum with it.
  WARPHEAP_DEVICE u64 post(u64 bytes) const {
    u64 const threads = u64{simt::grid_dim()} * simt::block_dim(), limit = state_->limit;
    u64 const of_all = bytes < limit / threads ? bytes * threads : limit;
    // relaxed: the sum carries it (growth.G4).
    word(state_->at_once).fetch_max(of_all, order::relaxed);
    // release: at_once comes before it; pairs with the acquire in exchange_with_host().
    return word(state_->unmet).fetch_add(bytes, order::release) + bytes;
  }

  /// Sends the host the sum, and reads its answers, by one thread at a time: the words are in host
  /// memory, and many threads would queue for them. `must_tell`: the caller has added to the sum.
  /// If another thread polls, it sends the sum.
  WARPHEAP_DEVICE void exchange_with_host(bool must_tell) const {
    // relaxed: a hint.
    if (!must_tell && word(state_->polling).load(order::relaxed) != 0) return;
    for (u64 told = 0;;) {
      // release: a thread that finds 1 leaves its sum to the thread that polls. acquire: the words
      // follow those of the last one. Both pair with the exchange below.
      if (word(state_->polling).exchange(1, order::acq_rel) != 0) return;
      // acquire: pairs with the release in post().
      told = word(state_->unmet).load(order::acquire);
      shared(growth_word::at_once).store(word(state_->at_once).load(order::relaxed), order::relaxed);
      // release: at_once comes with it; pairs with the host's acquire.
      shared(growth_word::unmet).store(told, order::release);
      // acquire: all that was mapped before comes before it (growth.G3), and so is read next.
      u64 const refused = shared(growth_word::refused).load(order::acquire);
      // acquire: the memory is mapped; pairs with the host's release (growth.G1).
      u64 const mapped = shared(growth_word::mapped).load(order::acquire);
      // release, both: passes the acquires on; pairs with add_committed() and more_may_be_there().
      word(state_->committed).fetch_max(mapped, order::release);
      word(state_->refused).fetch_max(refused, order::release);
      word(state_->polling).exchange(0, order::acq_rel);
      if (word(state_->unmet).load(order::relaxed) == told) return;
    }
  }

  /// Adds the committed memory to the heap, together with all threads that do the same (growth.G2).
  /// Returns how many bytes are committed.
  template <class Pool>
  WARPHEAP_DEVICE u64 add_committed(Pool pool) const {
    // acquire: pairs with the release in exchange_with_host().
    u64 const committed = word(state_->committed).load(order::acquire);
    u64 begin = word(state_->claimed).load(order::relaxed);
    WARPHEAP_NO_UNROLL
    while (begin < committed) {
      u64 const end = committed - begin < step ? committed : begin + step;
      // relaxed: it divides the work, and hands nothing over.
      if (!word(state_->claimed).compare_exchange(begin, end, order::relaxed, order::relaxed)) continue;
      pool.add_committed(begin, end);
      // release: the slabs are free; pairs with the acquire in more_may_be_there().
      word(state_->added).fetch_add(end - begin, order::release);
      begin = end;
    }
    return committed;
  }

  growth_state* state_ = nullptr;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::oom
