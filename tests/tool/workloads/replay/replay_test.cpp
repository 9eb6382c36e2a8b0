// SPDX-License-Identifier: Apache-2.0
// Replays: every allocator serves the calls of a trace, and broken ones are found out.
#include <gmock/gmock.h>

#include <string>

#include "tests/support/schedules.hpp"
#include "tests/tool/measured_fixture.hpp"
#include "tests/tool/scenarios/broken_allocators_fixture.hpp"
#include "traces_fixture.hpp"
#include "workloads/replay/backend/replayer.hpp"

namespace warpheap::tool { namespace {

using testing::HasSubstr;
using testing::SizeIs;

template <class Allocator>
bench::result replayed(bench::test_subject<Allocator> const& subject, call_trace const& trace,
                       u64 pool_bytes = mebibyte) {
  EXPECT_EQ(fault_of(trace), "");
  auto const plan = plan_of(trace);
  return replay::replayer{subject, {.plan = &plan, .pool_bytes = pool_bytes, .repeat = 2}}.run();
}
template <class Allocator>
bench::test_subject<Allocator> sound() {
  return {Allocator::creation_type::name, true};
}

template <class Allocator>
void expect_service() {
  auto const row = replayed(sound<Allocator>(), trace_of_kernels());
  EXPECT_EQ(row.fault, "");
  EXPECT_EQ(row.failures, 0u);
  EXPECT_THAT(row.times_us, SizeIs(2));
  EXPECT_EQ(figure(row, "calls_not_made"), 0);
  EXPECT_EQ(row.scenario, "replay");
}

TEST(Replay, MakesTheCallsOfATraceOnAnyAllocator) {
  expect_service<default_allocator>();
  expect_service<rw_malloc_allocator>();
  expect_service<throughput_allocator>();
  auto const row = replayed(sound<default_allocator>(), trace_of_kernels());
  EXPECT_EQ(row.operations, static_cast<double>(plan_of(trace_of_kernels()).calls.size()));
}

TEST(Replay, LetsALaneFreeWhatAnotherLaneOfItsWarpMade) {
  std::vector<traced_call> calls;
  for (u32 i = 0; i < 6; ++i) {
    calls.push_back(asks(0, i));
    calls.push_back(frees(0, i + 1, 2 * u64{i}));
  }
  ASSERT_THAT(plan_of({.calls = calls}).rounds, SizeIs(1));
  test::for_each_schedule(16, [&] {
    auto const row = replayed(sound<default_allocator>(), {.calls = calls});
    EXPECT_EQ(row.fault, "");
    EXPECT_EQ(figure(row, "calls_not_made"), 0);
  });
}

TEST(Replay, CountsWhatIsRefusedAndLeavesOutWhatDependsOnIt) {
  // ring_buffer has frames of 8 KiB, and nothing larger
  auto const row =
      replayed(sound<ring_buffer_allocator>(),
               {.calls = {asks(0, 0, 100), asks(0, 0, 10'000), frees(0, 0, 1), frees(0, 0, 0), asks(0, 0, 1)}});
  EXPECT_EQ(row.fault, "");
  EXPECT_EQ(row.failures, 1u);
  EXPECT_EQ(figure(row, "calls_not_made"), 1);
  EXPECT_EQ(row.operations, 3);
}

TEST(Replay, FreesAtOnceWhatTheProgramWasRefused) {
  auto refused = asks(0, 0, 600'000);
  refused.refused = true;
  std::vector<traced_call> calls{asks(0, 0, 100)};
  calls.insert(calls.end(), 5, refused);
  calls.push_back({.kind = call_kind::realloc, .refused = true, .bytes = 5000, .block = 0});
  calls.push_back(frees(0, 0, 0));
  auto const row = replayed(sound<default_allocator>(), {.calls = calls}, 4 * mebibyte);
  EXPECT_EQ(row.fault, "");
  EXPECT_EQ(row.failures, 0u);
  EXPECT_EQ(figure(row, "calls_not_made"), 0);
}

TEST(Replay, EmptiesTheHeapWhereTheProgramResetIt) {
  std::vector<traced_call> calls;
  for (u32 i = 0; i < 8; ++i) {
    calls.push_back(asks(0, 0, 700'000));
    calls.push_back(heap_is_reset);
  }
  auto const row = replayed(sound<default_allocator>(), {.calls = calls});
  EXPECT_EQ(row.failures, 0u);
  EXPECT_EQ(row.fault, "");
  auto const one_by_one = replayed(bench::test_subject<default_allocator>{"slab_bitmap", false}, {.calls = calls});
  EXPECT_EQ(one_by_one.failures, 0u);
  EXPECT_EQ(one_by_one.fault, "");
}

TEST(Replay, HasABaselineOfTheSameCalls) {
  auto const plan = plan_of(trace_of_kernels());
  auto const row = replay::baseline_of({.plan = &plan, .pool_bytes = mebibyte, .repeat = 3});
  EXPECT_EQ(row.allocator, "null");
  EXPECT_THAT(row.times_us, SizeIs(3));
  EXPECT_EQ(row.parameters, replayed(sound<default_allocator>(), trace_of_kernels()).parameters);
}

/// Forgets what was in a block when it moves, and in memory that it zeroes.
struct forgetful : default_allocator {
  void* realloc(void* block, size_t, size_t bytes) const {
    free(block);
    return malloc(bytes);
  }
  void* calloc(size_t count, size_t size) const {
    auto* const block = static_cast<u8*>(malloc(count * size));
    if (block) block[count * size - 1] = 1;
    return block;
  }
};

/// What is counted where `call` follows a malloc of 100 bytes.
replay::tally counted_by_forgetful(traced_call call) {
  auto const plan = plan_of({.calls = {asks(0, 0, 100), call}});
  heap const below{mebibyte};
  replay::device_plan on_device{plan};
  on_device.launch_rounds<true>(forgetful{below.ref()}, bench::block_promise::of<default_allocator>(), [] {});
  return on_device.take_counts();
}

TEST(Replay, FindsBrokenAllocators) {
  std::vector<traced_call> calls;
  for (u32 thread = 0; thread < 40; ++thread) calls.push_back(asks(0, thread, 48));
  for (u32 thread = 0; thread < 20; ++thread) calls.push_back(frees(0, thread, thread));
  call_trace const trace{.calls = calls};
  EXPECT_THAT(replayed(broken<overlapping>(), trace).fault, HasSubstr("overlap"));
  EXPECT_THAT(replayed(broken<misaligning>(), trace).fault, HasSubstr("aligned"));
  EXPECT_THAT(replayed(broken<leaking>(), trace).fault, HasSubstr("blocks lost"));
  EXPECT_EQ(counted_by_forgetful({.kind = call_kind::realloc, .bytes = 5000, .block = 0}).lost, 1u);
  EXPECT_EQ(counted_by_forgetful({.kind = call_kind::calloc, .bytes = 70}).unzeroed, 1u);
}

}}  // namespace warpheap::tool
