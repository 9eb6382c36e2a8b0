// SPDX-License-Identifier: Apache-2.0
#include "io/json_output.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace warpheap::tool { namespace {

using nlohmann::ordered_json;

TEST(JsonOutput, HasALineForEachRowAndReadsAsTheSameDocument) {
  auto const document =
      ordered_json::parse(R"({"schema": 1, "machine": {"cpu": "µ \"x\"", "gpus": []}, "empty": {}, "none": [],
    "sizes": [16, 64], "results": [{"times_us": [1.5, 2e300], "of": {"deep": [{"a": null}]}}, {}, [true]], "more": {"rows": [{"b": -1}, {"b": 2}]}})");
  auto const text = text_of(document, false);
  EXPECT_EQ(ordered_json::parse(text), document);
  EXPECT_EQ(text, R"({
 "schema": 1,
 "machine": {
  "cpu": "µ \"x\"",
  "gpus": []
 },
 "empty": {},
 "none": [],
 "sizes": [16, 64],
 "results": [
  {"times_us": [1.5, 2e+300], "of": {"deep": [{"a": null}]}},
  {},
  [true]
 ],
 "more": {
  "rows": [
   {"b": -1},
   {"b": 2}
  ]
 }
}
)");
}

TEST(JsonOutput, IsAsciiWhereAsked) {
  ordered_json const document = {{"µs", "\xff µ\n"}};
  auto const text = text_of(document, true);
  EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](unsigned char each) { return each < 0x80; })) << text;
  EXPECT_NE(text.find("\\ufffd \\u00b5\\n"), text.npos) << text;
}

}}  // namespace warpheap::tool
