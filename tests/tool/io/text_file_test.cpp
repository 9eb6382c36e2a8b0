// SPDX-License-Identifier: Apache-2.0
// The reader that all formats of text share: what other programs write comes out as UTF-8 with LF,
// and what is no text is named. And the function that makes text of files fit for a terminal.
#include "io/text_file.hpp"
#include "cli/printable.hpp"
#include "cli/usage_error.hpp"
#include "io/csv_table.hpp"
#include "io/graph_file.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

namespace warpheap::tool { namespace {

using namespace std::string_literals;
using testing::HasSubstr;
using testing::StartsWith;

std::string text_fault(std::string const& path, std::string const& bytes) {
  try {
    plain_text(path, bytes, "graph --input -");
  } catch (usage_error const& error) {
    return error.what();
  }
  return "accepted";
}

TEST(TextFile, EndsItsLinesWithLfWhateverEndsThemInTheFile) {
  for (std::string const end : {"\n", "\r\n", "\r"})
    EXPECT_EQ(plain_text("f", "a" + end + end + "b" + end, ""), "a\n\nb\n");
  EXPECT_EQ(plain_text("f", "\ra\r\r\nb\n\rc\r", ""), "\na\n\nb\n\nc\n");
  EXPECT_EQ(plain_text("f", "", ""), "");
}

TEST(TextFile, HasNoMark) {
  EXPECT_EQ(plain_text("f", "\xef\xbb\xbf%%M", ""), "%%M");
  EXPECT_EQ(plain_text("f", "\xef\xbb\xbf", ""), "");
  EXPECT_EQ(plain_text("f", "a\xef\xbb\xbf", ""), "a\xef\xbb\xbf") << "which stands at the start";
}

TEST(TextFile, NamesAnotherEncoding) {
  for (auto const& [bytes, name] :
       std::vector<std::pair<std::string, char const*>>{{"\xff\xfe%\0"s, "UTF-16LE"},
                                                        {"\xfe\xff\0%"s, "UTF-16BE"},
                                                        {"%\0%\0"s, "UTF-16LE"},
                                                        {"\0%\0%"s, "UTF-16BE"},
                                                        {"\xff\xfe"s, "UTF-16LE"},
                                                        {"\xff\xfe\0\0%\0\0\0"s, "UTF-32LE"},
                                                        {"\0\0\xfe\xff\0\0\0%"s, "UTF-32BE"},
                                                        {"%\0\0\0"s, "UTF-32LE"},
                                                        {"\0\0\0%"s, "UTF-32BE"}})
    EXPECT_EQ(text_fault("f", bytes),
              "f: is text in "s + name + "; convert it: iconv -f " + name + " -t UTF-8 <f | warpheap graph --input -");
}

TEST(TextFile, TellsAnArchiveFromWhatIsOnlyCompressed) {
  std::string const gzip = "\x1f\x8b\x08", tar = std::string(257, 'a') + "ustar";
  EXPECT_THAT(text_fault("g.mtx.gz", gzip), HasSubstr("is compressed by gzip"));
  for (std::string const name : {"g.tar.gz", "d/g.tgz", "g.tar.bz2", "g.tar.Z"})
    EXPECT_THAT(text_fault(name, gzip),
                HasSubstr("is a tar archive; extract its files, and read one of them: tar -xf "));
  EXPECT_THAT(text_fault("g.mtx", tar), HasSubstr("is a tar archive"));
  EXPECT_THAT(text_fault("g.mtx", "PK\3\4"), HasSubstr("is a zip archive"));
  EXPECT_EQ(text_fault("g.tar.gz", "a"), "accepted") << "its contents decide";
}

TEST(TextFile, WritesItsNameInACommandAsAShellTakesIt) {
  EXPECT_THAT(text_fault("a b's.gz", "\x1f\x8b"), HasSubstr(": zcat <'a b'\\''s.gz' |"));
  EXPECT_THAT(text_fault("-x.tgz", "\x1f\x8b"), HasSubstr(": tar -xf ./-x.tgz"));
  EXPECT_THAT(text_fault("-", "\x1f\x8b"), StartsWith("<stdin>: "));
}

/// Files of one graph, as each program writes it, for every format; and a table.
class EveryFormat : public testing::TestWithParam<std::string> {
 protected:
  /// Reads `text` from a file.
  static void read(std::string const& text) {
    auto const path = testing::TempDir() + "warpheap_text" + std::to_string(getpid());
    std::ofstream{path, std::ios::binary} << text;
    if (GetParam() == "csv") {
      EXPECT_EQ(read_csv_table(path, "join").keys, std::vector<u32>({1, 2}));
    } else {
      auto const graph = read_graph(path, GetParam());
      EXPECT_EQ(graph.edges.size(), 2u);
    }
    std::remove(path.c_str());
  }
  static std::string text() {
    if (GetParam() == "mtx") return "%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n2 3\n";
    if (GetParam() == "dimacs") return "p sp 3 2\na 1 2 1\na 2 3 1\n";
    return GetParam() == "csv" ? "1,2\n2,3\n" : "1 2\n2 3\n";
  }
};

INSTANTIATE_TEST_SUITE_P(Of, EveryFormat, testing::Values("mtx", "edges", "dimacs", "csv"),
                         [](auto const& of) { return of.param; });

TEST_P(EveryFormat, IsReadAsAnyProgramWritesIt) {
  read(text());
  read("\xef\xbb\xbf" + text());
  for (std::string const end : {"\r\n", "\r"}) {
    std::string written = "\xef\xbb\xbf";
    for (char const c : text()) written += c == '\n' ? end : std::string{c};
    read(written);
    read(written.substr(0, written.size() - end.size()));
  }
}

TEST_P(EveryFormat, IsNamedIfItIsNoText) {
  std::string wide;
  for (char const c : text()) wide += {c, '\0'};
  for (auto const& [bytes, said] : std::vector<std::pair<std::string, char const*>>{
           {wide, "UTF-16LE"}, {"\x1f\x8b", "gzip"}, {"PK\3\4", "zip archive"}}) {
    try {
      read(bytes);
      FAIL() << said;
    } catch (usage_error const& error) {
      EXPECT_THAT(error.what(), HasSubstr(said));
    }
  }
}

TEST(GraphFile, IsOfTheFormatThatItsNameSays) {
  for (auto const& [format, names] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"mtx", {"-", "g.mtx", "g", "g.dat", "d.txt/g", "g.mtx.gz"}},
           {"edges", {"g.txt", "d/g.txt.gz", "g.edges", "g.el", "g.tsv", "g.csv", "d/out.moreno", "out.moreno.bz2"}},
           {"dimacs", {"g.gr", "g.gr.gz", "g.col", "g.clq", "g.max", "g.dimacs"}}})
    for (auto const& name : names) EXPECT_EQ(graph_format("", name), format) << name;
  EXPECT_EQ(graph_format("dimacs", "g.mtx"), "dimacs");
  EXPECT_THROW(graph_format("gml", "g.mtx"), usage_error);
}

TEST(Printable, LeavesNothingThatATerminalTakesForACommand) {
  EXPECT_EQ(printable("\x1b]0;owned\x07\x1b[31mRED"), "?]0;owned??[31mRED");
  EXPECT_EQ(printable("a\nb\tc\x7f\0"s), "a?b?c??");
  EXPECT_EQ(printable("a\nb\tc\r", "\n\t"), "a\nb\tc?");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m \x9b"
                      "31m"),
            "??31m ?31m")
      << "CSI as one character";
  EXPECT_EQ(printable("données, 数, \xf0\x9f\x99\x82"), "données, 数, \xf0\x9f\x99\x82");
  EXPECT_EQ(printable("\xc3(\xe2\x82\xf5\xc0\xaf"), "?(????\?");
}

TEST(Excerpt, IsShort) {
  EXPECT_EQ(excerpt(std::string(41, 'x')), std::string(40, 'x') + "...");
  EXPECT_EQ(excerpt(std::string(39, 'x') + "é"), std::string(39, 'x') + "?...") << "cut within a character";
}

}}  // namespace warpheap::tool
