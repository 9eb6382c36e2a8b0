// SPDX-License-Identifier: Apache-2.0
// `warpheap graph` with several members and with a search, as its users meet it.
#include <nlohmann/json.hpp>

#include "tests/tool/program_fixture.hpp"
#include "warpheap/platform/types.hpp"

namespace warpheap::tool { namespace {

using nlohmann::json;
using testing::HasSubstr;
using ProgramGraph = program_test;

std::string const graph_of_members = "graph --backend host --pool 4MiB --scale 8 --edge-factor 4 --seed 5 ";

TEST_F(ProgramGraph, OfSeveralMembersIsTheGraphOfOneHeap) {
  auto const wanted = json::parse(run(graph_of_members + "--bfs first --json -").out);
  EXPECT_FALSE(wanted.contains("members"));
  for (std::string const gpus : {"1", "0,0", "0,0,0,0,0"}) {
    auto const made = run(graph_of_members + "--bfs first --json - --gpus " + gpus);
    ASSERT_EQ(made.status, 0) << made.err;
    auto const document = json::parse(made.out);
    EXPECT_EQ(document["verified"], true);
    for (auto const* const key : {"vertices", "edges", "mallocs", "frees", "inserted", "live_bytes", "peak_bytes"})
      EXPECT_EQ(document[key], wanted[key]) << key << " " << gpus;
    for (auto const* const key : {"source", "reached", "entries", "depth"})
      EXPECT_EQ(document["bfs"][key], wanted["bfs"][key]) << key << " " << gpus;
    EXPECT_GT(document["bfs"]["reached"], 100);
    auto const members = gpus == "1" ? 1u : (gpus.size() + 1) / 2;
    ASSERT_EQ(document["members"].size(), members);
    u64 vertices = 0, edges = 0, to_others = 0;
    for (auto const& member : document["members"]) {
      EXPECT_EQ(member["device"], 0);
      for (auto const* const key : {"mallocs", "frees", "messages", "live_bytes", "peak_bytes"})
        EXPECT_GT(member[key], 0) << key;
      for (auto const* const key : {"send_seconds", "apply_seconds", "free_seconds", "search_seconds"})
        EXPECT_GT(member[key], 0.0) << key;
      vertices += member["vertices"].get<u64>();
      edges += member["edges"].get<u64>();
      to_others += member["messages_to_others"].get<u64>();
    }
    EXPECT_EQ(vertices, 256u);
    EXPECT_EQ(edges, document["edges"]);
    EXPECT_EQ(to_others > 0, members > 1);
  }
}

TEST_F(ProgramGraph, TellsPeopleOfMembersAndOfTheSearch) {
  auto const made = run(graph_of_members + "--gpus 0,0 --bfs 0");
  EXPECT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("to others"));
  EXPECT_THAT(made.out, HasSubstr("Breadth-first search from vertex 0, slab_bitmap: "));
}

TEST_F(ProgramGraph, OfSeveralMembersRunsDeterministicallyAndWithEveryAllocatorThatCanBeInASet) {
  auto const counts = [&] {
    auto document = json::parse(run(graph_of_members + "--gpus 0,0 --deterministic --json -").out);
    return document["members"][1]["messages"].dump() + document["members"][1]["live_bytes"].dump();
  };
  EXPECT_EQ(counts(), counts());
  EXPECT_EQ(run(graph_of_members + "--gpus 0,0 --allocator slab_bitmap,halloc,rw_malloc,tbuddy").status, 0);
  expect_refusal(graph_of_members + "--gpus 0,0 --allocator toolkit",
                 "warpheap graph: --allocator: toolkit is no allocator of heap sets");
}

TEST_F(ProgramGraph, ThatDoesNotFitItsMembersIsAFailedCheck) {
  auto const made = run("graph --backend host --pool 1MiB --scale 13 --gpus 0,0 --json -");
  EXPECT_EQ(made.status, 1);
  auto const document = json::parse(made.out);
  EXPECT_EQ(document["verified"], false);
  EXPECT_GT(document["lost"], 0);
  EXPECT_THAT(made.err, HasSubstr("lost"));
}

TEST_F(ProgramGraph, RefusesMembersAndSourcesThatAreNotThere) {
  for (auto const& [gpus, said] :
       {std::pair{"0", "--gpus: 0 is not between 1 and 16"},
        {"17", "--gpus: 17 is not between 1 and 16"},
        {"2", "--gpus: 2 devices are asked for, and there is 1"},
        {"0,1", "--gpus: there is no device 1"},
        {"0,", "has an empty item"},
        {"two", "--gpus: 'two' is not a whole number"},
        {"0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0", "--gpus: 17 members are asked for, and the most is 16"}})
    expect_refusal(graph_of_members + "--gpus " + gpus, said);
  expect_refusal("graph --backend host --pool 1000GiB --scale 3 --gpus 0,0", "--pool: ");
  for (auto const& [vertex, said] : {std::pair{"256", "--bfs: 256 is not between 0 and 255"},
                                     {"last", "--bfs: 'last' is not a whole number"},
                                     {"''", "--bfs"}})
    expect_refusal(graph_of_members + "--bfs " + vertex, said);
}

TEST_F(ProgramGraph, SearchesFromAVertexWithoutNeighbours) {
  auto const input = write("g.mtx", "%%MatrixMarket matrix coordinate pattern general\n4 4 2\n2 3\n3 4\n");
  auto const search_from = [&](std::string const& vertex) {
    return json::parse(
        run("graph --backend host --pool 4MiB --gpus 0,0 --json - --input " + input + " --bfs " + vertex).out)["bfs"];
  };
  EXPECT_EQ(search_from("0")["reached"], 1);
  EXPECT_EQ(search_from("0")["depth"], 0);
  EXPECT_EQ(search_from("first")["source"], 1);
  EXPECT_EQ(search_from("first")["reached"], 3);
  EXPECT_EQ(search_from("first")["depth"], 2);
}

}}  // namespace warpheap::tool
