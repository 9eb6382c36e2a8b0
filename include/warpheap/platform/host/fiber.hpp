// SPDX-License-Identifier: Apache-2.0
// A flow of control with a stack of its own, on Boost.Context's jump_fcontext (16 ns a switch).
//
// A fiber never moves between OS threads: compilers keep thread-local addresses in registers across
// a switch. Its `context` holds where it stopped. A fiber that is switched to learns which fiber
// was left, and stores that fiber's context.
#pragma once

#include <boost/context/detail/fcontext.hpp>

#include "sanitizer.hpp"
#include "stack_pool.hpp"

namespace warpheap::host::detail {

namespace fcontext = boost::context::detail;

struct fiber {
  fcontext::fcontext_t context = nullptr;
  fiber_stack* stack = nullptr;  // null for an OS thread's own flow
  void const* bottom = nullptr;
#if defined(__SANITIZE_THREAD__)
  void* tsan = nullptr;
#endif
#if defined(__SANITIZE_ADDRESS__)
  void* fake_stack = nullptr;
  size_t bytes = 0;
#endif
};

/// Makes `made` start in `entry` on `stack` when it is first resumed. `entry` calls `fiber_started`
/// first and never returns.
WARPHEAP_NO_TSAN inline void make_fiber(fiber& made, fiber_stack& stack, void (*entry)(fcontext::transfer_t)) {
  made.stack = &stack;
  made.bottom = stack.bottom;
  made.context = fcontext::make_fcontext(stack.top(), stack.usable_bytes(), entry);
#if defined(__SANITIZE_THREAD__)
  made.tsan = stack.tsan_fiber;
#endif
#if defined(__SANITIZE_ADDRESS__)
  made.fake_stack = nullptr;
  made.bytes = stack.bytes;
#endif
}

/// Makes the OS thread's own flow a fiber that others can switch back to.
WARPHEAP_NO_TSAN inline void adopt_thread([[maybe_unused]] fiber& own) {
#if defined(__SANITIZE_THREAD__)
  own.tsan = __tsan_get_current_fiber();
#endif
}

/// Whether the caller, which runs on the stack of `self`, is below it. The address of a local says
/// so, since that of a frame takes a register from the caller. But AddressSanitizer may keep locals
/// elsewhere.
[[gnu::always_inline]] WARPHEAP_NO_TSAN inline bool runs_below_its_stack(fiber const& self) {
  u8 local;
  void* const here = under_asan ? __builtin_frame_address(0) : &local;
  return reinterpret_cast<u64>(here) < reinterpret_cast<u64>(self.bottom);
}

/// Runs `to` until something switches back to `from`. `ends` says that nothing ever will.
WARPHEAP_NO_TSAN inline void switch_fiber(fiber& from, fiber& to, [[maybe_unused]] bool ends = false) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(ends ? nullptr : &from.fake_stack, to.bottom, to.bytes);
#endif
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(to.tsan, 1);
#endif
  auto const arrived = fcontext::jump_fcontext(to.context, &from);
  static_cast<fiber*>(arrived.data)->context = arrived.fctx;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
#endif
}

/// The first thing in a fiber's entry function: stores where the one that resumed it has stopped.
WARPHEAP_NO_TSAN inline void fiber_started(fcontext::transfer_t const& arrived) {
  auto* const from = static_cast<fiber*>(arrived.data);
  from->context = arrived.fctx;
#if defined(__SANITIZE_ADDRESS__)
  void const* bottom = nullptr;
  size_t bytes = 0;
  __sanitizer_finish_switch_fiber(nullptr, &bottom, &bytes);
  if (!from->stack) {  // an OS thread's stack: only the sanitizer knows its bounds
    from->bottom = bottom;
    from->bytes = bytes;
  }
#endif
}

}  // namespace warpheap::host::detail
