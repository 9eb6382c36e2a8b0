// SPDX-License-Identifier: Apache-2.0
// Allocators that break one promise each, and what a scenario must say of them.
#pragma once

#include <gmock/gmock.h>

#include <type_traits>
#include <vector>

#include "backend/any_allocator.hpp"
#include "measure/measure.hpp"
#include "warpheap/all.hpp"

namespace warpheap::tool {

/// The C library's heap, which nothing limits; what is served may be told.
class unlimited : public creation::toolkit {
 public:
  static bool everything(size_t) { return true; }
  static inline bool (*serves)(size_t bytes) = everything;

  void* create(size_t bytes) const { return serves(bytes) ? toolkit::create(bytes) : nullptr; }
  static unlimited place(void*, size_t) { return {}; }
};

/// What mutants of slab_bitmap begin with.
template <class Mutant>
struct mutant_of_slab_bitmap : creation::slab_bitmap<> {
  static Mutant place(void* memory, size_t bytes) {
    Mutant made;
    static_cast<creation::slab_bitmap<>&>(made) = creation::slab_bitmap<>::place(memory, bytes);
    return made;
  }
};

/// Gives neighbouring threads blocks of which the last 16 bytes of one are the first of the other.
struct overlapping : mutant_of_slab_bitmap<overlapping> {
  void* create(size_t bytes) const {
    struct alignas(16) unit {
      u8 bytes[16];
    };
    static std::vector<unit> memory(u64{1} << 20);
    return memory.data()->bytes + global_thread_index() * (bytes - 16);
  }
  void destroy(void*) const {}
};

/// Gives blocks of some sizes at multiples of 8 and not of 16.
struct misaligning : mutant_of_slab_bitmap<misaligning> {
  static inline size_t least = 0, most = ~size_t{0};

  void* create(size_t bytes) const {
    if (bytes < least || bytes > most) return slab_bitmap<>::create(bytes);
    auto* const block = static_cast<u8*>(slab_bitmap<>::create(bytes + 8));
    return block ? block + 8 : nullptr;
  }
  void destroy(void* block) const {
    slab_bitmap<>::destroy(reinterpret_cast<u64>(block) % 16 == 8 ? static_cast<u8*>(block) - 8 : block);
  }
};

/// Forgets what its seventh thread frees.
struct leaking : mutant_of_slab_bitmap<leaking> {
  void destroy(void* block) const {
    if (global_thread_index() != 7) slab_bitmap<>::destroy(block);
  }
};

/// A subject with this creation policy, or the one that stands for it.
template <class Creation>
auto broken() {
  constexpr bool has_pool = !std::is_base_of_v<creation::toolkit, Creation>;
  using pool = std::conditional_t<has_pool, reserve_pool::device_memory, reserve_pool::toolkit_limit>;
  return stand_in_for(
      bench::test_subject<allocator<Creation, distribution::none, oom::return_null, pool, alignment::shrink<16>>>{
          "broken", false});
}

inline void expect_fault(std::vector<bench::result> const& results, char const* fault) {
  ASSERT_FALSE(results.empty());
  for (auto const& made : results) {
    EXPECT_FALSE(made.checked()) << made.scenario << " " << made.operation;
    EXPECT_THAT(made.fault, testing::HasSubstr(fault)) << made.scenario << " " << made.operation;
  }
}

}  // namespace warpheap::tool
