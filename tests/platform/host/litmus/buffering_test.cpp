// SPDX-License-Identifier: Apache-2.0
// Litmus tests of loads that come before earlier stores, and of stores before earlier loads.
#include "threads.hpp"

namespace litmus_buffering_test {

using namespace warpheap;
using namespace litmus;

constexpr char const* promises = "no store is seen before it is made";

// Threads of store buffering.
template <order Store, order Load>
void store_x_load_y(words const& at) {
  store(at.x, 1, Store);
  at.r[0] = load(at.y, Load);
}
template <order Store, order Load>
void store_y_load_x(words const& at) {
  store(at.y, 1, Store);
  at.r[1] = load(at.x, Load);
}
template <void Fence()>
void fenced_x_y(words const& at) {
  store(at.x, 1);
  Fence();
  at.r[0] = load(at.y);
}
template <void Fence()>
void fenced_y_x(words const& at) {
  store(at.y, 1);
  Fence();
  at.r[1] = load(at.x);
}
template <order Change, order Look>
void change_x_look_y(words const& at) {
  add(at.x, 1, Change);
  at.r[0] = look(at.y, Look);
}
template <order Change, order Look>
void change_y_look_x(words const& at) {
  add(at.y, 1, Change);
  at.r[1] = look(at.x, Look);
}

TEST(Litmus, StoreBuffering) {
  static constexpr row rows[] = {
      {"release and acquire", {store_x_load_y<release, acquire>, store_y_load_x<release, acquire>}, both_zero, allowed},
      {"seq_cst", {store_x_load_y<seq_cst, seq_cst>, store_y_load_x<seq_cst, seq_cst>}, both_zero, forbidden},
      {"full fences", {fenced_x_y<full_fence>, fenced_y_x<full_fence>}, both_zero, forbidden},
      {"one full fence", {fenced_x_y<full_fence>, store_y_load_x<relaxed, relaxed>}, both_zero, allowed},
      {"release fences", {fenced_x_y<release_fence>, fenced_y_x<release_fence>}, both_zero, allowed},
      {"read-modify-writes, then loads",
       {[](words const& at) {
          add(at.x, 1);
          at.r[0] = load(at.y);
        },
        [](words const& at) {
          add(at.y, 1);
          at.r[1] = load(at.x);
        }},
       both_zero,
       allowed},
      {"stores, then acq_rel read-modify-writes",
       {[](words const& at) {
          store(at.x, 1);
          at.r[0] = look(at.y, acq_rel);
        },
        [](words const& at) {
          store(at.y, 1);
          at.r[1] = look(at.x, acq_rel);
        }},
       both_zero,
       allowed},
      {"relaxed read-modify-writes",
       {change_x_look_y<relaxed, relaxed>, change_y_look_x<relaxed, relaxed>},
       both_zero,
       allowed},
      {"release, then acquire read-modify-writes",
       {change_x_look_y<release, acquire>, change_y_look_x<release, acquire>},
       both_zero,
       allowed},
      {"acq_rel read-modify-writes",
       {change_x_look_y<acq_rel, acq_rel>, change_y_look_x<acq_rel, acq_rel>},
       both_zero,
       forbidden},
      {"seq_cst read-modify-writes",
       {change_x_look_y<seq_cst, seq_cst>, change_y_look_x<seq_cst, seq_cst>},
       both_zero,
       forbidden},
      {"relaxed read-modify-writes around full fences",
       {[](words const& at) {
          add(at.x, 1);
          full_fence();
          at.r[0] = look(at.y);
        },
        [](words const& at) {
          add(at.y, 1);
          full_fence();
          at.r[1] = look(at.x);
        }},
       both_zero,
       forbidden},
      {"failing compare-exchanges behind full fences",
       {[](words const& at) {
          store(at.x, 1);
          full_fence();
          at.r[0] = compare_exchange(at.y, 7, 9);
        },
        [](words const& at) {
          store(at.y, 1);
          full_fence();
          at.r[1] = compare_exchange(at.x, 7, 9);
        }},
       both_zero,
       forbidden},
  };
  expect_rows(rows);
}

template <order Load, order Store>
void load_x_store_y(words const& at) {
  at.r[1] = load(at.x, Load);
  store(at.y, 1, Store);
}

TEST(Litmus, LoadBuffering) {
  static constexpr row rows[] = {
      {"relaxed", {load_y_store_x<relaxed, relaxed>, load_x_store_y<relaxed, relaxed>}, both_one, allowed, promises},
      {"release and acquire",
       {load_y_store_x<acquire, release>, load_x_store_y<acquire, release>},
       both_one,
       forbidden},
      {"read-modify-writes",
       {[](words const& at) {
          at.r[0] = look(at.y);
          add(at.x, 1);
        },
        [](words const& at) {
          at.r[1] = look(at.x);
          add(at.y, 1);
        }},
       both_one,
       allowed,
       promises},
  };
  expect_rows(rows);
}

}  // namespace litmus_buffering_test
