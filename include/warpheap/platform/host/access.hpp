// SPDX-License-Identifier: Apache-2.0
// Atomic operations as the memory model sees them.
#pragma once

#include "sanitizer.hpp"

namespace warpheap::host::detail {

/// An atomic access.
struct access {
  u64 address;
  u32 bytes;
  order how;
  scope among;

  WARPHEAP_NO_TSAN bool acquires() const {
    return how == order::acquire || how == order::acq_rel || how == order::seq_cst;
  }
  WARPHEAP_NO_TSAN bool releases() const {
    return how == order::release || how == order::acq_rel || how == order::seq_cst;
  }
  WARPHEAP_NO_TSAN access with(order other) const { return {address, bytes, other, among}; }
};

/// A read-modify-write: `result(operation, old)` is the new value. A compare-exchange fails where
/// it reads anything but `expected`, and then has the order `failure`.
struct modification {
  u64 (*result)(void const* operation, u64 old);
  void const* operation;
  bool compares = false;
  u64 expected = 0;
  order failure = order::relaxed;

  WARPHEAP_NO_TSAN bool fails_on(u64 old) const { return compares && old != expected; }
};

/// What a change did: what it read, what it stored, what memory holds from now on.
struct change {
  u64 seen;
  u64 made;
  u64 memory;
  bool failed;
};

}  // namespace warpheap::host::detail
