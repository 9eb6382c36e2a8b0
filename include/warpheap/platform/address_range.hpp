// SPDX-License-Identifier: Apache-2.0
// Addresses whose memory comes later, in parts: what a pool that grows lies in. A file of its own,
// because CUDA's side needs the driver's header, which other heaps do not. Host code includes it.
#pragma once

#include <cstdio>
#include <stdexcept>
#include <string>

#include "errors.hpp"
#include "simt.hpp"

#if defined(__CUDACC__)
#include "cuda/address_range.hpp"
#elif defined(WARPHEAP_READER)
#include "reader/address_range.hpp"
#else
#include "host/address_range.hpp"
#endif

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// Addresses that begin at `at`; anywhere if that is nullptr. Throws std::invalid_argument if it is
/// no multiple of address_range::alignment, and out_of_memory if one of the addresses is taken.
inline backend::address_range reserve_addresses(size_t bytes, bool peers, void* at) {
  char where[24];
  std::snprintf(where, sizeof where, "%p", at);
  if (reinterpret_cast<u64>(at) % backend::address_range::alignment != 0)
    throw std::invalid_argument{std::string{"pool at address "} + where + ": that is no multiple of " +
                                std::to_string(backend::address_range::alignment)};
  backend::address_range range{bytes, peers, at};
  if (at && range.begin() != at)
    throw out_of_memory{std::string{"address "} + where + " is taken, or one of the " + std::to_string(bytes) +
                        " bytes from there on"};
  return range;
}

}}  // namespace warpheap::WARPHEAP_BACKEND
