// SPDX-License-Identifier: Apache-2.0
// What one thread of a warp can do: the contract between the layers above and a backend. A backend
// is a class of static functions; `simt.hpp` picks one and asserts this concept on it.
//
//   identity  thread_index() block_index() block_dim() grid_dim()
//                                      linear, in threads and thread blocks
//             grid_id()                the same for all threads of a kernel, and another one for
//                                      each launch
//             lane_id() warp_id()      within the warp; within the thread block
//             lanes_below()            mask of the lanes with a smaller lane_id()
//             sm_id() sm_count()       multiprocessor we run on, in [0, sm_count()): a hint
//             clock()                  cycles of this multiprocessor
//             nanoseconds()            time, the same for all threads, in steps of up to 2 us
//   warp      active_mask()            some set of lanes that are here with us, ourselves included;
//                                      says nothing more
//             ballot(mask, pred)       lanes of `mask` whose `pred` holds; all lanes of `mask` call
//                                      and hold the result
//             match_any(mask, key)     lanes of `mask` with our key
//             shuffle(mask, value, lane)
//                                      `value` of lane `lane`, which must be in `mask`
//             reduce_or(mask, value)   bitwise or over `mask`
//             sync_warp(mask)          all lanes of `mask` arrive; orders memory among them
//   block     sync_block()             all threads of the thread block arrive; orders memory among
//                                      them
//             dynamic_shared() dynamic_shared_bytes()
//                                      what the launch gave of shared memory, aligned to 128
//   waiting   pause(nanoseconds)       lets others run: a nap, which on a GPU may last 2 µs
//             spin(clocks)             lets that many cycles pass, awake
//                                      Every wait loop calls one of them: see backoff.hpp
//   misuse    trap(reason)             ends the kernel with an error
//
// Every mask is a lane_mask. `mask` names the lanes that call, our own among them. Only sync_warp
// and sync_block order memory; the other collectives give no happens-before.
#pragma once

#include "types.hpp"

namespace warpheap {

/// NVRTC has neither std::same_as nor the built-in behind it.
template <class Left, class Right>
inline constexpr bool is_same_type = false;
template <class Type>
inline constexpr bool is_same_type<Type, Type> = true;

template <class Left, class Right>
concept same_type = is_same_type<Left, Right>;

template <class Backend>
concept simt_backend = requires(lane_mask mask, u32 value, u64 wide, bool predicate, char const* reason) {
  { Backend::thread_index() } -> same_type<u32>;
  { Backend::block_index() } -> same_type<u32>;
  { Backend::block_dim() } -> same_type<u32>;
  { Backend::grid_dim() } -> same_type<u32>;
  { Backend::grid_id() } -> same_type<u64>;
  { Backend::lane_id() } -> same_type<u32>;
  { Backend::lanes_below() } -> same_type<lane_mask>;
  { Backend::warp_id() } -> same_type<u32>;
  { Backend::sm_id() } -> same_type<u32>;
  { Backend::sm_count() } -> same_type<u32>;
  { Backend::clock() } -> same_type<u64>;
  { Backend::nanoseconds() } -> same_type<u64>;
  { Backend::active_mask() } -> same_type<lane_mask>;
  { Backend::ballot(mask, predicate) } -> same_type<lane_mask>;
  { Backend::match_any(mask, value) } -> same_type<lane_mask>;
  { Backend::match_any(mask, wide) } -> same_type<lane_mask>;
  { Backend::shuffle(mask, value, value) } -> same_type<u32>;
  { Backend::shuffle(mask, wide, value) } -> same_type<u64>;
  { Backend::reduce_or(mask, value) } -> same_type<u32>;
  { Backend::sync_warp(mask) } -> same_type<void>;
  { Backend::sync_block() } -> same_type<void>;
  { Backend::dynamic_shared() } -> same_type<void*>;
  { Backend::dynamic_shared_bytes() } -> same_type<u32>;
  { Backend::pause(value) } -> same_type<void>;
  { Backend::spin(value) } -> same_type<void>;
  { Backend::trap(reason) } -> same_type<void>;
};

/// Atomic access to an object that lives in global memory; the memory order is a mandatory
/// argument.
template <class Ref, class T>
concept atomic_reference = requires(Ref const ref, T value, T& expected) {
  { ref.load(order::acquire) } -> same_type<T>;
  { ref.store(value, order::release) } -> same_type<void>;
  { ref.exchange(value, order::relaxed) } -> same_type<T>;
  { ref.compare_exchange(expected, value, order::acq_rel, order::relaxed) } -> same_type<bool>;
};

/// A reference to a number, or to a pointer, which counts in elements.
template <class Ref, class T, class Step = T>
concept atomic_counter = atomic_reference<Ref, T> && requires(Ref const ref, Step step) {
  { ref.fetch_add(step, order::relaxed) } -> same_type<T>;
  { ref.fetch_sub(step, order::relaxed) } -> same_type<T>;
};

/// A reference to an integer.
template <class Ref, class T>
concept atomic_integer_reference = atomic_counter<Ref, T> && requires(Ref const ref, T value) {
  { ref.fetch_min(value, order::relaxed) } -> same_type<T>;
  { ref.fetch_max(value, order::relaxed) } -> same_type<T>;
  { ref.fetch_or(value, order::relaxed) } -> same_type<T>;
  { ref.fetch_and(value, order::relaxed) } -> same_type<T>;
  { ref.fetch_xor(value, order::relaxed) } -> same_type<T>;
};

}  // namespace warpheap
