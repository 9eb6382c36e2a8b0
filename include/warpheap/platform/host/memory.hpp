// SPDX-License-Identifier: Apache-2.0
// Device memory as host code sees it: here the process's own memory, with streams that keep work
// until a host thread waits for it.
#pragma once

#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "arena.hpp"
#include "atomic.hpp"
#include "content_ranges.hpp"
#include "simulated_device.hpp"

namespace warpheap::host {

/// A stream that another object owns; the default stream if default-constructed.
using stream_view = detail::stream_queue*;

/// Runs all work of all streams, because other streams may hold work that runs concurrently with
/// that of `on`; of a stream made by stream::apart() its own work alone. Throws what ended the run.
inline void synchronize(stream_view on) {
  if (on && on->runs_apart) detail::simulated_device::instance().run({on});
  else detail::simulated_device::instance().run_streams();
}

/// Runs all work of all streams; throws what ended the run.
inline void synchronize() { detail::simulated_device::instance().run_streams(); }

/// An owned stream. What is launched on it runs when a host thread synchronizes: in order within
/// the stream, concurrently with the work of other streams.
class stream {
 public:
  stream() : queue_{new detail::stream_queue} { detail::simulated_device::instance().add(*queue_); }
  /// As on a GPU, where its thread blocks start before others. Here the schedule decides.
  static stream urgent() { return {}; }
  /// One for a host thread beside those that use other streams: its work runs when that thread
  /// synchronizes it, beside no other work.
  static stream apart() {
    auto queue = std::make_unique<detail::stream_queue>();
    queue->runs_apart = true;
    return stream{queue.release()};
  }
  stream(stream&& other) noexcept : queue_{std::exchange(other.queue_, nullptr)} {}
  stream& operator=(stream&& other) noexcept {
    std::swap(queue_, other.queue_);
    return *this;
  }
  /// Runs what is left, as a CUDA stream does; its errors are lost with it.
  ~stream() {
    if (!queue_) return;
    try {
      if (!queue_->pending.empty()) synchronize(queue_);
    } catch (std::exception const&) {
    }
    detail::simulated_device::instance().remove(*queue_);
    delete queue_;
  }

  operator stream_view() const noexcept { return queue_; }

 private:
  explicit stream(detail::stream_queue* queue) : queue_{queue} {}

  detail::stream_queue* queue_;
};

/// Raw memory, aligned to 256 bytes. Throws out_of_memory with the bytes asked for.
inline void* allocate_bytes(size_t bytes) {
  auto* const arena = detail::arena_of_thread;
  void* const memory =
      arena ? arena->take(bytes) : ::operator new (bytes, std::align_val_t{detail::memory_alignment}, std::nothrow);
  if (!memory) throw out_of_memory{detail::format_message({"allocating ", bytes, " bytes of host memory failed"})};
  detail::allocations().add(memory, bytes);
  return memory;
}

inline void deallocate_bytes(void* memory) noexcept {
  if (!memory) return;
  size_t const bytes = detail::allocations().remove(memory);
  u64 const begin = reinterpret_cast<u64>(memory);
  detail::all_contents().forget(begin, begin + bytes);
  if (auto* const arena = detail::arena_of_thread; arena && arena->owns(memory)) return arena->give_back();
  ::operator delete (memory, std::align_val_t{detail::memory_alignment});
}

/// Sets `bytes` bytes at `memory` to `value`, in order on stream `on`.
inline void fill_bytes(void* memory, u8 value, size_t bytes, stream_view on = {}) {
  if (!on) {
    std::memset(memory, value, bytes);
    return;
  }
  detail::stream_work fill;
  fill.memory = memory;
  fill.bytes = bytes;
  fill.value = value;
  on->pending.push_back(std::move(fill));
}

/// Copies between any two places, after all earlier work of the default stream.
inline void copy_bytes(void* to, void const* from, size_t bytes) { std::memcpy(to, from, bytes); }

/// Copies `rows` rows of `bytes` bytes, one after the other. The first begins at `from`, and each
/// next one `pitch` bytes further.
inline void copy_rows(void* to, void const* from, size_t bytes, size_t pitch, size_t rows) {
  for (size_t row = 0; row < rows; ++row)
    copy_bytes(static_cast<u8*>(to) + row * bytes, static_cast<u8 const*>(from) + row * pitch, bytes);
}

/// Words that the host and running kernels share, zeroed. Movable.
class shared_words {
 public:
  shared_words() = default;
  explicit shared_words(size_t count) : words_{new u64[count]()} {}

  u64* device() const { return words_.get(); }

  /// acquire: pairs with a release of a kernel. A lane may call too.
  u64 load(size_t i) const { return atomic_ref<u64, scope::system>{words_[i]}.load(order::acquire); }
  /// release: pairs with an acquire of a kernel.
  void store(size_t i, u64 value) const { atomic_ref<u64, scope::system>{words_[i]}.store(value, order::release); }

 private:
  std::unique_ptr<u64[]> words_;
};

/// There is one device.
inline int device_count() { return 1; }
inline int current_device() { return 0; }
inline void enable_peer_access(int, int) {}
inline std::string device_name() { return "host"; }
/// There are no graphs.
inline void stay_out_of_captures() {}

class device_scope {
 public:
  explicit device_scope(int) noexcept {}
  device_scope(device_scope const&) = delete;
  device_scope& operator=(device_scope const&) = delete;
  ~device_scope() {}
};

/// Sets a variable that kernels see, for those that are launched from now on.
template <class T>
void set_device_variable(T& variable, T const& value) {
  static_assert(__is_trivially_copyable(T), "set_device_variable copies bits");
  variable = value;
}

/// Multiprocessors that kernels see now.
inline u32 multiprocessors() { return current_execution().sm_count; }

}  // namespace warpheap::host
