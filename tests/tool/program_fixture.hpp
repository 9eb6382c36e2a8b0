// SPDX-License-Identifier: Apache-2.0
// The program as a process: its input, and its output. WARPHEAP_TOOL names it; without that, tests
// are skipped.
#pragma once

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace warpheap::tool {

struct outcome {
  int status = -1;
  std::string out;
  std::string err;
};

inline std::string contents(std::filesystem::path const& path) {
  std::ifstream file{path};
  return {std::istreambuf_iterator<char>{file}, {}};
}

class program_test : public testing::Test {
 protected:
  program_test() {
    std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    std::ranges::replace(name, '/', '_');  // of a test with a parameter
    folder = std::filesystem::temp_directory_path() / ("warpheap_" + name + std::to_string(getpid()));
    std::filesystem::create_directory(folder);
  }
  ~program_test() override { std::filesystem::remove_all(folder); }

  void SetUp() override {
    auto const* const path = std::getenv("WARPHEAP_TOOL");
    if (!path) GTEST_SKIP() << "WARPHEAP_TOOL does not name the program";
    program = path;
  }

  /// The outcome of `command` in a shell.
  outcome run_shell(std::string const& command) const {
    auto const out = folder / "out", err = folder / "err";
    int const status = std::system((command + " >'" + out.string() + "' 2>'" + err.string() + "'").c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents(out), contents(err)};
  }

  /// The program's outcome; `arguments` may end with a shell's redirections.
  outcome run(std::string const& arguments) const { return run_shell("'" + program + "' " + arguments); }

  /// The program's outcome when it is interrupted while it works. On a busy machine it may not have
  /// begun when the signal comes, and says nothing: it is then given more time.
  outcome run_interrupted(std::string const& arguments) const {
    outcome made;
    for (auto const* const seconds : {"0.3", "1", "3", "9"}) {
      // --foreground: else it signals its process group too, and the program twice
      made = run_shell("timeout --foreground --preserve-status -k 20 -s INT " + std::string{seconds} + " '" + program +
                       "' " + arguments);
      if (!made.out.empty() || !made.err.empty()) break;
    }
    return made;
  }

  std::string write(std::string const& name, std::string const& text) const {
    std::ofstream{folder / name} << text;
    return (folder / name).string();
  }

  /// Status 2, nothing on standard output, and one line on standard error, with `said` in it.
  void expect_refusal(std::string const& arguments, std::string const& said) const {
    auto const made = run(arguments);
    EXPECT_EQ(made.status, 2) << arguments;
    EXPECT_THAT(made.out, testing::IsEmpty()) << arguments;
    EXPECT_THAT(made.err, testing::HasSubstr(said)) << arguments;
    EXPECT_EQ(std::count(made.err.begin(), made.err.end(), '\n'), 1) << arguments << "\n" << made.err;
  }

  std::filesystem::path folder;
  std::string program;
};

}  // namespace warpheap::tool
