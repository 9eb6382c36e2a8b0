// SPDX-License-Identifier: Apache-2.0
// `warpheap join` as its users meet it: what it measures, the tables it reads, and joins that it
// refuses.
#include <nlohmann/json.hpp>

#include "tests/tool/program_fixture.hpp"

namespace warpheap::tool { namespace {

using nlohmann::json;
using testing::HasSubstr;
using ProgramJoin = program_test;

TEST_F(ProgramJoin, TimesItsPartsAndComparesResults) {
  auto const made =
      run("join --backend host --allocator direct,slab_bitmap,slab_bitmap --tuples 0,1000,3000 --probe-tuples 2000 "
          "--match 0.5 --skew 1.2 --repeat 2 --pool 4MiB --seed 3 --json -");
  ASSERT_EQ(made.status, 0) << made.err;
  auto const document = json::parse(made.out);
  EXPECT_EQ(document["schema"], 1);
  EXPECT_EQ(document["verified"], true);
  ASSERT_EQ(document["joins"].size(), 3u);
  EXPECT_EQ(document["joins"][0]["tuples"], 0);
  EXPECT_EQ(document["joins"][1]["build_tuples"], 1000);
  EXPECT_EQ(document["joins"][1]["probe_tuples"], 2000);
  EXPECT_EQ(document["joins"][2]["tuples"], 1000);
  EXPECT_EQ(document["joins"][2]["checksum"].get<std::string>().size(), 16u);
  ASSERT_EQ(document["results"].size(), 3u * 5);  // join and probe of both, free of one
  for (auto const& row : document["results"]) {
    EXPECT_EQ(row["scenario"], "join");
    EXPECT_EQ(row["times_us"].size(), 2u);
    EXPECT_EQ(row["checked"], true);
    EXPECT_EQ(row["failures"], 0);
    EXPECT_EQ(row["parameters"]["page_bytes"], 256);
  }
  auto const& row = document["results"][7];
  EXPECT_EQ(row["operation"], "join");
  EXPECT_EQ(row["allocator"], "slab_bitmap");
  EXPECT_GE(row["pages"], 50);
  EXPECT_EQ(row["tuples"], 1000);
  EXPECT_GT(row["median_us"], 0);
  auto const lanes = json::parse(
      run("join --backend host --chains lane --tuples 500 --allocator scatter --page-bytes 64 --pool 4MiB --json -")
          .out);
  EXPECT_EQ(lanes["results"][0]["parameters"]["lanes_a_chain"], 1);
  EXPECT_EQ(lanes["results"][0]["pages"], 500);
  auto const both =
      json::parse(run("join --backend host --chains warp,lane,warp --tuples 500 --allocator corw_256,direct "
                      "--pool 4MiB --json -")
                      .out);
  ASSERT_EQ(both["joins"].size(), 1u);
  ASSERT_EQ(both["results"].size(), 2u * 5);
  for (size_t i = 0; i < 10; ++i) EXPECT_EQ(both["results"][i]["parameters"]["lanes_a_chain"], i < 5 ? 32 : 1);
  EXPECT_EQ(both["results"][0]["allocator"], "corw_256");
  EXPECT_GT(both["results"][0]["without_partition_us"], both["results"][0]["build_us"]);
  EXPECT_EQ(both["results"][5]["pages"], 500);
  auto const text = run("join --backend host --tuples 100 --pool 4MiB --chains warp,lane");
  EXPECT_THAT(text.out,
              testing::ContainsRegex("A join of 100 and 100 tuples with slab_bitmap takes .* of one with direct[.]"));
  EXPECT_THAT(text.out,
              testing::ContainsRegex("The probe of 100 and 100 tuples, chains of lanes, with slab_bitmap takes .* of "
                                     "one with direct[.]"));
}

TEST_F(ProgramJoin, ReadsItsTables) {
  auto const build = write("build.csv", "key,payload\n1,10\n2,20\n2,21\n"),
             probe = write("probe.csv", "2,7\n3,8\n2,9\n");
  auto const made =
      run("join --backend host --allocator slab_bitmap --pool 1MiB --json - --build " + build + " --probe " + probe);
  ASSERT_EQ(made.status, 0) << made.err;
  auto const document = json::parse(made.out);
  EXPECT_EQ(document["joins"][0]["tuples"], 4);
  EXPECT_EQ(document["joins"][0]["build_tuples"], 3);
  EXPECT_EQ(document["results"][0]["pages"], 1);
  auto const turned = json::parse(
      run("join --backend host --allocator slab_bitmap --pool 1MiB --json - --probe " + build + " --build " + probe)
          .out);
  EXPECT_EQ(turned["joins"][0]["tuples"], 4);
  auto const empty = write("empty.csv", "");
  EXPECT_EQ(run("join --backend host --pool 1MiB --build " + build + " --probe " + empty).status, 0);
  expect_refusal("join --backend host --build " + write("bad.csv", "1,2\n3\n") + " --probe " + probe,
                 "bad.csv:2: '3' is not a key and a payload");
  expect_refusal("join --backend host --build no/such.csv --probe " + probe, "no/such.csv: No such file");
  expect_refusal("join --backend host --build " + build, "--build: needs --probe");
  expect_refusal("join --backend host --probe " + probe, "--probe: needs --build");
  expect_refusal("join --backend host --skew 1 --build " + build + " --probe " + probe,
                 "--skew: is of tables that are made");
  std::string const files = " --build " + build + " --probe " + probe;
  expect_refusal("join --backend host --seed 1" + files,
                 "--seed: is of tables that are made and of --deterministic, and files are given\n");
  EXPECT_EQ(run("join --backend host --pool 1MiB --seed 1 --deterministic" + files).status, 0);
}

TEST_F(ProgramJoin, ThatDoesNotFitIsRefusedOrAFailedCheck) {
  // Result and pool are known beforehand: not even bare tuples fit.
  expect_refusal("join --backend host --pool 1MiB --tuples 1000,90000",
                 "the result of tables of 90000 and 90000 tuples");
  std::string same;
  for (unsigned i = 0; i < 300; ++i) same += "5," + std::to_string(i) + "\n";
  auto const table = write("same.csv", same);
  expect_refusal("join --backend host --pool 1MiB --build " + table + " --probe " + table,
                 "has 90000 tuples of 12 bytes");
  EXPECT_EQ(run("join --backend host --pool 2MiB --build " + table + " --probe " + table).status, 0);
  // How much the pages waste is not.
  auto const made = run("join --backend host --pool 1MiB --tuples 80000 --allocator direct,slab_bitmap --json -");
  EXPECT_EQ(made.status, 1);
  auto const document = json::parse(made.out);
  EXPECT_EQ(document["verified"], false);
  for (auto const& row : document["results"]) {
    EXPECT_EQ(row["median_us"], nullptr);
    EXPECT_EQ(row["checked"], false);
  }
  EXPECT_THAT(made.err, HasSubstr("join: direct: out of memory: "));
  EXPECT_EQ(std::count(made.err.begin(), made.err.end(), '\n'), 1);
}

}}  // namespace warpheap::tool
