// SPDX-License-Identifier: Apache-2.0
// Runs a functor as a kernel of fibers, so that one body serves both backends.
#pragma once

#include <atomic>
#include <type_traits>

#include "block_memory.hpp"
#include "memory.hpp"

namespace warpheap::host {

namespace detail {

/// Launches are numbered from 1. relaxed: a number is another launch's or it is not.
inline u64 next_grid_id() {
  static std::atomic<u64> launches{0};
  return launches.fetch_add(1, std::memory_order_relaxed) + 1;
}

/// A kernel's functor and arguments; `run` calls it on one lane with that lane's own copies.
template <class Closure>
stream_work kernel_work(launch_shape shape, Closure const& closure) {
  static_assert(std::is_trivially_copyable_v<Closure>, "a kernel's functor and arguments are copied bitwise");
  stream_work work;
  work.closure = std::make_unique<u8[]>(sizeof(Closure) + alignof(Closure));
  auto const place =
      (reinterpret_cast<u64>(work.closure.get()) + alignof(Closure) - 1) / alignof(Closure) * alignof(Closure);
  work.kernel.closure = ::new (reinterpret_cast<void*>(place)) Closure(closure);
  work.kernel.body = [](void const* shared) {
    auto own = *static_cast<Closure const*>(shared);
    own();
  };
  work.kernel.shape = shape;
  work.kernel.id = next_grid_id();
  return work;
}

inline void check_launch(launch_shape shape) {
  if (worker_of_thread) throw backend_error{"launch called inside a kernel: it is for host code"};
  if (shape.threads == 0 || shape.threads > 1024) {
    throw backend_error{
        format_message({"launch of thread blocks of ", shape.threads, " threads: 1 to 1024 are possible"})};
  }
  if (shape.shared_bytes > block_memory::most_bytes) {
    throw backend_error{format_message({"launch with ", shape.shared_bytes, " bytes of dynamic shared memory: at most ",
                                        block_memory::most_bytes, " are possible"})};
  }
  if (!shape.has_whole_rows())
    throw backend_error{"launch of thread blocks or a grid whose extents do not divide them"};
}

}  // namespace detail

/// Runs `functor(arguments...)` on every thread of `shape`: at once on the default stream, else
/// when a host thread synchronizes. Functor and arguments are trivially copyable. A grid of no
/// thread blocks does nothing. Throws what a lane threw, trap_error for a trap, schedule_error for
/// lanes that cannot go on; the backend is then ready for the next launch.
template <class Functor, class... Arguments>
void launch(stream_view on, launch_shape shape, Functor functor, Arguments... arguments) {
  if (shape.blocks == 0) return;
  detail::check_launch(shape);
  auto work = detail::kernel_work(shape, [functor, arguments...]() mutable { functor(arguments...); });
  if (on) {
    on->pending.push_back(std::move(work));
    return;
  }
  detail::stream_queue now;
  now.pending.push_back(std::move(work));
  detail::simulated_device::instance().run({&now});
}

template <class Functor, class... Arguments>
void launch(launch_shape shape, Functor functor, Arguments... arguments) {
  launch(stream_view{}, shape, functor, arguments...);
}

}  // namespace warpheap::host
