// SPDX-License-Identifier: Apache-2.0
// Kernels of two lanes that show the order of their steps.
#pragma once

#include <string>

#include "warpheap/platform/device_buffer.hpp"

namespace planted {

using namespace warpheap;

/// Each of two lanes signs a log three times.
struct sign_log {
  WARPHEAP_DEVICE void operator()(u32* length, u32* log) const {
    for (u32 i = 0; i < 3; ++i) log[atomic_ref<u32>{*length}.fetch_add(1, order::relaxed)] = simt::block_index();
  }
};

/// The signatures, as "000111". There are 20 orders.
inline std::string signatures() {
  device_buffer<u32> const length(1), log(6);
  launch({2, 1}, sign_log{}, length.data(), log.data());
  std::string text;
  for (u32 const each : log.to_host()) text += std::to_string(each);
  return text;
}

/// One lane counts to 2, another one looks three times.
struct count_and_look {
  WARPHEAP_DEVICE void operator()(u32* count, u32* seen) const {
    atomic_ref<u32> const word{*count};
    if (global_thread_index() == 0) {
      word.store(1, order::relaxed);
      word.store(2, order::relaxed);
    } else if (global_thread_index() == 1) {
      for (u32 i = 0; i < 3; ++i) seen[i] = word.load(order::relaxed);
    }
  }
};

/// What it sees. "011" takes two preemptions, and "012" takes three.
inline std::string sights(u32 threads = 2) {
  device_buffer<u32> const count(1), seen(3);
  launch({1, threads}, count_and_look{}, count.data(), seen.data());
  return std::to_string(seen[0]) + std::to_string(seen[1]) + std::to_string(seen[2]);
}

}  // namespace planted
