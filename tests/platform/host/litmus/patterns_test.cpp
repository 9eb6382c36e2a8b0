// SPDX-License-Identifier: Apache-2.0
// Litmus tests of releases and acquires that consist of several operations.
#include "threads.hpp"

namespace litmus_patterns_test {

using namespace warpheap;
using namespace litmus;

void overwrite_flag(words const& at) { store(at.y, 5); }

TEST(Litmus, PatternsOfSeveralOperations) {
  constexpr auto fenced = order::fenced;
  static constexpr row rows[] = {
      {"another thread's read-modify-write passes a release on",
       {send<release>, [](words const& at) { add(at.y, 1); }, receive_two},
       lost_message,
       forbidden},
      {"another thread's store does not",
       {send<release>,
        [](words const& at) {
          if (load(at.y) == 1) store(at.y, 2);
        },
        receive_two},
       lost_message,
       allowed},
      {"a store behind the thread's own release there",
       {[](words const& at) {
          send<release>(at);
          store(at.y, 2);
        },
        receive_two},
       lost_message,
       forbidden},
      {"a read-modify-write behind the thread's own release there",
       {[](words const& at) {
          send<release>(at);
          add(at.y, 1);
        },
        receive_two},
       lost_message,
       forbidden},
      {"a message between the release there and the store",
       {[](words const& at) {
          store(at.y, 1, release);
          store(at.x, 1);
          store(at.y, 2);
        },
        receive_two},
       lost_message,
       allowed},
      {"a relaxed read of the flag, then an acquire of it",
       {send<release>,
        [](words const& at) {
          at.r[0] = load(at.y);
          load(at.y, acquire);
          at.r[1] = load(at.x);
        }},
       lost_message,
       forbidden},
      {"a relaxed read of the flag, then an acquire of what another thread has stored there",
       {send<release>, overwrite_flag,
        [](words const& at) {
          at.r[0] = load(at.y);
          load(at.y, acquire);
          at.r[1] = load(at.x);
        }},
       lost_message,
       forbidden},
      {"two flags behind one fence are read, then the second is acquired",
       {[](words const& at) {
          store(at.x, 1);
          release_fence();
          store(at.z, 1);
          store(at.y, 1);
        },
        overwrite_flag,
        [](words const& at) {
          load(at.z);
          at.r[0] = load(at.y);
          load(at.y, acquire);
          at.r[1] = load(at.x);
        }},
       lost_message,
       forbidden},
      {"a relaxed read of the flag, then an acquire elsewhere",
       {send<release>,
        [](words const& at) {
          at.r[0] = load(at.y);
          load(at.z, acquire);
          at.r[1] = load(at.x);
        }},
       lost_message,
       allowed},
      {"full fence, acquire", {send_behind_a_full_fence, receive<acquire>}, lost_message, forbidden},
      {"full fences", {send_behind_a_full_fence, receive_behind_a_fence}, lost_message, forbidden},
      {"release, full fence", {send<release>, receive_behind_a_fence}, lost_message, forbidden},
      {"full fence, relaxed read", {send_behind_a_full_fence, receive<relaxed>}, lost_message, allowed},
      {"a full fence does not release alone", {send<relaxed>, receive_behind_a_fence}, lost_message, allowed},
      {"release fence, relaxed store",
       {send_behind_a_release_fence<relaxed>, receive<acquire>},
       lost_message,
       forbidden},
      {"release fence, fenced store", {send_behind_a_release_fence<fenced>, receive<acquire>}, lost_message, forbidden},
      {"a fenced store without a fence", {send<fenced>, receive<acquire>}, lost_message, allowed},
      {"release fence, two changes",
       {[](words const& at) {
          store(at.x, 1);
          release_fence();
          add(at.z, 1, fenced);
          add(at.y, 1, fenced);
        },
        receive<acquire>},
       lost_message,
       forbidden},
      {"the message is stored behind the release fence",
       {[](words const& at) {
          release_fence();
          store(at.x, 1);
          store(at.y, 1, fenced);
        },
        receive<acquire>},
       lost_message,
       allowed},
      {"many releases elsewhere before the flag is stored again",
       {[](words const& at) {
          send<release>(at);
          for (u32 i = 1; i < 12; ++i) store(at.z + 2 * i, 1, release);
          store(at.y, 2);
        },
        receive_two},
       lost_message,
       forbidden},
      {"many relaxed reads elsewhere before the flag is acquired",
       {[](words const& at) {
          send<release>(at);
          for (u32 i = 1; i < 12; ++i) store(at.z + 2 * i, 1, release);
        },
        overwrite_flag,
        [](words const& at) {
          at.r[0] = load(at.y);
          for (u32 i = 1; i < 12; ++i) load(at.z + 2 * i);
          load(at.y, acquire);
          at.r[1] = load(at.x);
        }},
       lost_message,
       forbidden},
  };
  expect_rows(rows);
}

}  // namespace litmus_patterns_test
