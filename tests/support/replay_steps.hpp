// SPDX-License-Identifier: Apache-2.0
// Work of a stream, again and again: on a GPU by a CUDA graph.
#pragma once

#include "warpheap/platform/simt.hpp"

namespace warpheap::test {

/// Calls launch_step(on) as often as `steps` says; on a GPU as a graph, without the host in
/// between.
template <class LaunchStep>
void replay_steps(u32 steps, LaunchStep launch_step) {
  stream on;
#if defined(__CUDACC__)
  cuda_backend::throw_on_error(cudaStreamBeginCapture(on, cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
  launch_step(on);
  cudaGraph_t graph;
  cuda_backend::throw_on_error(cudaStreamEndCapture(on, &graph), "cudaStreamEndCapture");
  cudaGraphExec_t replayable;
  cuda_backend::throw_on_error(cudaGraphInstantiate(&replayable, graph, 0), "cudaGraphInstantiate");
  for (u32 step = 0; step < steps; ++step)
    cuda_backend::throw_on_error(cudaGraphLaunch(replayable, on), "cudaGraphLaunch");
  synchronize(on);
  cudaGraphExecDestroy(replayable);
  cudaGraphDestroy(graph);
#else
  for (u32 step = 0; step < steps; ++step) launch_step(on);
  synchronize(on);
#endif
}

}  // namespace warpheap::test
