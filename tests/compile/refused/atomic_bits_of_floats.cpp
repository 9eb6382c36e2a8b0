// SPDX-License-Identifier: Apache-2.0
// refused: fetch_or, fetch_and and fetch_xor take integers
#include <warpheap/platform/simt.hpp>

using namespace warpheap;
WARPHEAP_DEVICE float wrong(float& sum) { return atomic_ref<float>{sum}.fetch_or(1, order::relaxed); }
