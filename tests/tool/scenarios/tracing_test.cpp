// SPDX-License-Identifier: Apache-2.0
// tracing: what it measures on the host backend, and that it finds recorders that lose calls.
#include "scenarios/tracing.hpp"

#include <gmock/gmock.h>

#include "tests/tool/measured_fixture.hpp"
#include "tests/tool/scenarios/small_request_fixture.hpp"

namespace warpheap::tool { namespace {

using testing::HasSubstr;
using testing::SizeIs;

TEST(Tracing, MeasuresAPlainHeapAndATracedOneInTurns) {
  auto const asked = small_request();
  auto const rows = bench::tracing(asked);
  ASSERT_THAT(rows, SizeIs(6));
  for (auto const& row : rows) {
    EXPECT_EQ(row.fault, "") << row.operation;
    EXPECT_THAT(row.times_us, SizeIs(asked.repeat)) << row.operation;
    EXPECT_EQ(row.operations, 500) << row.operation;
    if (row.operation.find("traced") == 0) EXPECT_GT(figure(row, "over_plain"), 0);
  }
}

/// Records no call of every third thread.
struct loses_thirds : traced<heap, bench::records_of_a_burst> {
  using whole = traced<heap, bench::records_of_a_burst>;
  struct ref_type : whole::ref_type {
    void* malloc(size_t bytes) const {
      return global_thread_index() % 3 ? whole::ref_type::malloc(bytes) : upstream().malloc(bytes);
    }
  };
  explicit loses_thirds(size_t bytes) : whole(bytes) {}
  ref_type ref() const { return {whole::ref()}; }
};

TEST(Tracing, FindsARecorderThatLosesCalls) {
  auto const rows = bench::tracing<loses_thirds>(small_request());
  EXPECT_THAT(rows.front().fault, HasSubstr("the trace has "));
}

}}  // namespace warpheap::tool
