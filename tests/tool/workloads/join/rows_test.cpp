// SPDX-License-Identifier: Apache-2.0
// Rows of a join on their way to the host: each once, for windows of any size and any kind of
// chain.
#include <gmock/gmock.h>

#include <map>
#include <tuple>

#include "workloads/join/backend/rows.hpp"

namespace warpheap::tool::join { namespace {

using row = std::tuple<u32, u32, u32>;

/// Chains of pages with distinct rows: chain i has `pages[i]` pages, and `used` rows in its head.
class made_chains {
 public:
  made_chains(std::vector<u32> const& pages, u32 slots, u32 used) : slots_{slots} {
    for (u32 const count : pages) {
      chain made{0, count, count ? used : 0};
      for (u32 i = 0; i < count; ++i) made.head = add_page(made.head, i + 1 == count ? used : slots);
      chains_.push_back(made);
    }
  }

  /// How often each row was given, in windows of `window_rows`.
  std::map<row, u32> given(u64 window_rows) const {
    std::map<row, u32> found;
    device_buffer<chain> const chains{chains_};
    auto const take = [&](join_rows const& batch) {
      EXPECT_LE(batch.keys.size(), window_rows);
      for (size_t i = 0; i < batch.keys.size(); ++i)
        ++found[{batch.keys[i], batch.build_payloads[i], batch.probe_payloads[i]}];
    };
    give_rows(chains, slots_, take, window_rows);
    return found;
  }

  std::map<row, u32> const& expected() const { return expected_; }

 private:
  u64 add_page(u64 before, u32 used) {
    auto& memory = memories_.emplace_back((join_page_header_bytes + join_tuple_bytes * slots_) / 8 + 1);
    page const made{reinterpret_cast<u8*>(memory.data()), slots_};
    made.link() = before;
    for (u32 slot = 0; slot < used; ++slot) {
      auto const number = static_cast<u32>(expected_.size());
      made.key(slot) = number;
      made.build(slot) = number + 1'000'000;
      made.probe(slot) = number + 2'000'000;
      expected_[{number, number + 1'000'000, number + 2'000'000}] = 1;
    }
    return reinterpret_cast<u64>(made.memory);
  }

  u32 slots_;
  std::vector<std::vector<u64>> memories_;
  std::vector<chain> chains_;
  std::map<row, u32> expected_;
};

TEST(JoinRows, AreGivenOnceWhateverTheWindow) {
  made_chains const chains{{3, 0, 1, 7, 0, 2}, 5, 2};
  ASSERT_EQ(chains.expected().size(), 12u + 2 + 32 + 7);
  for (u64 const window : {1, 2, 5, 7, 52, 53, 54, 1000}) EXPECT_EQ(chains.given(window), chains.expected()) << window;
}

TEST(JoinRows, OfNothingAreNone) {
  EXPECT_TRUE(made_chains({}, 5, 2).given(10).empty());
  EXPECT_TRUE(made_chains({0, 0}, 5, 2).given(10).empty());
}

}}  // namespace warpheap::tool::join
