// SPDX-License-Identifier: Apache-2.0
// The program as its users meet it: exit status, one line on standard error, JSON that is alone on
// standard output.
#include "tests/tool/program_fixture.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace warpheap::tool { namespace {

using nlohmann::json;
using testing::HasSubstr;
using Program = program_test;

std::string const small_graph = "graph --backend host --pool 8MiB --scale 8 --edge-factor 4";

TEST_F(Program, InfoListsEveryAllocatorThatCanBeAskedFor) {
  auto const made = run("info --json -");
  ASSERT_EQ(made.status, 0) << made.err;
  auto const document = json::parse(made.out);
  EXPECT_EQ(document["schema"], 1);
  EXPECT_TRUE(document["devices"].is_array());
  for (auto const* const key : {"cpu", "device", "driver", "cuda", "commit", "time"})
    EXPECT_TRUE(document["machine"].contains(key)) << key;
  EXPECT_THAT(document["backends"], testing::Contains("host"));
  for (std::string const name : document["allocators"])
    EXPECT_EQ(run(small_graph + " --allocator " + name).status, 0) << name;
}

// Only a few scenarios and commands are compiled for them.
TEST_F(Program, InfoListsConfigurationsOfPapersThatOnlySomeCommandsTake) {
  auto const document = json::parse(run("info --json -").out);
  ASSERT_GE(document["variants"].size(), 11u);
  for (std::string const name : document["variants"]) {
    EXPECT_TRUE(document["descriptions"].contains(name)) << name;
    bool const of_join = name.ends_with("_256");
    auto const taken = run((of_join ? "join --backend host --pool 4MiB --tuples 64 --allocator "
                                    : "verify --backend host --pool 4MiB --sizes 64 --repeat 1 --allocator ") +
                           name);
    EXPECT_EQ(taken.status, 0) << name << taken.err;
    expect_refusal("bench burst churn --backend host --allocator " + name,
                   of_join ? "no allocator is called" : "is a configuration of a paper, which only these measure:");
    expect_refusal(small_graph + " --allocator " + name,
                   of_join ? "no allocator is called" : "is a configuration of a paper, which only these measure:");
  }
  expect_refusal("bench --suite quick latency --backend host --allocator halloc_late", "is a configuration of a paper");
}

TEST_F(Program, GraphSaysInJsonWhatItBuilt) {
  auto const input =
      write("g.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n4 4 5\n2 1\n3 1\n4 2\n3 1\n4 4\n");
  auto const made = run("graph --backend host --pool 8MiB --seed 7 --json - --input " + input);
  ASSERT_EQ(made.status, 0) << made.err;
  auto const document = json::parse(made.out);
  EXPECT_EQ(document["schema"], 1);
  EXPECT_EQ(document["vertices"], 4);
  EXPECT_EQ(document["edges"], 7);  // three edges at both their ends, and a loop
  EXPECT_EQ(document["duplicates"], 2);
  EXPECT_EQ(document["self_loops"], 1);
  EXPECT_EQ(document["verified"], true);
  EXPECT_EQ(document["allocator"], "slab_bitmap");
  EXPECT_EQ(document["backend"], "host");
  EXPECT_EQ(document["seed"], 7);
  EXPECT_EQ(document["mallocs"].get<int>() - document["frees"].get<int>(), 4);
  for (auto const* const key : {"failures", "live_bytes", "peak_bytes", "seconds"})
    EXPECT_TRUE(document[key].is_number()) << key;
  EXPECT_EQ(
      json::parse(run("graph --backend host --pool 8MiB --drop-self-loops --json - --input " + input).out)["edges"], 6);
}

TEST_F(Program, OptionsOfAMadeGraphAreRefusedBesideAFile) {
  for (std::string const option : {"--scale", "--edge-factor"})
    expect_refusal("graph --backend host --input g.mtx " + option + " 3",
                   "warpheap graph: " + option + ": is of a graph that is made, and --input is given\n");
}

TEST_F(Program, AGraphThatIsMadeHasDefaults) {
  for (auto const& [options, name] : {std::pair{"--scale 3", "R-MAT, scale 3, edge factor 16"},
                                      std::pair{"--edge-factor 1", "R-MAT, scale 14, edge factor 1"}})
    EXPECT_EQ(json::parse(run("graph --backend host --pool 8MiB --json - " + std::string{options}).out)["input"], name);
}

TEST_F(Program, ManyAllocatorsMakeOneRunEach) {
  auto const document = json::parse(run(small_graph + " --allocator toolkit,slab_bitmap --json -").out);
  ASSERT_EQ(document["runs"].size(), 2u);
  EXPECT_EQ(document["runs"][0]["allocator"], "toolkit");
  EXPECT_EQ(document["runs"][1]["edges"], document["edges"]);
}

TEST_F(Program, TheSameSeedMakesTheSameCounts) {
  auto const counts = [&](std::string const& seed) {
    auto document = json::parse(run(small_graph + " --deterministic --json - --seed " + seed).out);
    for (auto const* const key : {"machine", "seconds", "seed"}) document.erase(key);
    return document;
  };
  EXPECT_EQ(counts("3"), counts("3"));
  EXPECT_NE(counts("3"), counts("4"));
}

TEST_F(Program, AGraphThatDoesNotFitIsAFailedCheck) {
  auto const made = run("graph --backend host --pool 1MiB --scale 13 --json -");
  EXPECT_EQ(made.status, 1);
  EXPECT_EQ(json::parse(made.out)["verified"], false);
  EXPECT_GT(json::parse(made.out)["lost"], 0);
  EXPECT_THAT(made.err, HasSubstr("lost"));
}

TEST_F(Program, BenchGivesTimesAndTheirMedian) {
  auto const file = (folder / "b.json").string();
  auto const made =
      run("bench burst churn --backend host --pool 8MiB --threads 96 --repeat 3 --sizes 64 --json " + file);
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("slab_bitmap"));
  auto const document = json::parse(contents(file));
  // the baselines of malloc and free; malloc, free and first_malloc; churn
  ASSERT_EQ(document["results"].size(), 6u);
  for (auto const& row : document["results"]) {
    EXPECT_EQ(row["times_us"].size(), 3u);
    EXPECT_GT(row["median_us"], 0);
    EXPECT_GT(row["operations_per_second"], 0);
    EXPECT_EQ(row["checked"], true);
    EXPECT_EQ(row["failures"], 0);
    EXPECT_EQ(row["parameters"]["threads"], 96);
    EXPECT_EQ(row["backend"], "host");
  }
}

TEST_F(Program, BenchOfPrimitivesNamesThemAndNoAllocator) {
  auto const made = run(
      "bench semaphore rcu_delegation collective_mutex atomic latency --backend host --allocator slab_bitmap,scatter "
      "--workers 40 --batch 16 --thread-blocks 8,32 --readers-per-writer 4 --repeat 3 --json -");
  ASSERT_EQ(made.status, 0) << made.err;
  auto const document = json::parse(made.out);
  ASSERT_EQ(document["results"].size(), 16u + 2 * 2);  // primitives once, however many allocators
  std::vector<std::string> measured;
  for (size_t i = 0; i < 16; ++i) {
    auto const& row = document["results"][i];
    measured.push_back(row["primitive"]);
    EXPECT_EQ(row["allocator"], nullptr);
    EXPECT_EQ(row["checked"], true);
    EXPECT_EQ(row["times_us"].size(), 3u);
    EXPECT_EQ(row["parameters"]["threads"], 40);
    EXPECT_EQ(row["parameters"]["shapes"], 2);
    EXPECT_GT(row["operations_per_second"], 0);
  }
  EXPECT_THAT(measured, testing::ElementsAre("counting_semaphore", "bulk_semaphore", "bulk_semaphore", "bulk_semaphore",
                                             "counting_semaphore", "bulk_semaphore", "srcu", "srcu", "srcu",
                                             "spin_mutex", "collective_mutex", "spin_mutex", "collective_mutex",
                                             "each_lane", "each_warp", "own_word"));
  EXPECT_GT(document["results"][1]["ratio"], 0);
  EXPECT_EQ(document["results"][6]["parameters"]["writers"], 10);
}

TEST_F(Program, BenchOfHeadReplacementSkipsWhoHasNone) {
  auto const made =
      run("bench head_replacement --backend host --pool 2MiB --sizes 1024 --threads 200 --allocator halloc,scatter "
          "--repeat 2 --json -");
  ASSERT_EQ(made.status, 0) << made.err;
  auto const rows = json::parse(made.out)["results"];
  ASSERT_EQ(rows.size(), 5u + 1);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(rows[i]["checked"], true);
    EXPECT_EQ(rows[i]["times_us"].size(), 2u);
    EXPECT_EQ(rows[i]["parameters"]["threads"], 200);
    EXPECT_EQ(rows[i]["replacements"] == 0, i == 4);
  }
  EXPECT_THAT(rows[5]["skipped"].get<std::string>(), HasSubstr("scatter replaces no heads"));
}

TEST_F(Program, BenchOfWavesTakesItsOptions) {
  auto const made =
      run("bench two_phase scaling prefix_sum --backend host --pool 4MiB --rounds 4 --sizes 32 --workers 64 "
          "--ranges 16-64 --divergence thread,block --allocate-shares 1,1 --free-shares 0,0.25 --repeat 2 --json -");
  ASSERT_EQ(made.status, 0) << made.err;
  auto const document = json::parse(made.out);
  // a size and a range of two_phase; scaling with its baseline
  ASSERT_EQ(document["results"].size(), 2u * 4 + 3 + 4);
  std::vector<std::string> operations;
  for (auto const& row : document["results"]) {
    operations.push_back(row["operation"]);
    EXPECT_EQ(row["checked"], true);
    EXPECT_EQ(row["times_us"].size(), 2u);
    bool const hands_out =
        row["scenario"] == "two_phase" ||
        (row["scenario"] == "scaling" && row.value("allocator", "") != "null" && row["operation"] != "free");
    EXPECT_EQ(row.contains("bytes_per_second"), hands_out);
  }
  EXPECT_THAT(operations,
              testing::ElementsAre("spree", "private", "spree", "private", "spree", "private", "spree", "private",
                                   "malloc", "malloc", "free", "malloc", "free", "malloc", "free"));
  for (size_t const i : {0, 9})  // 32 bytes a malloc
    EXPECT_DOUBLE_EQ(document["results"][i]["bytes_per_second"],
                     32 * document["results"][i]["operations_per_second"].get<double>());
  EXPECT_EQ(document["results"][0]["parameters"]["most_bytes"], 32);
  EXPECT_EQ(document["results"][4]["parameters"]["most_bytes"], 64);
  EXPECT_EQ(document["results"][0]["parameters"]["drawn_by"], 1);
  EXPECT_EQ(document["results"][2]["parameters"]["drawn_by"], 256);
  EXPECT_EQ(document["results"][2]["parameters"]["free_odd_permille"], 250);
  EXPECT_EQ(document["results"][11]["primitive"], "one_piece");
  EXPECT_EQ(document["results"][13]["allocator"], "slab_bitmap");
}

TEST_F(Program, BenchTellsGibibytesHandedOut) {
  std::string const options = " --backend host --pool 4MiB --repeat 1 --sizes 64 ";
  for (std::string const scenario : {"two_phase --workers 64 --rounds 2", "scaling --workers 64"})
    EXPECT_THAT(run("bench " + scenario + options).out, HasSubstr("GiB/s")) << scenario;
  EXPECT_THAT(run("bench burst --threads 64" + options).out, testing::Not(HasSubstr("GiB/s")));
}

TEST_F(Program, BenchOfExhaustHasARowForEachThreadBlock) {
  auto const made =
      run("bench exhaust --backend host --threads 2048 --sizes 64,512 --thread-blocks 7,256 --repeat 2 --json -");
  ASSERT_EQ(made.status, 0) << made.err;
  auto const rows = json::parse(made.out)["results"];
  ASSERT_EQ(rows.size(), 4u);
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i]["parameters"]["bytes"], i < 2 ? 64 : 512);
    EXPECT_EQ(rows[i]["parameters"]["thread_block"], i % 2 ? 256 : 7);
    EXPECT_EQ(rows[i]["times_us"].size(), 2u);
    EXPECT_FALSE(rows[i].contains("fastest_shape_us"));
  }
}

TEST_F(Program, BenchOfBlocksThatLiveAcrossKernelsTakesItsOptions) {
  auto const made =
      run("bench fill_level long_churn --backend host --pool 2MiB --threads 200 --ranges 256-512 --levels 0.4,1.5 "
          "--kernels 10 --allocator slab_bitmap --json -");
  ASSERT_EQ(made.status, 0) << made.err;
  auto const rows = json::parse(made.out)["results"];
  ASSERT_EQ(rows.size(), 2u * 4 + 10);
  constexpr char const* operations[] = {"constant malloc", "constant free", "drifting malloc", "drifting free"};
  for (size_t i = 0; i < rows.size(); ++i) {
    bool const is_level = i < 8;
    EXPECT_EQ(rows[i]["scenario"], is_level ? "fill_level" : "long_churn");
    EXPECT_EQ(rows[i]["operation"], is_level ? operations[i % 4] : "churn");
    EXPECT_EQ(rows[i]["checked"], true);
    EXPECT_EQ(rows[i]["times_us"].size(), is_level ? 10u : 1u);
    EXPECT_EQ(rows[i]["parameters"]["level_permille"], is_level && i >= 4 ? 1500 : 400);
    EXPECT_EQ(rows[i]["parameters"]["most_bytes"], 512);
  }
  for (size_t i = 0; i < 8; ++i) EXPECT_GT(rows[i]["cycles_p999"], 0);
  EXPECT_EQ(rows[17]["parameters"]["tenth"], 10);
  auto const timed = run("bench long_churn --backend host --pool 2MiB --threads 200 --seconds 0.05 --json -");
  ASSERT_EQ(timed.status, 0) << timed.err;
  auto const document = json::parse(timed.out);
  double seconds = 0;
  for (auto const& row : document["results"]) seconds += row["seconds"].get<double>();
  EXPECT_GE(seconds, 0.05);
  EXPECT_LT(seconds, 1);
}

TEST_F(Program, BenchOfFragmentationTakesItsOptions) {
  auto const made =
      run("bench fragmentation --backend host --pool 4MiB --ranges 64-64 --levels 0.5 --left-shares 0.25,0 "
          "--sizes 64KiB,1MiB --allocator slab_bitmap --repeat 2 --json -");
  ASSERT_EQ(made.status, 0) << made.err;
  auto const rows = json::parse(made.out)["results"];
  ASSERT_EQ(rows.size(), 2u * 3);
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i]["scenario"], "fragmentation");
    EXPECT_EQ(rows[i]["operation"], i % 3 ? "large malloc" : "free");
    EXPECT_EQ(rows[i]["times_us"].size(), 2u);
    EXPECT_EQ(rows[i]["parameters"]["left_permille"], i < 3 ? 250 : 0);
    EXPECT_EQ(rows[i]["parameters"]["level_permille"], 500);
    EXPECT_EQ(rows[i]["parameters"]["blocks"], 32768);
    EXPECT_EQ(rows[i]["parameters"].contains("bytes"), i % 3 != 0);
  }
  EXPECT_EQ(rows[0]["held_share"], 0.125);
  EXPECT_EQ(rows[4]["got"], 64);
  EXPECT_EQ(rows[5]["got_share"], 1);
}

TEST_F(Program, BenchSweepsSizesByTheirStep) {
  auto const made =
      run("bench utilisation --backend host --pool 1MiB --sizes 8-64:8,1000 --ranges 16-32 --repeat 1 "
          "--allocator slab_bitmap,tbuddy --json -");
  ASSERT_EQ(made.status, 0) << made.err;
  auto const rows = json::parse(made.out)["results"];
  ASSERT_EQ(rows.size(), 2u * 10);
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(rows[i]["parameters"]["bytes"], 8 * (i + 1));
    EXPECT_EQ(rows[10 + i]["parameters"]["bytes"], 8 * (i + 1));
    EXPECT_EQ(rows[10 + i]["utilisation"], 8.0 * static_cast<double>(i + 1) / 4096);
  }
  EXPECT_EQ(rows[8]["parameters"]["bytes"], 1000);
}

TEST_F(Program, BenchOfCrowdAndPlacementTakesItsOptions) {
  auto const made =
      run("bench crowd placement --backend host --pool 4MiB --sizes 4KiB --workers 1,40 --threads 60 --rounds 3 "
          "--ranges 16-32 --allocator slab_bitmap,tbuddy --repeat 2 --json -");
  ASSERT_EQ(made.status, 0) << made.err;
  auto const document = json::parse(made.out);
  EXPECT_EQ(document["schema"], 1);
  auto const& rows = document["results"];
  ASSERT_EQ(rows.size(), 2u * (3 * 2 + 1) + 4 + 2 * 2 * 4);
  std::vector<std::string> crowd;
  for (size_t i = 0; i < 7; ++i) crowd.push_back(rows[i]["operation"]);
  EXPECT_THAT(crowd, testing::ElementsAre("malloc", "free", "malloc", "free", "mixed malloc", "mixed free", "churn"));
  for (auto const& row : rows) {
    EXPECT_EQ(row["checked"], true);
    EXPECT_GT(row["operations_per_second"], 0);
    if (row["scenario"] == "placement") {
      EXPECT_EQ(row["parameters"]["threads"], 60);
      EXPECT_EQ(row["times_us"].size(), 2u);
      EXPECT_GE(row["range_over_asked"], 1);
      EXPECT_GT(row["ratio_to_packed"], 0);
    } else if (row["operation"] == "churn") {
      EXPECT_EQ(row["parameters"]["rounds"], 3);
      EXPECT_GT(row["live_share"], 0);
      EXPECT_GE(row["large_share"], 0);
    }
  }
  EXPECT_EQ(rows[14]["allocator"], "packed");
  EXPECT_EQ(rows[18 + 4]["parameters"]["rounds"], 3);
}

TEST_F(Program, PicTimesStepsAndComparesStates) {
  auto const made =
      run("pic --backend host --allocator ring_buffer,slab_bitmap --cells 16x8 --particles-per-cell 5 --species 2 "
          "--steps 4 "
          "--repeat 2 --pool 4MiB --seed 9 --json -");
  ASSERT_EQ(made.status, 0) << made.err;
  auto const document = json::parse(made.out);
  EXPECT_EQ(document["schema"], 1);
  EXPECT_EQ(document["verified"], true);
  EXPECT_EQ(document["state"].get<std::string>().size(), 16u);
  ASSERT_EQ(document["results"].size(), 4u);  // step and move, twice
  for (auto const& row : document["results"]) {
    EXPECT_EQ(row["scenario"], "pic");
    EXPECT_EQ(row["times_us"].size(), 8u);
    EXPECT_GT(row["median_us"], 0);
    EXPECT_EQ(row["checked"], true);
    EXPECT_EQ(row["parameters"]["cells_x"], 16);
    EXPECT_EQ(row["parameters"]["frame_bytes"], 8192);
  }
  EXPECT_EQ(document["results"][0]["operation"], "step");
  EXPECT_LT(document["results"][0]["median_us"].get<double>(), 1e6);
  EXPECT_EQ(document["results"][1]["operation"], "move");
  EXPECT_EQ(document["results"][1]["mallocs_a_step"], 8);
  auto const text = run("pic --backend host --allocator ring_buffer,slab_bitmap --cells 16x8 --steps 2");
  EXPECT_THAT(text.out, HasSubstr("A step with slab_bitmap takes"));
}

TEST_F(Program, PicFindsWhatOneSpeciesCanHave) {
  auto const made =
      run("pic --find-capacity --backend host --allocator slab_bitmap,ring_buffer --species 2 --pool 4MiB --json -");
  ASSERT_EQ(made.status, 0) << made.err;
  auto const document = json::parse(made.out);
  ASSERT_EQ(document["results"].size(), 4u);
  EXPECT_EQ(document["results"][1]["share_of_pool"], 1.0);
  EXPECT_EQ(document["results"][3]["share_of_pool"], 0.5);
  EXPECT_EQ(document["results"][3]["parameters"]["species"], 2);
}

TEST_F(Program, APlasmaThatDoesNotFitIsAFailedCheck) {
  auto const made = run("pic --backend host --pool 1MiB --species 12 --json -");
  EXPECT_EQ(made.status, 1);
  EXPECT_EQ(json::parse(made.out)["verified"], false);
  EXPECT_THAT(json::parse(made.out)["results"][0]["median_us"], json(nullptr));
  EXPECT_THAT(made.err, HasSubstr("65536 of 98304 particles found no memory"));
}

TEST_F(Program, WhatAnAllocatorOfFramesDoesNotServeIsSkippedOrRefused) {
  std::string const ring = " --backend host --pool 8MiB --allocator ring_buffer ";
  auto const bench = json::parse(
      run("bench burst mixed churn fill latency --threads 96 --repeat 1 --sizes 64,9000 --ranges 16-9000 --json -" +
          ring)
          .out);
  unsigned skipped = 0;
  for (auto const& row : bench["results"]) {
    EXPECT_EQ(row["checked"], true);
    if (!row.contains("skipped")) continue;
    ++skipped;
    EXPECT_THAT(row["skipped"].get<std::string>(), HasSubstr("ring_buffer serves at most 8192 bytes"));
    EXPECT_EQ(row["median_us"], nullptr);
  }
  EXPECT_EQ(skipped, 5u);
  auto const verified = json::parse(run("verify --sizes 8192,8193 --repeat 1 --json -" + ring).out);
  EXPECT_EQ(verified["verified"], true);
  EXPECT_EQ(verified["results"][0]["blocks"], 1024);
  EXPECT_TRUE(verified["results"][1].contains("skipped"));
  expect_refusal("verify --sizes 8193" + ring, "ring_buffer serves at most 8192 bytes");
  expect_refusal("graph --scale 14" + ring, "serves at most 8192 bytes, and vertex");
  expect_refusal("pic --frame-bytes 8193" + ring, "ring_buffer serves at most 8192 bytes, and a frame has 8193");
  for (std::string const way : {"--cells 16x8 --steps 2", "--find-capacity --species 1"}) {
    auto const pic = run("pic --allocator ualloc,slab_bitmap --backend host --json - " + way);
    EXPECT_EQ(pic.status, 0) << pic.err;
    auto const rows = json::parse(pic.out)["results"];
    EXPECT_EQ(rows[0]["skipped"], "ualloc serves at most 1024 bytes");
    EXPECT_EQ(rows[1]["allocator"], "slab_bitmap");
    EXPECT_FALSE(rows[1].contains("skipped"));
  }
}

// An allocator that cannot is skipped beside others, and refused alone.
TEST_F(Program, AllocatorsThatCannotDoWhatIsAskedForAreSkipped) {
  struct asked {
    std::string command, unable, why;
  };
  for (auto const& [command, unable, why] :
       {asked{"graph --backend host --scale 10", "ualloc", "ualloc serves at most 1024 bytes, and vertex"},
        asked{"graph --backend host --scale 4 --gpus 0,0", "toolkit", "toolkit is no allocator of heap sets"},
        asked{"join --backend host --tuples 64 --page-bytes 4096", "ualloc", "ualloc serves at most 1024 bytes"},
        asked{"pic --backend host --cells 16x8 --steps 1", "ualloc", "ualloc serves at most 1024 bytes"},
        asked{"verify --backend host --pool 4MiB --sizes 2048", "ualloc", "ualloc serves at most 1024 bytes"},
        asked{"explore --schedules 2", "toolkit", "nothing can be looked at in toolkit"},
        asked{"explore --schedules 2", "throughput_wide", "throughput_wide refuses the pool: "}}) {
    auto const all = run(command + " --allocator all --json -");
    EXPECT_EQ(all.status, 0) << command << all.err;
    EXPECT_THAT(all.out, HasSubstr(why)) << command;
    auto const some = run(command + " --allocator " + unable + ",scatter");
    EXPECT_EQ(some.status, 0) << command << some.err;
    EXPECT_THAT(some.out, AllOf(HasSubstr("skipped: " + why), HasSubstr("scatter"))) << command;
    expect_refusal(command + " --allocator " + unable, why);
  }
}

TEST_F(Program, VerifyFindsTheSlotsAsTheyWere) {
  auto const made = run("verify --backend host --pool 1MiB --sizes 64 --ranges 16-512 --json -");
  ASSERT_EQ(made.status, 0) << made.err;
  auto const document = json::parse(made.out);
  EXPECT_EQ(document["verified"], true);
  ASSERT_EQ(document["results"].size(), 4u);
  EXPECT_EQ(document["results"][0]["slots_before"], 16384);
  EXPECT_EQ(document["results"][0]["slots_after"], 16384);
  EXPECT_EQ(document["results"][0]["blocks"], 16384);
}

TEST_F(Program, BadInputIsOneLineThatNamesFileLineAndFault) {
  std::string const banner = "%%MatrixMarket matrix coordinate pattern general\n";
  auto const input = [&](std::string const& text) { return "graph --backend host --input " + write("bad.mtx", text); };
  expect_refusal("graph --backend host --input no/such.mtx", "no/such.mtx: No such file");
  expect_refusal(input("hello\n"), "bad.mtx:1: not a Matrix Market file");
  expect_refusal(input(banner + "3 3 2\n1 2\n"), "bad.mtx:3: the file ends after 1 of 2 entries");
  expect_refusal(input(banner + "3 3 1\n1 2\n2 3\n"), "bad.mtx:4: an entry more");
  expect_refusal(input(banner + "3 3 1\n4 1\n"), "bad.mtx:3: row 4");
  expect_refusal(input(banner + "-1 -1 1\n1 1\n"), "bad.mtx:2: '-1'");
  expect_refusal(input(banner + "2147483647 2147483647 0\n"), "bytes");
}

TEST_F(Program, BadUsageIsOneLineThatNamesWhatWasTyped) {
  expect_refusal("", "a command is missing; there are: info, test, run, graph");
  expect_refusal("fly", "'fly'");
  expect_refusal("graph --wings 2", "--wings");
  expect_refusal("graph --allocator nobody", "slab_bitmap, toolkit");
  expect_refusal("bench nothing", "'nothing'");
  expect_refusal("graph --backend metal", "'metal'");
  expect_refusal("graph --pool 4000000TiB", "do not fit");
  expect_refusal("graph --pool 8Q", "'8Q'");
  expect_refusal("graph --pool -8", "'-8'");
  expect_refusal("graph --pool 1000", "1 MiB");
  expect_refusal("graph --seed x", "'x'");
  expect_refusal("graph --input ''", "--input");
  expect_refusal("graph --scale 40", "--scale");
  expect_refusal("bench burst --threads 0", "--threads");
  expect_refusal("bench burst --sizes 16,,32", "--sizes");
  expect_refusal("bench workers --workers 2,0", "--workers: 0");
  expect_refusal("bench workers --workers 2,,4", "--workers");
  expect_refusal("bench mixed --ranges 64-16", "--ranges");
  expect_refusal("bench two_phase --divergence lane", "there is no 'lane'; there are: thread, warp, block");
  expect_refusal("bench two_phase --divergence warp,", "--divergence");
  expect_refusal("bench two_phase --allocate-shares 0.5", "'0.5' is not two shares");
  expect_refusal("bench two_phase --free-shares 0.5,1.5", "--free-shares: 1.5 is not between 0 and 1");
  expect_refusal("bench two_phase --free-shares 0.5,often", "'often' is not a number");
  expect_refusal("bench semaphore --batch 0", "--batch");
  expect_refusal("bench fill_level --levels 0", "--levels: 0 is not between 0.001 and 8");
  expect_refusal("bench fill_level --levels 0.5,8.1", "--levels: 8.1 is not between 0.001 and 8");
  expect_refusal("bench fill_level --levels 0.5,,1", "--levels");
  expect_refusal("bench fill_level --kernels 0", "--kernels: 0 is not between 1 and 10000000");
  expect_refusal("bench long_churn --seconds 0", "--seconds: 0 is not between 0.001 and 86400");
  expect_refusal("bench long_churn --seconds long", "'long' is not a number");
  expect_refusal(
      "bench burst churn --levels 0.5",
      "--levels: burst and churn do not use it; fragmentation, map, fill_level, efficiency and long_churn do\n");
  expect_refusal("bench fragmentation --kernels 5",
                 "--kernels: fragmentation does not use it; fill_level, growth, efficiency, map and");
  expect_refusal("bench fragmentation --left-shares 1.5", "--left-shares: 1.5 is not between 0 and 1");
  expect_refusal("bench fragmentation --left-shares 0.0004", "0.0004 is neither 0 nor between 0.001 and 1");
  expect_refusal("bench fragmentation --left-shares 0.5,", "--left-shares");
  expect_refusal("bench random_walk --page-shares 1.5", "--page-shares: 1.5 is not between 0.0001 and 1");
  expect_refusal("bench random_walk --page-shares 0.5,", "--page-shares");
  expect_refusal("bench semaphore --page-shares 0.5", "--page-shares: semaphore does not use it; random_walk does\n");
  expect_refusal("bench fill_level --left-shares 0.5",
                 "--left-shares: fill_level does not use it; fragmentation does\n");
  expect_refusal("bench burst --sizes 8-64", "--sizes: '8-64' has no step");
  expect_refusal("bench burst --sizes 8-64:0", "--sizes: '0' is less than 1 B");
  expect_refusal("bench burst --kernels 5",
                 "--kernels: burst does not use it; fill_level, growth, efficiency, map and long_churn do\n");
  expect_refusal("bench fill_level --seconds 5", "--seconds: fill_level does not use it; long_churn does\n");
  expect_refusal("bench fill_level long_churn --kernels 9 --seconds 5", "--seconds: long_churn ends after --kernels");
  expect_refusal("bench semaphore --batch-ns 2000000", "--batch-ns");
  expect_refusal("bench semaphore --thread-blocks 2048", "--thread-blocks: 2048");
  expect_refusal("bench rcu_delegation --readers-per-writer 4,0", "--readers-per-writer: 0");
  expect_refusal("verify --pool 1MiB --sizes 2MiB", "--sizes");
  expect_refusal("pic --cells 32", "'32' is not like");
  expect_refusal("pic --cells 12x8", "no power of two");
  expect_refusal("pic --cells 8192x8", "--cells");
  expect_refusal("pic --cells x8", "--cells");
  expect_refusal("pic --species 0", "--species");
  expect_refusal("pic --species 65", "--species");
  expect_refusal("pic --steps none", "'none'");
  expect_refusal("pic --frame-bytes 100", "--frame-bytes");
  expect_refusal("pic --repeat 0", "--repeat");
  for (std::string const option : {"--cells 8x4", "--particles-per-cell 3", "--steps 100", "--repeat 1"})
    expect_refusal("pic --backend host --find-capacity " + option,
                   option.substr(0, option.find(' ')) + ": is of a simulation, and --find-capacity makes none\n");
  expect_refusal("graph --backend host --batches 0 --replace",
                 "--replace: is of batches that are erased, and --batches 0 erases none\n");
  expect_refusal("pic --backend host --cells 4096x4096 --particles-per-cell 200", "particles in all");
  expect_refusal("pic --backend host --pool 1MiB --allocator ring_buffer", "524288");
  expect_refusal("pic --allocator nobody", "'nobody'");
  expect_refusal("join --tuples x", "'x'");
  expect_refusal("join --tuples 5,", "--tuples");
  expect_refusal("join --tuples 2000000000", "--tuples");
  expect_refusal("join --probe-tuples -1", "--probe-tuples");
  expect_refusal("join --match 1.5", "--match: 1.5 is not between 0 and 1");
  expect_refusal("join --match half", "'half' is not a number");
  expect_refusal("join --match nan", "--match");
  expect_refusal("join --skew -1", "--skew");
  expect_refusal("join --page-bytes 19", "--page-bytes");
  expect_refusal("join --chains block", "there is no 'block'; there are: warp, lane");
  expect_refusal("join --chains warp,both", "there is no 'both'; there are: warp, lane");
  expect_refusal("join --chains warp,", "--chains");
  expect_refusal("join --page-bytes 260 --allocator rw_bitmap_256 --backend host",
                 "rw_bitmap_256 serves at most 256 bytes");
  expect_refusal("join --partition-bits 17", "--partition-bits");
  expect_refusal("join --repeat 0", "--repeat");
  expect_refusal("join --allocator direct,nobody", "'nobody'");
  expect_refusal("join --allocator direct,", "--allocator");
  expect_refusal("join --page-bytes 9000 --allocator ring_buffer --backend host",
                 "ring_buffer serves at most 8192 bytes");
  expect_refusal("info --json /no/such/folder/x.json", "/no/such/folder/x.json");
}

TEST_F(Program, CudaWithoutADeviceIsRefused) {
  auto const info = json::parse(run("info --json -").out);
  if (!info["devices"].empty()) GTEST_SKIP() << "there is a device";
  expect_refusal("bench burst --backend cuda", "cuda");
}

TEST_F(Program, AJsonFileOfAFailedCommandIsNotLeftBehind) {
  auto const file = folder / "x.json";
  expect_refusal("graph --input no/such.mtx --json " + file.string(), "no/such.mtx");
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(Program, HelpAndVersionAreNoErrors) {
  EXPECT_THAT(run("--help").out, HasSubstr("graph"));
  EXPECT_EQ(run("bench --help").status, 0);
  EXPECT_THAT(run("--version").out, HasSubstr("warpheap 0."));
}

}}  // namespace warpheap::tool
