// SPDX-License-Identifier: Apache-2.0
// Traces in files: what is written is read, and what is no trace is refused with its fault.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "support/message_of.hpp"
#include "warpheap/adaptor/trace/file.hpp"

namespace trace_file_test {

using namespace warpheap;
using testing::HasSubstr;

/// Two kernels: lanes 3 and 5 ask together, a realloc is refused, a warp of another thread block
/// frees; then a reset.
call_trace sample() {
  call_trace trace{
      .machine = "a machine", .pool_bytes = u64{5} << 40, .lost = 3, .unmatched_frees = 2, .unseen_frees = 1};
  trace.calls = {
      {.kind = call_kind::kernel},
      {.kind = call_kind::malloc, .thread = 3, .thread_block = 0xffff'fffe, .bytes = u64{1} << 47},
      {.kind = call_kind::malloc, .first = false, .thread = 5, .thread_block = 0xffff'fffe, .bytes = 1},
      {.kind = call_kind::aligned_alloc, .log2_alignment = 12, .thread = 1023, .bytes = 77},
      {.kind = call_kind::realloc, .refused = true, .thread = 5, .bytes = 99, .block = 2},
      {.kind = call_kind::kernel},
      {.kind = call_kind::realloc, .thread = 6, .bytes = 99, .block = 2},
      {.kind = call_kind::free, .thread_block = 9, .block = 1},
      {.kind = call_kind::free, .thread_block = 9, .block = 6},
      {.kind = call_kind::reset},
  };
  return trace;
}

std::string fault_of_file(std::string const& file) {
  return test::message_of<std::invalid_argument>([&] { trace_of(file); });
}

TEST(TraceFile, GivesBackWhatWasWritten) {
  EXPECT_EQ(fault_of(sample()), "");
  EXPECT_EQ(trace_of(file_of(sample())), sample());
  EXPECT_EQ(trace_of(file_of({})), call_trace{});
  auto const path = testing::TempDir() + "/warpheap_trace_file_test";
  save(sample(), path);
  EXPECT_EQ(load_trace(path), sample());
  std::remove(path.c_str());
  EXPECT_THAT(test::message_of<std::invalid_argument>([&] { load_trace(path); }), HasSubstr(path + ": No such file"));
  EXPECT_THAT(test::message_of<std::runtime_error>([&] { save(sample(), path + "/x"); }),
              HasSubstr("cannot be written"));
}

TEST(TraceFile, HasTheLayoutThatIsDocumented) {
  auto const file = file_of(sample());
  EXPECT_EQ(file.size(), 56 + 9 + 10 * 24u);
  EXPECT_EQ(file.substr(0, 8), std::string("WHTRACE\0", 8));
  EXPECT_EQ(file.substr(8, 8), std::string("\1\0\0\0\11\0\0\0", 8));
  EXPECT_EQ(file.substr(56, 9), "a machine");
  EXPECT_EQ(file.substr(56 + 9 + 2 * 24, 24),
            std::string("\1\0\0\0\5\0\0\0\xfe\xff\xff\xff\1\0\0\0\0\0\0\0\0\0\0\0", 24));
}

TEST(TraceFile, RefusesWhatIsNoTrace) {
  auto const file = file_of(sample());
  EXPECT_THAT(fault_of_file(""), HasSubstr("does not begin with WHTRACE"));
  EXPECT_THAT(fault_of_file("%%MatrixMarket"), HasSubstr("does not begin with WHTRACE"));
  for (size_t bytes = 8; bytes < file.size(); ++bytes)
    EXPECT_NE(fault_of_file(file.substr(0, bytes)), "nothing thrown") << bytes << " bytes";
  EXPECT_THAT(fault_of_file(file + "x"), HasSubstr("which are not its 10 records"));
  auto other = file;
  other[8] = 2;
  EXPECT_THAT(fault_of_file(other), HasSubstr("of version 2"));
  other = file;
  other[31] = 1;  // 2^56 records
  EXPECT_THAT(fault_of_file(other), HasSubstr("records"));
  other = file;
  other[15] = 1;
  EXPECT_THAT(fault_of_file(other), HasSubstr("names a machine by"));
}

TEST(TraceFile, ReadsAnyBytesWithoutHarm) {
  auto const file = file_of(sample());
  for (size_t at = 0; at < file.size(); ++at)
    for (int const value : {0, 1, 127, 255}) {
      auto other = file;
      other[at] = static_cast<char>(value);
      try {
        EXPECT_EQ(fault_of(trace_of(other)), "");
      } catch (std::invalid_argument const&) {
      }
    }
}

/// What is wrong after `change(calls)`.
template <class Change>
std::string fault_after(Change change) {
  auto trace = sample();
  change(trace.calls);
  return fault_of_file(file_of(trace));
}

TEST(TraceFile, RefusesCallsThatNoProgramCanHaveMade) {
  using enum call_kind;
  using calls = std::vector<traced_call>;
  EXPECT_EQ(fault_after([](calls& all) { all[8].block = 1; }), "record 8 names block 1, which is not live then");
  EXPECT_THAT(fault_after([](calls& all) { all[7].block = 8; }), HasSubstr("record 7 names block 8"));
  EXPECT_THAT(fault_after([](calls& all) { all[7].block = 0; }), HasSubstr("names block 0")) << "a kernel";
  EXPECT_THAT(fault_after([](calls& all) { all[8].block = 4; }), HasSubstr("names block 4")) << "refused";
  EXPECT_THAT(fault_after([](calls& all) { std::swap(all[8], all[9]); }), HasSubstr("record 9 names block 6"));
  EXPECT_THAT(fault_after([](calls& all) { all[6].kind = static_cast<call_kind>(9); }), HasSubstr("of no known kind"));
  EXPECT_THAT(fault_after([](calls& all) { all[1].thread = 1024; }), HasSubstr("of thread 1024"));
  EXPECT_THAT(fault_after([](calls& all) { all[1].bytes = 0; }), HasSubstr("asks for 0 bytes"));
  EXPECT_THAT(fault_after([](calls& all) { all[3].log2_alignment = 48; }), HasSubstr("2^47"));
  EXPECT_THAT(fault_after([](calls& all) { all[7].refused = true; }), HasSubstr("of no known kind"));
  EXPECT_THAT(fault_after([](calls& all) { all[5].bytes = 1; }), HasSubstr("more than a mark has"));
  EXPECT_THAT(fault_after([](calls& all) { all[2].thread = 3; }), HasSubstr("continues a group"));
  EXPECT_THAT(fault_after([](calls& all) { all[2].thread = 32; }), HasSubstr("continues a group"));
  EXPECT_THAT(fault_after([](calls& all) { all[2].thread_block = 1; }), HasSubstr("continues a group"));
  EXPECT_THAT(fault_after([](calls& all) { all[6].first = false; }), HasSubstr("continues a group")) << "of a mark";
  EXPECT_THAT(fault_after([](calls& all) {
                all[2] = {.kind = free, .first = false, .thread = 5, .thread_block = 0xffff'fffe, .block = 1};
              }),
              HasSubstr("names block 1"))
      << "lanes that call together do not wait for each other";
}

}  // namespace trace_file_test
