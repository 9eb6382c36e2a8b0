// SPDX-License-Identifier: Apache-2.0
// reports: overflowed its stack of 262144 bytes: raise host::execution::stack_bytes
// reports: SUMMARY: AddressSanitizer: stack-overflow .*stack_overflow.cpp
// A lane recurses without end: its guard must stop it. AddressSanitizer reports a
// stack-overflow.
#include "warpheap/platform/device_buffer.hpp"

using namespace warpheap;

[[gnu::noinline]] u32 recurse(u32 volatile* depth) {
  u32 volatile room[256] = {};
  *depth = *depth + 1;
  room[*depth % 256] = *depth;
  return *depth == 0 ? 0 : recurse(depth) + room[*depth % 256];
}

struct recurse_for_ever {
  void operator()(u32* depth) const {
    simt::sync_block();
    *depth = recurse(depth);
  }
};

int main() {
  device_buffer<u32> depth(1);
  launch({1, 4}, recurse_for_ever{}, depth.data());
}
