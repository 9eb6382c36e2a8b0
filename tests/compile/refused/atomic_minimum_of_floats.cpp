// SPDX-License-Identifier: Apache-2.0
// refused: fetch_min and fetch_max take integers
#include <warpheap/platform/simt.hpp>

using namespace warpheap;
WARPHEAP_DEVICE float wrong(float& sum) { return atomic_ref<float>{sum}.fetch_min(1, order::relaxed); }
