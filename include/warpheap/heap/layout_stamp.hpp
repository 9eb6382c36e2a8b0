// SPDX-License-Identifier: Apache-2.0
// A heap's identity, in the words before the reference that kernels take: version, policy and
// sizes. A handle is a number, and a reference has no type in memory: code that was compiled for
// another allocator, or by another version, would misread the heap's words. So the host compares
// the stamp before it trusts a handle. Kernels do not: every call would pay for the comparison.
#pragma once

#include "../platform/simt.hpp"
#include "../version.hpp"

#if !defined(__CUDACC_RTC__)
#include <cstring>
#include <string>
#endif

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace detail {

struct layout_stamp {
  static constexpr u64 magic_value = 0x706d'6174'7370'6177, name_bytes = 24;

  u64 magic, version;
  char policy[name_bytes];  ///< of creation; ends with a zero
  u64 pool_bytes, metadata_bytes, reference_bytes;

  /// The stamp of a heap of these sizes.
  template <class Allocator>
  WARPHEAP_HOST_DEVICE static constexpr layout_stamp of(u64 pool_bytes, u64 metadata_bytes) {
    layout_stamp made{magic_value, WARPHEAP_VERSION, {}, pool_bytes, metadata_bytes, sizeof(Allocator)};
    if constexpr (requires { Allocator::creation_type::name; }) {
      char const* const name = Allocator::creation_type::name;
      for (u32 i = 0; i + 1 < name_bytes && name[i]; ++i) made.policy[i] = name[i];
    }
    return made;
  }

  /// The address of the stamp of the heap with this handle.
  WARPHEAP_HOST_DEVICE static u64 address(u64 handle) { return handle - sizeof(layout_stamp); }

#if !defined(__CUDACC_RTC__)
  bool operator==(layout_stamp const&) const = default;

  std::string text() const {
    if (magic != magic_value) return origin();
    return origin() + " with a pool of " + std::to_string(pool_bytes) + " bytes, " + std::to_string(metadata_bytes) +
           " bytes of metadata and a reference of " + std::to_string(reference_bytes);
  }

  /// Policy and version alone.
  std::string origin() const {
    if (magic != magic_value) return "no heap, or of one whose stamp has been overwritten";
    return std::string{policy, strnlen(policy, name_bytes)} + " of Warpheap " + std::to_string(version / 10000) + "." +
           std::to_string(version / 100 % 100) + "." + std::to_string(version % 100);
  }
#endif
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::detail
