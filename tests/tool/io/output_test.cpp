// SPDX-License-Identifier: Apache-2.0
// Where results go: a full disk is an error, and a file with older results is replaced as a whole
// or stays as it was.
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "tests/tool/program_fixture.hpp"

namespace warpheap::tool { namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

class Output : public program_test {
 protected:
  /// Runs a line of the shell in the test's folder, in which $TOOL is the program.
  outcome shell(std::string const& line) const {
    auto const whole = "cd '" + folder.string() + "'; TOOL='" + program + "'; (" + line + ") 2>err";
    int const status = std::system(whole.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, {}, contents(folder / "err")};
  }

  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (auto const& each : std::filesystem::directory_iterator{folder}) names.push_back(each.path().filename());
    return names;
  }

  mode_t mode_of(char const* name) const {
    struct stat found = {};
    EXPECT_EQ(stat((folder / name).c_str(), &found), 0);
    return found.st_mode & 07777;
  }

  void expect_fault(std::string const& line, std::string const& said) const {
    auto const made = shell(line);
    EXPECT_EQ(made.status, 2) << line;
    EXPECT_THAT(made.err, HasSubstr(said)) << line;
    EXPECT_EQ(std::count(made.err.begin(), made.err.end(), '\n'), 1) << line << "\n" << made.err;
  }
};

std::string const small_join = "join --backend host --pool 1MiB --tuples 100 --repeat 1";

TEST_F(Output, OnAFullDiskIsAnErrorOfEveryCommand) {
  for (std::string const arguments :
       {"--help", "--version", "bench --help", "info", "info --json -", "graph --backend host --pool 8MiB --scale 6",
        "graph --backend host --pool 8MiB --scale 6 --json -",
        "verify --backend host --pool 1MiB --sizes 4096 --repeat 1",
        "bench latency --backend host --pool 8MiB --repeat 1",
        "bench latency --backend host --pool 8MiB --repeat 1 --json -", "pic --backend host --cells 8x8 --steps 1",
        small_join.c_str()})
    expect_fault("$TOOL " + arguments + " >/dev/full", ": standard output: No space left on device");
}

TEST_F(Output, ThatIsClosedIsAnErrorAndNoFileTakesItsPlace) {
  expect_fault("$TOOL info >&-", "standard output: Bad file descriptor");
  expect_fault("$TOOL info --json x.json >&- 0<&-", "standard output: Bad file descriptor");
  EXPECT_EQ(json::parse(contents(folder / "x.json"))["schema"], 1);
}

TEST_F(Output, ThatNobodyReadsEndsTheProgramAsItDoesOthersAfterTheFileIsWritten) {
  // The reader is gone when the program starts.
  shell("(sleep 0.3; $TOOL info --json x.json; echo $? >status) | true");
  EXPECT_EQ(contents(folder / "status"), "141\n");
  EXPECT_EQ(json::parse(contents(folder / "x.json"))["schema"], 1);
  shell("(trap '' PIPE; sleep 0.3; $TOOL info; echo $? >status) | true");
  EXPECT_EQ(contents(folder / "status"), "2\n");
}

TEST_F(Output, OfAFailedCheckOnAFullDiskKeepsItsStatus) {
  auto const made = shell("$TOOL graph --backend host --pool 1MiB --scale 13 >/dev/full");
  EXPECT_EQ(made.status, 1);
  EXPECT_THAT(made.err, HasSubstr("lost"));
  EXPECT_THAT(made.err, HasSubstr("standard output: No space left on device"));
}

TEST_F(Output, ToAFileOnAFullDiskLeavesTheOldResultAndNothingElse) {
  write("x.json", "old");
  expect_fault("ulimit -f 1; $TOOL info --json x.json >/dev/null", "--json: cannot write x.json: File too large");
  EXPECT_EQ(contents(folder / "x.json"), "old");
  EXPECT_THAT(files(), UnorderedElementsAre("x.json", "err"));
  expect_fault("ulimit -f 1; $TOOL info --json new.json >/dev/null", "--json: cannot write new.json: File too large");
  EXPECT_THAT(files(), UnorderedElementsAre("x.json", "err"));
}

TEST_F(Output, ToAFileOfAFailedCommandLeavesTheOldResult) {
  write("x.json", "old");
  expect_fault("$TOOL graph --input no/such.mtx --json x.json", "no/such.mtx");
  EXPECT_EQ(contents(folder / "x.json"), "old");
  EXPECT_THAT(files(), UnorderedElementsAre("x.json", "err"));
}

TEST_F(Output, ToAFileKeepsItsPermissionsAndTheLinksToIt) {
  write("real.json", "old");
  chmod((folder / "real.json").c_str(), 0640);
  std::filesystem::create_directory(folder / "sub");
  std::filesystem::create_symlink("../real.json", folder / "sub" / "link.json");
  EXPECT_EQ(shell("umask 022; $TOOL info --json sub/link.json >/dev/null").status, 0);
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "sub" / "link.json"));
  EXPECT_EQ(json::parse(contents(folder / "real.json"))["schema"], 1);
  EXPECT_EQ(mode_of("real.json"), 0640u);
  EXPECT_EQ(shell("umask 027; $TOOL info --json new.json >/dev/null").status, 0);
  EXPECT_EQ(mode_of("new.json"), 0640u);
  EXPECT_THAT(files(), UnorderedElementsAre("real.json", "sub", "new.json", "err"));
}

TEST_F(Output, ToWhatIsNoFileIsWrittenDirectly) {
  EXPECT_EQ(shell("$TOOL info --json /dev/null >/dev/null").status, 0);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  expect_fault("$TOOL info --json /dev/full >/dev/null", "--json: cannot write /dev/full: No space left on device");
  EXPECT_EQ(shell("mkfifo pipe; timeout 30 cat pipe >got & timeout 30 $TOOL info --json pipe >/dev/null; wait").status,
            0);
  EXPECT_EQ(json::parse(contents(folder / "got"))["schema"], 1);
  EXPECT_TRUE(std::filesystem::is_fifo(folder / "pipe"));
  expect_fault("$TOOL info --json . >/dev/null", "--json: cannot write .: Is a directory");
}

TEST_F(Output, OfTwoKindsIsNeverOneFile) {
  write("old", "old");
  std::filesystem::create_symlink("old", folder / "link");
  std::filesystem::create_symlink("fresh", folder / "dangling");
  std::filesystem::create_hard_link(folder / "old", folder / "hard");
  std::filesystem::create_directory(folder / "sub");
  std::string const graph = "$TOOL graph --backend host --pool 8MiB --scale 4";
  for (auto const& [job, other] :
       std::vector<std::pair<std::string, std::string>>{{graph, "--trace"},
                                                        {"$TOOL pic --backend host --cells 8x8 --steps 1", "--trace"},
                                                        {"$TOOL " + small_join, "--trace"},
                                                        {"$TOOL " + small_join, "--output"}})
    for (auto const& [one, another] : std::vector<std::pair<std::string, std::string>>{{"old", "old"},
                                                                                       {"old", "./sub/../old"},
                                                                                       {"link", "old"},
                                                                                       {"old", "hard"},
                                                                                       {"fresh", "$PWD/fresh"},
                                                                                       {"dangling", "fresh"}})
      expect_fault(job + " --json " + one + " " + other + " " + another, " is --json's already; name another file");
  expect_fault("$TOOL " + small_join + " --json - --output - | cat; exit 2",
               "--output: standard output is --json's already");
  expect_fault(graph + " --trace got >got", "--trace: got is standard output, which has other text; name another file");
  expect_fault(graph + " --trace - | cat; exit 2", "--trace: - is standard output");
  EXPECT_EQ(contents(folder / "old"), "old");
  EXPECT_THAT(files(), UnorderedElementsAre("old", "link", "dangling", "hard", "sub", "err", "got"));
  EXPECT_EQ(shell(graph + " --json /dev/null --trace /dev/null >/dev/null").status, 0) << "where nothing is lost";
  EXPECT_EQ(shell(graph + " --json a --trace b >/dev/null").status, 0);
}

TEST_F(Output, IsNeverTheFileOfAnInput) {
  std::string const graph = "%%MatrixMarket matrix coordinate pattern general\n3 3 1\n1 2\n", table = "1,10\n";
  write("g.mtx", graph);
  write("b.csv", table);
  write("p.csv", table);
  ASSERT_EQ(shell("$TOOL graph --backend host --scale 4 --trace t.trace --json r.json >/dev/null").status, 0);
  auto const trace = contents(folder / "t.trace"), results = contents(folder / "r.json");
  expect_fault("$TOOL graph --backend host --input g.mtx --json g.mtx", "--json: g.mtx is --input's already");
  expect_fault("$TOOL graph --backend host --input g.mtx --trace g.mtx", "--trace: g.mtx is --input's already");
  expect_fault("$TOOL graph --backend host --input - --json g.mtx <g.mtx", "--json: g.mtx is --input's already");
  expect_fault("$TOOL join --backend host --build b.csv --probe p.csv --output p.csv", "--output: p.csv is --probe's");
  expect_fault("$TOOL join --backend host --build b.csv --probe p.csv --json ./b.csv", "--json: ./b.csv is --build's");
  expect_fault("$TOOL replay --backend host t.trace --json t.trace", "--json: t.trace is TRACE's already");
  expect_fault("$TOOL replay --backend host --info t.trace --json t.trace", "--json: t.trace is TRACE's already");
  expect_fault("$TOOL report r.json --output r.json", "--output: r.json is FILE's already");
  expect_fault("$TOOL report g.mtx --output r.json --before r.json", "--output: r.json is --before's already");
  EXPECT_EQ(contents(folder / "g.mtx"), graph);
  EXPECT_EQ(contents(folder / "b.csv") + contents(folder / "p.csv"), table + table);
  EXPECT_EQ(contents(folder / "t.trace"), trace);
  EXPECT_EQ(contents(folder / "r.json"), results);
}

TEST_F(Output, ReplacesWhatADeadProcessOfItsNumberLeft) {
  auto const made =
      shell("export TOOL; sh -c 'echo left >.warpheap-$$.part; exec \"$TOOL\" info --json x.json >/dev/null'");
  EXPECT_EQ(made.status, 0) << made.err;
  EXPECT_EQ(json::parse(contents(folder / "x.json"))["schema"], 1);
  EXPECT_THAT(files(), UnorderedElementsAre("x.json", "err"));
}

TEST_F(Output, LeavesTheFileOfALivingProcessOfItsNumber) {
  expect_fault("export TOOL; sh -c 'exec 9>.warpheap-$$.part; flock 9; exec \"$TOOL\" info --json x.json'",
               "--json: cannot write x.json: File exists");
}

TEST_F(Output, ByAnotherNameIsStillStandardOutput) {
  EXPECT_EQ(shell("$TOOL info --json /dev/stdout >got").status, 0);
  EXPECT_EQ(json::parse(contents(folder / "got"))["schema"], 1);
  EXPECT_EQ(shell("$TOOL info --json got2 >got2").status, 0);
  EXPECT_EQ(json::parse(contents(folder / "got2"))["schema"], 1);
}

}}  // namespace warpheap::tool
