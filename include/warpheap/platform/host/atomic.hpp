// SPDX-License-Identifier: Apache-2.0
// Atomics: std::atomic_ref, with a scheduling point before each in deterministic mode.
//
// The real access is made with its order, which the sanitizers see. With weak memory the model
// decides in its place what an operation reads and where a change goes, and memory always holds the
// newest value. Outside a kernel it is the plain atomic.
#pragma once

#include <atomic>

#include "../atomic_value.hpp"
#include "races.hpp"
#include "worker.hpp"

namespace warpheap::host {

namespace detail {

constexpr std::memory_order standard_order(order how) {
  switch (how) {
    case order::relaxed: return std::memory_order_relaxed;
    case order::acquire: return std::memory_order_acquire;
    case order::release:
    // sanitizers and processors have no weaker order that suffices
    case order::fenced: return std::memory_order_release;
    case order::acq_rel: return std::memory_order_acq_rel;
    default: return std::memory_order_seq_cst;
  }
}

/// Before an atomic of the word at `address`, 0 for a fence: others may run. Returns the worker if
/// the access must be noted, that is in deterministic mode.
[[gnu::noinline]] WARPHEAP_NO_TSAN inline worker* atomic_point(u64 address) {
  worker* const here = worker_of_thread;
  if (!here) return nullptr;
  if (here->deterministic()) {
    here->point(address);
  } else {
    here->spend();
    if (!here->searches()) return nullptr;
  }
  here->running().site = __builtin_return_address(0);
  return here;
}

/// Before an atomic of system scope: the host may be the one to change the word.
[[gnu::noinline]] WARPHEAP_NO_TSAN inline void expect_host() {
  if (worker_of_thread) worker_of_thread->note_progress();
}

/// WARPHEAP_POINT: in deterministic mode a schedule may hold the lane back here.
[[gnu::noinline]] WARPHEAP_NO_TSAN inline void yield_point(char const* name) {
  worker* const here = worker_of_thread;
  if (here && here->deterministic()) here->point(name);
}

/// After a load that found `newest`: the value that the lane sees.
[[gnu::noinline]] WARPHEAP_NO_TSAN inline u64 note_load(worker& here, access const& what, u64 newest) {
  if (!here.model()) {
    here.record(operation::load, what.address, newest, newest);
    return newest;
  }
  atomic_touch made{what};
  u64 const seen = here.model()->load(here, what, newest);
  made.note(false, __builtin_return_address(0));
  here.record(operation::load, what.address, newest, seen, seen != newest);
  return seen;
}

/// Weak memory: a store where memory holds `memory`; returns what it holds from now on.
[[gnu::noinline]] WARPHEAP_NO_TSAN inline u64 decide_store(worker& here, access const& what, u64 memory, u64 value) {
  atomic_touch made{what};
  u64 const left = here.model()->store(here, what, memory, value);
  made.note(true, __builtin_return_address(0));
  here.record(operation::store, what.address, memory, value, left != value);
  return left;
}

/// Weak memory: a read-modify-write where memory holds `memory`.
[[gnu::noinline]] WARPHEAP_NO_TSAN inline change decide_change(worker& here, operation kind, access const& what,
                                                               modification const& how, u64 memory) {
  atomic_touch made{what};
  auto const done = here.model()->modify(here, what, how, memory);
  made.note(!done.failed, __builtin_return_address(0));
  here.record(done.failed ? operation::compare_exchange_failed : kind, what.address, done.seen, done.made,
              done.seen != memory);
  return done;
}

}  // namespace detail

/// Atomic access to an integer, float or pointer; atomic_value.hpp says which have which
/// operations. `Scope` names the threads that may access it at the same time.
template <class T, scope Scope = scope::device>
class atomic_ref {
  using step = typename atomic_detail::atomic_step<T>::type;

 public:
  explicit atomic_ref(T& object) : object_{&object} {}

  T load(order asked) const {
    order const how = order_of_load(asked);
    auto* const here = point();
    T const newest = object().load(detail::standard_order(how));
    return here ? from_bits(detail::note_load(*here, access(how), bits(newest))) : newest;
  }

  void store(T value, order asked) const {
    bool const apt = asked == order::relaxed || asked == order::fenced || asked == order::seq_cst;
    order const how = apt ? asked : order::release;
    auto* const here = point();
    if (!here) return object().store(value, detail::standard_order(how));
    T const old = newest();
    if (here->model()) return leave(detail::decide_store(*here, access(how), bits(old), bits(value)));
    object().store(value, detail::standard_order(how));
    here->record(detail::operation::store, address(), bits(old), bits(value));
  }

  T exchange(T value, order how) const {
    return change(detail::operation::exchange, how,
                  [&](auto object, auto standard) { return object.exchange(value, standard); });
  }

  /// Stores `desired` if the object equals `expected`; else puts what it holds into `expected`.
  /// Never fails spuriously.
  bool compare_exchange(T& expected, T desired, order success, order asked_of_failure) const {
    order const failure = order_of_load(asked_of_failure);
    auto* const here = point();
    T const wanted = expected;
    if (here && here->model()) {
      u64 const stored = bits(desired);
      auto const decided = decide(*here, detail::operation::compare_exchange, success,
                                  {.result = [](void const* made, u64) { return *static_cast<u64 const*>(made); },
                                   .operation = &stored,
                                   .compares = true,
                                   .expected = bits(wanted),
                                   .failure = failure});
      expected = from_bits(decided.seen);
      return !decided.failed;
    }
    bool const done = object().compare_exchange_strong(expected, desired, detail::standard_order(success),
                                                       detail::standard_order(failure));
    if (here && done) here->record(detail::operation::compare_exchange, address(), bits(wanted), bits(desired));
    if (here && !done) {
      here->record(detail::operation::compare_exchange_failed, address(), bits(expected), bits(expected));
    }
    return done;
  }

  T fetch_add(step value, order how) const {
    if constexpr (!atomic_detail::counts<T>()) return {};
    else
      return change(detail::operation::add, how,
                    [&](auto object, auto standard) { return object.fetch_add(value, standard); });
  }

  T fetch_sub(step value, order how) const {
    if constexpr (!atomic_detail::counts<T>()) return {};
    else
      return change(detail::operation::add, how,
                    [&](auto object, auto standard) { return object.fetch_sub(value, standard); });
  }

  T fetch_min(T value, order how) const {
    if constexpr (!atomic_detail::has_extremes<T>()) return {};
    else
      return change(detail::operation::min, how, [&](auto object, auto standard) {
        return replace(object, standard, [&](T old) { return value < old ? value : old; });
      });
  }

  T fetch_max(T value, order how) const {
    if constexpr (!atomic_detail::has_extremes<T>()) return {};
    else
      return change(detail::operation::max, how, [&](auto object, auto standard) {
        return replace(object, standard, [&](T old) { return value > old ? value : old; });
      });
  }

  T fetch_or(T value, order how) const {
    if constexpr (!atomic_detail::has_bits<T>()) return {};
    else
      return change(detail::operation::bit_or, how,
                    [&](auto object, auto standard) { return object.fetch_or(value, standard); });
  }

  T fetch_and(T value, order how) const {
    if constexpr (!atomic_detail::has_bits<T>()) return {};
    else
      return change(detail::operation::bit_and, how,
                    [&](auto object, auto standard) { return object.fetch_and(value, standard); });
  }

  T fetch_xor(T value, order how) const {
    if constexpr (!atomic_detail::has_bits<T>()) return {};
    else
      return change(detail::operation::bit_xor, how,
                    [&](auto object, auto standard) { return object.fetch_xor(value, standard); });
  }

 private:
  static constexpr order order_of_load(order asked) {
    return asked == order::relaxed || asked == order::seq_cst ? asked : order::acquire;
  }

  [[gnu::always_inline]] detail::worker* point() const {
    if (Scope == scope::system) detail::expect_host();
    return detail::atomic_point(address());
  }
  u64 address() const { return reinterpret_cast<u64>(object_); }
  std::atomic_ref<T> object() const { return std::atomic_ref<T>{*object_}; }
  T newest() const { return object().load(std::memory_order_relaxed); }

  detail::access access(order how) const {
    constexpr u32 bytes = sizeof(T);  // NOLINT(bugprone-sizeof-expression): T may be a pointer
    return {address(), bytes, how, Scope};
  }

  /// Weak memory: leaves `word` in memory. No other thread runs.
  void leave(u64 word) const { object().store(from_bits(word), std::memory_order_relaxed); }

  /// Weak memory: the model makes the read-modify-write.
  detail::change decide(detail::worker& here, detail::operation kind, order how,
                        detail::modification const& what) const {
    auto const decided = detail::decide_change(here, kind, access(how), what, bits(newest()));
    leave(decided.memory);
    return decided;
  }

  /// Makes one read-modify-write, `operation(object, order)`, which returns the old value.
  template <class Operation>
  T change(detail::operation kind, order how, Operation operation) const {
    auto* const here = point();
    if (here && here->model()) {
      auto const result = [](void const* made, u64 old) {
        T local = from_bits(old);
        (*static_cast<Operation const*>(made))(std::atomic_ref<T>{local}, std::memory_order_relaxed);
        return bits(local);
      };
      return from_bits(decide(*here, kind, how, {.result = result, .operation = &operation}).seen);
    }
    T const old = operation(object(), detail::standard_order(how));
    if (here) here->record(kind, address(), bits(old), bits(newest()));
    return old;
  }

  /// Stores `next(old)` by a compare-exchange, even if it equals `old`: it is a read-modify-write
  /// in any case, and releases.
  template <class Next>
  static T replace(std::atomic_ref<T> object, std::memory_order standard, Next next) {
    T old = object.load(std::memory_order_relaxed);
    while (!object.compare_exchange_weak(old, next(old), standard, std::memory_order_relaxed)) {
    }
    return old;
  }

  /// Zero-extended, so that a word looks the same through signed and unsigned references.
  static u64 bits(T value) { return atomic_detail::to_word(value); }
  static T from_bits(u64 word) { return atomic_detail::from_word<T>(static_cast<atomic_detail::atomic_word<T>>(word)); }

  T* object_;
};

/// The word at `words`, which is aligned to 16 bytes, and the next one: two relaxed loads, in any
/// order.
inline word_pair load_pair(u64* words) {
  u64 const second = atomic_ref<u64>{words[1]}.load(order::relaxed);
  return {atomic_ref<u64>{words[0]}.load(order::relaxed), second};
}

/// Orders everything before it with everything after it, for all threads of the device: the one
/// fence that handing a slab to another class needs.
inline void full_fence() {
  auto* const here = detail::atomic_point(0);
#if defined(__SANITIZE_THREAD__)
  // ThreadSanitizer does not model fences; a read-modify-write of one word orders all lanes that
  // make it.
  static u32 all_fences = 0;
  std::atomic_ref<u32>{all_fences}.fetch_add(0, std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
  if (!here) return;
  if (here->model()) here->model()->fence(*here);
  here->record(detail::operation::fence, 0, 0, 0);
}

/// Everything before it happens before what follows an acquire of a later order::fenced operation
/// of this thread.
inline void release_fence() {
  auto* const here = detail::atomic_point(0);
  if (!here) return;
  if (here->model()) here->model()->release_fence(*here);
  here->record(detail::operation::fence, 0, 0, 0);
}

}  // namespace warpheap::host
