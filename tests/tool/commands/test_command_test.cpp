// SPDX-License-Identifier: Apache-2.0
// `warpheap test`, as a process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tool/program_fixture.hpp"

namespace warpheap::tool { namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ProgramTest : public program_test {
 protected:
  /// Writes a program whose main() has `body`, and returns its name.
  std::string program(std::string const& body, std::string const& includes = "") const {
    auto const path = folder / "kernel.cpp";
    std::ofstream{path} << "#include <cstdio>\n#include <cstdlib>\n#include <string>\n"
                        << includes << "\nint main() { std::string const how = std::getenv(\"WARPHEAP_EXECUTION\");\n"
                        << body << "}\n";
    return path.string();
  }
};

TEST_F(ProgramTest, RunsEachWayUntilOneFailsAndTellsHowToRepeatThat) {
  auto const log = folder / "log";
  auto const source = program(
      "std::fprintf(std::fopen(LOG, \"a\"), \"<%s>\", how.c_str());\n"
      "if (how != FAILS) return 0;\nstd::puts(\"five of six\");\nreturn 3;\n",
      "#include <warpheap/platform/simt.hpp>\n");
  auto const flags = " -- '-DFAILS=\"seed=7,weak_memory\"' '-DLOG=\"" + log.string() + "\"'";
  auto const made = run("test --seed 5 " + source + flags);
  EXPECT_EQ(made.status, 1);
  EXPECT_THAT(made.out, HasSubstr("five of six\n"));
  EXPECT_THAT(made.err, AllOf(HasSubstr("kernel.cpp ended with exit status 3: warpheap test "),
                              HasSubstr(":7 -- -DFAILS=\"seed=7,weak_memory\" -DLOG=")));
  auto const runs = contents(log);
  for (char const* settings : {"<seed=5>", "<seed=5,weak_memory>", "<>", "<seed=6>", "<seed=6,weak_memory>"})
    EXPECT_THAT(runs, HasSubstr(settings));
  EXPECT_THAT(runs, Not(HasSubstr("<seed=9>"))) << "none is left running";
  auto const again = run("test --replay weak_memory:7 " + source + flags);
  EXPECT_EQ(again.status, 1);
  EXPECT_EQ(again.out, "five of six\n");
}

TEST_F(ProgramTest, EndsWellWhenTheTimeIsOver) {
  auto const source = program("return 0;", "#include <warpheap/platform/simt.hpp>\n");
  auto const made = run("test --minutes 0.003 --jobs 3 " + source);
  EXPECT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("weak_memory"));
}

TEST_F(ProgramTest, ARunThatCrashesOrDoesNotEndFails) {
  auto const source = program("if (how == \"seed=1\") std::abort(); for (;;) {}");
  auto const crashed = run("test --replay schedules:1 " + source);
  EXPECT_EQ(crashed.status, 1);
  EXPECT_THAT(crashed.err, HasSubstr("was ended by a signal: Aborted"));
  auto const hung = run("test --replay parallel:1 --timeout 1 " + source);
  EXPECT_EQ(hung.status, 1);
  EXPECT_THAT(hung.err, HasSubstr("did not end within 1 s"));
}

TEST_F(ProgramTest, RunsKernelsAsTheSettingsSay) {
  auto const source = program(
      "auto const run = warpheap::host::describe(warpheap::host::current_execution());\n"
      "std::puts(run.c_str()); warpheap::launch({2, 32}, nothing{}); return 0;",
      "#include <warpheap/platform/simt.hpp>\n"
      "struct nothing { WARPHEAP_DEVICE void operator()() const { warpheap::simt::sync_block(); } };\n");
  auto const made = run("test --replay weak_memory:17 " + source);
  EXPECT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("deterministic mode, seed 17, random_walk, active masks mixed, weak memory"));
}

TEST_F(ProgramTest, RefusesWhatItCannotDo) {
  expect_refusal("test", "no program");
  expect_refusal("test no_such.cpp", "no file no_such.cpp");
  auto const source = program("return what;");
  expect_refusal("test --replay weak_memory " + source, "a run is written like weak_memory:17");
  expect_refusal("test --replay best:3 " + source, "a run is written like weak_memory:17");
  expect_refusal("test --jobs 0 " + source, "--jobs");
  auto const broken = run("test " + source);
  EXPECT_EQ(broken.status, 2);
  EXPECT_THAT(broken.out, HasSubstr("was not declared in this scope"));
  EXPECT_THAT(broken.err, HasSubstr("kernel.cpp does not compile: g++ ended with exit status 1"));
}

}}  // namespace warpheap::tool
