// SPDX-License-Identifier: Apache-2.0
// Searches of a whole program, tests/planted/few_lanes.cpp, which is compiled as `warpheap test`
// does.
#include "commands/program_search.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "planted/few_lanes.hpp"
#include "tool/program_fixture.hpp"
#include "warpheap/explore/exploration.hpp"
#include "warpheap/explore/program_search.hpp"

namespace warpheap::tool { namespace {

using explore::search_end;
using testing::HasSubstr;
using namespace std::chrono_literals;

class ProgramSearch : public program_test {
 protected:
  void SetUp() override {
    program_test::SetUp();
    searched = (std::filesystem::path{program}.parent_path() / "planted_few_lanes").string();
    if (!IsSkipped() && !std::filesystem::exists(searched)) GTEST_SKIP() << searched << " is not built";
    setenv("LOG", (folder / "log").c_str(), 1);
  }
  void TearDown() override {
    for (char const* each : {"CASE", "LOG", "CXX"}) unsetenv(each);
  }

  /// Searches the schedules of one case.
  child_outcome search(program_search& by, char const* which, std::chrono::milliseconds time = 60s) const {
    setenv("CASE", which, 1);
    return by.run(searched, time, is_wanted);
  }

  /// A compiler that notes its command lines. What it makes is the searched program for the way
  /// exploration, and for the others a script that ends at once.
  void set_compiler() const {
    auto const compiler = write("compiler", "#!/bin/sh\necho \"$@\" >>" + (folder / "lines").string() +
                                                "\nfor each; do :; done\nprintf '#!/bin/sh\\n"
                                                "[ -z \"$WARPHEAP_SEARCH$WARPHEAP_SCHEDULE\" ] || exec " +
                                                searched + "\\n' >\"$each\"\nchmod +x \"$each\"\n");
    std::filesystem::permissions(compiler, std::filesystem::perms::owner_all);
    setenv("CXX", compiler.c_str(), 1);
  }

  program_search new_search() const { return {(folder / "record").string(), 1s}; }

  std::string searched;
  std::atomic<bool> is_wanted = true;
};

TEST_F(ProgramSearch, ExecutesEveryScheduleOfARightProgram) {
  auto search_of_all = new_search();
  EXPECT_TRUE(search(search_of_all, "right").succeeded);
  EXPECT_EQ(search_of_all.coverage(), "all schedules");
  std::set<std::string> found, expected;
  std::stringstream log{contents(folder / "log")};
  for (std::string line; std::getline(log, line);) found.insert(line);
  auto const explored = explore::explore({.preemptions = 15}, [&] {
    expected.insert(planted::signatures());
    return true;
  });
  EXPECT_TRUE(explored.ended);
  EXPECT_EQ(found, expected);
  EXPECT_EQ(found.size(), 20U);
  EXPECT_GE(search_of_all.executions(), explored.schedules + explored.cut) << "the last bound is one of several";
}

TEST_F(ProgramSearch, FindsAFaultOfTwoPreemptionsThere) {
  auto search_of_all = new_search();
  auto const failed = search(search_of_all, "two preemptions");
  EXPECT_FALSE(failed.succeeded);
  EXPECT_EQ(failed.ending, "ended with exit status 3");
  EXPECT_EQ(failed.output, "it sees 011\n") << "the output of this execution alone";
  EXPECT_EQ(search_of_all.coverage(), "all schedules of up to 1 preemption");
  setenv("WARPHEAP_SCHEDULE", search_of_all.schedule().c_str(), 1);
  auto const again = run_child({searched}, {}, 10s, is_wanted);
  setenv("WARPHEAP_SCHEDULE", "-", 1);
  auto const usual = run_child({searched}, {}, 10s, is_wanted);
  unsetenv("WARPHEAP_SCHEDULE");
  EXPECT_EQ(again.ending, failed.ending);
  EXPECT_EQ(again.output, failed.output);
  EXPECT_TRUE(usual.succeeded) << usual.output;
}

TEST_F(ProgramSearch, EndsAsAnExecutionThatCrashes) {
  auto search_of_all = new_search();
  auto const failed = search(search_of_all, "abort");
  EXPECT_FALSE(failed.succeeded);
  EXPECT_EQ(failed.ending, "was ended by a signal: Aborted");
  EXPECT_THAT(failed.output, HasSubstr("thread block 1 thread 0 (warp 0 lane 0) crashed: SIGABRT"));
}

TEST_F(ProgramSearch, AnExecutionThatDoesNotEndFails) {
  auto search_of_all = new_search();
  auto const failed = search(search_of_all, "hang", 20s);
  EXPECT_FALSE(failed.succeeded);
  EXPECT_EQ(failed.ending, "did not end within 1 s");
  EXPECT_NE(search_of_all.schedule(), "-");
}

TEST_F(ProgramSearch, OfTheToolFindsAHangInTheTimeThatItHas) {
  set_compiler();
  setenv("CASE", "hang", 1);
  auto const made = run("test --minutes 0.2 --jobs 2 " + write("kernel.cpp", ""));
  EXPECT_EQ(made.status, 1);
  EXPECT_THAT(made.err, HasSubstr("did not end within 2 s"));
}

TEST_F(ProgramSearch, KeepsWhatAFileOfOutputHeldBefore) {
  write("output", "from before\n");
  setenv("CASE", "two preemptions", 1);
  auto const made = run_child({"/bin/sh", "-c", "exec " + searched + " >>" + (folder / "output").string()},
                              {"WARPHEAP_SEARCH=" + (folder / "record").string()}, 20s, is_wanted);
  EXPECT_FALSE(made.succeeded);
  EXPECT_EQ(contents(folder / "output"), "from before\nit sees 011\n");
}

TEST_F(ProgramSearch, SaysWhatIsTooLarge) {
  auto search_of_none = new_search();
  EXPECT_TRUE(search(search_of_none, "crowd").succeeded);
  EXPECT_EQ(search_of_none.coverage(), "launch of 128 threads: too large to search");
  EXPECT_EQ(search_of_none.executions(), 1U);
}

TEST_F(ProgramSearch, SearchesBesideALaunchThatIsTooLarge) {
  auto search_of_some = new_search();
  EXPECT_TRUE(search(search_of_some, "crowd and few").succeeded);
  EXPECT_EQ(search_of_some.coverage(), "all schedules; a launch of 128 threads took turns");
}

TEST_F(ProgramSearch, TellsAProgramThatDoesNotRepeatItself) {
  auto search_of_one = new_search();
  EXPECT_TRUE(search(search_of_one, "by process").succeeded);
  EXPECT_THAT(search_of_one.coverage(), HasSubstr("; ended: under one schedule two runs differed"));
}

TEST_F(ProgramSearch, StopsWhenItsTimeIsOver) {
  auto search_of_few = new_search();
  auto const made = search(search_of_few, "right", 5ms);
  EXPECT_TRUE(made.succeeded && made.was_stopped);
  EXPECT_NE(search_of_few.coverage(), "all schedules");
}

TEST_F(ProgramSearch, RefusesARecordThatCannotBe) {
  EXPECT_THROW(program_search((folder / "none" / "record").string(), 1s), std::exception);
  setenv("CASE", "right", 1);
  auto const searching = run_child({searched}, {"WARPHEAP_SEARCH=/no/file"}, 10s, is_wanted);
  EXPECT_EQ(searching.output, "WARPHEAP_SEARCH=/no/file: no record can be kept there\n");
  auto const replaying = run_child({searched}, {"WARPHEAP_SCHEDULE=12"}, 10s, is_wanted);
  EXPECT_EQ(replaying.output, "WARPHEAP_SCHEDULE=12: a schedule is written like 12:1,40:2\n");
  EXPECT_EQ(replaying.ending, "ended with exit status 2");
}

TEST_F(ProgramSearch, IsAWayOfTheTool) {
  auto const source = write("kernel.cpp", "");
  set_compiler();
  setenv("CASE", "two preemptions", 1);
  for (char const* jobs : {"1", "2"}) {
    auto const made = run("test --minutes 0.2 --jobs " + std::string{jobs} + " " + source);
    EXPECT_EQ(made.status, 1);
    EXPECT_THAT(made.out,
                testing::ContainsRegex("exploration +[0-9]+  orders of at most 64 lanes: all schedules of up to 1"));
    EXPECT_THAT(made.out, HasSubstr("it sees 011\n"));
    auto const begins = made.err.find("--replay exploration:");
    ASSERT_NE(begins, std::string::npos) << made.err;
    auto const again = run("test " + source + " " + made.err.substr(begins, made.err.find('\n', begins) - begins));
    EXPECT_EQ(again.status, 1);
    EXPECT_EQ(again.out, "it sees 011\n");
  }
  EXPECT_THAT(contents(folder / "lines"), HasSubstr("-include warpheap/explore/program_search.hpp"));
}

TEST(ProgramSearchCoverage, IsSaidInWords) {
  auto const record = std::make_unique<explore::search_record>();
  EXPECT_EQ(coverage_of(*record), "no launch of 2 to 64 threads that leaves its schedule open");
  record->launches = 9;
  EXPECT_EQ(coverage_of(*record), "not all schedules without preemptions");
  record->bounds_done = 1;
  EXPECT_EQ(coverage_of(*record), "all schedules without preemptions");
  record->bounds_done = 3;
  record->end = search_end::no_memory;
  EXPECT_EQ(coverage_of(*record), "all schedules of up to 2 preemptions; ended: the search has used up its memory");
}

TEST(ProgramSearchMemory, AnExecutionEndsQuietlyWhenItIsUsedUp) {
  auto const file = std::filesystem::temp_directory_path() / ("warpheap_record_" + std::to_string(getpid()));
  auto& record = *explore::map_search_record(file.c_str());
  std::filesystem::remove(file);
  std::vector<u8> memory(1024);
  explore::detail::tree_memory kept{memory.data(), memory.data() + memory.size(), record};
  auto* const first = kept.allocate(1, 1);
  auto* const second = kept.allocate(512, 64);
  EXPECT_EQ(reinterpret_cast<u64>(second) % 64, 0U);
  EXPECT_GT(second, first);
  EXPECT_EXIT(static_cast<void>(kept.allocate(512, 8)), testing::ExitedWithCode(0), "");
  EXPECT_EQ(record.end, search_end::no_memory);
}

}}  // namespace warpheap::tool
