// SPDX-License-Identifier: Apache-2.0
// The list of translation units whose device code calls a heap of the process by name: device
// malloc (override.hpp), and hamalloc (halloc_interface.hpp). Through it the heap is bound in each
// of them.
//
// Without -rdc=true a unit's device code is a separate program with its own variables, which only
// host code of the same unit can name. So each unit has a function that writes its variable, and
// puts it on the process's list before main. Units with -rdc=true work the same way, without a
// special case.
//
// Units register one after the other: static objects of one unit are constructed before another's,
// and libraries are loaded later. A unit that registers while a heap is bound is bound to it at
// once.
#pragma once

#include "../platform/simt.hpp"

#if !defined(__CUDACC_RTC__)

#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>

#include "../platform/errors.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace detail {

/// Each kind of heap has its own units and heap, so a program may have both:
///
///   struct kind {
///     static constexpr char const* name;    the heap, in what is thrown
///     static constexpr char const* second;  what is wrong with a second one
///   };
///
/// Kinds have default visibility, as the lists do, so a process has one of each.

/// Access to a unit's variable: both functions copy a heap's binding, of the type that the unit's
/// allocator defines. Both throw the backend's error if they fail.
struct unit_variable {
  void (*write)(void const* binding);
  void (*read)(void* binding);
};

/// A binding for units: the `size` bytes at `bytes`, for one allocator and one device. It must
/// exist while any unit is bound to it.
struct unit_binding {
  std::string_view allocator;
  int device;
  void const* bytes;
  size_t size;
};

/// A unit that includes the header of `Kind`. On the list as long as it lives: from before main, or
/// while its library is loaded.
template <class Kind>
class bound_unit {
 public:
  /// Binds the unit at once if a heap is bound and the unit can be; otherwise the unit stays
  /// unbound, and bind_all() says why.
  bound_unit(char const* source, char const* allocator, unit_variable variable)
      : source_{source}, allocator_{allocator}, variable_{variable} {
    std::lock_guard const lock{mutex()};
    next_ = first();
    first() = this;
    auto const* const to = bound();
    if (to && to->allocator == allocator_) try_write(*to);
  }
  bound_unit(bound_unit const&) = delete;
  bound_unit& operator=(bound_unit const&) = delete;
  ~bound_unit() {
    std::lock_guard const lock{mutex()};
    bound_unit** link = &first();
    while (*link != this) link = &(*link)->next_;
    *link = next_;
  }

  /// Binds all units, and those that register until unbind_all(). Throws std::logic_error if one
  /// was compiled for another allocator, and backend_error with the unit's name if one cannot be
  /// bound; then some are bound and some are not.
  static void bind_all(unit_binding const& to) {
    std::lock_guard const lock{mutex()};
    write_all(to);
    bound() = &to;
  }

  /// Throws what bind_all() would throw, before there is a heap to bind.
  static void expect_all_bindable(unit_binding const& nothing) {
    std::lock_guard const lock{mutex()};
    write_all(nothing);
  }

  /// Writes `nothing` to all units that can be reached, and ignores the errors of the others.
  static void unbind_all(unit_binding const& nothing) noexcept {
    std::lock_guard const lock{mutex()};
    bound() = nullptr;
    for (auto const* unit = first(); unit; unit = unit->next_) unit->try_write(nothing);
  }

  /// Whether any unit holds this binding. False if the device was reset since: then the variables
  /// have their initial values.
  static bool any_holds(unit_binding const& to) noexcept {
    std::lock_guard const lock{mutex()};
    for (auto const* unit = first(); unit; unit = unit->next_)
      if (unit->holds(to)) return true;
    return false;
  }

 private:
  static void write_all(unit_binding const& to) {
    // override.O3: checked before writing
    for (auto const* unit = first(); unit; unit = unit->next_)
      if (to.allocator != unit->allocator_)
        throw std::logic_error{std::string{Kind::name} + ": " + unit->source_ +
                               " was compiled for another allocator, " + unit->allocator_ + ", not " +
                               std::string{to.allocator}};
    backend::device_scope const there{to.device};
    for (auto const* unit = first(); unit; unit = unit->next_) unit->write(to);
  }

  void write(unit_binding const& to) const {
    try {
      variable_.write(to.bytes);
    } catch (std::exception const& error) {
      throw backend_error{std::string{Kind::name} + ": device code of " + source_ +
                          " cannot be given its heap: " + error.what()};
    }
  }

  void try_write(unit_binding const& to) const noexcept {
    backend::device_scope const there{to.device};
    try {
      variable_.write(to.bytes);
    } catch (std::exception const&) {
    }
  }

  bool holds(unit_binding const& to) const noexcept {
    backend::device_scope const there{to.device};
    try {
      std::string held(to.size, '\0');
      variable_.read(held.data());
      return std::memcmp(held.data(), to.bytes, to.size) == 0;
    } catch (std::exception const&) {
      return false;
    }
  }

  // One list per process, even if libraries hide inline functions.
  [[gnu::visibility("default")]] static bound_unit*& first() {
    static constinit bound_unit* list = nullptr;
    return list;
  }
  [[gnu::visibility("default")]] static unit_binding const*& bound() {
    static constinit unit_binding const* to = nullptr;
    return to;
  }
  [[gnu::visibility("default")]] static std::mutex& mutex() {
    static constinit std::mutex all;
    return all;
  }

  char const* source_;
  char const* allocator_;
  unit_variable variable_;
  bound_unit* next_ = nullptr;
};

/// Claims the place of the process's one heap of this kind. Throws std::logic_error if it is taken.
template <class Kind>
class process_claim {
 public:
  process_claim() {
    // relaxed, here and below: the flag guards no memory.
    if (taken().exchange(true, std::memory_order_relaxed))
      throw std::logic_error{std::string{Kind::name} + ": " + Kind::second};
  }
  process_claim(process_claim const&) = delete;
  process_claim& operator=(process_claim const&) = delete;
  ~process_claim() { taken().store(false, std::memory_order_relaxed); }

 private:
  [[gnu::visibility("default")]] static std::atomic<bool>& taken() {
    static constinit std::atomic<bool> is{false};
    return is;
  }
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::detail

#endif
