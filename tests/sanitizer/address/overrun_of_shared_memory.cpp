// SPDX-License-Identifier: Apache-2.0
// reports: ERROR: AddressSanitizer: heap-buffer-overflow
// reports: overrun_of_shared_memory.cpp
// reports: warpheap: this was thread block 0 thread 40
// A thread writes behind an object in shared memory.
#include "warpheap/platform/shared_memory.hpp"

using namespace warpheap;

struct write_behind {
  void operator()() const {
    WARPHEAP_SHARED(numbers, u32[40]);
    u32 volatile* const all = numbers;
    all[simt::thread_index()] = 1;
  }
};

int main() {
  host::scoped_execution const use{
      {.mode = host::execution_mode::deterministic, .policy = host::schedule_policy::round_robin}};
  launch({1, 41}, write_behind{});
}
