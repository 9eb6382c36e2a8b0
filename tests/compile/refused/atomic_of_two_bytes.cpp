// SPDX-License-Identifier: Apache-2.0
// refused: atomic_ref<T>: T is a 4- or 8-byte integer, float, double or a pointer
#include <warpheap/platform/simt.hpp>

using namespace warpheap;
WARPHEAP_DEVICE unsigned short wrong(unsigned short& word) {
  return atomic_ref<unsigned short>{word}.load(order::relaxed);
}
