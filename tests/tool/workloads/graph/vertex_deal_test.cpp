// SPDX-License-Identifier: Apache-2.0
// Vertices dealt to members: each to one place, and as many to each member; batches cut into
// slices.
#include "workloads/graph/vertex_deal.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "workloads/graph/edge_list.hpp"
#include "workloads/graph/slices.hpp"

namespace warpheap::tool { namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(VertexDeal, GivesEveryPlaceToOneVertex) {
  for (u32 const vertices : {1u, 2u, 3u, 7u, 64u, 1000u, 1021u})
    for (u32 const members : {1u, 2u, 3u, 5u, 16u}) {
      vertex_deal const deal{vertices, members};
      std::set<std::pair<u32, u32>> places;
      for (u32 vertex = 0; vertex < vertices; ++vertex) {
        auto const [owner, local] = deal.find(vertex);
        ASSERT_LT(owner, members);
        ASSERT_LT(local, deal.count(owner)) << vertices << " " << members << " " << vertex;
        places.insert({owner, local});
      }
      EXPECT_EQ(places.size(), vertices);
    }
}

TEST(VertexDeal, GivesEveryMemberAsManyGiveOrTakeOne) {
  for (u32 const vertices : {0u, 1u, 17u, 1000u, ~0u})
    for (u32 const members : {1u, 3u, 16u}) {
      vertex_deal const deal{vertices, members};
      EXPECT_EQ(deal.first(0), 0u);
      EXPECT_EQ(deal.first(members), vertices);
      for (u32 member = 0; member < members; ++member) {
        EXPECT_GE(deal.count(member), vertices / members);
        EXPECT_LE(deal.count(member), u64{vertices} / members + 1);
      }
    }
}

TEST(VertexDeal, SpreadsWhatIsRegular) {
  for (u32 const vertices : {1u << 20, 1'000'000u, 999'983u})
    for (u32 const stride : {1u, 2u, 8u, 1024u}) {
      vertex_deal const deal{vertices, 4};
      std::vector<int> seen(4);
      for (u32 i = 0; i < 512; ++i) ++seen[deal.find(i * stride % vertices).owner];
      EXPECT_THAT(seen, testing::Each(testing::AllOf(testing::Gt(100), testing::Lt(160)))) << vertices << " " << stride;
    }
}

TEST(VertexDeal, LeavesTheOrderToOneMember) {
  vertex_deal const deal{1000, 1};
  for (u32 vertex = 0; vertex < 1000; ++vertex) EXPECT_EQ(deal.find(vertex).local, vertex);
}

TEST(VertexDeal, TakesAsManyVerticesAsThereCanBe) {
  vertex_deal const deal{~0u, 16};
  for (u32 const vertex : {0u, 1u, 1u << 31, ~0u - 1}) {
    auto const [owner, local] = deal.find(vertex);
    EXPECT_LT(owner, 16u);
    EXPECT_LT(local, deal.count(owner));
  }
}

TEST(Slices, HaveEveryGroupOnceInOrder) {
  entry_keys keys;
  keys.reserve(2000);
  for (u64 vertex = 0; vertex < 40; ++vertex)
    for (u64 to = 0; to < vertex * vertex % 97; ++to) keys.push_back(vertex << 32 | to);
  auto const batch = group_by_vertex(keys);
  for (u32 const count : {1u, 2u, 3u, 16u, 100u}) {
    auto const slices = cut(batch, count);
    ASSERT_EQ(slices.size(), count);
    edge_groups joined;
    for (auto const& slice : slices) {
      EXPECT_LE(slice.targets.size(), batch.targets.size() / count + 97);
      for (size_t i = 0; i < slice.vertices.size(); ++i) {
        joined.vertices.push_back(slice.vertices[i]);
        joined.targets.insert(joined.targets.end(), slice.targets.begin() + slice.first[i],
                              slice.targets.begin() + slice.first[i + 1]);
        joined.first.push_back(static_cast<u32>(joined.targets.size()));
      }
    }
    EXPECT_EQ(joined.vertices, batch.vertices);
    EXPECT_EQ(joined.first, batch.first);
    EXPECT_EQ(joined.targets, batch.targets);
  }
}

TEST(Slices, OfNothingAreEmpty) {
  for (auto const& slice : cut(edge_groups{}, 3)) {
    EXPECT_THAT(slice.vertices, IsEmpty());
    EXPECT_THAT(slice.first, ElementsAre(0));
  }
}

}}  // namespace warpheap::tool
