// Atomics: std::atomic_ref, with a scheduling point before each in deterministic mode.
//
// The real access is always made, so memory holds the newest value in every mode and the sanitizers
// see each order. With stale reads the memory model may then answer a load with an older value.
// Outside a kernel it is the plain atomic.
#pragma once

#include <atomic>

#include "../atomic_value.hpp"
#include "memory_model.hpp"
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

/// Before an atomic: others may run. Returns the worker if the access must be noted, that is in
/// deterministic mode.
[[gnu::noinline]] WARPHEAP_NO_TSAN inline worker* atomic_point() {
  worker* const here = worker_of_thread;
  if (!here) return nullptr;
  if (here->deterministic()) {
    here->point();
    return here;
  }
  here->spend();
  return nullptr;
}

/// After a load that found `newest`: the value that the lane sees.
[[gnu::noinline]] WARPHEAP_NO_TSAN inline u64 note_load(worker& here, access const& what, u64 newest) {
  u64 const seen = here.model() ? here.model()->load(here, what, newest) : newest;
  here.record(operation::load, what.address, newest, seen, seen != newest);
  return seen;
}

/// After a store or a read-modify-write that replaced `before` by `after`.
[[gnu::noinline]] WARPHEAP_NO_TSAN inline void note_change(worker& here, operation kind, access const& what, u64 before,
                                                           u64 after) {
  if (here.model()) here.model()->change(here, kind, what, before, after);
  here.record(kind, what.address, before, after);
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
    auto* const here = detail::atomic_point();
    T const newest = object().load(detail::standard_order(how));
    return here ? atomic_detail::from_word<T>(detail::note_load(*here, access(how), bits(newest))) : newest;
  }

  void store(T value, order asked) const {
    bool const apt = asked == order::relaxed || asked == order::fenced || asked == order::seq_cst;
    order const how = apt ? asked : order::release;
    auto* const here = detail::atomic_point();
    if (!here) return object().store(value, detail::standard_order(how));
    T const old = newest();
    object().store(value, detail::standard_order(how));
    note(*here, detail::operation::store, how, old);
  }

  T exchange(T value, order how) const {
    return change(detail::operation::exchange, how,
                  [&](auto object, auto standard) { return object.exchange(value, standard); });
  }

  /// Stores `desired` if the object equals `expected`; else puts what it holds into `expected`.
  /// Never fails spuriously.
  bool compare_exchange(T& expected, T desired, order success, order asked_of_failure) const {
    order const failure = order_of_load(asked_of_failure);
    auto* const here = detail::atomic_point();
    T const wanted = expected;
    bool const done = object().compare_exchange_strong(expected, desired, detail::standard_order(success),
                                                       detail::standard_order(failure));
    if (here && done) note(*here, detail::operation::compare_exchange, success, wanted);
    if (here && !done) note(*here, detail::operation::compare_exchange_failed, failure, expected);
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

  std::atomic_ref<T> object() const { return std::atomic_ref<T>{*object_}; }
  T newest() const { return object().load(std::memory_order_relaxed); }

  detail::access access(order how) const {
    constexpr u32 bytes = sizeof(T);  // NOLINT(bugprone-sizeof-expression): T may be a pointer
    return {reinterpret_cast<u64>(object_), bytes, how, Scope};
  }

  /// Makes one read-modify-write, `operation(object, order)`, which returns the old value.
  template <class Operation>
  T change(detail::operation kind, order how, Operation operation) const {
    auto* const here = detail::atomic_point();
    T const old = operation(object(), detail::standard_order(how));
    if (here) note(*here, kind, how, old);
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

  /// After a change in deterministic mode: no other thread runs, so memory holds what it stored.
  void note(detail::worker& here, detail::operation kind, order how, T before) const {
    detail::note_change(here, kind, access(how), bits(before), bits(newest()));
  }

  /// Zero-extended, so that a word looks the same through signed and unsigned references.
  static u64 bits(T value) { return atomic_detail::to_word(value); }

  T* object_;
};

/// Orders everything before it with everything after it, for all threads of the device: the one
/// fence that handing a slab to another class needs.
inline void full_fence() {
  auto* const here = detail::atomic_point();
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
  auto* const here = detail::atomic_point();
  if (!here) return;
  if (here->model()) here->model()->release_fence(*here);
  here->record(detail::operation::fence, 0, 0, 0);
}

}  // namespace warpheap::host
