// SPDX-License-Identifier: Apache-2.0
// One lane writes a value and raises a flag; the other waits for the flag and reads the value.
// Correct only if the flag is stored with release and loaded with acquire.
#pragma once

#include <warpheap/platform/backoff.hpp>
#include <warpheap/platform/device_buffer.hpp>

struct message {
  warpheap::u32 value;
  warpheap::u32 flag;
};

template <warpheap::order Store, warpheap::order Load>
struct publish {
  void operator()(message* shared, warpheap::u32* read) const {
    warpheap::atomic_ref<warpheap::u32> const flag{shared->flag};
    if (warpheap::simt::lane_id() == 0) {
      shared->value = 42;
      flag.store(1, Store);
    } else {
      warpheap::backoff wait;
      while (flag.load(Load) == 0) wait.while_working();
      *read = shared->value;
    }
  }
};

template <warpheap::order Store, warpheap::order Load>
int publish_once() {
  warpheap::device_buffer<message> shared{1};
  warpheap::device_buffer<warpheap::u32> read{1};
  warpheap::launch({1, 2}, publish<Store, Load>{}, shared.data(), read.data());
  warpheap::synchronize();
  return read[0] == 42 ? 0 : 1;
}
