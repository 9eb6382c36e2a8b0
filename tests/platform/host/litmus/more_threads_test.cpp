// SPDX-License-Identifier: Apache-2.0
// Litmus tests of three and four threads.
#include "threads.hpp"

namespace litmus_more_threads_test {

using namespace warpheap;
using namespace litmus;

template <order How>
void store_x(words const& at) {
  store(at.x, 1, How);
}
template <order How>
void store_y(words const& at) {
  store(at.y, 1, How);
}
template <order How>
void pass_on(words const& at) {
  at.r[0] = load(at.x);
  store(at.y, 1, How);
}
void take_z(words const& at) {
  at.r[1] = load(at.z, acquire);
  at.r[2] = load(at.x);
}

TEST(Litmus, MoreThreads) {
  static constexpr row rows[] = {
      {"IRIW, release and acquire",
       {store_x<release>, store_y<release>,
        [](words const& at) {
          at.r[0] = load(at.x, acquire);
          at.r[1] = load(at.y, acquire);
        },
        [](words const& at) {
          at.r[2] = load(at.y, acquire);
          at.r[3] = load(at.x, acquire);
        }},
       readers_disagree,
       allowed},
      {"IRIW, readers with full fences",
       {store_x<relaxed>, store_y<relaxed>,
        [](words const& at) {
          at.r[0] = load(at.x);
          full_fence();
          at.r[1] = load(at.y);
        },
        [](words const& at) {
          at.r[2] = load(at.y);
          full_fence();
          at.r[3] = load(at.x);
        }},
       readers_disagree,
       forbidden},
      {"IRIW, readers by acq_rel read-modify-writes",
       {store_x<relaxed>, store_y<relaxed>,
        [](words const& at) {
          at.r[0] = look(at.x, acq_rel);
          at.r[1] = look(at.y, acq_rel);
        },
        [](words const& at) {
          at.r[2] = look(at.y, acq_rel);
          at.r[3] = look(at.x, acq_rel);
        }},
       readers_disagree,
       allowed},
      {"IRIW, seq_cst loads",
       {store_x<seq_cst>, store_y<seq_cst>,
        [](words const& at) {
          at.r[0] = load(at.x, seq_cst);
          at.r[1] = load(at.y, seq_cst);
        },
        [](words const& at) {
          at.r[2] = load(at.y, seq_cst);
          at.r[3] = load(at.x, seq_cst);
        }},
       readers_disagree,
       forbidden},
      {"WRC, release and acquire",
       {store_x<relaxed>, pass_on<release>,
        [](words const& at) {
          at.r[1] = load(at.y, acquire);
          at.r[2] = load(at.x);
        }},
       lost_on_the_way,
       forbidden},
      {"WRC, no acquire",
       {store_x<relaxed>, pass_on<release>,
        [](words const& at) {
          at.r[1] = load(at.y);
          at.r[2] = load(at.x);
        }},
       lost_on_the_way,
       allowed},
      {"WRC, a release fence in the middle",
       {store_x<relaxed>,
        [](words const& at) {
          at.r[0] = load(at.x);
          release_fence();
          store(at.y, 1, order::fenced);
        },
        [](words const& at) {
          at.r[1] = load(at.y, acquire);
          at.r[2] = load(at.x);
        }},
       lost_on_the_way,
       forbidden},
      {"RWC, full fences",
       {store_x<relaxed>,
        [](words const& at) {
          at.r[0] = load(at.x);
          full_fence();
          at.r[1] = load(at.y);
        },
        [](words const& at) {
          store(at.y, 1);
          full_fence();
          at.r[2] = load(at.x);
        }},
       [](final_state const& end) { return lost_message(end) && end.r[2] == 0; },
       forbidden},
      {"ISA2, release and acquire",
       {send<release>,
        [](words const& at) {
          at.r[0] = load(at.y, acquire);
          store(at.z, 1, release);
        },
        take_z},
       lost_on_the_way,
       forbidden},
      {"ISA2, a relaxed read in the middle",
       {send<release>,
        [](words const& at) {
          at.r[0] = load(at.y);
          store(at.z, 1, release);
        },
        take_z},
       lost_on_the_way,
       allowed},
      {"ISA2, a full fence in the middle",
       {send<release>,
        [](words const& at) {
          at.r[0] = load(at.y);
          full_fence();
          store(at.z, 1);
        },
        take_z},
       lost_on_the_way,
       forbidden},
  };
  expect_rows(rows, 2500);
}

}  // namespace litmus_more_threads_test
