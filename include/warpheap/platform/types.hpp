// SPDX-License-Identifier: Apache-2.0
// The words every layer shares: integers, memory orders, scopes, and the three macros that let one
// source serve an NVIDIA GPU (nvcc, NVRTC) and a CPU (any C++20 compiler). NVRTC has no standard
// headers, so nothing is included here.
#pragma once

#include "language.hpp"

/// A device function off the common path: not inlined, so that its registers are not the caller's.
/// It takes everything by value: a reference would put the caller's objects into local memory, and
/// every release would wait for the stores there.
#define WARPHEAP_COLD WARPHEAP_DEVICE WARPHEAP_NOINLINE

/// For a loop off the common path: unrolled copies of its body would only take longer to fetch.
#if defined(__CUDA_ARCH__)
#define WARPHEAP_NO_UNROLL _Pragma("unroll 1")
#else
#define WARPHEAP_NO_UNROLL
#endif

/// With -rdc=true the linker keeps one copy of a function for all units. ptxas cannot fit that copy
/// to the register bound of a kernel that calls it, and refuses a kernel with a lower bound. So
/// each of our functions that is called and not inlined uses 32 registers at most: no launch bound
/// leaves fewer. Device malloc's callers need that too, see heap/override_names.hpp. Before CUDA
/// 12.9 a function cannot declare this; then no function is kept from being inlined.
#define WARPHEAP_NOINLINE __attribute__((noinline))
#define WARPHEAP_FEW_REGISTERS
#if defined(__CUDACC_RDC__)
#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1209
#undef WARPHEAP_FEW_REGISTERS
#define WARPHEAP_FEW_REGISTERS __attribute__((local_maxnreg(32)))
#else
#undef WARPHEAP_NOINLINE
#define WARPHEAP_NOINLINE
#endif
#endif

#if defined(__CUDACC__)
#define WARPHEAP_DEVICE __device__ WARPHEAP_FEW_REGISTERS
#define WARPHEAP_HOST_DEVICE __host__ __device__ WARPHEAP_FEW_REGISTERS
#else
#define WARPHEAP_DEVICE
#define WARPHEAP_HOST_DEVICE
#endif

/// Lanes of a warp, the same in every unit of a program: 32, or on the host backend 64, as many as
/// some GPUs of other makers have.
#if !defined(WARPHEAP_WARP_LANES)
#define WARPHEAP_WARP_LANES 32
#elif WARPHEAP_WARP_LANES != 32 && WARPHEAP_WARP_LANES != 64
#error WARPHEAP_WARP_LANES, the lanes of a warp, is 32 or 64
#include <compilation_stops_here>
#elif WARPHEAP_WARP_LANES != 32 && defined(__CUDACC__)
#error WARPHEAP_WARP_LANES is 32 under CUDA: only the host backend has warps of 64 lanes
#include <compilation_stops_here>
#endif

/// Inline namespace of everything that depends on the backend, so that one program may link objects
/// of several.
#if defined(__CUDACC__)
#define WARPHEAP_BACKEND on_cuda
#elif defined(WARPHEAP_READER)
#define WARPHEAP_BACKEND on_reader
#else
#define WARPHEAP_BACKEND on_host
#endif

/// A host function that places or initialises heaps. NVRTC has no host code: there it is a device
/// function, for the kernels that do this in programs without a C++ compiler (cuda/setup.hpp).
#if defined(__CUDACC_RTC__)
#define WARPHEAP_HOST __device__
#else
#define WARPHEAP_HOST
#endif

namespace warpheap {

/// Unsigned, 8 bits.
using u8 = unsigned char;
/// Unsigned, 32 bits.
using u32 = unsigned int;
/// Unsigned, 64 bits.
using u64 = unsigned long long;
/// Signed, 32 bits.
using i32 = int;
/// Signed, 64 bits.
using i64 = long long;
/// The type of sizes; the standard library's, without its header.
using size_t = decltype(sizeof(0));

static_assert(sizeof(u32) == 4 && sizeof(u64) == 8 && sizeof(void*) == 8, "Warpheap needs a 64-bit platform");

/// Lanes of a warp: WARPHEAP_WARP_LANES.
inline constexpr u32 warp_lanes = WARPHEAP_WARP_LANES;

/// A set of lanes of a warp: bit i is lane i.
#if WARPHEAP_WARP_LANES == 32
using lane_mask = u32;
#else
using lane_mask = u64;
#endif

/// A mask with every lane of a warp.
inline constexpr lane_mask full_mask = ~lane_mask{0};

/// The mask of lane `lane`, in [0, warp_lanes), alone.
WARPHEAP_HOST_DEVICE constexpr lane_mask lane_bit(u32 lane) { return lane_mask{1} << lane; }

/// `value`, opaque to the compiler from here on. Values computed from it are computed where they
/// are used, instead of ahead of a loop and then kept in registers.
WARPHEAP_HOST_DEVICE inline u32 opaque(u32 value) {
#if defined(__CUDA_ARCH__)
  asm volatile("" : "+r"(value));
#endif
  return value;
}
/// As above, for 64 bits.
WARPHEAP_HOST_DEVICE inline u64 opaque(u64 value) {
#if defined(__CUDA_ARCH__)
  asm volatile("" : "+l"(value));
#endif
  return value;
}

/// a * b: one instruction, where a compiler that knows how the factors came about takes more.
WARPHEAP_HOST_DEVICE inline u64 wide_product(u32 a, u32 b) {
#if defined(__CUDA_ARCH__)
  u64 product;
  asm("mul.wide.u32 %0, %1, %2;" : "=l"(product) : "r"(a), "r"(b));
  return product;
#else
  return u64{a} * b;
#endif
}

/// C++ memory orders; every atomic call names one. `fenced` is relaxed, and says that the operation
/// releases what came before the calling thread's last release_fence() or full_fence(): a thread
/// that releases by several operations then waits once instead of several times. Any relaxed store
/// after a fence does so. The name tells the reader that code relies on it, and sanitizers, which
/// do not model fences, treat it as a release.
enum class order { relaxed, acquire, release, fenced, acq_rel, seq_cst };

/// The threads that may take part in an atomic operation: the thread block's, the device's, or the
/// host's and peers' too.
enum class scope { block, device, system };

/// How far `total` elements reach in x and y, as CUDA's dim3 says; z is the rest. {}: all in x.
struct extent {
  u32 x = 0;
  u32 y = 1;

  WARPHEAP_HOST_DEVICE constexpr u32 in_x(u32 total) const { return x == 0 ? total : x; }
  WARPHEAP_HOST_DEVICE constexpr u32 in_z(u32 total) const { return x == 0 || y == 0 ? 1 : total / x / y; }
  WARPHEAP_HOST_DEVICE constexpr bool divides(u32 total) const {
    return x == 0 ? y == 1 : u64{x} * y * in_z(total) == total;
  }
};

/// Grid shape: `blocks` thread blocks of `threads` threads each. A thread block may hold 1 to 1,024
/// threads; its last warp may be partial.
struct launch_shape {
  u32 blocks = 1;         ///< thread blocks of the grid
  u32 threads = 1;        ///< threads of a thread block
  u32 shared_bytes = 0;   ///< dynamic shared memory of a thread block, bytes
  extent block_extent{};  ///< of `threads`: blockDim
  extent grid_extent{};   ///< of `blocks`: gridDim

  /// Whether its threads and blocks fill the rows of their extents.
  WARPHEAP_HOST_DEVICE constexpr bool has_whole_rows() const {
    return block_extent.divides(threads) && grid_extent.divides(blocks);
  }
};

/// The shape that gives at least `total` threads in blocks of `threads`.
WARPHEAP_HOST_DEVICE constexpr launch_shape shape_for(u64 total, u32 threads = 256) {
  return {static_cast<u32>((total + threads - 1) / threads), threads};
}

}  // namespace warpheap
