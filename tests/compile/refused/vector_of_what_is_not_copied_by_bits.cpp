// SPDX-License-Identifier: Apache-2.0
// refused: T must be trivially copyable
#include <warpheap/container/vector.hpp>
#include <warpheap/warpheap.hpp>

using namespace warpheap;
struct linked {
  WARPHEAP_DEVICE linked() {}
  WARPHEAP_DEVICE linked(linked const& other) : self{this}, number{other.number} {}
  linked* self = this;
  u32 number = 0;
};
WARPHEAP_DEVICE bool wrong(vector<linked>& all, heap_ref memory) { return all.push_back(memory, linked{}); }
