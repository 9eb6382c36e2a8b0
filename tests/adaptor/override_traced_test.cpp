// SPDX-License-Identifier: Apache-2.0
// The heap behind device code's malloc, recorded: a program that is not edited leaves a trace.
#include "warpheap/adaptor/override_traced.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "support/message_of.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace override_traced_test {

using namespace warpheap;
using testing::HasSubstr;

/// Kernel: asks in each way that override_names.hpp knows, and frees half of it.
struct call_names {
  WARPHEAP_DEVICE void operator()() const {
    void* const first = device_heap.malloc(100);
    void* const second = device_heap.calloc(10, 10);
    device_heap.realloc(first, 300);
    device_heap.aligned_alloc(512, 100);
    device_heap.make(0, 1024);
    device_heap.free(second);
  }
};

/// The trace's file while it lives, which the environment names.
struct trace_file {
  trace_file() { setenv("WARPHEAP_TRACE", path.c_str(), 1); }
  trace_file(trace_file const&) = delete;
  trace_file& operator=(trace_file const&) = delete;
  ~trace_file() {
    unsetenv("WARPHEAP_TRACE");
    unlink(path.c_str());
  }

  std::string path = testing::TempDir() + "/warpheap_override_" + std::to_string(getpid());
};

TEST(OverrideTraced, SavesTheTraceToTheFileThatTheEnvironmentNames) {
  trace_file const file;
  {
    override_heap const heap{size_t{4} << 20};
    launch({2, 40}, call_names{});
    synchronize();
    EXPECT_EQ(heap.heap().statistics().live_blocks, 80 * 3u);
  }
  auto const trace = load_trace(file.path);
  EXPECT_EQ(trace.calls.size(), 1 + 80 * 6u);
  EXPECT_EQ(trace.lost + trace.unmatched_frees + trace.unseen_frees, 0u);
}

TEST(OverrideTraced, SavesNothingUnlessTheEnvironmentSaysWhere) {
  std::string path;
  {
    trace_file const file;
    path = file.path;
  }
  testing::internal::CaptureStderr();
  { override_heap const heap{size_t{4} << 20}; }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_THAT(test::message_of<std::invalid_argument>([&] { load_trace(path); }), HasSubstr("No such file"));
}

TEST(OverrideTraced, SaysWhyThereIsNoTrace) {
  trace_file const file;
  setenv("WARPHEAP_TRACE", (file.path + "/x").c_str(), 1);
  testing::internal::CaptureStderr();
  { override_heap const heap{size_t{4} << 20}; }
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("warpheap: no trace: " + file.path + "/x: cannot be"));
}

}  // namespace override_traced_test
