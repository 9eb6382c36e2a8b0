// SPDX-License-Identifier: Apache-2.0
// `warpheap report`: that it starts the script with what was typed, and says why where it cannot.
// What is on the page is tested beside the script, in tests/report/.
#include "tests/tool/program_fixture.hpp"

namespace warpheap::tool { namespace {

using testing::HasSubstr;
using Report = program_test;

TEST_F(Report, ShowsWhatBenchWrote) {
  auto const results = (folder / "b.json").string(), page = (folder / "page.html").string();
  ASSERT_EQ(run("bench burst --backend host --pool 8MiB --threads 96 --repeat 2 --sizes 64 --json " + results).status,
            0);
  auto const made = run("report " + results + " --output " + page);
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("rows of 1 files"));
  EXPECT_THAT(contents(page), HasSubstr("Warpheap: allocators measured on the host backend"));
  EXPECT_EQ(run("report --output - " + results).out, contents(page));
  EXPECT_EQ(run_shell("'" + program + "' report --output - - <" + results).status, 0);
  EXPECT_THAT(run("report " + results + " --before " + results + " --output -").out, HasSubstr("Before and after"));
  EXPECT_EQ(run("report " + results + " --output " + page + " --images " + (folder / "images").string()).status, 0);
  EXPECT_THAT(contents(folder / "images" / "burst-median-us.svg"), HasSubstr("<svg"));
}

TEST_F(Report, NamesTheFileThatCannotBeReadAndItsFault) {
  auto const page = " --output " + (folder / "page.html").string();
  expect_refusal("report" + page, "warpheap report: no results: name files that `warpheap bench --json FILE` wrote");
  expect_refusal("report gone.json" + page, "warpheap report: gone.json: No such file or directory");
  auto const broken = write("broken.json", "{\"schema\": 1");
  expect_refusal("report " + broken + page, "warpheap report: " + broken + ": not JSON: ");
  EXPECT_FALSE(std::filesystem::exists(folder / "page.html"));
}

TEST_F(Report, SaysThatPythonIsMissing) {
  auto const made = run_shell("PATH=/nowhere '" + program + "' report x.json");
  EXPECT_EQ(made.status, 2);
  EXPECT_THAT(made.err,
              HasSubstr("warpheap report: python3, which makes the page, could not be started: No such file"));
  EXPECT_EQ(std::count(made.err.begin(), made.err.end(), '\n'), 1);
}

TEST_F(Report, TakesTheScriptOfItsInstallation) {
  std::filesystem::create_directories(folder / "bin");
  std::filesystem::create_directories(folder / "share" / "warpheap" / "report");
  std::filesystem::copy_file(program, folder / "bin" / "warpheap");
  write("share/warpheap/report/__main__.py", "import sys; print('installed', sys.argv[1:]); sys.exit(1)");
  auto const made = run_shell("'" + (folder / "bin" / "warpheap").string() + "' report a b --before c --output d");
  EXPECT_EQ(made.status, 1) << made.err;
  EXPECT_EQ(made.out, "installed ['--output', 'd', '--before', 'c', '--', 'a', 'b']\n");
}

}}  // namespace warpheap::tool
