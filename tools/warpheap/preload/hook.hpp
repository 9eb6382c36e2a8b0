// SPDX-License-Identifier: Apache-2.0
// Functions of ours before functions of the driver. A hook is a class with a function `run`, which
// takes the driver's function and its arguments.
#pragma once

#include <atomic>
#include <string_view>

namespace warpheap::preload {

/// Up to four functions of the driver go by one name, by version and by the default stream that is
/// meant. Each has an entry of its own, which calls the hook with it.
template <class Hook, class Run = decltype(&Hook::run)>
class entries;

template <class Hook, class Result, class... Arguments>
class entries<Hook, Result (*)(Result (*)(Arguments...), Arguments...)> {
  static constexpr unsigned count = 4;

 public:
  using function = Result (*)(Arguments...);

 private:
  template <unsigned Index>
  static Result call(Arguments... arguments) {
    return Hook::run(reals[Index].load(std::memory_order_acquire), arguments...);
  }

  static inline std::atomic<function> reals[count] = {};
  static constexpr function calls[count] = {call<0>, call<1>, call<2>, call<3>};

 public:
  /// What is called in place of `real`; `real` itself if all entries are taken.
  static void* before(void* real) {
    auto const wanted = reinterpret_cast<function>(real);
    for (unsigned i = 0; i < count; ++i) {
      function taken = nullptr;
      if (reals[i].compare_exchange_strong(taken, wanted) || taken == wanted) return reinterpret_cast<void*>(calls[i]);
    }
    return real;
  }
};

/// The type of the function that a hook is before.
template <class Hook>
using driver_function_of = typename entries<Hook>::function;

/// What is called in place of `real`, which the driver has under `name`; `real` if there is no hook
/// for it. The name may have a suffix, such as _v2 or _ptsz.
void* hooked(std::string_view name, void* real);

}  // namespace warpheap::preload
