// The translation units whose device code has its malloc from us, so that a heap can be bound in each of them.
//
// Without -rdc=true a unit's device code is a program of its own with variables of its own, which only host code of the same
// unit can name. So each unit brings a function that writes its variable, and puts it on a list of the process before main.
// With -rdc=true units work the same, and need no case of their own.
#pragma once

#include "../platform/types.hpp"

#if !defined(__CUDACC_RTC__)

#include <atomic>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>

#include "../platform/errors.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {
namespace detail {

/// A unit that includes override.hpp. On the list as long as it lives: from before main, or from the loading of its
/// library to the unloading.
class override_unit {
 public:
  /// `bind` copies a heap's binding, of the type that `allocator` names, to where the unit's device code finds it. Throws
  /// what the backend says if it cannot.
  using bind_function = void (*)(void const* binding);

  override_unit(char const* source, char const* allocator, bind_function bind)
      : source_{source}, allocator_{allocator}, bind_{bind} {
    std::lock_guard const lock{mutex()};
    next_ = first();
    first() = this;
  }
  override_unit(override_unit const&) = delete;
  override_unit& operator=(override_unit const&) = delete;
  ~override_unit() {
    std::lock_guard const lock{mutex()};
    override_unit** link = &first();
    while (*link != this) link = &(*link)->next_;
    *link = next_;
  }

  /// Binds all units. Throws std::logic_error if one was compiled for another allocator, and backend_error with the
  /// unit's name if one cannot be bound; then some are bound and some are not.
  static void bind_all(std::string_view allocator, void const* binding) {
    std::lock_guard const lock{mutex()};
    for (auto const* unit = first(); unit; unit = unit->next_)  // O3, before any is bound
      if (allocator != unit->allocator_)
        throw std::logic_error{"override_heap: " + std::string{unit->source_} +
                               " was compiled for another allocator, " + unit->allocator_ + ", not " +
                               std::string{allocator}};
    for (auto const* unit = first(); unit; unit = unit->next_) unit->bind(binding);
  }

  /// Binds all units that can be bound, whatever becomes of the others.
  static void try_bind_all(void const* binding) noexcept {
    std::lock_guard const lock{mutex()};
    for (auto const* unit = first(); unit; unit = unit->next_) {
      try {
        unit->bind_(binding);
      } catch (std::exception const&) {
      }
    }
  }

 private:
  void bind(void const* binding) const {
    try {
      bind_(binding);
    } catch (std::exception const& error) {
      throw backend_error{"override_heap: device code of " + std::string{source_} +
                          " cannot be given its heap: " + error.what()};
    }
  }

  static override_unit*& first() {
    static constinit override_unit* list = nullptr;
    return list;
  }
  static std::mutex& mutex() {
    static constinit std::mutex all;
    return all;
  }

  char const* source_;
  char const* allocator_;
  bind_function bind_;
  override_unit* next_ = nullptr;
};

/// Says that the process has an override_heap. Throws std::logic_error if it has one already.
class override_claim {
 public:
  override_claim() {
    // relaxed, here and below: it guards no memory.
    if (taken().exchange(true, std::memory_order_relaxed))
      throw std::logic_error{"override_heap: the process has one, and device malloc serves one heap"};
  }
  override_claim(override_claim const&) = delete;
  override_claim& operator=(override_claim const&) = delete;
  ~override_claim() { taken().store(false, std::memory_order_relaxed); }

 private:
  static std::atomic<bool>& taken() {
    static constinit std::atomic<bool> is = false;
    return is;
  }
};

}  // namespace detail
}  // namespace warpheap::inline WARPHEAP_BACKEND

#endif
