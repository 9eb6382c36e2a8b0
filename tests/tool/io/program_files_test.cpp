// SPDX-License-Identifier: Apache-2.0
// Files that the program reads and writes: standard input, compressed files, quoted tables, and
// joined rows.
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/tool/program_fixture.hpp"

namespace warpheap::tool { namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;
using ProgramFiles = program_test;

std::string const join_here = "join --backend host --allocator direct,slab_bitmap --pool 1MiB ";
std::string const graph_text = "%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n2 3\n";

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

class Remedies : public program_test {
 protected:
  /// Runs a line of the shell in the test's folder, where `warpheap` is the program.
  outcome in_folder(std::string const& line) const {
    return run_shell("cd '" + folder.string() + "' && PATH='" + folder.string() + "':\"$PATH\" && { " + line + "; }");
  }
  void SetUp() override {
    program_test::SetUp();
    if (!program.empty()) std::filesystem::create_symlink(program, folder / "warpheap");
  }

  /// The command that the message of a refused line ends with.
  std::string remedy_of(std::string const& line) const {
    auto const refused = in_folder(line);
    EXPECT_EQ(refused.status, 2) << line << "\n" << refused.err;
    auto const start = refused.err.rfind(": ") + 2;
    return refused.err.substr(start, refused.err.rfind('\n') - start);
  }

  static bool is_missing(std::string const& programs) {
    return std::system(("command -v " + programs + " >/dev/null").c_str()) != 0;
  }
};

struct packed_file {
  std::string name;
  std::string made;      ///< by this line of the shell, of g.mtx or g.txt
  std::string programs;  ///< that it takes
};

TEST_F(Remedies, OfAFileThatIsNoTextMakeTextOfIt) {
  write("g.mtx", graph_text);
  write("g.txt", "0 1\n1 2\n");
  for (auto const& [name, made, programs] :
       std::vector<packed_file>{{"g.mtx.gz", "gzip -c g.mtx", "gzip zcat"},
                                {"no.suffix", "gzip -c g.mtx", "gzip zcat"},
                                {"it's a graph.gz", "gzip -c g.mtx", "gzip zcat"},
                                {"-g.mtx.gz", "gzip -c g.mtx", "gzip zcat"},
                                {"g.txt.gz", "gzip -c g.txt", "gzip zcat"},
                                {"out.g.bz2", "bzip2 -c g.txt", "bzip2 bzcat"},
                                {"g.bz2", "bzip2 -c g.mtx", "bzip2 bzcat"},
                                {"g.xz", "xz -c g.mtx", "xz xzcat"},
                                {"g.zst", "zstd -qc g.mtx", "zstd zstdcat"},
                                {"wide.mtx", "iconv -f UTF-8 -t UTF-16 g.mtx", "iconv"},
                                {"plain_wide.mtx", "iconv -f UTF-8 -t UTF-16BE g.mtx", "iconv"},
                                {"wider.txt", "iconv -f UTF-8 -t UTF-32 g.txt", "iconv"}}) {
    if (is_missing(programs)) continue;
    auto const file = "'" + (name == "it's a graph.gz" ? "it'\\''s a graph.gz" : name) + "'";
    ASSERT_EQ(in_folder(made + " >./" + file).status, 0) << name;
    for (auto const& line : {"warpheap graph --backend host --input=" + file,
                             "cp ./" + file + " FILE && warpheap graph --backend host --format " +
                                 (made.find("txt") == made.npos ? "mtx" : "edges") + " --input - <FILE"}) {
      auto const remedy = remedy_of(line);
      auto const cured = in_folder(remedy);
      EXPECT_EQ(cured.status, 0) << line << ": " << remedy << cured.err;
      EXPECT_THAT(cured.out, HasSubstr("3 vertices, directed edges (2 adjacency entries)")) << remedy;
    }
  }
}

TEST_F(Remedies, OfAnArchiveExtractItsFiles) {
  for (auto const& [name, made, programs] : std::vector<packed_file>{{"g.tar", "tar -cf g.tar d", "tar"},
                                                                     {"g.tar.gz", "tar -czf g.tar.gz d", "tar gzip"},
                                                                     {"g.tgz", "tar -czf g.tgz d", "tar gzip"},
                                                                     {"g.tar.bz2", "tar -cjf g.tar.bz2 d", "tar bzip2"},
                                                                     {"g.zip", "zip -qr g.zip d", "zip unzip"},
                                                                     {"renamed.mtx", "tar -cf renamed.mtx d", "tar"}}) {
    if (is_missing(programs)) continue;
    std::filesystem::create_directory(folder / "d");
    write("d/g.mtx", graph_text);
    ASSERT_EQ(in_folder(made).status, 0) << name;
    std::filesystem::remove_all(folder / "d");
    auto const remedy = remedy_of("warpheap graph --backend host --input " + name);
    EXPECT_EQ(in_folder(remedy).status, 0) << remedy;
    EXPECT_EQ(contents(folder / "d/g.mtx"), graph_text) << remedy;
    std::filesystem::remove_all(folder / "d");
  }
}

TEST_F(Remedies, OfATableLeaveTheOtherOneAsItIs) {
  write("t.csv", "1,10\n");
  write("a b.csv", "1,10\n");
  ASSERT_EQ(in_folder("gzip -c t.csv >t.gz").status, 0);
  for (std::string const tables : {"--build t.gz --probe t.csv", "--build t.csv --probe t.gz",
                                   "--build t.gz --probe 'a b.csv'", "--build 'a b.csv' --probe t.gz"}) {
    auto const remedy = remedy_of("warpheap join --backend host " + tables);
    EXPECT_EQ(in_folder(remedy).status, 0) << remedy;
  }
  for (std::string const tables : {"--build t.gz --probe -", "--build - --probe t.gz"}) {
    auto const remedy = remedy_of("warpheap join --backend host " + tables + " <t.csv");
    EXPECT_EQ(in_folder(remedy).status, 0) << remedy;
    EXPECT_EQ(contents(folder / "FILE"), "1,10\n") << remedy;
  }
}

TEST_F(ProgramFiles, TheFormatOfAGraphIsThatOfItsNameOrTheOneThatIsTyped) {
  auto const edges_in = [&](std::string const& arguments) {
    auto const made = run("graph --backend host --pool 8MiB --batches 0 --json - --input " + arguments);
    EXPECT_EQ(made.status, 0) << made.err;
    return json::parse(made.out)["edges"];
  };
  auto const list = write("g.txt", "# Undirected graph: g\n0 1\n1 2\n"), arcs = write("g.gr", "p sp 2 1\na 1 2 5\n");
  EXPECT_EQ(edges_in(list), 4);
  EXPECT_EQ(edges_in(arcs), 1);
  EXPECT_EQ(edges_in("- --format dimacs <" + arcs), 1);
  EXPECT_EQ(edges_in(write("g.dat", "0 1\n") + " --format edges"), 1);
  expect_refusal("graph --input " + list + " --format gml",
                 "--format: no format is called 'gml'; there are: mtx, edges");
  expect_refusal("graph --format mtx", "--format: is of a file, and without --input a graph is made");
  expect_refusal("graph --backend host --input " + write("m.txt", graph_text),
                 "m.txt:1: a Matrix Market file: --format");
}

TEST_F(ProgramFiles, TablesMayBeQuoted) {
  auto const build = write("b.csv", "\"the \"\"key\"\"\",\"pay\nload\"\r\n\"1\",\"10\"\r\n2,20"),
             probe = write("p.csv", "\"2\",7\r\n");
  EXPECT_EQ(rows_of(run(join_here + "--output - --build " + build + " --probe " + probe).out),
            std::multiset<std::string>{"2,20,7"});
  expect_refusal(join_here + "--probe " + probe + " --build " + write("bad.csv", "1,2\n\"3,4\n"),
                 "bad.csv:2: a quote opens a value and none closes it");
}

}}  // namespace warpheap::tool
