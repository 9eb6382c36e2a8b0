// SPDX-License-Identifier: Apache-2.0
// Halloc's own interface over creation::halloc, for programs written for Adinetz and Pleiter's
// library:
//
//   ha_init(512 << 20);              host: one heap for the process, on the current device
//   void* p = hamalloc(bytes);       device
//   hafree(p);
//   ha_shutdown();                   host: takes the heap away
//
// Halloc is tuned at run time, creation::halloc at compile time. So ha_init() takes the pool's size
// from its options, compares the others with halloc_interface_config, and rejects those that
// differ. docs/guide/policies/halloc.md says how to port.
//
// As with override.hpp, each unit has a variable for the process's heap: process_heap.hpp. A
// program may use both.
#pragma once

#if defined(__CUDACC_RTC__)
#error "halloc_interface.hpp is for nvcc: code for NVRTC takes a heap's ref()"
#include <compilation_stops_here>
#endif

#include "../policy/creation/halloc.hpp"
#include "default_heap.hpp"
#include "halloc_interface_config.hpp"
#include "process_heap.hpp"

#if !defined(__CUDACC_RTC__)
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#endif

namespace warpheap { inline namespace WARPHEAP_BACKEND {

using halloc_interface_allocator = finely_aligned_allocator<creation::halloc<halloc_interface_config<>::value>>;

/// Halloc's options, by its names. Defaults are the compiled configuration.
struct halloc_opts_t {
  static constexpr creation::halloc_config compiled = halloc_interface_config<>::value;

  size_t memory;  ///< bytes of the pool; metadata comes on top
  /// The part of the pool that only slabs use. In a pool that slabs and large blocks share
  /// (split_percent of 0) any fraction is accepted.
  double halloc_fraction = compiled.split_percent ? compiled.split_percent / 100.0 : 1.0;
  double busy_fraction = compiled.replace_at / 1000.0;   ///< of a head, when it is replaced
  double roomy_fraction = compiled.busy_above / 1000.0;  ///< of a slab, at most, to be a head
  /// of a slab, at most, for it to change its block length
  double sparse_fraction = compiled.sparse_up_to / 1000.0;
  int sb_sz_sh = static_cast<int>(log2_floor(compiled.slab_bytes));  ///< log2 of the slab size

  /// Implicit, so that ha_init() takes a number of bytes.
  halloc_opts_t(size_t bytes = size_t{512} << 20) : memory{bytes} {}  // NOLINT(google-explicit-constructor)
};

namespace detail {

struct [[gnu::visibility("default")]] halloc_kind {
  static constexpr char const* name = "ha_init";
  static constexpr char const* second = "the process has a heap already, and ha_shutdown() was not called";
};

using halloc_process_heap = process_heap<halloc_interface_allocator, halloc_kind>;

/// The variable in which this unit's hamalloc finds the heap. See device_heap in device_heap.hpp.
#if defined(__CUDACC_RDC__)
static __device__ bound_heap<halloc_interface_allocator> halloc_of_this_unit;
#elif defined(__CUDACC__)
static __constant__ bound_heap<halloc_interface_allocator> halloc_of_this_unit;
#else
static bound_heap<halloc_interface_allocator> halloc_of_this_unit;
#endif

static bound_unit<halloc_kind> const halloc_unit{
    __BASE_FILE__,
    allocator_text<halloc_interface_allocator>(),
    {[](void const* binding) { write_bound_heap(halloc_of_this_unit, binding); },
     [](void* binding) { read_bound_heap(halloc_of_this_unit, binding); }}};

/// The process's heap, or null. Libraries that hide inline functions share it too.
[[gnu::visibility("default")]] inline std::unique_ptr<halloc_process_heap>& halloc_of_process() {
  static std::unique_ptr<halloc_process_heap> heap;
  return heap;
}

/// Throws std::invalid_argument if `asked` is no fraction, or differs from the compiled one.
inline void expect_fraction(char const* option, double asked, char const* field, u32 compiled, u32 whole) {
  auto const text = "ha_init: " + std::string{option} + " is " + std::to_string(asked);
  if (!(asked >= 0 && asked <= 1)) throw std::invalid_argument{text + ", and fractions are 0 to 1"};
  auto const wanted = std::lround(asked * whole);
  if (wanted == static_cast<long>(compiled)) return;
  throw std::invalid_argument{text + ", and this program was compiled for " +
                              std::to_string(static_cast<double>(compiled) / whole) + ": say ." + field + " = " +
                              std::to_string(wanted) + " in halloc_interface_config"};
}

/// Throws std::invalid_argument if `asked` differs from the compiled value.
inline void expect_compiled_options(halloc_opts_t const& asked) {
  constexpr auto compiled = halloc_opts_t::compiled;
  if (compiled.split_percent) {
    expect_fraction("halloc_fraction", asked.halloc_fraction, "split_percent", compiled.split_percent, 100);
  } else if (!(asked.halloc_fraction > 0 && asked.halloc_fraction <= 1)) {
    throw std::invalid_argument{"ha_init: halloc_fraction is " + std::to_string(asked.halloc_fraction) +
                                ", and must be above 0 and at most 1"};
  }
  expect_fraction("busy_fraction", asked.busy_fraction, "replace_at", compiled.replace_at, 1000);
  expect_fraction("roomy_fraction", asked.roomy_fraction, "busy_above", compiled.busy_above, 1000);
  expect_fraction("sparse_fraction", asked.sparse_fraction, "sparse_up_to", compiled.sparse_up_to, 1000);
  if (asked.sb_sz_sh == static_cast<int>(log2_floor(compiled.slab_bytes))) return;
  throw std::invalid_argument{"ha_init: sb_sz_sh is " + std::to_string(asked.sb_sz_sh) +
                              ", and this program was compiled for " + std::to_string(log2_floor(compiled.slab_bytes)) +
                              ": say .slab_bytes = 1u << " + std::to_string(asked.sb_sz_sh) +
                              " in halloc_interface_config (14 to 23)"};
}

}  // namespace detail

/// Makes the process's heap on the current device. Throws std::invalid_argument for options that
/// differ from the compiled ones or too small a pool, std::logic_error if there is a heap already,
/// out_of_memory, and backend_error if a unit's code cannot run on the device.
inline void ha_init(halloc_opts_t const& options = {}) {
  detail::expect_compiled_options(options);
  detail::halloc_of_process() = std::make_unique<detail::halloc_process_heap>(options.memory);
}

/// Waits for the device's kernels and destroys the heap: hamalloc() returns nullptr from then on.
/// Does nothing if there is no heap. A heap that is not shut down ends with the process.
inline void ha_shutdown() { detail::halloc_of_process().reset(); }

/// The process's heap: statistics, invariants, reset. Throws std::logic_error if there is none.
inline basic_heap<halloc_interface_allocator>& ha_heap() {
  auto const& made = detail::halloc_of_process();
  if (!made) throw std::logic_error{"ha_heap: there is no heap; call ha_init() first"};
  return made->heap();
}

/// A block of at least `bytes` bytes, aligned to 8; nullptr for 0 bytes, if there is no memory, or
/// if there is no heap.
WARPHEAP_DEVICE inline void* hamalloc(size_t bytes) { return detail::halloc_of_this_unit.malloc(bytes); }

/// Frees a block from hamalloc(), in any unit. Ignores null; counts and ignores an address that is
/// no live block.
WARPHEAP_DEVICE inline void hafree(void* memory) { detail::halloc_of_this_unit.free(memory); }

}}  // namespace warpheap::WARPHEAP_BACKEND

using warpheap::ha_init;
using warpheap::ha_shutdown;
using warpheap::hafree;
using warpheap::halloc_opts_t;
using warpheap::hamalloc;
