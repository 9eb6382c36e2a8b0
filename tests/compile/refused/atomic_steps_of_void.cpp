// SPDX-License-Identifier: Apache-2.0
// refused: fetch_add and fetch_sub take integers, floats and pointers to objects
#include <warpheap/platform/simt.hpp>

using namespace warpheap;
WARPHEAP_DEVICE void* wrong(void*& place) { return atomic_ref<void*>{place}.fetch_add(1, order::relaxed); }
