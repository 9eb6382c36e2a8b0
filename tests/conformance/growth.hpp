// SPDX-License-Identifier: Apache-2.0
// Pools that grow as subjects of the suite. A heap starts with 1 MiB, or with nothing if its pool
// is small, and has grown to the pool's size when the check begins: because the host said so, or by
// what a call was refused. A heap whose calls wait grows under the check's kernels.
#pragma once

#include <memory>
#include <optional>

#include "holding.hpp"
#include "scenario.hpp"
#include "warpheap/heap/growing_heap.hpp"
#include "warpheap/heap/growth_service.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace conformance {

template <class Allocator>
inline constexpr bool has_growing_pool = growing_pool<typename Allocator::reserve_pool_type>;

/// Whether refused calls ask for memory, and whether they then wait for it.
template <class Allocator>
inline constexpr bool asks_for_memory = requests_growth<typename Allocator::oom_type>;
template <class Allocator>
inline constexpr bool waits_for_memory = [] {
  if constexpr (asks_for_memory<Allocator>) return Allocator::oom_type::config.deadline_us != 0;
  else return false;
}();

/// What sizes of pools are multiples of, in bytes.
template <class Allocator>
size_t pool_unit() {
  if constexpr (has_growing_pool<Allocator>) return Allocator::reserve_pool_type::granularity();
  else return 1;
}

/// A pool that is to have `bytes` bytes, and may grow to twice that: 512 MiB of 1 GiB, say. It may
/// grow no further if its kernels decide how far it grows, or if its slabs would then be larger.
template <class Allocator>
growth growth_to(size_t bytes) {
  growth made{.initial = mebibyte, .limit = bytes};
  if (bytes < 4 * pool_unit<Allocator>()) made.initial = 0;
  if (!waits_for_memory<Allocator> && (bytes < 32 * mebibyte || bytes == 512 * mebibyte)) made.limit = 2 * bytes;
  made.chunk = align_up(bytes / 256, pool_unit<Allocator>());
  return made;
}

/// Kernel: one call.
struct ask_once {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 bytes) const {
    heap.free(heap.malloc(bytes));
  }
};

/// A heap of `bytes` bytes.
template <class Allocator>
basic_heap<Allocator> heap_of(size_t bytes) {
  if constexpr (has_growing_pool<Allocator>) {
    basic_heap<Allocator> heap{typename Allocator::reserve_pool_type{growth_to<Allocator>(bytes)}};
    size_t const missing = bytes - heap.committed_bytes();
    if constexpr (waits_for_memory<Allocator>) return heap;
    if constexpr (asks_for_memory<Allocator>) {
      launch({1, 1}, ask_once{}, heap.ref(), u64{missing});
      synchronize();  // the call has posted its request
      heap.poll();
    } else {
      heap.grow(missing / 2);
      heap.grow(bytes - heap.committed_bytes());
    }
    return heap;
  } else {
    return basic_heap<Allocator>{bytes};
  }
}

/// Runs a check's kernels.
template <class Allocator, bool Waits = waits_for_memory<Allocator>>
class kernel_runner {
 public:
  explicit kernel_runner(basic_heap<Allocator>&) {}

  /// Puts a kernel on a stream.
  template <class Kernel, class... Arguments>
  void start(stream_view on, launch_shape shape, Kernel kernel, Arguments... arguments) {
    launch(on, shape, kernel, arguments...);
  }
  /// Waits for all kernels.
  void finish() { synchronize(); }
};

#if defined(__CUDACC__)
/// Runs them while a service commits memory.
template <class Allocator>
class kernel_runner<Allocator, true> : public kernel_runner<Allocator, false> {
 public:
  explicit kernel_runner(basic_heap<Allocator>& heap) : kernel_runner<Allocator, false>{heap}, service_{heap} {}

 private:
  growth_service service_;
};
#else
/// Kernel: another one, whose threads count themselves out when they end.
template <class Kernel>
struct counted_out {
  Kernel kernel;

  template <class... Arguments>
  WARPHEAP_DEVICE void operator()(u64* running, Arguments... arguments) const {
    kernel(arguments...);
    // relaxed: a count.
    atomic_ref<u64>{*running}.fetch_sub(1, order::relaxed);
  }
};

/// Kernel: one lane is the service, as long as threads of others run.
struct serve_while_running {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap* heap, u64* running) const {
    for (; atomic_ref<u64>{*running}.load(order::relaxed) != 0; simt::pause(2000)) heap->serve();
  }
};

/// Runs them while memory is committed: by a service, or, where a seed orders all steps, by a lane
/// that the schedule knows of.
template <class Allocator>
class kernel_runner<Allocator, true> {
 public:
  explicit kernel_runner(basic_heap<Allocator>& heap) : heap_{heap} {
    if (host::current_execution().mode == host::execution_mode::parallel) service_.emplace(heap);
  }

  template <class Kernel, class... Arguments>
  void start(stream_view on, launch_shape shape, Kernel kernel, Arguments... arguments) {
    if (service_) return launch(on, shape, kernel, arguments...);
    running_ += u64{shape.blocks} * shape.threads;
    launch(on ? on : stream_view{default_}, shape, counted_out<Kernel>{kernel}, running_word_.data(), arguments...);
  }

  void finish() {
    if (service_) return synchronize();
    backend::copy_bytes(running_word_.data(), &running_, sizeof running_);
    running_ = 0;
    auto roomy = host::current_execution();
    ++roomy.blocks_per_sm;  // the lane takes no thread block's place
    host::scoped_execution const use{roomy};
    launch(serving_, {1, 1}, serve_while_running{}, &heap_, running_word_.data());
    synchronize();
  }

 private:
  basic_heap<Allocator>& heap_;
  std::optional<growth_service> service_;
  stream serving_, default_;  // thread blocks of the first start first
  device_buffer<u64> running_word_{1};
  u64 running_ = 0;
};
#endif

}}}  // namespace warpheap::WARPHEAP_BACKEND::conformance
