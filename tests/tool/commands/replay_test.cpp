// SPDX-License-Identifier: Apache-2.0
// `warpheap replay`, and the traces that jobs of the tool leave.
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/tool/program_fixture.hpp"
#include "tests/tool/workloads/replay/traces_fixture.hpp"

namespace warpheap::tool { namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

class ReplayProgram : public program_test {
 protected:
  /// The path of a file with a trace.
  std::string saved(call_trace const& trace) const {
    auto const path = (folder / "some.trace").string();
    save(trace, path);
    return path;
  }
};

TEST_F(ReplayProgram, ReplaysATraceOnEveryAllocatorThatIsNamed) {
  auto const path = saved(trace_of_kernels());
  auto const made = run("replay " + path + " --backend host --allocator slab_bitmap,rw_malloc --repeat 2 --json -");
  ASSERT_EQ(made.status, 0) << made.err;
  auto const document = json::parse(made.out);
  EXPECT_EQ(document["schema"], 1);
  EXPECT_EQ(document["trace"], path);
  EXPECT_EQ(document["verified"], true);
  EXPECT_EQ(document["traced"]["kernels"], 4);
  EXPECT_EQ(document["pool_bytes"], trace_of_kernels().pool_bytes) << "the program's pool";
  ASSERT_EQ(document["results"].size(), 3u);
  char const* const allocators[] = {"null", "slab_bitmap", "rw_malloc"};
  for (size_t i = 0; i < 3; ++i) {
    auto const& row = document["results"][i];
    EXPECT_EQ(row["scenario"], "replay");
    EXPECT_EQ(row["allocator"], allocators[i]);
    EXPECT_EQ(row["times_us"].size(), 2u);
    EXPECT_EQ(row["failures"], 0);
    EXPECT_EQ(row["checked"], true);
  }
}

TEST_F(ReplayProgram, TakesAllAllocators) {
  auto const path = saved({.pool_bytes = u64{8} << 20, .calls = {asks(0, 0), frees(0, 0, 0)}});
  auto const made = run("replay " + path + " --backend host --allocator all --repeat 1 --json -");
  ASSERT_EQ(made.status, 0) << made.err;
  auto const known = json::parse(run("info --backend host --json -").out)["allocators"].size();
  EXPECT_EQ(json::parse(made.out)["results"].size(), known + 1);
}

TEST_F(ReplayProgram, TellsWhatWasRefused) {
  auto const path = saved({.pool_bytes = u64{8} << 20, .calls = {asks(0, 0, 10'000), frees(0, 0, 0)}});
  auto const made = run("replay " + path + " --backend host --allocator ring_buffer --repeat 1");
  EXPECT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("ring_buffer refused 1 calls."));
}

TEST_F(ReplayProgram, KeepsToThePoolOnEveryAllocator) {
  // A block of more than any pool here, and three times the pool.
  std::vector<traced_call> calls{asks(0, 0, u64{8} << 30), frees(0, 0, 0)};
  for (u32 i = 0; i < 96; ++i) calls.push_back(asks(0, i % 32, 32 << 10));
  auto const path = saved({.pool_bytes = u64{16} << 30, .calls = calls});
  auto const made = run("replay " + path + " --backend host --pool 1MiB --allocator all --repeat 1 --json -");
  ASSERT_EQ(made.status, 0) << made.err;
  for (auto const& row : json::parse(made.out)["results"])
    if (row["allocator"] != "null") EXPECT_GE(row["failures"], 65) << row["allocator"];
}

TEST_F(ReplayProgram, PrintsWhatIsInATrace) {
  auto trace = trace_of_kernels();
  trace.lost = 17;
  trace.unmatched_frees = 5;
  auto const path = saved(trace);
  auto const made = run("replay --info " + path);
  EXPECT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.out, AllOf(HasSubstr("in 4 kernels, recorded on host with a pool of 1 MiB"),
                              HasSubstr("17 records were lost"), HasSubstr("5 frees are left out"),
                              HasSubstr("realloc"), HasSubstr("launches of at most 3 thread blocks")));
  auto const document = json::parse(run("replay --info " + path + " --json -").out);
  EXPECT_EQ(document["lost"], 17);
  u64 calls = 0;
  for (auto const& [kind, count] : document["calls_by_kind"].items()) calls += count.get<u64>();
  EXPECT_EQ(calls, document["calls"]);
}

TEST_F(ReplayProgram, PrintsNothingOfAFileThatATerminalTakesForACommand) {
  auto trace = trace_of_kernels();
  trace.machine =
      "\x1b]0;owned\x07\x1b[31mRED\nred \xc2\x9b"
      "31m";
  auto const path = saved(trace), named = (folder / "\x1b[31mred").string();
  std::filesystem::rename(path, named);
  std::string const replay = "replay --backend host --repeat 1 ", file = "'" + named + "'";
  for (auto const& arguments :
       {"replay --info " + file, "replay --info --json - " + file, replay + file, replay + "--json - " + file,
        replay + "'" + named + "none'", "graph --backend host --input " + file, "join --build " + file + " --probe -",
        "graph --backend host --input '" + write("\x1b[31m.txt", "0 1\n") + "'", "info --json " + file + "/x"}) {
    auto const made = run(arguments);
    auto const is_command = [](char c) { return (c < ' ' && c >= 0 && c != '\n') || c == '\x7f' || c == '\x9b'; };
    EXPECT_TRUE(std::none_of(made.out.begin(), made.out.end(), is_command)) << made.out;
    EXPECT_TRUE(std::none_of(made.err.begin(), made.err.end(), is_command)) << made.err;
  }
  EXPECT_THAT(run("replay --info " + file).out, HasSubstr("recorded on ?]0;owned??[31mRED?red ??31m with"));
}

TEST_F(ReplayProgram, RefusesWhatIsNoTrace) {
  expect_refusal("replay", "trace is required");
  expect_refusal("replay /nowhere/at.all", "/nowhere/at.all: No such file");
  expect_refusal("replay " + write("text", "no trace"), "text is no trace of Warpheap");
  expect_refusal("replay " + folder.string(), folder.string() + ": cannot be read");
  auto whole = file_of(trace_of_kernels());
  expect_refusal("replay " + write("short", whole.substr(0, whole.size() - 3)), "which are not its");
  whole[8] = 9;
  expect_refusal("replay " + write("newer", whole), "is of version 9");
  expect_refusal("replay " + saved({}), "has no calls");
  auto const path = saved({.calls = {asks(0, 0)}});
  expect_refusal("replay " + path + " --repeat 0", "--repeat: 0 is not between");
  expect_refusal("replay " + path + " --allocator nobody", "no allocator is called 'nobody'");
  expect_refusal("replay --info " + path + " --pool 1GiB", "--pool: is of a replay");
}

class TracedJobs : public ReplayProgram {
 protected:
  /// The trace that a job leaves; checks that it can be replayed.
  call_trace traced(std::string const& job) const {
    auto const path = (folder / "job.trace").string();
    auto const made = run(job + " --backend host --trace " + path);
    EXPECT_EQ(made.status, 0) << made.err;
    EXPECT_EQ(made.err, "");
    auto const again = run("replay " + path + " --backend host --allocator slab_bitmap,scatter --repeat 1 --json -");
    EXPECT_EQ(again.status, 0) << again.err;
    for (auto const& row : json::parse(again.out)["results"]) EXPECT_EQ(row["failures"], 0) << job;
    return load_trace(path);
  }
};

u64 count_of(call_trace const& trace, call_kind kind) {
  return static_cast<u64>(
      std::count_if(trace.calls.begin(), trace.calls.end(), [&](auto const& call) { return call.kind == kind; }));
}

TEST_F(TracedJobs, OfAGraphGrowsItsListsByRealloc) {
  auto const trace = traced("graph --scale 6 --edge-factor 4");
  EXPECT_GT(count_of(trace, call_kind::realloc), 20u);
  EXPECT_GT(count_of(trace, call_kind::kernel), 5u);
  EXPECT_EQ(trace.lost + trace.unmatched_frees + trace.unseen_frees, 0u);
}

TEST_F(TracedJobs, OfAJoinAndAPlasmaFreeWhatTheyAsk) {
  for (char const* const job : {"join --tuples 500 --repeat 1", "pic --cells 16x16 --steps 3 --particles-per-cell 4"}) {
    auto const trace = traced(job);
    EXPECT_GT(count_of(trace, call_kind::malloc), 10u) << job;
    EXPECT_EQ(count_of(trace, call_kind::malloc), count_of(trace, call_kind::free)) << job;
    EXPECT_EQ(trace.lost + trace.unmatched_frees + trace.unseen_frees, 0u) << job;
  }
}

TEST_F(TracedJobs, AreOneJobOnTheDefaultAllocator) {
  auto const path = " --backend host --trace " + (folder / "job.trace").string();
  expect_refusal("graph --allocator scatter" + path,
                 "--allocator: --trace records one allocator, which is slab_bitmap");
  expect_refusal("pic --find-capacity" + path, "--trace: is of a simulation");
  expect_refusal("join --tuples 10,20" + path, "--trace: is of one join, and 2 are asked for");
  expect_refusal("graph --scale 3 --trace /nowhere/at.all", "--trace: cannot write /nowhere/at.all");
}

}}  // namespace warpheap::tool
