// SPDX-License-Identifier: Apache-2.0
// Each misuse is diagnosed with the lanes named, in both modes, and the backend works afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "warpheap/platform/device_buffer.hpp"

namespace warpheap { namespace {

using testing::AllOf;
using testing::HasSubstr;

struct count {
  void operator()(u32* counter) const { atomic_ref<u32>{*counter}.fetch_add(1, order::relaxed); }
};

std::vector<host::execution> settings(bool refuses_returned_lanes = false) {
  using host::execution;
  std::vector<execution> all{
      {},
      {.mode = host::execution_mode::deterministic, .policy = host::schedule_policy::round_robin},
      {.mode = host::execution_mode::deterministic, .seed = 5, .weak_memory = true}};
  for (auto& each : all) each.refuses_returned_lanes = refuses_returned_lanes;
  return all;
}

/// Launches `kernel` in every setting, expects an Error with `message`, and that the next launch
/// works.
template <class Error, bool RefusesReturnedLanes = false, class Kernel, class... Arguments>
void expect_error(launch_shape shape, testing::Matcher<std::string> message, Kernel kernel, Arguments... arguments) {
  for (auto const& each : settings(RefusesReturnedLanes)) {
    host::scoped_execution const use{each};
    try {
      launch(shape, kernel, arguments...);
      ADD_FAILURE() << "no error in " << host::describe(each);
    } catch (Error const& error) {
      EXPECT_THAT(std::string{error.what()}, message);
    }
    device_buffer<u32> counter(1);
    launch({3, 100}, count{}, counter.data());
    EXPECT_EQ(counter[0], 300u);
  }
}

struct trap_one {
  void operator()() const {
    if (simt::block_index() == 1 && simt::thread_index() == 37) simt::trap("a broken promise");
    simt::sync_block();
  }
};

TEST(Diagnosis, ATrapNamesReasonThreadBlockAndThread) {
  expect_error<host::trap_error>({2, 64}, HasSubstr("a broken promise (thread block 1, thread 37)"), trap_one{});
}

struct lane_failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct throw_one {
  void operator()() const {
    if (simt::thread_index() == 3) throw lane_failure{"thrown by a lane"};
    simt::sync_block();
  }
};

TEST(Diagnosis, WhatALaneThrowsComesOutOfTheLaunch) {
  expect_error<lane_failure>({1, 64}, HasSubstr("thrown by a lane"), throw_one{});
}

struct mask_without_self {
  void operator()() const {
    if (simt::lane_id() == 9) simt::ballot(0x0000'00ffu, true);
  }
};

TEST(Diagnosis, AMaskWithoutTheCallerIsAnError) {
  expect_error<host::schedule_error>({1, 32},
                                     HasSubstr("(warp 0 lane 9) calls ballot with a mask that lacks its own "
                                               "lane: mask {0-7}"),
                                     mask_without_self{});
}

struct mask_of_missing_lanes {
  void operator()() const { simt::reduce_or(full_mask, 1); }
};

TEST(Diagnosis, AMaskWithLanesThatDoNotExistIsAnErrorIfAsked) {
  expect_error<host::schedule_error, true>(
      {1, warp_lanes + 8},
      HasSubstr("with lanes {8-" + std::to_string(warp_lanes - 1) + "}, which its warp does not have"),
      mask_of_missing_lanes{});
}

struct mask_of_returned_lane {
  void operator()(u32* gone) const {
    if (simt::lane_id() == 2) {
      atomic_ref<u32>{*gone}.store(1, order::release);
    } else {
      for (u32 i = 0; i < 200; ++i) simt::pause(100);
      simt::sync_warp(0xf);
    }
  }
};

TEST(Diagnosis, AMaskWithAReturnedLaneIsAnErrorIfAsked) {
  device_buffer<u32> gone(1);
  expect_error<host::schedule_error, true>({1, 4},
                                           HasSubstr("calls sync_warp with lanes {2}, which have returned: mask {0-3}"),
                                           mask_of_returned_lane{}, gone.data());
}

struct return_while_awaited {
  void operator()() const {
    if (simt::lane_id() == 2) {
      for (u32 i = 0; i < 200; ++i) simt::pause(100);
    } else {
      simt::ballot(0xf, true);
    }
  }
};

TEST(Diagnosis, ReturningWhileOthersWaitIsAnErrorIfAsked) {
  expect_error<host::schedule_error, true>({1, 4},
                                           AllOf(HasSubstr("(warp 0 lane 2) returned while lanes {0,1,3} wait for it "
                                                           "in ballot(mask {0-3})")),
                                           return_while_awaited{});
}

struct shuffle_from_a_returned_lane {
  void operator()() const {
    if (simt::lane_id() != 2) simt::shuffle(0xf, 1u, 2);
  }
};

TEST(Diagnosis, AShuffleFromALaneThatReturnsIsAnError) {
  expect_error<host::schedule_error>(
      {1, 4}, HasSubstr("shuffles from lane 2, which has returned or does not exist: mask {0-3}"),
      shuffle_from_a_returned_lane{});
}

struct mismatched_masks {
  void operator()() const { simt::ballot(simt::lane_id() % 3 ? 0x7u : 0xfu, true); }
};

// host.W3
TEST(Diagnosis, MismatchedMasksDeadlockAndSayWhoWaitsForWhom) {
  expect_error<host::schedule_error>(
      {1, 4},
      AllOf(HasSubstr("deadlock: no lane can run"), HasSubstr("lanes {0,3} wait in ballot(mask {0-3}) for lanes {1,2}"),
            HasSubstr("lanes {1,2} wait in ballot(mask {0-2}) for lanes {0}")),
      mismatched_masks{});
}

struct different_kinds {
  void operator()() const {
    if (simt::lane_id() == 0) simt::ballot(3, true);
    else simt::reduce_or(3, 1);
  }
};

TEST(Diagnosis, DifferentCollectivesDoNotMeet) {
  expect_error<host::schedule_error>({1, 2},
                                     AllOf(HasSubstr("lanes {0} wait in ballot(mask {0,1}) for lanes {1}"),
                                           HasSubstr("lanes {1} wait in reduce_or(mask {0,1}) for lanes {0}")),
                                     different_kinds{});
}

struct return_before_barrier {
  void operator()() const {
    if (simt::thread_index() != 5) simt::sync_block();
  }
};

TEST(Diagnosis, ABarrierThatSomeThreadsSkipIsAnErrorIfAsked) {
  expect_error<host::schedule_error, true>({1, 64}, HasSubstr("divergent sync_block"), return_before_barrier{});
}

struct return_after_others_wait {
  void operator()() const {
    if (simt::thread_index() != 5) return simt::sync_block();
    for (u32 i = 0; i < 200; ++i) simt::pause(100);
  }
};

TEST(Diagnosis, ReturningWhileOthersWaitAtTheBarrierIsAnErrorIfAsked) {
  expect_error<host::schedule_error, true>(
      {1, 64},
      HasSubstr("divergent sync_block: thread block 0 thread 5 (warp 0 lane 5) returned "
                "while 63 threads of its thread block wait there"),
      return_after_others_wait{});
}

struct wait_elsewhere {
  void operator()() const {
    if (simt::thread_index() == 5) simt::sync_warp(0x21);
    simt::sync_block();
  }
};

TEST(Diagnosis, ABarrierThatSomeThreadsCannotReachIsAnError) {
  expect_error<host::schedule_error>(
      {1, warp_lanes + 32},
      AllOf(HasSubstr("divergent sync_block"), HasSubstr("lanes {5} wait in sync_warp(mask {0,5}) for lanes {0}"),
            HasSubstr("warp 1 lanes {0-31} wait in sync_block")),
      wait_elsewhere{});
}

struct shuffle_from_outside {
  void operator()() const { simt::shuffle(0x3, 1u, 7); }
};

TEST(Diagnosis, AShuffleFromALaneOutsideTheMaskIsAnError) {
  expect_error<host::schedule_error>({1, 2}, HasSubstr("shuffles from lane 7, which is not in the mask {0,1}"),
                                     shuffle_from_outside{});
}

struct spin_for_ever {
  void operator()(u32* flag) const {
    while (!atomic_ref<u32>{*flag}.load(order::relaxed)) simt::pause(1);
  }
};

TEST(Diagnosis, AHungKernelEndsAtTheStepCap) {
  device_buffer<u32> flag(1);
  for (auto each : settings()) {
    each.step_cap = 20'000;
    host::scoped_execution const use{each};
    try {
      launch({1, 8}, spin_for_ever{}, flag.data());
      ADD_FAILURE();
    } catch (host::schedule_error const& error) {
      EXPECT_THAT(error.what(), HasSubstr("step cap: the run has taken 20000 steps"));
    }
  }
}

struct launch_inside {
  void operator()(u32* counter) const { launch({1, 1}, count{}, counter); }
};

TEST(Diagnosis, ALaunchInsideAKernelIsAnError) {
  device_buffer<u32> counter(1);
  expect_error<backend_error>({1, 1}, HasSubstr("launch called inside a kernel"), launch_inside{}, counter.data());
}

struct synchronize_inside {
  void operator()() const { synchronize(); }
};

TEST(Diagnosis, ASynchronizeInsideAKernelIsAnError) {
  expect_error<backend_error>({1, 1}, HasSubstr("synchronize called inside a kernel"), synchronize_inside{});
}

TEST(Diagnosis, SimtFunctionsOutsideAKernelAreAnError) {
  EXPECT_THROW(simt::lane_id(), backend_error);
  EXPECT_THROW(simt::ballot(1, true), backend_error);
  EXPECT_THROW(simt::pause(1), backend_error);
}

TEST(Diagnosis, AtomicsWorkOutsideAKernel) {
  u64 word = 1;
  EXPECT_EQ(atomic_ref<u64>{word}.fetch_add(2, order::relaxed), 1u);
  full_fence();
  release_fence();
  EXPECT_EQ(word, 3u);
}

TEST(Diagnosis, ImpossibleShapesAreRefused) {
  device_buffer<u32> counter(1);
  EXPECT_THROW(launch({1, 1025}, count{}, counter.data()), backend_error);
  EXPECT_THROW(launch({1, 0}, count{}, counter.data()), backend_error);
  host::scoped_execution const use{{.sm_count = 0}};
  EXPECT_THROW(launch({1, 1}, count{}, counter.data()), backend_error);
}

TEST(Diagnosis, AFailedStreamIsEmptyAndTheOthersToo) {
  for (auto const& each : settings()) {
    host::scoped_execution const use{each};
    device_buffer<u32> counter(1);
    stream bad;
    launch(bad, {2, 64}, trap_one{});
    launch(bad, {1, 1}, count{}, counter.data());
    EXPECT_THROW(synchronize(bad), host::trap_error);
    EXPECT_NO_THROW(synchronize());
    EXPECT_EQ(counter[0], 0u);
  }
}

struct meet_from_two_sites {
  void operator()() const {
    if (simt::lane_id() == 0) simt::ballot(3, true);
    else simt::ballot(3, simt::lane_id() == 5);
  }
};

TEST(Diagnosis, CountsCollectivesThatMeetFromTwoCallSites) {
  launch({1, 2}, meet_from_two_sites{});
  EXPECT_EQ(host::last_run().mixed_site_collectives, 1u);
  struct meet_from_one_site {
    void operator()() const { simt::ballot(3, true); }
  };
  launch({1, 2}, meet_from_one_site{});
  EXPECT_EQ(host::last_run().mixed_site_collectives, 0u);
}

}}  // namespace warpheap
