// SPDX-License-Identifier: Apache-2.0
// Addresses whose memory comes later, in parts: what a pool that grows lies in. A file of its own,
// because CUDA's side needs the driver's header, which other heaps do not. Host code includes it.
#pragma once

#include "simt.hpp"

#if defined(__CUDACC__)
#include "cuda/address_range.hpp"
#elif defined(WARPHEAP_READER)
#include "reader/address_range.hpp"
#else
#include "host/address_range.hpp"
#endif
