// SPDX-License-Identifier: Apache-2.0
// The reader of Matrix Market files: what it accepts, and its one line about what it refuses.
#include "io/matrix_market.hpp"
#include "cli/usage_error.hpp"

#include <gmock/gmock.h>

namespace warpheap::tool { namespace {

using testing::StartsWith;

std::string const pattern_general = "%%MatrixMarket matrix coordinate pattern general\n";

std::string matrix_fault(std::string const& text) {
  try {
    parse_matrix_market("g.mtx", text);
  } catch (usage_error const& error) {
    return error.what();
  }
  return "accepted";
}

TEST(MatrixMarket, ReadsAGeneralPatternAsDirectedEdgesCountedFromZero) {
  auto const graph = parse_matrix_market("g.mtx", pattern_general + "3 3 2\n1 2\n3 1\n");
  EXPECT_EQ(graph.vertices, 3u);
  EXPECT_TRUE(graph.directed);
  ASSERT_EQ(graph.edges.size(), 2u);
  EXPECT_EQ(graph.edges[0].from, 0u);
  EXPECT_EQ(graph.edges[0].to, 1u);
  EXPECT_EQ(graph.edges[1].from, 2u);
  EXPECT_EQ(graph.edges[1].to, 0u);
}

TEST(MatrixMarket, TakesEverySymmetryButGeneralAsUndirected) {
  for (std::string const symmetry : {"symmetric", "skew-symmetric", "hermitian"}) {
    auto const text = "%%MatrixMarket matrix coordinate complex " + symmetry + "\n2 2 1\n2 1 0.5 -1e3\n";
    EXPECT_FALSE(parse_matrix_market("g.mtx", text).directed) << symmetry;
  }
}

TEST(MatrixMarket, SkipsCommentsAndBlankLinesAndBlanksAroundFields) {
  auto const text =
      "\n  %%MatrixMarket MATRIX Coordinate Real General\n% one\n \n 2 2 2\n% two\n\n1 2 +2.5e-3\n 2\t1  7 \n\n";
  EXPECT_EQ(parse_matrix_market("g.mtx", text).edges.size(), 2u);
}

TEST(MatrixMarket, JudgesNothingThatItThrowsAway) {
  for (std::string const field : {"real", "double", "integer", "unsigned-integer", "complex", "pattern", "blue"})
    for (std::string const value : {"", " 7", " -1.0", " 1.0D+00", " -2.5d-01", " 1e+16", " 1e400",
                                    " 18446744073709551615", " nan", " 0,5", " 1 2"}) {
      auto const text = "%%MatrixMarket matrix coordinate " + field + " general\n2 2 1\n1 2" + value + "\n";
      EXPECT_EQ(matrix_fault(text), "accepted") << text;
    }
}

TEST(MatrixMarket, TakesNumbersAsOthersWriteThem) {
  for (std::string const written : {"100000", "+100000", "100000.0", "1e5", "1E+05", "1.0e+05"}) {
    auto const graph = parse_matrix_market("g.mtx", pattern_general + written + " 100000 1\n" + written + " 1\n");
    EXPECT_EQ(graph.vertices, 100'000u) << written;
    EXPECT_EQ(graph.edges[0].from, 99'999u) << written;
  }
}

TEST(MatrixMarket, TakesABannerWithOnePercentSign) {
  EXPECT_FALSE(parse_matrix_market("g.mtx", "%MatrixMarket matrix coordinate pattern symmetric\n2 2 0\n").directed);
}

TEST(MatrixMarket, TakesALastLineWithoutAnEndAndAGraphOfNothing) {
  EXPECT_EQ(parse_matrix_market("g.mtx", pattern_general + "2 2 1\n1 2").edges.size(), 1u);
  EXPECT_EQ(parse_matrix_market("g.mtx", pattern_general + "0 0 0\n").vertices, 0u);
}

TEST(MatrixMarket, NamesFileLineAndFault) {
  struct fault {
    std::string text;
    char const* said;
  };
  for (auto const& [text, said] : std::vector<fault>{
           {"", "g.mtx:1: not a Matrix Market file: it is empty"},
           {"1 2\n", "g.mtx:1: not a Matrix Market file: it starts with '1 2'"},
           {std::string("\x7f"
                        "ELF\x01\x00",
                        6),
            "g.mtx:1: not a Matrix Market file: it starts with '?ELF?"
            "?'"},
           {"%%MatrixMarket vector coordinate real general\n", "g.mtx:1: the object is 'vector'"},
           {"%%MatrixMarket matrix array real general\n2 2\n", "g.mtx:1: the format is 'array'"},
           {"%%MatrixMarket matrix coordinate real odd\n", "g.mtx:1: the symmetry is 'odd'"},
           {"%%MatrixMarket matrix coordinate real\n", "g.mtx:1: the symmetry is ''"},
           {pattern_general, "g.mtx:1: the file ends before its size line"},
           {pattern_general + "% c\n3 3\n", "g.mtx:3: the line has no number of entries"},
           {pattern_general + "3 3 1 1\n", "g.mtx:2: the size line has '1' after its three numbers"},
           {pattern_general + "-3 3 1\n", "g.mtx:2: '-3' is not a number of rows"},
           {pattern_general + "3 3.5 1\n", "g.mtx:2: '3.5' is not a number of columns"},
           {pattern_general + "1e999 1 1\n", "g.mtx:2: '1e999' is not a number of rows"},
           {pattern_general + "3 4 1\n1 1\n", "g.mtx:2: the matrix is rectangular, 3 rows and 4 columns"},
           {pattern_general + "2147483648 2147483648 1\n1 1\n", "g.mtx:2: 2147483648 vertices are more than"},
           {pattern_general + "3 3 3\n1 2\n2 3\n", "g.mtx:4: the file ends after 2 of 3 entries"},
           {pattern_general + "3 3 18446744073709551615\n1 2\n", "g.mtx:3: the file ends after 1 of"},
           {pattern_general + "3 3 1\n1 2\n\n2 3\n", "g.mtx:5: an entry more than the 1 that are promised"},
           {pattern_general + "3 3 1\n0 1\n", "g.mtx:3: row 0 is not between 1 and 3"},
           {pattern_general + "3 3 1\n1 4\n", "g.mtx:3: column 4 is not between 1 and 3"},
           {pattern_general + "3 3 1\n1 -4\n", "g.mtx:3: column -4 is not between 1 and 3"},
           {pattern_general + "3 3 1\n1 99999999999999999999\n", "g.mtx:3: column 99999999999999999999 is not between"},
           {pattern_general + "3 3 1\n1 x\n", "g.mtx:3: 'x' is not a column"},
           {pattern_general + "3 3 1\n1\n", "g.mtx:3: the line has no column"},
           {pattern_general + "3 3 1\n1 +-2\n", "g.mtx:3: '+-2' is not a column"},
           {pattern_general + "3 3 1\n1 nan\n", "g.mtx:3: 'nan' is not a column"},
           {pattern_general + "3 3 1\n1 1.5\n", "g.mtx:3: '1.5' is not a column"}})
    EXPECT_THAT(matrix_fault(text), StartsWith(said));
}

/// More text than one task reads: `entries` lines, of which line `odd_line` is `odd` (the first has
/// number 1).
std::string long_text(u64 entries, u64 promised, u64 odd_line = 0, std::string const& odd = {}) {
  std::string text = pattern_general + "1000000 1000000 " + std::to_string(promised) + "\n";
  for (u64 line = 3; line < entries + 3; ++line) {
    if (line == odd_line) text += odd + "\n";
    else text += std::to_string(line) + " " + std::to_string(line % 7 + 1) + (line % 5 ? "\n" : "\n\n% c\n");
  }
  return text;
}

TEST(MatrixMarket, ReadsLongFilesInPieces) {
  u64 const entries = 400'000;
  auto const text = long_text(entries, entries);
  ASSERT_GT(text.size(), u64{3} << 20);
  auto const graph = parse_matrix_market("g.mtx", text);
  ASSERT_EQ(graph.edges.size(), entries);
  for (u64 i = 0; i < entries; ++i) {
    ASSERT_EQ(graph.edges[i].from, i + 2);
    ASSERT_EQ(graph.edges[i].to, (i + 3) % 7);
  }
}

TEST(MatrixMarket, NamesTheFirstFaultOfALongFile) {
  // Two more lines follow every fifth entry. 60,000 such pairs come before the entry that would be
  // in line 300,000 without them.
  u64 const entries = 400'000, line = 300'000, there = line + 2 * (line / 5);
  auto const bad = [&](u64 promised, std::string const& odd) {
    return matrix_fault(long_text(entries, promised, line + 1, odd));
  };
  auto const at = [](u64 number) { return "g.mtx:" + std::to_string(number) + ": "; };
  EXPECT_THAT(bad(entries, "1 x"), StartsWith(at(there + 1) + "'x' is not a column"));
  EXPECT_THAT(bad(5, "1 x"), StartsWith(at(8 + 2) + "an entry more than the 5"));
  EXPECT_THAT(bad(line - 2, "1 x"), StartsWith(at(there + 1) + "an entry more than the 299998"));
  EXPECT_THAT(bad(entries + 9, "1"), StartsWith(at(there + 1) + "the line has no column"));
  u64 const last = entries + 2;
  EXPECT_THAT(matrix_fault(long_text(entries, entries + 9)),
              StartsWith(at(last + 2 * (last / 5)) + "the file ends after 400000 of 400009 entries"));
  auto two = long_text(entries, entries, line + 1, "1 x");
  two.replace(two.rfind(" 1\n"), 3, " y\n");
  EXPECT_THAT(matrix_fault(two), StartsWith(at(there + 1) + "'x' is not a column"));
}

}}  // namespace warpheap::tool
