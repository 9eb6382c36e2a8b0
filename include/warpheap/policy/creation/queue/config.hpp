// SPDX-License-Identifier: Apache-2.0
// The settings of a heap of index queues, and which are valid.
#pragma once

#include "../../../util/bits.hpp"
#include "../../config_text.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace creation {

/// The items of a class's queue: numbers of free pages, or of chunks with free pages.
enum class queue_element : u32 { page, chunk };

/// Where a class's queue is stored.
enum class queue_form : u32 {
  fixed,          ///< beside the pool, with a slot for every item
  virtual_array,  ///< in chunks of the pool that are taken and freed, listed in an array
};

/// Settings of queue.
struct queue_config {
  /// The items of queues.
  queue_element element = queue_element::page;
  /// Where queues are stored.
  queue_form form = queue_form::fixed;
  /// Bytes of a chunk, the unit that changes its class, and of the largest request; a power of two,
  /// 256 to 2^20. Ouroboros has 8 KiB.
  size_t chunk_bytes{8192};
  /// Bytes of the smallest page, a power of two of 16 or more.
  size_t least_bytes{16};
};

/// The most page sizes of a heap: from least_bytes to chunk_bytes, doubling.
inline constexpr u32 most_queue_classes = 16;

/// Whether the settings are within their limits.
WARPHEAP_HOST_DEVICE constexpr bool is_valid(queue_config const& config) {
  return is_power_of_two(config.chunk_bytes) && is_power_of_two(config.least_bytes) && config.least_bytes >= 16 &&
         config.chunk_bytes >= config.least_bytes && config.chunk_bytes >= 256 &&
         config.chunk_bytes <= size_t{1} << 20 && config.chunk_bytes >> most_queue_classes < config.least_bytes;
}

/// The policy's name: one for each element and form.
WARPHEAP_HOST_DEVICE constexpr char const* name_of(queue_config const& config) {
  bool const by_pages = config.element == queue_element::page;
  if (config.form == queue_form::fixed) return by_pages ? "queue_pages" : "queue_chunks";
  return by_pages ? "queue_pages_virtual" : "queue_chunks_virtual";
}

#if !defined(__CUDACC_RTC__)
/// The settings in words, for info().
inline std::string describe(queue_config const& config) {
  return config_text("chunk_bytes", config.chunk_bytes, "least_bytes", config.least_bytes);
}
#endif

}}}  // namespace warpheap::WARPHEAP_BACKEND::creation
