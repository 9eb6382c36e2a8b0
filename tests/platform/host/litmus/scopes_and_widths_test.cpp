// SPDX-License-Identifier: Apache-2.0
// Litmus tests of barriers and scopes, and of words that are accessed in two widths.
#include "threads.hpp"

namespace litmus_scopes_and_widths_test {

using namespace warpheap;
using namespace litmus;

constexpr char const* one_word = "accesses to parts of a word count as accesses to the word, as processors have it";
constexpr char const* plain = "plain accesses are not tracked, but see contents_test.cpp";

template <scope Scope>
void send_in(words const& at) {
  store(at.x, 1);
  store<Scope>(at.y, 1, release);
}
template <scope Scope>
void count_in(words const& at) {
  add<Scope>(at.x, 1);
}
bool not_two(final_state const& end) { return end.x != 2; }

/// Whether lane 1 of the pair sees what lane 0 stored before they met.
template <void Meet()>
void send_and_meet(words const& at) {
  store(at.x, 1);
  Meet();
}
template <void Meet()>
void meet_and_receive(words const& at) {
  Meet();
  at.r[0] = 1;
  at.r[1] = load(at.x);
}
void meet_warp() { simt::sync_warp(3); }
void meet_block() { simt::sync_block(); }
void vote() { simt::ballot(3, true); }

TEST(Litmus, BarriersAndScopes) {
  static constexpr row rows[] = {
      {"sync_warp",
       {send_and_meet<meet_warp>, meet_and_receive<meet_warp>},
       lost_message,
       forbidden,
       nullptr,
       layout::one_block},
      {"sync_block",
       {send_and_meet<meet_block>, meet_and_receive<meet_block>},
       lost_message,
       forbidden,
       nullptr,
       layout::one_block},
      {"ballot", {send_and_meet<vote>, meet_and_receive<vote>}, lost_message, allowed, nullptr, layout::one_block},
      {"a block-scope release to another thread block",
       {send_in<scope::block>, receive<acquire>},
       lost_message,
       allowed},
      {"a block-scope release within the thread block",
       {send_in<scope::block>, receive<acquire>},
       lost_message,
       forbidden,
       nullptr,
       layout::one_block},
      {"a block-scope acquire in another thread block",
       {send<release>,
        [](words const& at) {
          at.r[0] = load<scope::block>(at.y, acquire);
          at.r[1] = load(at.x);
        }},
       lost_message,
       allowed},
      {"block-scope updates of two thread blocks are lost",
       {count_in<scope::block>, count_in<scope::block>},
       not_two,
       allowed},
      {"an update of block scope and one of device scope are lost",
       {count_in<scope::block>, count_in<scope::device>},
       not_two,
       allowed},
      {"block-scope updates of one thread block are lost",
       {count_in<scope::block>, count_in<scope::block>},
       not_two,
       forbidden,
       nullptr,
       layout::one_block},
  };
  expect_rows(rows);
}

TEST(Litmus, WidthsAndPlainAccesses) {
  constexpr u64 upper_two = 0x2'0000'0000;
  static constexpr row rows[] = {
      {"stored whole, read as a half",
       {[](words const& at) {
          atomic_ref<u64>{at.whole_x()}.store(1, order::relaxed);
          store(at.y, 1);
        },
        [](words const& at) {
          at.r[0] = load(at.y);
          at.r[1] = load(at.x);
        }},
       lost_message,
       allowed},
      {"stored as a half, read whole",
       {[](words const& at) {
          store(at.x, 1);
          store(at.y, 1);
        },
        [](words const& at) {
          at.r[0] = load(at.y);
          at.r[1] = static_cast<u32>(atomic_ref<u64>{at.whole_x()}.load(order::relaxed));
        }},
       lost_message,
       allowed},
      {"both halves stored whole, the second read is older",
       {[](words const& at) { atomic_ref<u64>{at.whole_x()}.store(upper_two | 1, release); },
        [](words const& at) {
          at.r[0] = load(at.x, acquire);
          at.r[1] = load(at.x + 1, acquire);
        }},
       lost_message,
       allowed,
       one_word},
      {"a half is read, and then an older whole",
       {[](words const& at) { store(at.x + 1, 1); },
        [](words const& at) {
          at.r[0] = load(at.x + 1);
          at.r[1] = static_cast<u32>(atomic_ref<u64>{at.whole_x()}.load(order::relaxed) >> 32);
        }},
       lost_message,
       allowed,
       one_word},
      {"halves that are never one word are two locations",
       {[](words const& at) {
          store(at.x, 1);
          store(at.x + 1, 1);
        },
        [](words const& at) {
          at.r[0] = load(at.x + 1);
          at.r[1] = load(at.x);
        }},
       lost_message,
       allowed},
      {"released whole, acquired as a half",
       {[](words const& at) {
          atomic_ref<u64>{at.whole_x()}.store(upper_two, order::relaxed);
          store(at.y, 1);
          atomic_ref<u64>{at.whole_x()}.store(upper_two | 1, release);
        },
        [](words const& at) {
          at.r[0] = load(at.x, acquire);
          at.r[1] = load(at.y);
        }},
       lost_message,
       allowed,
       one_word},
      {"released as a half, acquired whole",
       {[](words const& at) {
          atomic_ref<u64>{at.whole_x()}.store(upper_two, order::relaxed);
          store(at.y, 1);
          store(at.x, 1, release);
        },
        [](words const& at) {
          at.r[0] = static_cast<u32>(atomic_ref<u64>{at.whole_x()}.load(acquire));
          at.r[1] = load(at.y);
        }},
       lost_message,
       allowed,
       one_word},
      {"updates of two halves and of the whole are lost",
       {[](words const& at) { add(at.x, 1); }, [](words const& at) { add(at.x + 1, 1); },
        [](words const& at) {
          atomic_ref<u64>{at.whole_x()}.fetch_add(upper_two | 1, order::relaxed);
          at.r[0] = load(at.x + 1);
        }},
       [](final_state const& end) { return end.x != 2 || end.r[0] < 2; },
       allowed,
       one_word},
      {"a plain message, a relaxed flag",
       {[](words const& at) {
          *at.x = 1;
          store(at.y, 1);
        },
        [](words const& at) {
          at.r[0] = load(at.y);
          at.r[1] = *static_cast<u32 volatile*>(at.x);
        }},
       lost_message,
       allowed,
       plain},
  };
  expect_rows(rows);
}

}  // namespace litmus_scopes_and_widths_test
