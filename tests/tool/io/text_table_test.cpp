// SPDX-License-Identifier: Apache-2.0
// Tables of text: what is said once above them, and how they are cut into parts that fit.
#include "io/text_table.hpp"

#include <gmock/gmock.h>

#include <sstream>

#include "cli/wrapped_text.hpp"

namespace warpheap::tool { namespace {

TEST(TextTable, SaysOnceWhatAllRowsShare) {
  text_table table{{"who", ">bytes", ">threads", ">us"}, 3};
  table.add({"one", "16", "96", "1.5"});
  table.add({"another", "", "96", "20.5"});
  EXPECT_EQ(table.text("burst"),
            "burst: bytes 16, threads 96\n\n"
            "who        us\n"
            "one       1.5\n"
            "another  20.5\n");
}

TEST(TextTable, HasEveryColumnOfOneRowAndOfAValueThatIsMissing) {
  text_table one{{"who", ">us"}};
  one.add({"one", "1.5"});
  EXPECT_EQ(one.text("burst"), "burst\n\nwho   us\none  1.5\n");
  text_table missing{{"who", ">us", ">ratio"}};
  missing.add({"one", "1", "2"});
  missing.add({"other", "1"});
  EXPECT_EQ(missing.text("t"), "t: us 1\n\nwho    ratio\none        2\nother      -\n");
}

TEST(TextTable, CountsRowsThatAreAlike) {
  text_table table{{"who", ">us"}};
  table.add({"one", "1"});
  table.add({"one", "1"});
  EXPECT_EQ(table.text("t"), "t: who one, us 1\n2 rows alike\n");
}

TEST(TextTable, LeavesColumnsInPlaceWhereTheLayoutSaysSo) {
  text_table table{{"who", ">us"}};
  table.add({"one", "1"});
  table.add({"other", "1"});
  EXPECT_EQ(table.text("t", {.says_shared_values_once = false}), "t\n\nwho    us\none     1\nother   1\n");
  EXPECT_EQ(table.text("t", {.columns = 6, .says_shared_values_once = false}), "t\n\nwho    us\none     1\nother   1\n")
      << "one column is shown, however wide";
}

TEST(TextTable, IsCutIntoPartsThatBeginWithNames) {
  std::vector<std::string> titles{"who"}, first{"one"}, second{"other"};
  for (int i = 0; i < 20; ++i) {
    titles.push_back(">figure_" + std::to_string(i));
    first.push_back(std::to_string(i));
    second.push_back(std::to_string(1000 * i + 7));
  }
  text_table table{titles};
  table.add(first);
  table.add(second);
  table.note("a note");
  table.note("a note");
  auto const text = table.text("wide");
  std::istringstream lines{text};
  size_t longest = 0, headings = 0, notes = 0;
  for (std::string line; std::getline(lines, line);) {
    longest = std::max(longest, line.size());
    headings += line.rfind("who", 0) == 0;
    notes += line == "a note";
  }
  EXPECT_LE(longest, line_columns);
  EXPECT_GT(longest, line_columns - 12) << "a part takes what fits";
  EXPECT_EQ(headings, 2u);
  EXPECT_EQ(notes, 1u);
  for (auto const& title : titles) EXPECT_THAT(text, testing::HasSubstr(title.substr(title[0] == '>')));
}

TEST(WrappedText, BreaksAtSpacesAlone) {
  EXPECT_EQ(wrapped("one two three", 2, 0, 8), "one two\n  three");
  EXPECT_EQ(wrapped("one two", 0, 0, 7), "one two");
  EXPECT_EQ(wrapped("one two", 0, 0, 6), "one\ntwo");
  EXPECT_EQ(wrapped("incomprehensible word", 0, 0, 5), "incomprehensible\nword");
  EXPECT_EQ(wrapped("a\nb c", 1, 0, 3), "a\n b\n c");
  EXPECT_EQ(wrapped(""), "");
}

}}  // namespace warpheap::tool
