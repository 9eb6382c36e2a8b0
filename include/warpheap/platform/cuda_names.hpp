// SPDX-License-Identifier: Apache-2.0
// CUDA's names for what a kernel does, so that its body compiles unchanged on the host backend too.
// Under nvcc these names are CUDA's own, and this header adds launch_shape_of() alone.
//
// A __global__ function stays one. In place of `kernel<<<grid, block, bytes>>>(arguments…)` write
// `launch(launch_shape_of(grid, block, bytes), kernel, arguments…)`, and in place of `__shared__`
// WARPHEAP_SHARED or dynamic_shared (shared_memory.hpp). Not for a program that includes CUDA's
// headers.
//
// As in CUDA, a plain atomic function has relaxed order and device scope, and those that end in
// _block or _system have that scope. Functions with a mask wait for its lanes, but for those that
// have returned.
#pragma once

#include "shared_memory.hpp"

#if !defined(__CUDACC__)

#if WARPHEAP_WARP_LANES != 32
#error the masks of CUDA have 32 bits: no cuda_names.hpp, nor cooperative_groups.hpp, with warps of 64 lanes
#endif

#include <type_traits>

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the names are CUDA's

#define __host__
#define __device__
#define __global__
#define __constant__
#define __forceinline__ [[gnu::always_inline]] inline
#define __launch_bounds__(...)

#define threadIdx (::warpheap::cuda_names::thread_index())
#define blockIdx (::warpheap::cuda_names::block_index())
#define blockDim (::warpheap::cuda_names::block_dim())
#define gridDim (::warpheap::cuda_names::grid_dim())

struct dim3 {
  constexpr dim3(unsigned in_x = 1, unsigned in_y = 1, unsigned in_z = 1) : x{in_x}, y{in_y}, z{in_z} {}

  unsigned x, y, z;
};

inline constexpr int warpSize = warpheap::warp_lanes;

namespace warpheap::cuda_names {

inline dim3 in_full(extent of, u32 total) { return {of.in_x(total), of.y, of.in_z(total)}; }
inline dim3 place_in(dim3 all, u32 index) { return {index % all.x, index / all.x % all.y, index / all.x / all.y}; }

inline dim3 block_dim() { return in_full(host::current_shape().block_extent, simt::block_dim()); }
inline dim3 grid_dim() { return in_full(host::current_shape().grid_extent, simt::grid_dim()); }
inline dim3 thread_index() { return place_in(block_dim(), simt::thread_index()); }
inline dim3 block_index() { return place_in(grid_dim(), simt::block_index()); }

/// The lane whose value a shuffle within groups of `width` lanes gets, or our own where that is no
/// lane of the group.
inline u32 lane_up(u32 by, u32 width) {
  u32 const lane = simt::lane_id();
  return lane % width >= by ? lane - by : lane;
}
inline u32 lane_down(u32 by, u32 width) {
  u32 const lane = simt::lane_id();
  return lane % width + by < width ? lane + by : lane;
}
inline u32 lane_across(u32 bits, u32 width) {
  u32 const lane = simt::lane_id(), other = lane ^ bits;
  return other / width <= lane / width ? other : lane;
}

/// The bits of a number, as what match_any compares.
template <class T>
auto bits_of(T value) {
  if constexpr (sizeof(T) == 4) return __builtin_bit_cast(u32, value);
  else return __builtin_bit_cast(u64, value);
}

/// `combine` over the lanes of `mask`; the same for all of them.
template <class T, class Combine>
T reduce(u32 mask, T value, Combine combine) {
  u32 left = simt::ballot(mask, true);
  u32 const present = left;
  T all = simt::shuffle(present, value, static_cast<u32>(__builtin_ctz(left)));
  for (left &= left - 1; left != 0; left &= left - 1)
    all = combine(all, simt::shuffle(present, value, static_cast<u32>(__builtin_ctz(left))));
  return all;
}

/// Threads of the thread block whose predicate holds, for all of them.
inline u32 count_in_block(bool predicate) {
  WARPHEAP_SHARED(counted, u32);
  atomic_ref<u32, scope::block> const count{counted};
  simt::sync_block();  // all have read the last count
  count.store(0, order::relaxed);
  simt::sync_block();
  count.fetch_add(predicate, order::relaxed);
  simt::sync_block();
  return count.load(order::relaxed);
}

/// Replaces what `at` holds by `next(of it)`; returns what it held.
template <scope Scope, class T, class Next>
T update(T* at, Next next) {
  atomic_ref<T, Scope> const place{*at};
  T seen = place.load(order::relaxed);
  while (!place.compare_exchange(seen, next(seen), order::relaxed, order::relaxed)) {
  }
  return seen;
}

template <class T>
using same = std::type_identity_t<T>;

}  // namespace warpheap::cuda_names

// The formatter would spread these over three times the lines.
// clang-format off

// The functions of one scope, whose names end in `ending`.
#define WARPHEAP_CUDA_ATOMIC(name, ending, among, operation)                                                        \
  template <class T>                                                                                                \
  T atomic##name##ending(T* at, ::warpheap::cuda_names::same<T> value) {                                            \
    return ::warpheap::atomic_ref<T, ::warpheap::scope::among>{*at}.operation(value, ::warpheap::order::relaxed);   \
  }
#define WARPHEAP_CUDA_ATOMICS(ending, among)                                                                        \
  WARPHEAP_CUDA_ATOMIC(Add, ending, among, fetch_add)                                                               \
  WARPHEAP_CUDA_ATOMIC(Sub, ending, among, fetch_sub)                                                               \
  WARPHEAP_CUDA_ATOMIC(Min, ending, among, fetch_min)                                                               \
  WARPHEAP_CUDA_ATOMIC(Max, ending, among, fetch_max)                                                               \
  WARPHEAP_CUDA_ATOMIC(And, ending, among, fetch_and)                                                               \
  WARPHEAP_CUDA_ATOMIC(Or, ending, among, fetch_or)                                                                 \
  WARPHEAP_CUDA_ATOMIC(Xor, ending, among, fetch_xor)                                                               \
  WARPHEAP_CUDA_ATOMIC(Exch, ending, among, exchange)                                                               \
  template <class T>                                                                                                \
  T atomicCAS##ending(T* at, ::warpheap::cuda_names::same<T> expected, ::warpheap::cuda_names::same<T> desired) {   \
    using ::warpheap::order;                                                                                        \
    ::warpheap::atomic_ref<T, ::warpheap::scope::among>{*at}.compare_exchange(expected, desired, order::relaxed,    \
                                                                              order::relaxed);                      \
    return expected;                                                                                                \
  }                                                                                                                 \
  inline unsigned atomicInc##ending(unsigned* at, unsigned most) {                                                  \
    return ::warpheap::cuda_names::update<::warpheap::scope::among>(                                                \
        at, [most](unsigned seen) { return seen >= most ? 0 : seen + 1; });                                         \
  }                                                                                                                 \
  inline unsigned atomicDec##ending(unsigned* at, unsigned most) {                                                  \
    return ::warpheap::cuda_names::update<::warpheap::scope::among>(                                                \
        at, [most](unsigned seen) { return seen == 0 || seen > most ? most : seen - 1; });                          \
  }

WARPHEAP_CUDA_ATOMICS(, device)
WARPHEAP_CUDA_ATOMICS(_block, block)
WARPHEAP_CUDA_ATOMICS(_system, system)

#undef WARPHEAP_CUDA_ATOMICS
#undef WARPHEAP_CUDA_ATOMIC

#define WARPHEAP_CUDA_REDUCE(name, type, combined)                                                                  \
  inline type __reduce_##name##_sync(unsigned mask, type value) {                                                   \
    return ::warpheap::cuda_names::reduce(mask, value, [](type a, type b) -> type { return combined; });            \
  }

WARPHEAP_CUDA_REDUCE(add, unsigned, a + b)
WARPHEAP_CUDA_REDUCE(add, int, static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b)))
WARPHEAP_CUDA_REDUCE(min, unsigned, b < a ? b : a)
WARPHEAP_CUDA_REDUCE(min, int, b < a ? b : a)
WARPHEAP_CUDA_REDUCE(max, unsigned, a < b ? b : a)
WARPHEAP_CUDA_REDUCE(max, int, a < b ? b : a)
WARPHEAP_CUDA_REDUCE(and, unsigned, a & b)
WARPHEAP_CUDA_REDUCE(or, unsigned, a | b)
WARPHEAP_CUDA_REDUCE(xor, unsigned, a ^ b)

#undef WARPHEAP_CUDA_REDUCE

#define WARPHEAP_CUDA_EXTREMES(type)                                                                                \
  constexpr type(min)(type a, type b) { return b < a ? b : a; }                                                     \
  constexpr type(max)(type a, type b) { return a < b ? b : a; }

WARPHEAP_CUDA_EXTREMES(int)
WARPHEAP_CUDA_EXTREMES(unsigned)
WARPHEAP_CUDA_EXTREMES(long)
WARPHEAP_CUDA_EXTREMES(unsigned long)
WARPHEAP_CUDA_EXTREMES(long long)
WARPHEAP_CUDA_EXTREMES(unsigned long long)
WARPHEAP_CUDA_EXTREMES(float)
WARPHEAP_CUDA_EXTREMES(double)

#undef WARPHEAP_CUDA_EXTREMES

// Vectors of two, three and four, aligned as CUDA aligns them.
#define WARPHEAP_CUDA_VECTORS(name, type)                                                                           \
  struct alignas(2 * sizeof(type)) name##2 { type x, y; };                                                          \
  struct name##3 { type x, y, z; };                                                                                 \
  struct alignas(sizeof(type) < 4 ? 4 * sizeof(type) : 16) name##4 { type x, y, z, w; };                            \
  constexpr name##2 make_##name##2(type x, type y) { return {x, y}; }                                               \
  constexpr name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; }                                    \
  constexpr name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }

WARPHEAP_CUDA_VECTORS(char, signed char)
WARPHEAP_CUDA_VECTORS(uchar, unsigned char)
WARPHEAP_CUDA_VECTORS(int, int)
WARPHEAP_CUDA_VECTORS(uint, unsigned)
WARPHEAP_CUDA_VECTORS(float, float)
WARPHEAP_CUDA_VECTORS(double, double)

#undef WARPHEAP_CUDA_VECTORS

// clang-format on

inline unsigned __activemask() { return warpheap::simt::active_mask(); }
inline unsigned __ballot_sync(unsigned mask, int predicate) { return warpheap::simt::ballot(mask, predicate != 0); }
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate == 0) == 0; }

template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = warpSize) {
  unsigned const of = static_cast<unsigned>(width), first = warpheap::simt::lane_id() & ~(of - 1);
  return warpheap::simt::shuffle(mask, value, first + (static_cast<unsigned>(lane) & (of - 1)));
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = warpSize) {
  return warpheap::simt::shuffle(mask, value, warpheap::cuda_names::lane_up(by, static_cast<unsigned>(width)));
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = warpSize) {
  return warpheap::simt::shuffle(mask, value, warpheap::cuda_names::lane_down(by, static_cast<unsigned>(width)));
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = warpSize) {
  unsigned const from = warpheap::cuda_names::lane_across(static_cast<unsigned>(bits), static_cast<unsigned>(width));
  return warpheap::simt::shuffle(mask, value, from);
}
template <class T>
unsigned __match_any_sync(unsigned mask, T value) {
  return warpheap::simt::match_any(mask, warpheap::cuda_names::bits_of(value));
}
template <class T>
unsigned __match_all_sync(unsigned mask, T value, int* all_match) {
  unsigned const same = __match_any_sync(mask, value), present = __ballot_sync(mask, 1);
  *all_match = same == present;
  return same == present ? present : 0;
}

inline void __syncwarp(unsigned mask = warpheap::full_mask) { warpheap::simt::sync_warp(mask); }
inline void __syncthreads() { warpheap::simt::sync_block(); }
inline int __syncthreads_count(int predicate) {
  return static_cast<int>(warpheap::cuda_names::count_in_block(predicate != 0));
}
inline int __syncthreads_or(int predicate) { return warpheap::cuda_names::count_in_block(predicate != 0) != 0; }
inline int __syncthreads_and(int predicate) { return warpheap::cuda_names::count_in_block(predicate == 0) == 0; }

inline void __threadfence() { warpheap::full_fence(); }
inline void __threadfence_block() { warpheap::full_fence(); }
inline void __threadfence_system() { warpheap::full_fence(); }
inline void __nanosleep(unsigned nanoseconds) { warpheap::simt::pause(nanoseconds); }
inline long long clock64() { return static_cast<long long>(warpheap::simt::clock()); }
[[noreturn]] inline void __trap() { warpheap::simt::trap("__trap()"); }

inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __popcll(unsigned long long bits) { return __builtin_popcountll(bits); }
inline int __ffs(int bits) { return __builtin_ffs(bits); }
inline int __ffsll(long long bits) { return __builtin_ffsll(bits); }
inline int __clz(int bits) { return bits == 0 ? 32 : __builtin_clz(static_cast<unsigned>(bits)); }
inline int __clzll(long long bits) { return bits == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(bits)); }
inline unsigned __brev(unsigned bits) {
  unsigned reversed = 0;
  for (int i = 0; i < 32; ++i) reversed |= (bits >> i & 1) << (31 - i);
  return reversed;
}
template <class T>
T __ldg(T const* at) {
  return *at;
}

inline int __float_as_int(float value) { return __builtin_bit_cast(int, value); }
inline unsigned __float_as_uint(float value) { return __builtin_bit_cast(unsigned, value); }
inline float __int_as_float(int bits) { return __builtin_bit_cast(float, bits); }
inline float __uint_as_float(unsigned bits) { return __builtin_bit_cast(float, bits); }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(warpheap::u64{a} * b >> 32); }
inline float rsqrtf(float x) { return 1 / __builtin_sqrtf(x); }
// A GPU's are less exact.
inline float __expf(float x) { return __builtin_expf(x); }
inline float __logf(float x) { return __builtin_logf(x); }
inline float __sinf(float x) { return __builtin_sinf(x); }
inline float __cosf(float x) { return __builtin_cosf(x); }
inline float __fdividef(float x, float y) { return x / y; }

// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

#endif

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// What <<<grid, block, shared_bytes>>> says.
#if !defined(__CUDACC_RTC__)
inline launch_shape launch_shape_of(dim3 grid, dim3 block, u32 shared_bytes = 0) {
  return {grid.x * grid.y * grid.z, block.x * block.y * block.z, shared_bytes, {block.x, block.y}, {grid.x, grid.y}};
}
#endif

}}  // namespace warpheap::WARPHEAP_BACKEND
