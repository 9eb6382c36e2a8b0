// SPDX-License-Identifier: Apache-2.0
// How large a heap is to be, as a user says it in the environment or in warpheap_settings. Nothing
// here needs a GPU.
#pragma once

#include <string>
#include <string_view>

#include <warpheap/platform/types.hpp>

#include "../warpheap.h"

namespace warpheap::archive {

/// A pool as it is asked for: bytes, or a part of the memory that is free.
struct pool_wish {
  enum kind { bytes, percent_of_free, all_but };

  kind meaning = percent_of_free;
  u64 value = 50;

  /// "2GiB", "80%" or "free-1GiB". Throws std::invalid_argument, which names `what`.
  static pool_wish read(std::string_view what, std::string_view text);
  /// Bytes of pool and metadata together where `free` bytes are free, or of the pool alone where
  /// the wish is in bytes. Throws std::invalid_argument if nothing is left.
  u64 of(u64 free) const;
  bool includes_metadata() const { return meaning != bytes; }
};

/// warpheap_settings, read.
struct wishes {
  pool_wish size;
  bool grows = false;
  bool has_limit = false;
  pool_wish limit;
  bool reports = false, counts = false, forgiving = false;

  /// Throws std::invalid_argument, which names the setting.
  static wishes read(warpheap_settings const& settings);
};

/// The settings that the environment names. Throws std::invalid_argument, which names the variable.
warpheap_settings settings_of_environment();

/// What a device allows: `free` bytes of memory, mapped in granules.
struct device_limits {
  u64 free, granule;
  u64 (*pool_that_fits)(u64 whole);  ///< the largest pool that fits with its metadata into `whole`
};

/// Bytes of a pool that grows.
struct pool_sizes {
  u64 initial, limit, chunk;
};

/// Whole granules. Throws std::invalid_argument if there is no room for one, or if the limit is
/// below the size.
pool_sizes sizes_for(wishes const& wanted, device_limits const& device);

}  // namespace warpheap::archive
