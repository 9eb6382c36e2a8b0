// SPDX-License-Identifier: Apache-2.0
// A heap in CUDA graphs: a reset and the kernels behind it replay; a heap is not made while a
// stream is captured.
#pragma once

#include "blocks.hpp"

#if defined(__CUDACC__)
namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace conformance {

/// A graph of reset, allocate, write and verify, replayed on a heap that would otherwise soon be
/// full.
template <class Allocator>
verdict replays_in_a_graph(scenario const& with) {
  harness<Allocator> bench{with};
  verdict found;
  u64 const bytes = bench.capped(1000), count = bench.room_for(bytes) / 2;
  device_buffer<holding> const list{same(count, bytes)};
  device_buffer<u64> const damaged(1);
  stream on;
  cuda_backend::throw_on_error(cudaStreamBeginCapture(on, cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
  bench.heap().reset(on);
  launch(on, with.shape, allocate_each{}, bench.ref(), list.data(), count);
  launch(on, with.shape, write_each{}, static_cast<holding const*>(list.data()), count, u64{3}, u64{1});
  launch(on, with.shape, verify_each{}, static_cast<holding const*>(list.data()), count, u64{3}, u64{1},
         damaged.data());
  cudaGraph_t graph;
  cuda_backend::throw_on_error(cudaStreamEndCapture(on, &graph), "cudaStreamEndCapture");
  cudaGraphExec_t replayable;
  cuda_backend::throw_on_error(cudaGraphInstantiate(&replayable, graph, 0), "cudaGraphInstantiate");
  for (u32 replay = 0; replay < 5; ++replay) {
    cuda_backend::throw_on_error(cudaGraphLaunch(replayable, on), "cudaGraphLaunch");
    synchronize(on);
    found.equal("blocks served", served(list.to_host()).size(), count);
    found.include(bench.quiet(count));
  }
  found.equal("damaged blocks", damaged[0], 0u);
  cudaGraphExecDestroy(replayable);
  cudaGraphDestroy(graph);
  return found;
}

/// Throws, and leaves the process able to go on.
template <class Allocator>
verdict refuses_to_be_made_during_capture(scenario const& with) {
  verdict found;
  bool thrown = false;
  {
    stream on;
    cuda_backend::throw_on_error(cudaStreamBeginCapture(on, cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
    try {
      auto const heap = heap_of<Allocator>(with.pool_bytes);
    } catch (cuda_error const&) {
      thrown = true;
    }
    cudaGraph_t graph = nullptr;
    cudaStreamEndCapture(on, &graph);
    if (graph) cudaGraphDestroy(graph);
    cudaGetLastError();
  }
  found.holds("making a heap during capture throws cuda_error", thrown);
  harness<Allocator> bench{with};
  found.equal("blocks served afterwards", served(bench.ask(same(10, 100))).size(), 10u);
  return found;
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::conformance
#endif
