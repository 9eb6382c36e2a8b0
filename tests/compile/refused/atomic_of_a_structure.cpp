// SPDX-License-Identifier: Apache-2.0
// refused: atomic_ref<T>: T is a 4- or 8-byte integer, float, double or a pointer
#include <warpheap/platform/simt.hpp>

using namespace warpheap;
struct alignas(16) pair {
  u64 first, second;
};
WARPHEAP_DEVICE void wrong(pair& both) { atomic_ref<pair>{both}.store({1, 2}, order::relaxed); }
