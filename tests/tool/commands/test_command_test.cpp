// SPDX-License-Identifier: Apache-2.0
// `warpheap test`, as a process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tool/program_fixture.hpp"

namespace warpheap::tool { namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class ProgramTest : public program_test {
 protected:
  /// Writes a program, which may be a script of the shell, and returns its name.
  std::string program(std::string const& text) const {
    auto const path = folder / "kernel.cpp";
    std::ofstream{path} << text;
    return path.string();
  }

  /// Runs `warpheap test` with a compiler that makes programs of scripts.
  outcome test(std::string const& arguments) const {
    auto const compiler = folder / "compiler";
    std::ofstream{compiler} << "#!/bin/sh\n"
                               "for each; do case $from$each in *.cpp|*.o) from=${from:-$each};; esac; done\n"
                               "echo \"$@\" >>"
                            << (folder / "lines").string()
                            << "\n"
                               "cp \"$from\" \"$each\" && chmod +x \"$each\"\n";
    std::filesystem::permissions(compiler, std::filesystem::perms::owner_all);
    setenv("CXX", compiler.c_str(), 1);
    auto made = run("test " + arguments);
    unsetenv("CXX");
    return made;
  }
};

TEST_F(ProgramTest, RunsEachWayUntilOneFailsAndTellsHowToRepeatThat) {
  auto const log = folder / "log";
  auto const source = program("#!/bin/sh\necho \"<$WARPHEAP_EXECUTION>\" >>" + log.string() +
                              "\n[ \"$WARPHEAP_EXECUTION\" != seed=7,weak_memory ] || { echo five of six; exit 3; }\n");
  auto const made = test("--seed 5 " + source + " -- -O2 -DNAME='two words'");
  EXPECT_EQ(made.status, 1);
  EXPECT_THAT(made.out, HasSubstr("five of six\n"));
  EXPECT_THAT(made.err, ContainsRegex("kernel.cpp ended with exit status 3: warpheap test .*kernel.cpp --replay "
                                      "(weak_memory|races):7 -- -O2 -DNAME=two words\n"));
  auto const runs = contents(log);
  for (char const* settings : {"<seed=5>", "<seed=5,weak_memory>", "<>", "<seed=6>", "<seed=6,weak_memory>"})
    EXPECT_THAT(runs, HasSubstr(settings));
  EXPECT_THAT(runs, Not(HasSubstr("<seed=9"))) << "none is left running";
  auto const lines = contents(folder / "lines");
  for (char const* flags : {"-fsanitize=address -O2", "-fsanitize=thread -O2",
                            "-fsanitize=thread --param tsan-distinguish-volatile=1 -DWARPHEAP_HOST_RACES -O2",
                            "-O2 -DNAME=two words -c -o ", "races.o -O2 -DNAME=two words -lboost_context -pthread -o "})
    EXPECT_THAT(lines, HasSubstr(flags));
  auto const again = test("--replay weak_memory:7 " + source);
  EXPECT_EQ(again.status, 1);
  EXPECT_EQ(again.out, "five of six\n");
  EXPECT_EQ(test("--replay weak_memory:8 " + source).status, 0);
}

TEST_F(ProgramTest, EndsWellWhenTheTimeIsOver) {
  auto const made = test("--minutes 0.002 --jobs 3 " + program("#!/bin/sh\n"));
  EXPECT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("weak_memory"));
}

TEST_F(ProgramTest, ARunThatCrashesOrDoesNotEndFails) {
  auto const source = program("#!/bin/sh\n[ \"$WARPHEAP_EXECUTION\" != seed=1 ] || kill -ABRT $$\nsleep 100\n");
  auto const crashed = test("--replay schedules:1 " + source);
  EXPECT_EQ(crashed.status, 1);
  EXPECT_THAT(crashed.err, HasSubstr("was ended by a signal: Aborted"));
  EXPECT_THAT(crashed.err, HasSubstr("--replay races:1 names the lines"));
  auto const hung = test("--replay parallel:1 --timeout 1 " + source);
  EXPECT_EQ(hung.status, 1);
  EXPECT_THAT(hung.err, HasSubstr("did not end within 1 s"));
}

TEST_F(ProgramTest, TellsWhatAnExceptionSays) {
  auto const source =
      program("#!/bin/sh\nprintf 'terminate called\\n  what():  hang: all wait\\n  more\\n'\nkill -ABRT $$\n");
  auto const made = test("--replay weak_memory:1 " + source);
  EXPECT_EQ(made.status, 1);
  EXPECT_THAT(made.err, HasSubstr("kernel.cpp fails: hang: all wait: warpheap test "));
  EXPECT_THAT(made.err, Not(HasSubstr("races:1")));
}

TEST_F(ProgramTest, RunsKernelsAsTheSettingsSay) {
  auto const source = program(R"(
#include <warpheap/platform/simt.hpp>

#include <cstdio>

struct nothing {
  WARPHEAP_DEVICE void operator()() const { warpheap::simt::sync_block(); }
};
int main() {
  warpheap::launch({2, 32}, nothing{});
  std::puts(warpheap::host::describe(warpheap::host::current_execution()).c_str());
}
)");
  setenv("WARPHEAP_EXECUTION", "sm_count=3", 1);
  auto const made = run("test --replay weak_memory:17 " + source);
  unsetenv("WARPHEAP_EXECUTION");
  EXPECT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("seed 17, random_walk, active masks mixed, weak memory, 8 multiprocessors"));
  EXPECT_THAT(run("test --replay exploration:0:1 " + source).out, HasSubstr("directed, active masks maximal, 8 multi"));
}

TEST_F(ProgramTest, RefusesWhatItCannotDo) {
  expect_refusal("test", "no program");
  expect_refusal("test no_such.cpp", "no file no_such.cpp");
  auto const source = program("int main() { return what; }\n");
  expect_refusal("test --replay weak_memory " + source, "a run is written like weak_memory:17");
  expect_refusal("test --replay best:3 " + source, "a run is written like weak_memory:17");
  expect_refusal("test --replay exploration:12:1,x " + source, "a run is written like weak_memory:17");
  expect_refusal("test --jobs 0 " + source, "--jobs");
  auto const broken = run("test " + source);
  EXPECT_EQ(broken.status, 2);
  EXPECT_THAT(broken.out, HasSubstr("was not declared in this scope"));
  EXPECT_THAT(broken.err, HasSubstr("kernel.cpp does not compile: g++ ended with exit status 1"));
}

}}  // namespace warpheap::tool
