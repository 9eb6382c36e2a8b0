// Files that the program reads and writes: standard input, compressed files, quoted tables, and
// joined rows.
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/tool/program_fixture.hpp"

namespace warpheap::tool {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;
using ProgramFiles = program_test;

std::string const join_here = "join --backend host --allocator direct,slab_bitmap --pool 1MiB ";
std::string const graph_text = "%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n2 3\n";
std::string const gzip_bytes = "\x1f\x8b\x08 and so on";

/// Lines behind the first, in order.
std::multiset<std::string> rows_of(std::string const& text) {
  std::istringstream lines{text};
  std::multiset<std::string> rows;
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "key,build_payload,probe_payload");
  while (std::getline(lines, line)) rows.insert(line);
  return rows;
}

TEST_F(ProgramFiles, JoinWritesItsRows) {
  auto const tables = join_here + "--build " + write("build.csv", "1,10\n2,20\n2,21\n") + " --probe " +
                      write("probe.csv", "2,7\n3,8\n2,9\n");
  std::multiset<std::string> const expected{"2,20,7", "2,20,9", "2,21,7", "2,21,9"};
  auto const file = folder / "rows.csv";
  write("rows.csv", "an old result");
  auto const made = run(tables + " --output " + file.string());
  EXPECT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("direct"));
  EXPECT_EQ(rows_of(contents(file)), expected);
  auto const printed = run(tables + " --output -");
  EXPECT_EQ(printed.status, 0) << printed.err;
  EXPECT_EQ(rows_of(printed.out), expected);
  for (auto const* const chains : {"warp", "lane"}) {
    auto const many =
        run("join --backend host --pool 8MiB --tuples 3000 --skew 1 --page-bytes 64 --output - --chains " +
            std::string{chains});
    EXPECT_EQ(rows_of(many.out).size(), 3000u) << many.err;
  }
  EXPECT_THAT(rows_of(run("join --backend host --pool 1MiB --tuples 0 --output -").out), IsEmpty());
}

TEST_F(ProgramFiles, AJoinWithoutAResultLeavesTheOldOne) {
  auto const file = write("rows.csv", "an old result");
  EXPECT_EQ(run("join --backend host --pool 1MiB --tuples 80000 --output " + file).status, 1);
  EXPECT_EQ(contents(file), "an old result");
  expect_refusal("join --backend host --tuples 1,2 --output " + file,
                 "warpheap join: --output: takes the rows of one join, and 2 are asked for");
  expect_refusal("join --backend host --tuples 1 --chains warp,lane --output " + file,
                 "--output: takes the rows of one join, and 2 are asked for");
  expect_refusal("join --output - --json -", "--output: standard output is --json's already");
  expect_refusal("join --backend host --tuples 9 --output /no/such/folder/x.csv",
                 "warpheap join: --output: cannot write /no/such/folder/x.csv: No such file or directory");
  expect_refusal("join --backend host --tuples 9 --output /dev/full",
                 "cannot write /dev/full: No space left on device");
  std::vector<std::string> left;
  for (auto const& each : std::filesystem::directory_iterator{folder}) left.push_back(each.path().filename());
  EXPECT_THAT(left, testing::UnorderedElementsAre("rows.csv", "out", "err"));
}

TEST_F(ProgramFiles, StandardInputIsAFile) {
  auto const graph = write("g.mtx", graph_text);
  auto const made = run("graph --backend host --pool 8MiB --json - --input - <" + graph);
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_EQ(json::parse(made.out)["edges"], 2);
  EXPECT_EQ(json::parse(made.out)["input"], "<stdin>");
  auto const table = write("t.csv", "1,10\n2,20\n");
  for (auto const* const tables : {"--build - --probe ", "--probe - --build "})
    EXPECT_EQ(json::parse(run(join_here + "--json - " + tables + table + " <" + table).out)["joins"][0]["tuples"], 2);
}

TEST_F(ProgramFiles, FaultsInStandardInputNameItAndTheLine) {
  expect_refusal("graph --backend host --input - <" + write("g.mtx", graph_text + "7 1\n"),
                 "warpheap graph: <stdin>:5: an entry more than the 2 that are promised");
  auto const table = write("t.csv", "1,10\n"), bad = write("bad.csv", "1,10\n2,x\n");
  expect_refusal(join_here + "--build - --probe " + table + " <" + bad,
                 "warpheap join: <stdin>:2: 'x' is not a payload");
  expect_refusal(join_here + "--build " + table + " --probe - <" + bad,
                 "warpheap join: <stdin>:2: 'x' is not a payload");
  expect_refusal(join_here + "--build - --probe - <" + table,
                 "warpheap join: --probe: standard input is the table of --build already");
}

TEST_F(ProgramFiles, CompressedInputIsRefusedWithARemedy) {
  auto const graph = write("g.mtx.gz", gzip_bytes), table = write("t.csv", "1,10\n");
  expect_refusal(
      "graph --backend host --input " + graph,
      graph + ": is compressed by gzip; decompress it on the way in: zcat " + graph + " | warpheap graph --input -");
  expect_refusal("graph --backend host --input - <" + graph,
                 "<stdin>: is compressed by gzip; decompress it on the way in: zcat FILE | warpheap graph --input -");
  expect_refusal(join_here + "--build " + graph + " --probe " + table,
                 "zcat " + graph + " | warpheap join --build - --probe " + table);
  expect_refusal(join_here + "--probe " + graph + " --build " + table,
                 "zcat " + graph + " | warpheap join --build " + table + " --probe -");
  expect_refusal("graph --backend host --input " + write("g.bz2", "BZh91"), "bzcat");
  expect_refusal("graph --backend host --input " + write("g.xz", std::string("\xfd"
                                                                             "7zXZ\0",
                                                                             6) +
                                                                     "x"),
                 "xzcat");
  expect_refusal("graph --backend host --input " + write("g.zst", "\x28\xb5\x2f\xfd"), "zstdcat");
}

TEST_F(ProgramFiles, TheRemedyForCompressedInputWorks) {
  if (run_shell("gzip --version").status != 0) GTEST_SKIP() << "no gzip";
  auto const graph = write("g.mtx", graph_text);
  ASSERT_EQ(run_shell("gzip '" + graph + "'").status, 0);
  auto const made = run_shell("zcat '" + graph + ".gz' | '" + program + "' graph --backend host --json - --input -");
  EXPECT_EQ(made.status, 0) << made.err;
}

TEST_F(ProgramFiles, TablesMayBeQuoted) {
  auto const build = write("b.csv", "\"the \"\"key\"\"\",\"pay\nload\"\r\n\"1\",\"10\"\r\n2,20"),
             probe = write("p.csv", "\"2\",7\r\n");
  EXPECT_EQ(rows_of(run(join_here + "--output - --build " + build + " --probe " + probe).out),
            std::multiset<std::string>{"2,20,7"});
  expect_refusal(join_here + "--probe " + probe + " --build " + write("bad.csv", "1,2\n\"3,4\n"),
                 "bad.csv:2: a quote opens a value and none closes it");
}

}  // namespace
}  // namespace warpheap::tool
