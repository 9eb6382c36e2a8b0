// SPDX-License-Identifier: Apache-2.0
// The host's side of a growing pool: it maps and unmaps memory, and serves the requests of calls.
// One object per heap; basic_heap holds it.
#pragma once

#include "../platform/simt.hpp"
#include "../policy/growth_state.hpp"
#include "policies.hpp"

#if !defined(__CUDACC_RTC__)
#include <algorithm>
#include <memory>
#include <mutex>

#include "../platform/errors.hpp"
#endif

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace detail {

/// Kernel, one thread: notes that an earlier kernel has made blocks of the bytes in [from, to), so
/// that calls do not take them for new memory and retry in vain. A call that has claimed some of
/// them notes that itself (growth.G2).
struct note_added {
  WARPHEAP_DEVICE void operator()(growth_state* state, u64 from, u64 to) const {
    // relaxed: a bound of what is refused from now on (growth.G4).
    atomic_ref<u64>{state->at_once}.store(0, order::relaxed);
    // relaxed: it only divides the work, as in grow_on_demand.
    if (!atomic_ref<u64>{state->claimed}.compare_exchange(from, to, order::relaxed, order::relaxed)) return;
    // release: the slabs are free; pairs with the acquire in more_may_be_there().
    atomic_ref<u64>{state->added}.fetch_add(to - from, order::release);
  }
};

#if !defined(__CUDACC_RTC__)

/// For any other pool: does nothing.
template <class Creation, class ReservePool, class Oom>
class pool_growth {};

/// Movable. Several threads may call its functions at the same time.
template <class Creation, growing_pool ReservePool, class Oom>
class pool_growth<Creation, ReservePool, Oom> {
 public:
  /// State for a heap whose reserve has acquired its pool; `memory` is aligned, and need not be
  /// zero.
  void place(void* memory, ReservePool const& reserve) {
    state_ = static_cast<growth_state*>(memory);
    u64 const committed = reserve.committed();
    u64* shared = nullptr;
    if constexpr (requests_growth<Oom>) {
      shared_ = reserve.share(growth_word::count);
      shared_.store(growth_word::mapped, committed);
      shared = shared_.device();
    }
    growth_state const first = first_growth_state(reserve.limit(), committed, shared);
    backend::copy_bytes(state_, &first, sizeof first);
    host_ = std::make_unique<host_state>();
    host_->added = committed;
  }

  growth_state* state() const { return state_; }
  u64 const* committed_word() const { return &state_->committed; }

  size_t grow(Creation const& creation, ReservePool& reserve, size_t bytes, stream_view on) {
    std::lock_guard const lock{host_->mutex};
    size_t const before = reserve.committed();
    reserve.commit(bytes);
    add_committed(creation, reserve, on);
    return reserve.committed() - before;
  }

  size_t trim(Creation const& creation, ReservePool& reserve) {
    std::lock_guard const lock{host_->mutex};
    add_committed(creation, reserve, {});  // memory that was not added would count as used
    size_t const before = reserve.committed();
    creation.find_used_end(before, fresh_answer());
    size_t const kept = reserve.kept_for(answer());
    if (kept == before) return 0;
    creation.decommit(kept, before, fresh_answer());
    host_->added = kept;
    if (answer() != 0) {  // a kernel was running, and has claimed some
      add_committed(creation, reserve, {});
      return 0;
    }
    if constexpr (requests_growth<Oom>) shared_.store(growth_word::mapped, kept);
    backend::fill_bytes(&state_->at_once, 0, sizeof(u64));  // no running kernel lacks memory
    u64 const now = kept;
    backend::copy_bytes(&state_->committed, &now, sizeof now);
    backend::copy_bytes(&state_->claimed, &now, sizeof now);
    backend::copy_bytes(&state_->added, &now, sizeof now);
    reserve.decommit(kept);
    return before - kept;
  }

  /// Serves the requests of calls since the last time (growth.G3): maps as much as they lacked at
  /// one time (growth.G4), or as much of that as there is, at least a chunk. Launches nothing.
  /// Returns how many bytes were mapped.
  size_t serve(ReservePool& reserve) requires requests_growth<Oom> {
    u64 const unmet = shared_.load(growth_word::unmet);
    std::lock_guard const lock{host_->mutex};
    if (unmet <= host_->answered) return 0;
    size_t const before = reserve.committed();
    u64 const at_once = shared_.load(growth_word::at_once);
    commit_what_there_is(reserve, std::clamp<u64>(at_once, 1, unmet - host_->answered));
    host_->answered = unmet;
    size_t const now = reserve.committed();
    if (now != before) shared_.store(growth_word::mapped, now);
    else shared_.store(growth_word::refused, unmet);
    return now - before;
  }

  /// Makes blocks of all mapped memory, and waits. Returns how many bytes these are; a service may
  /// map more meanwhile. No kernel may use the heap.
  size_t settle(Creation const& creation, ReservePool const& reserve) const {
    std::lock_guard const lock{host_->mutex};
    add_committed(creation, reserve, {});
    synchronize(stream_view{});
    return host_->added;
  }

  /// `load` restores the heap's memory from a time when the first `committed` bytes of the pool had
  /// memory and settle() had been called. Memory beyond that stays, and is added. Requests of calls
  /// are not undone. Throws out_of_memory, and then loads nothing.
  template <class Load>
  void reload(Creation const& creation, ReservePool& reserve, u64 committed, Load load) {
    std::lock_guard const lock{host_->mutex};
    if (reserve.committed() < committed) reserve.commit(committed - reserve.committed());
    growth_state state{};
    backend::copy_bytes(&state, state_, sizeof state);
    load();
    state.committed = state.claimed = state.added = committed;
    backend::copy_bytes(state_, &state, sizeof state);
    host_->added = committed;
    add_committed(creation, reserve, {});
    synchronize(stream_view{});
  }

  size_t committed(ReservePool const& reserve) const {
    std::lock_guard const lock{host_->mutex};
    return reserve.committed();
  }

  u64 requested_bytes() const { return shared_.load(growth_word::unmet); }

  /// serve(), and then makes blocks of the mapped memory, in order on stream `on`.
  size_t poll(Creation const& creation, ReservePool& reserve, stream_view on) requires requests_growth<Oom> {
    size_t const mapped = serve(reserve);
    std::lock_guard const lock{host_->mutex};
    add_committed(creation, reserve, on);
    return mapped;
  }

 private:
  struct host_state {
    std::mutex mutex;
    u64 answered = 0;  ///< the requests up to this sum
    u64 added = 0;     ///< the first bytes of the pool, which are made into blocks
  };

  /// Makes blocks of all mapped memory, also of what a service mapped and no call added.
  void add_committed(Creation const& creation, ReservePool const& reserve, stream_view on) const {
    u64 const committed = reserve.committed();
    if (committed == host_->added) return;
    if constexpr (requests_growth<Oom>) shared_.store(growth_word::mapped, committed);
    creation.extend(host_->added, committed, &state_->committed, on);
    if constexpr (requests_growth<Oom>) launch(on, {1, 1}, note_added{}, state_, host_->added, committed);
    host_->added = committed;
  }

  /// Half as much, and so on, if the device lacks the memory for all of it.
  static void commit_what_there_is(ReservePool& reserve, size_t bytes) {
    for (; bytes != 0; bytes /= 2) {
      try {
        return reserve.commit(bytes);
      } catch (out_of_memory const&) {
      }
    }
  }

  /// Where a kernel of trim() writes its result; stores 0 there first.
  u64* fresh_answer() {
    backend::fill_bytes(&state_->answer, 0, sizeof(u64));
    return &state_->answer;
  }
  /// That result, when the kernel has ended.
  u64 answer() const {
    synchronize(stream_view{});
    u64 written = 0;
    backend::copy_bytes(&written, &state_->answer, sizeof written);
    return written;
  }

  growth_state* state_ = nullptr;  ///< in device memory
  typename ReservePool::words shared_;
  std::unique_ptr<host_state> host_;
};

#endif

}}}  // namespace warpheap::WARPHEAP_BACKEND::detail
