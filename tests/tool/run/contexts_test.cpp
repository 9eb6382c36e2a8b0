// SPDX-License-Identifier: Apache-2.0
// preload.B1, preload.B2: a heap is bound before a kernel runs, in each context, and goes first.
#include "run_fixture.hpp"

namespace warpheap::tool { namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::IsEmpty;

using RunContexts = run_test;

/// The calls behind those that make the first heap.
lines after_first_heap(lines all) {
  auto const raised = std::ranges::find(all, "driver: limit 0 of 2048 in context 0");
  EXPECT_NE(raised, all.end());
  if (raised != all.end()) all.erase(all.begin(), raised + 1);
  return all;
}

class EachWay : public run_test, public testing::WithParamInterface<char const*> {
 protected:
  std::string launch_in(int context) const {
    return std::string_view{GetParam()}.ends_with("thread")
               ? "driver: launch into the thread's stream in context " + std::to_string(context)
               : "driver: launch in context " + std::to_string(context);
  }
};

// One kernel launch for each of the ways in which a program finds the driver's functions.
TEST_P(EachWay, EachKindOfLaunchIsPrecededByTheHeap) {
  for (std::string const launch : {"launch", "launch_ex", "launch_cooperative", "launch_graph"}) {
    auto const ended = started("library=calling.fat create " + launch + " " + launch, GetParam());
    ASSERT_EQ(ended.status, 0) << ended.err;
    EXPECT_THAT(ended.err, IsEmpty());
    EXPECT_THAT(after_first_heap(calls()),
                ElementsAre("driver: library 1, cubin", "heap: 1 bound to library 1 in context 0",
                            "heap: 2 made in context 1", "driver: limit 0 of 2048 in context 1",
                            "heap: 2 bound to library 1 in context 1", launch_in(1), launch_in(1)))
        << launch;
  }
}

TEST_P(EachWay, AHeapGoesBeforeItsContext) {
  ASSERT_EQ(
      started("create context=0 library=calling.fat context=1 launch destroy=1 context=0 launch reset", GetParam())
          .status,
      0);
  EXPECT_THAT(
      after_first_heap(calls()),
      ElementsAre("driver: library 1, cubin", "heap: 1 bound to library 1 in context 0", "heap: 2 made in context 1",
                  "driver: limit 0 of 2048 in context 1", "heap: 2 bound to library 1 in context 1", launch_in(1),
                  "heap: 2 destroyed in context 1", "driver: context 1 destroyed", launch_in(0),
                  "heap: 1 destroyed in context 0", "driver: device reset"));
}

TEST_P(EachWay, TheProgramsOwnStackLimitIsRaisedOnceThereIsAHeap) {
  ASSERT_EQ(started("stack=4096 library=calling.fat stack=8192 other_limit=5", GetParam()).status, 0);
  EXPECT_THAT(calls(), ElementsAre("driver: limit 0 of 4096 in context 0", "linker: -arch=sm_90",
                                   "heap: 1 made in context 0", "driver: limit 0 of 5120 in context 0",
                                   "driver: library 1, cubin", "heap: 1 bound to library 1 in context 0",
                                   "driver: limit 0 of 9216 in context 0", "driver: limit 1 of 5 in context 0"));
}

INSTANTIATE_TEST_SUITE_P(RunContexts, EachWay,
                         testing::Values("address", "thread", "old", "dlsym", "dlsym_thread", "default", "linked",
                                         "linked_thread"),
                         [](auto const& each) { return std::string{each.param}; });

TEST_F(RunContexts, EachContextHasOneHeap) {
  started("library=calling.fat create launch create launch context=1 launch context=0 launch");
  auto const all = calls();
  for (std::string const context : {"0", "1", "2"})
    EXPECT_THAT(all, Contains(HasSubstr("made in context " + context)).Times(1));
  EXPECT_THAT(all, Contains(HasSubstr("bound to")).Times(3));
}

TEST_F(RunContexts, ALibraryThatIsLoadedWithoutAContextIsBoundAtTheFirstLaunch) {
  EXPECT_THAT(started("no_context library=calling.fat context=0 launch").err, IsEmpty());
  EXPECT_THAT(calls(), ElementsAre("linker: -arch=sm_90", "driver: library 1, cubin", "heap: 1 made in context 0",
                                   "driver: limit 0 of 2048 in context 0", "heap: 1 bound to library 1 in context 0",
                                   "driver: launch in context 0"));
}

TEST_F(RunContexts, AHeapIsNotMadeWhileLaunchesAreRecorded) {
  EXPECT_THAT(started("recording=1 library=calling.fat launch recording=0 launch_graph").err, IsEmpty());
  EXPECT_THAT(calls(), ElementsAre("linker: -arch=sm_90", "driver: library 1, cubin", "driver: launch in context 0",
                                   "heap: 1 made in context 0", "driver: limit 0 of 2048 in context 0",
                                   "heap: 1 bound to library 1 in context 0", "driver: launch in context 0"));
}

TEST_F(RunContexts, AModuleThatIsLoadedWhileLaunchesAreRecordedKeepsItsHeap) {
  EXPECT_EQ(started("recording=1 module=calling.fat recording=0 launch").err,
            "warpheap run: kernels keep CUDA's heap: a module is loaded while a stream is captured\n");
  EXPECT_THAT(calls(), ElementsAre("linker: -arch=sm_90", "driver: module 1, cubin", "driver: module 1 unloaded",
                                   "driver: module 2, fat binary", "driver: launch in context 0"));
}

TEST_F(RunContexts, AHeapThatCannotBeMadeAtALaunchIsSaidAndTheKernelRuns) {
  set("FAKE_HEAP_FAULT", "the GPU is full");
  auto const ended = started("no_context library=calling.fat context=0 launch launch threads=2");
  EXPECT_EQ(ended.err, "warpheap run: kernels get no memory: the GPU is full\n");
  auto const launch = "driver: launch in context 0";
  EXPECT_THAT(calls(), ElementsAre("linker: -arch=sm_90", "driver: library 1, cubin", launch, launch, launch, launch));
}

TEST_F(RunContexts, AnUnloadedLibraryIsBoundNoMore) {
  started("library=calling.fat library=calling.fat unload=0 library=calling.fat launch create launch");
  EXPECT_THAT(
      after_first_heap(calls()),
      ElementsAre("driver: library 1, cubin", "heap: 1 bound to library 1 in context 0", "linker: -arch=sm_90",
                  "driver: library 2, cubin", "heap: 1 bound to library 2 in context 0", "driver: library 1 unloaded",
                  "linker: -arch=sm_90", "driver: library 3, cubin", "heap: 1 bound to library 3 in context 0",
                  "driver: launch in context 0", "heap: 2 made in context 1", "driver: limit 0 of 2048 in context 1",
                  "heap: 2 bound to library 2 in context 1", "heap: 2 bound to library 3 in context 1",
                  "driver: launch in context 1"));
}

TEST_F(RunContexts, ADeviceThatWasResetGetsAHeapAgain) {
  started("library=calling.fat launch reset launch");
  EXPECT_THAT(after_first_heap(calls()),
              ElementsAre("driver: library 1, cubin", "heap: 1 bound to library 1 in context 0",
                          "driver: launch in context 0", "heap: 1 destroyed in context 0", "driver: device reset",
                          "heap: 2 made in context 0", "driver: limit 0 of 2048 in context 0",
                          "heap: 2 bound to library 1 in context 0", "driver: launch in context 0"));
}

TEST_F(RunContexts, AContextWithoutAHeapEndsWithoutOne) {
  EXPECT_THAT(started("create destroy=1 reset").err, IsEmpty());
  EXPECT_THAT(calls(), ElementsAre("driver: context 1 destroyed", "driver: device reset"));
}

TEST_F(RunContexts, ThreadsThatLaunchAtOnceMakeOneHeapBeforeAnyKernelRuns) {
  ASSERT_EQ(started("no_context library=calling.fat threads=16").status, 0);
  lines expected{"linker: -arch=sm_90", "driver: library 1, cubin", "heap: 1 made in context 0",
                 "driver: limit 0 of 2048 in context 0", "heap: 1 bound to library 1 in context 0"};
  expected.resize(expected.size() + 16, "driver: launch in context 0");
  EXPECT_THAT(calls(), ElementsAreArray(expected));
}

TEST_F(RunContexts, NothingIsDoneForAProgramThatCallsNoHeap) {
  started("library=quiet.fat launch create launch threads=4 destroy=1 reset");
  EXPECT_THAT(calls(), Each(testing::StartsWith("driver: ")));
}

}}  // namespace warpheap::tool
