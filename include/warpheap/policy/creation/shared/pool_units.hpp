// SPDX-License-Identifier: Apache-2.0
// How a creation policy refuses a pool that it cannot manage. Compiled by NVRTC, where a kernel
// places the heap, nothing can be thrown: the refusal goes to the set-up's record.
#pragma once

#include "../../../platform/simt.hpp"

#if !defined(__CUDACC_RTC__)
#include <stdexcept>
#include <string>
#endif

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace creation {

/// Refuses a pool of `bytes` bytes, which are `why`. Throws std::invalid_argument.
WARPHEAP_HOST inline void refuse_pool([[maybe_unused]] char const* policy, [[maybe_unused]] size_t bytes,
                                      [[maybe_unused]] char const* why) {
#if defined(__CUDACC_RTC__)
  backend::current_setup->refused = 1;
#else
  throw std::invalid_argument{std::string{policy} + ": " + std::to_string(bytes) + " bytes are " + why};
#endif
}

/// Refuses a pool of `bytes` bytes, because it has `found` units and not 1 to `most`. Throws
/// std::invalid_argument.
WARPHEAP_HOST inline void refuse_units([[maybe_unused]] char const* policy, [[maybe_unused]] char const* units,
                                       [[maybe_unused]] size_t bytes, [[maybe_unused]] u64 unit_bytes,
                                       [[maybe_unused]] u64 found, [[maybe_unused]] u64 most) {
#if defined(__CUDACC_RTC__)
  backend::current_setup->refused = 1;
#else
  throw std::invalid_argument{std::string{policy} + ": " + std::to_string(bytes) + " bytes are " +
                              std::to_string(found) + " " + units + " of " + std::to_string(unit_bytes) +
                              "; there may be 1 to " + std::to_string(most)};
#endif
}

/// Units of `unit_bytes` bytes in a pool; 1 to `most`, or the pool is refused.
WARPHEAP_HOST inline u64 count_units(char const* policy, char const* units, size_t bytes, u64 unit_bytes, u64 most) {
  u64 const found = bytes / unit_bytes;
  if (found == 0 || found > most) refuse_units(policy, units, bytes, unit_bytes, found, most);
  return found;
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::creation
