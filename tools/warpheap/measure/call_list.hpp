// SPDX-License-Identifier: Apache-2.0
// Calls that the host lists beforehand, and that kernels make in order, a batch each, until enough
// of them are refused. The host learns what every call returned. So it can choose which blocks are
// freed, and what is asked for next.
#pragma once

#include "large_blocks.hpp"
#include "listed_calls.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

/// Kernel: counts the calls that returned nullptr.
struct count_refused {
  WARPHEAP_DEVICE void operator()(void* const* blocks, u64 calls, u64* refused) const {
    u64 const i = global_thread_index();
    if (i < calls && !blocks[i]) count(*refused);
  }
};

/// How a list of calls is cut into kernels.
struct call_batches {
  u64 calls = ~u64{0};  ///< of a kernel, at most
  u32 thread_block = 256;
};

/// What the calls returned that were made.
struct call_answers {
  std::vector<asked_block> blocks;
  u64 refused = 0;
  double time_us = 0;  ///< of the kernels that call
};

/// Makes the calls of a list until it ends or `is_enough(refused, made)` of the calls so far. No
/// call is for 0 bytes.
template <class Allocator, class Enough>
call_answers ask_in_order(basic_heap<Allocator>& heap, std::vector<u64> const& bytes, call_batches batches,
                          Enough is_enough) {
  device_buffer<u64> const wanted(bytes), refused(1);
  device_buffer<void*> const came(bytes.size());
  stopwatch watch;
  call_answers answers;
  u64 made = 0;
  while (made < bytes.size() && !is_enough(answers.refused, made)) {
    u64 const now = std::min(bytes.size() - made, batches.calls);
    u64 const* const from = wanted.data() + made;
    void** const to = came.data() + made;
    answers.time_us += watch.microseconds(
        [&] { launch_unbounded(shape_for(now, batches.thread_block), ask_listed{}, heap.ref(), from, to, now); });
    launch(shape_for(now), count_refused{}, to, now, refused.data());
    answers.refused = refused[0];
    made += now;
  }
  auto const blocks = came.to_host();
  answers.blocks.reserve(made);
  for (u64 i = 0; i < made; ++i) answers.blocks.push_back({blocks[i], bytes[i]});
  return answers;
}

/// Makes all calls of a list in one kernel.
template <class Allocator>
call_answers ask_at_once(basic_heap<Allocator>& heap, std::vector<u64> const& bytes) {
  return ask_in_order(heap, bytes, {}, [](u64, u64) { return false; });
}

/// Makes `calls` calls for `bytes` bytes, but none after a batch in which one was refused.
template <class Allocator>
call_answers ask_until_refused(basic_heap<Allocator>& heap, u64 bytes, u64 calls, call_batches batches) {
  return ask_in_order(heap, std::vector<u64>(calls, bytes), batches, [](u64 refused, u64) { return refused > 0; });
}

/// Frees the blocks of a list by one kernel; some may be null. Returns its time in microseconds.
template <class Allocator>
double free_listed(basic_heap<Allocator>& heap, std::vector<asked_block> const& list) {
  if (list.empty()) return 0;
  std::vector<void*> leaving;
  leaving.reserve(list.size());
  for (auto const& each : list) leaving.push_back(each.block);
  device_buffer<void*> const blocks(leaving);
  stopwatch watch;
  return watch.microseconds([&] { launch_freeing(heap, blocks, blocks.size()); });
}

/// Bytes that the blocks of a list were asked for.
inline u64 bytes_of(std::vector<asked_block> const& list) {
  u64 sum = 0;
  for (auto const& each : list) sum += each.block ? each.bytes : 0;
  return sum;
}

/// The blocks in an order that depends on the seed, and on no address.
inline std::vector<asked_block> in_random_order(std::vector<asked_block> const& list, u64 seed) {
  std::vector<std::pair<u64, u64>> order;  // a random number and an index
  order.reserve(list.size());
  for (u64 i = 0; i < list.size(); ++i) order.emplace_back(mix(seed - i), i);
  std::sort(order.begin(), order.end());
  std::vector<asked_block> made;
  made.reserve(list.size());
  for (auto const& [number, index] : order) made.push_back(list[index]);
  return made;
}

inline void append(std::vector<asked_block>& to, std::vector<asked_block> const& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
