// SPDX-License-Identifier: Apache-2.0
// What a test may leave out of the protocol: to show that another test notices.
#pragma once

#include "../../../../sync/bulk_semaphore.hpp"
#include "../../../../sync/srcu.hpp"
#include "room_watch.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace bins {

/// Steps whose omission only a rare schedule shows. Tests leave them out, one at a time.
struct no_faults {
  /// bins.Y2: takes the units of a whole bin.
  WARPHEAP_DEVICE static bool take_all(bulk_semaphore semaphore, u32 capacity) { return semaphore.try_wait(capacity); }
  /// Queues a node for the thread that makes the next barrier, which calls reclaim(node) when no
  /// reader can stand on it.
  template <class Reclaim>
  WARPHEAP_DEVICE static void retire(srcu const& readers, srcu_node& node, Reclaim) {
    readers.retire(node);
  }
  /// bins.W1: tells searches of units that are there again. A search may have missed them while a
  /// group had taken too many (bulk.B5).
  WARPHEAP_DEVICE static void tell_of_units(room_watch const& watch) { watch.room_appeared(); }
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::bins
