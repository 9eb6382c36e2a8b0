// SPDX-License-Identifier: Apache-2.0
// Litmus tests of message passing by single operations.
#include "threads.hpp"

namespace litmus_message_passing_test {

using namespace warpheap;
using namespace litmus;

constexpr char const* dependencies =
    "forbidden if what sends the flag depends on what the sender's first read-modify-write read, which cannot be told";

TEST(Litmus, MessagePassing) {
  static constexpr row rows[] = {
      {"relaxed", {send<relaxed>, receive<relaxed>}, lost_message, allowed},
      {"release alone", {send<release>, receive<relaxed>}, lost_message, allowed},
      {"acquire alone", {send<relaxed>, receive<acquire>}, lost_message, allowed},
      {"release and acquire", {send<release>, receive<acquire>}, lost_message, forbidden},
      {"a load cannot release nor a store acquire", {send<acquire>, receive<release>}, lost_message, forbidden},
      {"acq_rel of a load and a store", {send<acq_rel>, receive<acq_rel>}, lost_message, forbidden},
      {"sent by read-modify-writes", {send_by_changes<relaxed>, receive<relaxed>}, lost_message, allowed},
      {"received by read-modify-writes", {send<relaxed>, receive_by_changes<relaxed>}, lost_message, allowed},
      {"read-modify-writes alone",
       {send_by_changes<relaxed>, receive_by_changes<relaxed>},
       lost_message,
       allowed,
       dependencies},
      {"read-modify-writes alone, while a third one looks at the message",
       {send_by_changes<relaxed>, receive_by_changes<relaxed>, [](words const& at) { look(at.x); }},
       lost_message,
       allowed,
       dependencies},
      {"read-modify-writes, the flag depends on the message",
       {[](words const& at) { store(at.y, add(at.x, 1) + 1); },
        [](words const& at) {
          at.r[0] = load(at.y);
          at.r[1] = at.r[0] ? look(at.x) : 1;
        }},
       lost_message,
       forbidden},
      {"read-modify-writes, release and acquire",
       {send_by_changes<release>, receive_by_changes<acquire>},
       lost_message,
       forbidden},
      {"stores, received by a failing compare-exchange", {send<relaxed>, receive_by_a_failure}, lost_message, allowed},
      {"read-modify-writes, received by a failing compare-exchange",
       {send_by_changes<relaxed>, receive_by_a_failure},
       lost_message,
       allowed,
       dependencies},
      {"a failing compare-exchange behind an acquire",
       {send_by_changes<release>,
        [](words const& at) {
          at.r[0] = load(at.y, acquire);
          at.r[1] = compare_exchange(at.x, 7, 9);
        }},
       lost_message,
       forbidden},
      {"a compare-exchange fails though the newest value is the expected one",
       {send<relaxed>,
        [](words const& at) {
          at.r[0] = load(at.y);
          at.r[1] = compare_exchange(at.x, 1, 2);
        }},
       lost_message,
       allowed},
      {"a read-modify-write acts on the value before a store",
       {send<relaxed>,
        [](words const& at) {
          at.r[0] = load(at.y);
          at.r[1] = add(at.x, 7);
        }},
       [](final_state const& end) { return lost_message(end) && end.x == 1; },
       allowed},
      {"release elsewhere in between",
       {[](words const& at) {
          store(at.x, 1);
          add(at.z, 1, release);
          store(at.y, 1);
        },
        receive<acquire>},
       lost_message,
       allowed},
      {"the message is stored behind the release",
       {[](words const& at) {
          store(at.y, 1, release);
          store(at.x, 1);
        },
        [](words const& at) {
          at.r[0] = load(at.x, acquire);
          at.r[1] = load(at.y);
        }},
       lost_message,
       allowed},
  };
  expect_rows(rows);
}

}  // namespace litmus_message_passing_test
