// SPDX-License-Identifier: Apache-2.0
// Steps that the processes of a job take together: in a step each one's kernels run, and the next
// begins when all have ended. The host waits, since one PE's kernels cannot wait for another's.
#pragma once

#include <array>

#include "measure/measure.hpp"
#include "warpheap/nvshmem/symmetric_memory.hpp"
#include "workloads/graph/backend/member_team.hpp"

namespace warpheap::tool::graph { inline namespace WARPHEAP_BACKEND {

class pe_steps {
 public:
  stream_view stream() const { return stream_; }

  /// A step: work() launches on stream(). All PEs.
  template <class Work>
  void step(phase what, Work work) {
    begin_.record(stream_);
    work();
    end_.record(stream_);
    synchronize(stream_);
    nvshmem_barrier_all();
    seconds_[static_cast<size_t>(what)] += end_.seconds_since(begin_);
  }

  /// Time that this PE's own work of a phase took.
  double seconds(phase what) const { return seconds_[static_cast<size_t>(what)]; }

 private:
  warpheap::stream stream_;
  stream_event begin_, end_;
  std::array<double, phases> seconds_{};
};

}}  // namespace warpheap::tool::graph::WARPHEAP_BACKEND
