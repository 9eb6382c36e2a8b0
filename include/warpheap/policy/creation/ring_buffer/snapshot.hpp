// SPDX-License-Identifier: Apache-2.0
// A quiet heap of frames seen from the host.
#pragma once

#include "../shared/quiet_ring.hpp"
#include "table.hpp"

#if !defined(__CUDACC_RTC__)

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace ring_buffer_parts {

template <size_t FrameBytes>
class view : public metadata_copy {
 public:
  explicit view(table<FrameBytes> const& table)
      : metadata_copy{table.metadata(), table.metadata_bytes()}, table_{table} {}

  heap_statistics figures() const {
    return add_calls<count>({.pool_bytes = table_.pool_bytes(), .metadata_bytes = table_.metadata_bytes()}, 0);
  }

  template <class Visitor>
  void for_each_taken(Visitor visit) const {
    for (u32 word = 0; word < table_.owned_words(); ++word) visit(table_.address(32 * word), FrameBytes, owned(word));
  }

  void check_all(invariant_check& expect) const {
    auto const queued =
        check_ring(expect, table_.ring(), at<u32>(table<FrameBytes>::count_bytes), "ring_queue.Q5: slot ", "the ring");
    for (u32 frame = 0; frame < table_.frames(); ++frame)
      expect(((queued[frame / 32] ^ owned(frame / 32)) >> frame % 32 & 1) != 0, "ring_buffer.F2: frame ", frame,
             " is lost, or owned and in the ring");
  }

 private:
  u32 owned(u32 word) const { return at<u32>(table<FrameBytes>::owned_offset(table_.frames()))[word]; }

  table<FrameBytes> table_;
};

template <size_t FrameBytes>
using snapshot = quiet_view<view<FrameBytes>>;

}}}  // namespace warpheap::WARPHEAP_BACKEND::ring_buffer_parts

#endif
