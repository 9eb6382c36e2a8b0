// SPDX-License-Identifier: Apache-2.0
// A heap that records what kernels ask of it, for `warpheap replay`, which asks the same of other
// allocators.
//
//   warpheap::traced<warpheap::heap> heap{64_MiB};         in place of warpheap::heap
//   kernel<<<grid, block>>>(heap.ref());                   traced<heap>::ref_type
//   heap.save("program.trace");
//
// The records have a fixed room, and what comes when it is full is counted and lost: so a trace is
// the beginning of what a program did (trace/trace_log.hpp says why). docs/guide/traces.md,
// docs/design/trace.md.
#pragma once

#include "../heap/heap.hpp"
#include "trace/traced_ref.hpp"

#if !defined(__CUDACC_RTC__)

#include "../platform/device_buffer.hpp"
#include "trace/file.hpp"
#include "trace/resolver.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

struct traced_config {
  /// Records that there is room for, of 24 bytes each. A call has one, and a realloc two.
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

/// A heap around another one, `Heap`. Is made as that one is, and has its members.
template <class Heap, traced_config Config = traced_config{}>
class traced {
  static_assert(Config.most_records >= 1 && Config.most_records < u64{1} << 40);

 public:
  using heap_type = Heap;
  using ref_type = traced_ref<typename Heap::ref_type>;
  static constexpr traced_config config = Config;
  static constexpr size_t minimum_bytes = Heap::minimum_bytes;

  /// Throws what the constructor of `Heap` throws, and out_of_memory if there is none for the
  /// records.
  template <class... Arguments>
    requires std::constructible_from<Heap, Arguments...>
  explicit traced(Arguments&&... arguments) : upstream_(std::forward<Arguments>(arguments)...) {}

  /// What kernels take, by value.
  ref_type ref() const noexcept { return ref_type{upstream_.ref(), log()}; }

  /// Frees everything at once, in order on stream `on`. The trace goes on, and says so.
  void reset(stream_view on = {}) {
    upstream_.reset(on);
    launch(on, {1, 1}, traced_parts::note_reset{}, log());
  }

  /// As the upstream heap, if its pool grows.
  size_t grow(size_t bytes, stream_view on = {}) requires requires(Heap heap) { heap.grow(bytes, on); }
  { return upstream_.grow(bytes, on); }
  size_t trim() requires requires(Heap heap) { heap.trim(); }
  { return upstream_.trim(); }
  size_t poll(stream_view on = {}) requires requires(Heap heap) { heap.poll(on); }
  { return upstream_.poll(on); }
  size_t serve() requires requires(Heap heap) { heap.serve(); }
  { return upstream_.serve(); }
  u64 requested_bytes() const requires requires(Heap const heap) { heap.requested_bytes(); }
  { return upstream_.requested_bytes(); }
  size_t committed_bytes() const requires requires(Heap const heap) { heap.committed_bytes(); }
  { return upstream_.committed_bytes(); }

  /// What was recorded. Call it when no kernel uses the heap.
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
    made.pool_bytes = pool_bytes();
    made.machine = traced_parts::device_name();
    return made;
  }

  /// Writes what was recorded to a file. Throws std::runtime_error if it cannot be written.
  void save(std::string const& path) const { warpheap::save(trace(), path); }

  /// Forgets what was recorded, in order on stream `on`. Later frees of blocks that were made
  /// before are unmatched.
  void forget(stream_view on = {}) { backend::fill_bytes(words_.data(), 0, words_.size_bytes(), on); }

  heap_statistics statistics() const requires Heap::takes_snapshots { return upstream_.statistics(); }
  invariant_report check_invariants() const requires Heap::takes_snapshots { return upstream_.check_invariants(); }
  template <class Visitor>
  void for_each_live(Visitor visit) const requires requires(Heap const heap) {
    heap.for_each_live(visit);
  }
  { upstream_.for_each_live(visit); }
  u64 available_slots(size_t bytes) const requires requires(Heap const heap) { heap.available_slots(bytes); }
  { return upstream_.available_slots(bytes); }
  size_t pool_bytes() const { return upstream_.pool_bytes(); }
  size_t metadata_bytes() const { return upstream_.metadata_bytes() + words_.size_bytes(); }
  std::string info(std::string const& separator = "; ") const requires requires(Heap const heap) { heap.info(); }
  { return "traced" + separator + upstream_.info(separator); }

  /// The heap that serves the calls. What kernels ask through its ref() is not recorded.
  Heap const& upstream() const noexcept { return upstream_; }

 private:
  trace_log log() const noexcept { return trace_log{words_.data(), Config.most_records}; }

  Heap upstream_;
  device_buffer<u64> words_{trace_log::words_for(Config.most_records)};
};

}}  // namespace warpheap::WARPHEAP_BACKEND

#endif
