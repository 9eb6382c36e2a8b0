// SPDX-License-Identifier: Apache-2.0
// Heap sets as the tests use them: kernels run as one member or another, and what they took.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "support/numbered_blocks.hpp"
#include "warpheap/all.hpp"
#include "warpheap/heap/heap_set.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace heap_set_test {

using namespace warpheap;
using namespace warpheap::literals;
using test::take_numbered;
using test::verify_numbered_and_free;
using testing::IsEmpty;

using set_ref = heap_set::ref_type;

/// Kernel: frees addresses.
struct free_these {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, void* const* addresses, u32 count) const {
    u64 const me = global_thread_index();
    if (me < count) heap.free(addresses[me]);
  }
};

/// Runs a kernel as member `i`.
template <class Set, class Functor, class... Arguments>
void run_as(Set const& set, u32 i, launch_shape shape, Functor functor, Arguments... arguments) {
  backend::device_scope const current{set.device(i)};
  launch(shape, functor, set.ref(i), arguments...);
  synchronize();
}

/// Blocks that a grid took as one member.
class taken {
 public:
  template <class Set>
  taken(Set const& set, u32 member, launch_shape shape, u64 bytes)
      : shape_{shape}, words_{bytes / 8}, blocks_(u64{shape.blocks} * shape.threads) {
    run_as(set, member, shape, take_numbered{}, words_, blocks_.data());
  }

  std::vector<void*> addresses() const {
    std::vector<void*> found;
    for (u64* const block : blocks_.to_host())
      if (block) found.push_back(block);  // NOLINT(performance-inefficient-vector-operation)
    EXPECT_EQ(std::set<void*>(found.begin(), found.end()).size(), found.size());
    return found;
  }
  u64 count() const { return addresses().size(); }

  /// How many blocks were overwritten.
  template <class Set>
  u64 free_as(Set const& set, u32 member) {
    device_buffer<u64> const wrong(1);
    run_as(set, member, shape_, verify_numbered_and_free{}, words_, blocks_.data(), wrong.data());
    return wrong[0];
  }

 private:
  launch_shape shape_;
  u64 words_;
  device_buffer<u64*> blocks_;
};

template <class Set>
void free_as(Set const& set, u32 member, std::vector<void*> const& addresses) {
  device_buffer<void*> const list(addresses);
  u32 const count = static_cast<u32>(addresses.size());
  run_as(set, member, shape_for(count, 32), free_these{}, list.data(), count);
}

template <class Set>
void drain(Set const& set) {
  set.drain();
  for (u32 i = 0; i < set.size(); ++i) {
    backend::device_scope const current{set.device(i)};
    synchronize();
  }
}

template <class Set>
void expect_quiet(Set const& set, u64 live) {
  EXPECT_THAT(set.check_invariants(), IsEmpty());
  EXPECT_EQ(set.statistics().live_blocks, live);
}

/// Two members: on two devices where there are two.
inline std::vector<int> two() { return {0, backend::device_count() > 1 ? 1 : 0}; }
inline std::vector<int> on_one(u32 members) { return std::vector<int>(members, 0); }

}  // namespace heap_set_test
