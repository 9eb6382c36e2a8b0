// SPDX-License-Identifier: Apache-2.0
// The host's side of a heap's set-up where NVRTC compiles it for a kernel: a program without a C++
// compiler places a heap by the same code as one with nvcc.
//
// A kernel cannot fill memory and launch. So set-up runs twice. The first time, in one thread,
// fills are written to a record, for the program to carry out. The second time, in one thread
// block, functors run.
#pragma once

#include "../types.hpp"

namespace warpheap::cuda_backend {

struct stream_view {};

struct setup {
  static constexpr u32 most_fills = 16;
  struct fill {
    u64 begin, bytes, value;
  };

  u64 multiprocessors = 0;  ///< of the device; the program writes it
  u64 runs_functors = 0;    ///< which of the two times this is; the program writes it
  u64 refused = 0;          ///< the policy cannot manage a pool of this size
  u64 fills = 0;
  fill fill_of[most_fills] = {};
};

/// Of the thread block that sets a heap up; its first thread writes it.
static __shared__ setup* current_setup;

WARPHEAP_HOST inline u32 multiprocessors() { return static_cast<u32>(current_setup->multiprocessors); }

WARPHEAP_HOST inline void fill_bytes(void* memory, u8 value, size_t bytes, stream_view = {}) {
  setup& record = *current_setup;
  if (record.runs_functors) return;
  if (record.fills == setup::most_fills) {
    record.refused = 1;
    return;
  }
  record.fill_of[record.fills++] = {reinterpret_cast<u64>(memory), bytes, value};
}

/// Runs the functor on the calling thread block, whatever the shape: the functors of set-up divide
/// their work by the threads that there are. One for a single thread runs on the first.
template <class Functor, class... Arguments>
WARPHEAP_HOST void launch(stream_view, launch_shape shape, Functor functor, Arguments... arguments) {
  if (!current_setup->runs_functors) return;
  bool const alone = shape.blocks == 1 && shape.threads == 1;
  if (!alone || threadIdx.x == 0) functor(arguments...);
  __syncthreads();
}
template <class Functor, class... Arguments>
WARPHEAP_HOST void launch(launch_shape shape, Functor functor, Arguments... arguments) {
  launch(stream_view{}, shape, functor, arguments...);
}

}  // namespace warpheap::cuda_backend
