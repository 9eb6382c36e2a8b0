// SPDX-License-Identifier: Apache-2.0
// Kernels that share a heap: two at a time on streams of their own, and one after the other, each
// freeing what the last allocated.
#pragma once

#include "callers.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace conformance {

template <class Allocator>
verdict serves_two_streams_at_once(scenario const& with) {
  harness<Allocator> bench{with};
  verdict found;
  u64 const slots = with.lanes() * slots_a_lane;
  u64 const rounds = with.small ? 16 : 64;
  u64 const most = std::clamp<u64>(with.pool_bytes / 4 / slots, 16, bench.capped(4000));
  stream streams[2];
  device_buffer<holding> const lists[2]{device_buffer<holding>(slots), device_buffer<holding>(slots)};
  device_buffer<churn_counts> const counts(1);
  for (u64 i = 0; i < 2; ++i)
    bench.start(streams[i], with.shape, churn{}, bench.ref(), lists[i].data(), slots, rounds, most, with.seed + i,
                counts.data());
  bench.finish();
  auto left = lists[0].to_host();
  auto const right = lists[1].to_host();
  left.insert(left.end(), right.begin(), right.end());
  found.include(churn_was_sound(bench, left, counts[0], with.lanes() * rounds / 8));
  return found;
}

/// One kernel's blocks, freed by the next in a grid of another shape, on another stream.
template <class Allocator>
verdict lets_any_kernel_free(scenario const& with) {
  harness<Allocator> bench{with};
  verdict found;
  stream other;
  for (launch_shape const shape : {launch_shape{1, 1}, launch_shape{1, 96}, launch_shape{7, 33}}) {
    auto const requests = uniform(modest_count(bench, bench.capped(700)), 1, bench.capped(700), with.seed);
    auto const blocks = served(bench.ask(requests));
    found.at_least("blocks", blocks.size(), requests.size() / 2);
    found.include(keeps_patterns(bench, blocks));
    device_buffer<holding> const list{blocks};
    launch(other, shape, free_each{}, bench.ref(), static_cast<holding const*>(list.data()), u64{blocks.size()},
           u64{blocks.size() / 2});
    synchronize(other);
    found.include(bench.empty());
  }
  return found;
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::conformance
