// SPDX-License-Identifier: Apache-2.0
// Allocators that break one promise each, and what a scenario must say of them.
#pragma once

#include <gmock/gmock.h>

#include <type_traits>
#include <vector>

#include "bench/measure.hpp"
#include "warpheap/all.hpp"

namespace warpheap::tool {

/// The C library's heap, which nothing limits.
class unlimited : public creation::toolkit {
 public:
  static unlimited place(void*, size_t) { return {}; }
};

/// Gives neighbouring threads blocks of which the last 16 bytes of one are the first of the other.
class overlapping : public creation::toolkit {
 public:
  void* create(size_t bytes) const { return memory().data() + global_thread_index() * (bytes - 16); }
  void destroy(void*) const {}
  static overlapping place(void*, size_t) { return {}; }

 private:
  struct alignas(16) unit {
    u8 bytes[16];
  };
  struct units : std::vector<unit> {
    using std::vector<unit>::vector;
    u8* data() { return std::vector<unit>::data()->bytes; }
  };
  static units& memory() {
    static units all(u64{1} << 20);
    return all;
  }
};

/// Gives blocks at multiples of 8 and not of 16.
class misaligning : public creation::toolkit {
 public:
  void* create(size_t bytes) const { return static_cast<u8*>(toolkit::create(bytes + 8)) + 8; }
  void destroy(void* block) const {
    if (block) toolkit::destroy(static_cast<u8*>(block) - 8);
  }
  static misaligning place(void*, size_t) { return {}; }
};

/// Forgets what its seventh thread frees.
class leaking : public creation::slab_bitmap<> {
 public:
  leaking() = default;
  void destroy(void* block) const {
    if (global_thread_index() != 7) slab_bitmap<>::destroy(block);
  }
  static leaking place(void* memory, size_t bytes) { return leaking{slab_bitmap<>::place(memory, bytes)}; }

 private:
  explicit leaking(slab_bitmap<> sound) : slab_bitmap<>{sound} {}
};

/// The toolkit's has no pool.
template <class Creation>
using pool_for = std::conditional_t<std::is_base_of_v<creation::toolkit, Creation>, reserve_pool::toolkit_limit,
                                    reserve_pool::device_memory>;

template <class Creation>
bench::test_subject<
    allocator<Creation, distribution::none, oom::return_null, pool_for<Creation>, alignment::shrink<16>>>
broken() {
  return {"broken", false};
}

inline void expect_fault(std::vector<bench::result> const& results, char const* fault) {
  ASSERT_FALSE(results.empty());
  for (auto const& made : results) {
    EXPECT_FALSE(made.checked()) << made.scenario << " " << made.operation;
    EXPECT_THAT(made.fault, testing::HasSubstr(fault)) << made.scenario << " " << made.operation;
  }
}

}  // namespace warpheap::tool
