// SPDX-License-Identifier: Apache-2.0
// Litmus tests of the order of stores: to one location, and to two.
#include "threads.hpp"

namespace litmus_coherence_test {

using namespace warpheap;
using namespace litmus;

// x and y are each written by both threads; each thread's second store comes first.
bool crossed(final_state const& end) { return end.x == 1 && end.y == 1; }

template <order Second>
void write_x_y(words const& at) {
  store(at.x, 1);
  store(at.y, 2, Second);
}
template <order Second>
void write_y_x(words const& at) {
  store(at.y, 1);
  store(at.x, 2, Second);
}

TEST(Litmus, OrderOfStores) {
  static constexpr row rows[] = {
      {"2+2W, relaxed", {write_x_y<relaxed>, write_y_x<relaxed>}, crossed, allowed},
      {"2+2W, release", {write_x_y<release>, write_y_x<release>}, crossed, allowed},
      {"2+2W, full fences",
       {[](words const& at) {
          store(at.x, 1);
          full_fence();
          store(at.y, 2);
        },
        [](words const& at) {
          store(at.y, 1);
          full_fence();
          store(at.x, 2);
        }},
       crossed,
       forbidden},
      {"S, relaxed",
       {[](words const& at) {
          store(at.x, 2);
          store(at.y, 1);
        },
        load_y_store_x<relaxed, relaxed>},
       [](final_state const& end) { return end.r[0] == 1 && end.x == 2; },
       allowed},
      {"S, release and acquire",
       {[](words const& at) {
          store(at.x, 2);
          store(at.y, 1, release);
        },
        load_y_store_x<acquire, relaxed>},
       [](final_state const& end) { return end.r[0] == 1 && end.x == 2; },
       forbidden},
      {"R, release and acquire",
       {send<release>,
        [](words const& at) {
          store(at.y, 2, release);
          at.r[0] = load(at.x, acquire);
        }},
       [](final_state const& end) { return end.y == 2 && end.r[0] == 0; },
       allowed},
      {"R, full fences",
       {send_behind_a_full_fence,
        [](words const& at) {
          store(at.y, 2);
          full_fence();
          at.r[0] = load(at.x);
        }},
       [](final_state const& end) { return end.y == 2 && end.r[0] == 0; },
       forbidden},
      {"a late release store is acquired",
       {[](words const& at) { store(at.y, 3); }, send<release>, receive<acquire>},
       [](final_state const& end) { return lost_message(end); },
       forbidden},
      {"a late release store is seen, and is not the last",
       {[](words const& at) {
          store(at.y, 3);
          at.r[2] = load(at.y);
        },
        [](words const& at) {
          at.r[3] = load(at.z);
          store(at.y, 1, release);
        },
        [](words const& at) {
          if (load(at.y) == 3) store(at.z, 1);
          at.r[0] = load(at.y, acquire);
        }},
       [](final_state const& end) { return end.r[3] == 1 && end.y == 3; },
       allowed},
  };
  expect_rows(rows);
}

TEST(Litmus, OneLocation) {
  static constexpr row rows[] = {
      {"two reads go back",
       {[](words const& at) { store(at.x, 1); },
        [](words const& at) {
          at.r[0] = load(at.x);
          at.r[1] = load(at.x);
        }},
       lost_message,
       forbidden},
      {"a load, then a failing compare-exchange, go back",
       {[](words const& at) { store(at.x, 1); },
        [](words const& at) {
          at.r[0] = load(at.x);
          at.r[1] = compare_exchange(at.x, 7, 9);
        }},
       lost_message,
       forbidden},
      {"a thread does not see its own store",
       {[](words const& at) { store(at.x, 1); },
        [](words const& at) {
          store(at.x, 2);
          at.r[0] = load(at.x);
        }},
       [](final_state const& end) { return end.r[0] == 0; },
       forbidden},
      {"a store goes before what its thread has read",
       {[](words const& at) { store(at.x, 1); },
        [](words const& at) {
          at.r[0] = load(at.x);
          store(at.x, 2);
        }},
       [](final_state const& end) { return end.r[0] == 1 && end.x == 1; },
       forbidden},
      {"a thread's stores change places",
       {[](words const& at) {
          store(at.x, 1);
          store(at.x, 2);
        },
        [](words const& at) { store(at.x, 3); }},
       [](final_state const& end) { return end.x == 1; },
       forbidden},
      {"an update is lost",
       {[](words const& at) { add(at.x, 1); }, [](words const& at) { add(at.x, 1); }},
       [](final_state const& end) { return end.x != 2; },
       forbidden},
      {"a store comes between a read-modify-write's read and its write",
       {[](words const& at) { at.r[0] = add(at.x, 1) + 1; }, [](words const& at) { store(at.x, 5); }},
       [](final_state const& end) { return end.r[0] == 1 && end.x != 5 && end.x != 1; },
       forbidden},
      {"two compare-exchanges succeed",
       {[](words const& at) { at.r[0] = compare_exchange(at.x, 0, 1); },
        [](words const& at) { at.r[1] = compare_exchange(at.x, 0, 2); }},
       both_zero,
       forbidden},
      {"updates of a count that others look at are lost",
       {[](words const& at) { add(at.x, 1); },
        [](words const& at) {
          look(at.x);
          add(at.x, 1);
        },
        [](words const& at) {
          look(at.x);
          look(at.x);
        }},
       [](final_state const& end) { return end.x != 2; },
       forbidden},
  };
  expect_rows(rows);
}

}  // namespace litmus_coherence_test
