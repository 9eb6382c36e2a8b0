// SPDX-License-Identifier: Apache-2.0
// A heap that records its kernels' calls, for `warpheap replay`, which makes the same calls on
// other allocators.
//
//   warpheap::traced<warpheap::heap> heap{64_MiB};         in place of warpheap::heap
//   kernel<<<grid, block>>>(heap.ref());                   traced<heap>::ref_type
//   heap.save("program.trace");
//
// The room for records is fixed; when it is full, later calls are only counted. So a trace is the
// beginning of a program's calls (trace/trace_log.hpp says why). docs/guide/traces.md,
// docs/design/trace.md.
#pragma once

#include "trace/traced_ref.hpp"
#include "upstream_heap.hpp"

#if !defined(__CUDACC_RTC__)

#include "../platform/device_buffer.hpp"
#include "trace/file.hpp"
#include "trace/resolver.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

struct traced_config {
  /// The most records, of 24 bytes each. A call has one, a realloc two.
  u64 most_records = u64{1} << 20;
};

namespace traced_parts {

/// Kernel: notes that everything was freed.
struct note_reset {
  WARPHEAP_DEVICE void operator()(trace_log log) const { log.add(call_kind::reset, 0, nullptr); }
};

/// The name of the device that kernels run on.
inline std::string device_name() {
#if defined(__CUDACC__)
  cudaDeviceProp properties;
  cuda_backend::throw_on_error(cudaGetDeviceProperties(&properties, cuda_backend::current_device()),
                               "cudaGetDeviceProperties");
  return properties.name;
#else
  return "host";
#endif
}

}  // namespace traced_parts

/// A heap around another one, `Heap`, with its constructors and members.
template <class Heap, traced_config Config = traced_config{}>
class traced : public upstream_heap<Heap> {
  using base = upstream_heap<Heap>;
  using base::upstream_;
  static_assert(Config.most_records >= 1 && Config.most_records < u64{1} << 40);

 public:
  using ref_type = traced_ref<typename Heap::ref_type>;
  static constexpr traced_config config = Config;

  /// Throws what the constructor of `Heap` throws, and out_of_memory if there is no memory for the
  /// records.
  template <class... Arguments>
    requires std::constructible_from<Heap, Arguments...>
  explicit traced(Arguments&&... arguments) : base(std::forward<Arguments>(arguments)...) {}

  /// The reference that kernels take by value.
  ref_type ref() const noexcept { return ref_type{upstream_.ref(), log()}; }

  /// Frees everything at once, in order on stream `on`. The trace continues, and records the reset.
  void reset(stream_view on = {}) {
    upstream_.reset(on);
    launch(on, {1, 1}, traced_parts::note_reset{}, log());
  }

  /// The recorded calls. Call it when no kernel uses the heap.
  call_trace trace() const {
    auto const words = words_.to_host();
    u64 const tickets = words[0], kept = tickets < Config.most_records ? tickets : Config.most_records;
    u64 const* const column = words.data() + (trace_log::words_for(0));
    trace_parts::resolver resolver;
    for (u64 i = 0; i < kept; ++i)
      resolver.add(
          trace_parts::entry_of(column[i], column[Config.most_records + i], column[2 * Config.most_records + i]));
    auto made = resolver.take();
    made.lost += tickets - kept;
    made.pool_bytes = upstream_.pool_bytes();
    made.machine = traced_parts::device_name();
    return made;
  }

  /// Writes the recorded calls to a file. Throws std::runtime_error if it cannot be written.
  void save(std::string const& path) const { warpheap::save(trace(), path); }

  /// Discards the recorded calls, in order on stream `on`. Later frees of blocks that were made
  /// before are unmatched.
  void forget(stream_view on = {}) { backend::fill_bytes(words_.data(), 0, words_.size_bytes(), on); }

  size_t metadata_bytes() const { return upstream_.metadata_bytes() + words_.size_bytes(); }
  std::string info(std::string const& separator = "; ") const requires requires(Heap const heap) { heap.info(); }
  { return "traced" + separator + upstream_.info(separator); }

 private:
  trace_log log() const noexcept { return trace_log{words_.data(), Config.most_records}; }

  device_buffer<u64> words_{trace_log::words_for(Config.most_records)};
};

}}  // namespace warpheap::WARPHEAP_BACKEND

#endif
