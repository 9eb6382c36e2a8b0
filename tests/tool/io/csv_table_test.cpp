// SPDX-License-Identifier: Apache-2.0
// The reader of tables: what it accepts, and its one line about what it refuses.
#include "io/csv_table.hpp"
#include "cli/usage_error.hpp"

#include <gmock/gmock.h>

namespace warpheap::tool { namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(CsvTable, ReadsKeysAndPayloads) {
  auto const table = parse_csv_table("t.csv", "1,2\n4294967295,0\n 7 ,\t8\n");
  EXPECT_THAT(table.keys, ElementsAre(1, 4294967295, 7));
  EXPECT_THAT(table.payloads, ElementsAre(2, 0, 8));
}

TEST(CsvTable, TakesAHeaderBlankLinesAndNoEndOfTheLastLine) {
  auto const table = parse_csv_table("t.csv", "\nkey, the payload\n\n1,2\n \n3,4");
  EXPECT_THAT(table.keys, ElementsAre(1, 3));
  EXPECT_THAT(table.payloads, ElementsAre(2, 4));
}

TEST(CsvTable, ReadsQuotedValues) {
  auto const table =
      parse_csv_table("t.csv", "\"the \"\"first\"\", key\",\"pay\nload\"\n\"1\",2\n3 , \"4\" \n\"5\",\"6\"");
  EXPECT_THAT(table.keys, ElementsAre(1, 3, 5));
  EXPECT_THAT(table.payloads, ElementsAre(2, 4, 6));
}

TEST(CsvTable, TakesNumbersAsOthersWriteThem) {
  EXPECT_THAT(parse_csv_table("t.csv", "+1,2.0\n1e+05,4.294967295e9\n").keys, ElementsAre(1, 100000));
}

TEST(CsvTable, MayBeEmpty) {
  for (auto const* const text : {"", "\n", "\n\n  \n", "key,payload", "key,payload\n"})
    EXPECT_THAT(parse_csv_table("t.csv", text).keys, IsEmpty()) << text;
}

std::string csv_fault(std::string const& text) {
  try {
    parse_csv_table("t.csv", text);
  } catch (usage_error const& error) {
    return error.what();
  }
  return "accepted";
}

TEST(CsvTable, NamesFileLineAndFault) {
  struct fault {
    char const* text;
    char const* said;
  };
  for (auto const& [text, said] : std::vector<fault>{
           {"1\n", "t.csv:1: '1' is not a key and a payload"},
           {"1;2\n", "t.csv:1: '1;2' is not a key and a payload"},
           {"key,payload\n1,2\n\n1 2\n", "t.csv:4: '1 2' is not a key and a payload"},
           {"1,2,3\n", "t.csv:1: ',3' follows a key and a payload"},
           {"1,2,\n", "t.csv:1: ',' follows a key and a payload"},
           {"1,2\nkey,payload\n", "t.csv:2: 'key' is not a key"},
           {"x,1\n", "t.csv:1: 'x' is not a key"},
           {"1,x\n", "t.csv:1: 'x' is not a payload"},
           {"key,payload\nkey,payload\n", "t.csv:2: 'key' is not a key"},
           {"1,\n", "t.csv:1: the payload is missing"},
           {",1\n", "t.csv:1: the key is missing"},
           {",\n", "t.csv:1: the key is missing"},
           {"-1,1\n", "t.csv:1: '-1' is not a key: a whole number, not negative"},
           {"1,1.5\n", "t.csv:1: '1.5' is not a payload"},
           {"1,2\n1,0x10\n", "t.csv:2: '0x10' is not a payload"},
           {"4294967296,1\n", "t.csv:1: key 4294967296 is more than 4294967295"},
           {"1,99999999999999999999\n", "t.csv:1: payload 99999999999999999999 is more than 4294967295"},
           {"\"1\n", "t.csv:1: a quote opens a value and none closes it"},
           {"1,2\n3,\"4\n5,6\n", "t.csv:2: a quote opens a value and none closes it"},
           {"\"1\"2,3\n", "t.csv:1: '2,3' follows a quoted value"},
           {"\"a\nb\",c\n\"1\"x,3\n", "t.csv:3: 'x,3' follows a quoted value"},
           {"\"a\n\nb\",c\n1,x\n", "t.csv:4: 'x' is not a payload"},
           {"\"1,2\"\n", "t.csv:1: '\"1,2\"' is not a key and a payload"},
           {"\"1,2\",3\n", "t.csv:1: '1,2' is not a key"},
           {"\"1\n\",3\n", "t.csv:1: '1?' is not a key"},
           {"\"\",3\n", "t.csv:1: the key is missing"},
           {"\"\"\n", "t.csv:1: '\"\"' is not a key and a payload"},
           {"1\"2,3\n", "t.csv:1: '1\"2' is not a key"},
           {"1,2,\"3\n4\"\n", "t.csv:1: ',\"3?4\"' follows a key and a payload"},
           {"\x01\x02\xff", "t.csv:1: '\?\?\?' is not a key and a payload"},
       })
    EXPECT_THAT(csv_fault(text), testing::StartsWith(said)) << text;
}

TEST(CsvTable, NamesAFileThatIsNotThere) {
  try {
    read_csv_table("no/such.csv", "join");
    FAIL();
  } catch (usage_error const& error) {
    EXPECT_THAT(error.what(), HasSubstr("no/such.csv: No such file"));
  }
}

}}  // namespace warpheap::tool
