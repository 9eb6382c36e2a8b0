// SPDX-License-Identifier: Apache-2.0
// Threads and outcomes that several litmus tests have.
#pragma once

#include "litmus.hpp"

namespace warpheap::litmus {

inline constexpr auto relaxed = order::relaxed, acquire = order::acquire, release = order::release,
                      acq_rel = order::acq_rel, seq_cst = order::seq_cst;
inline constexpr auto allowed = ptx::allows, forbidden = ptx::forbids;

// Outcomes.
inline bool lost_message(final_state const& end) { return end.r[0] == 1 && end.r[1] == 0; }
inline bool both_zero(final_state const& end) { return end.r[0] == 0 && end.r[1] == 0; }
inline bool both_one(final_state const& end) { return end.r[0] == 1 && end.r[1] == 1; }
inline bool readers_disagree(final_state const& end) { return lost_message(end) && end.r[2] == 1 && end.r[3] == 0; }
inline bool lost_on_the_way(final_state const& end) { return both_one(end) && end.r[2] == 0; }

// Threads of message passing: the message is x, the flag y.
template <order How>
void send(words const& at) {
  store(at.x, 1);
  store(at.y, 1, How);
}
template <order How>
void send_by_changes(words const& at) {
  add(at.x, 1);
  add(at.y, 1, How);
}
inline void send_behind_a_full_fence(words const& at) {
  store(at.x, 1);
  full_fence();
  store(at.y, 1);
}
template <order How>
void send_behind_a_release_fence(words const& at) {
  store(at.x, 1);
  release_fence();
  store(at.y, 1, How);
}
template <order How>
void receive(words const& at) {
  at.r[0] = load(at.y, How);
  at.r[1] = load(at.x);
}
/// Receives what has passed through the flag twice.
inline void receive_two(words const& at) {
  at.r[0] = load(at.y, acquire) == 2;
  at.r[1] = load(at.x);
}
template <order How>
void receive_by_changes(words const& at) {
  at.r[0] = look(at.y, How);
  at.r[1] = look(at.x);
}
inline void receive_behind_a_fence(words const& at) {
  at.r[0] = load(at.y);
  full_fence();
  at.r[1] = load(at.x);
}
inline void receive_by_a_failure(words const& at) {
  at.r[0] = load(at.y);
  at.r[1] = compare_exchange(at.x, 7, 9);
}

/// Of load buffering, and of S.
template <order Load, order Store>
void load_y_store_x(words const& at) {
  at.r[0] = load(at.y, Load);
  store(at.x, 1, Store);
}

}  // namespace warpheap::litmus
