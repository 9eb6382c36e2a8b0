// SPDX-License-Identifier: Apache-2.0
// reports: SUMMARY: AddressSanitizer: stack-use-after-return .*use_after_return.cpp
// A lane reads a local variable of a function that has returned. AddressSanitizer must report a
// stack-use-after-return.
// environment: ASAN_OPTIONS=detect_stack_use_after_return=1
#include "warpheap/platform/device_buffer.hpp"

using namespace warpheap;

[[gnu::noinline]] u32 volatile* leak_local(u32 value) {
  u32 volatile room[16];
  room[value % 16] = value;
  u32 volatile* leaked = room;
  asm volatile("" : "+r"(leaked));
  return leaked;
}

struct read_leaked {
  void operator()(u32* seen) const {
    u32 volatile* const leaked = leak_local(simt::lane_id());
    simt::sync_warp(3);
    seen[simt::lane_id()] = leaked[simt::lane_id()];
  }
};

int main() {
  device_buffer<u32> seen(2);
  launch({1, 2}, read_leaked{}, seen.data());
}
