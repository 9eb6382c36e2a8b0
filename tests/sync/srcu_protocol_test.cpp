// SPDX-License-Identifier: Apache-2.0
// SRCU's protocol in every interleaving of a few lanes: readers that look at the node behind a
// pointer, and writers that replace it, retire the old node and ask for a barrier. A mutant is the
// same list of steps in another order.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>
#include <warpheap/sync/srcu.hpp>

namespace {

using namespace warpheap;

TEST(SrcuWord, CountsReadersOfTwoEpochsApart) {
  for (u64 const epoch : {u64{0}, u64{1}, u64{7}, u64{0xffff}}) {
    u64 const word =
        epoch * srcu_word::one_epoch + 5 * srcu_word::one_reader(0) + srcu_word::max_readers * srcu_word::one_reader(1);
    EXPECT_EQ(srcu_word::epoch(word), epoch);
    EXPECT_EQ(srcu_word::side(word), epoch & 1);
    EXPECT_EQ(srcu_word::readers(word, 0), 5u);
    EXPECT_EQ(srcu_word::readers(word, 1), srcu_word::max_readers);
    EXPECT_EQ(srcu_word::side(word + srcu_word::one_epoch), (epoch + 1) & 1);
  }
}

/// A zeroed state but for one member.
template <class T>
srcu_state with(T srcu_state::*member, T value) {
  srcu_state made{};
  made.*member = value;
  return made;
}

// srcu.U6
TEST(SrcuWord, IsAtRestWhenNothingIsUnderWay) {
  EXPECT_TRUE(srcu_word::check_at_rest({}));
  EXPECT_TRUE(srcu_word::check_at_rest(with(&srcu_state::word, 9 * srcu_word::one_epoch)));
  EXPECT_FALSE(srcu_word::check_at_rest(with(&srcu_state::word, srcu_word::one_reader(0))));
  EXPECT_FALSE(srcu_word::check_at_rest(with(&srcu_state::word, srcu_word::one_reader(1))));
  EXPECT_FALSE(srcu_word::check_at_rest(with(&srcu_state::queue, u64{16})));
  EXPECT_FALSE(srcu_word::check_at_rest(with(&srcu_state::pending, 1u)));
  EXPECT_FALSE(srcu_word::check_at_rest(with(&srcu_state::mutex, 1u)));
  EXPECT_FALSE(srcu_word::check_at_rest(with(&srcu_state::running, 1u)));
}

/// One atomic step of a lane.
enum class op : u8 {
  guess,  // read the epoch
  // be counted there; go on to look if that is where the epoch is, else to switch_side
  enter,
  enter_blind,   // be counted there, whatever the epoch is by now
  switch_side,   // to the other counter, and the same question
  look,          // hold the node behind the pointer
  leave,         // let go and be no longer counted
  unlink,        // put a node of our own there
  push,          // queue the old node
  announce,      // set pending; a conditional barrier ends here if it was set
  lock,          // blocks while another holds the mutex
  clear,         // pending
  detach,        // the queue
  flip,          // the epoch
  wait,          // blocks while the old epoch has readers
  wait_batches,  // blocks while another lane is reclaiming
  start,         // count our batch as running
  unlock,
  reclaim,
  finish  // count it no longer
};
using program = std::vector<op>;

program const reader{op::guess, op::enter, op::switch_side, op::look, op::leave};
program const conditional{op::unlink, op::push, op::announce, op::lock,   op::clear,   op::detach,
                          op::flip,   op::wait, op::start,    op::unlock, op::reclaim, op::finish};
program const full{op::unlink, op::push,         op::announce, op::lock,   op::clear,   op::detach, op::flip,
                   op::wait,   op::wait_batches, op::start,    op::unlock, op::reclaim, op::finish};

constexpr u32 most_lanes = 5;

struct lane_step {
  u8 at = 0;     // step
  u8 side = 0;   // of a reader; of a barrier: the side it waits for
  u8 node = 0;   // held by a reader, unlinked by a writer; 0 is none
  u8 batch = 0;  // nodes that we detached, a bit each
  u8 idle = 0;   // a barrier that found no batch, and need not wait
  auto operator<=>(lane_step const&) const = default;
};

struct model_state {
  u64 word = 0;
  u8 place = 1;  // node behind the pointer
  u8 queue = 0, reclaimed = 0;
  u8 pending = 0, mutex = 0, running = 0;
  lane_step lanes[most_lanes];
  auto operator<=>(model_state const&) const = default;
};

class explorer {
 public:
  /// Lane i runs `programs[i]`.
  explicit explorer(std::vector<program> programs) : programs_{std::move(programs)} {}

  /// Whether in every order no node is reclaimed under a reader or twice, a full barrier's caller
  /// finds its node reclaimed, no lane is stuck, and in the end every retired node is reclaimed and
  /// nothing is left.
  bool is_sound() { return visit({}); }

  size_t states() const { return seen_.size(); }
  size_t delegated() const { return delegated_; }

 private:
  bool visit(model_state const& now) {
    if (!seen_.insert(now).second) return true;
    bool moved = false;
    for (u32 lane = 0; lane < programs_.size(); ++lane) {
      auto next = now;
      if (!advance(next, lane)) continue;
      moved = true;
      if (broken_ || !visit(next)) return false;
    }
    return moved || ends_well(now);
  }

  /// One step of a lane; false if it has none to take.
  bool advance(model_state& now, u32 index) {
    auto& self = now.lanes[index];
    auto const& steps = programs_[index];
    if (self.at == steps.size()) return false;
    switch (steps[self.at]) {
      case op::guess: self.side = static_cast<u8>(srcu_word::side(now.word)); break;
      case op::enter:
        now.word += srcu_word::one_reader(self.side);
        if (srcu_word::side(now.word) == self.side) ++self.at;  // past switch_side
        break;
      case op::enter_blind: now.word += srcu_word::one_reader(self.side); break;
      case op::switch_side:
        now.word -= srcu_word::one_reader(self.side);
        self.side ^= 1;
        now.word += srcu_word::one_reader(self.side);
        if (srcu_word::side(now.word) != self.side) return true;  // once more
        break;
      case op::look:
        self.node = now.place;
        broken_ = broken_ || (now.reclaimed >> self.node & 1);
        break;
      case op::leave:
        now.word -= srcu_word::one_reader(self.side);
        self.node = 0;
        break;
      case op::unlink:
        self.node = now.place;
        now.place = static_cast<u8>(index + 2);
        break;
      case op::push: now.queue |= static_cast<u8>(1 << self.node); break;
      case op::announce:
        if (now.pending && !is_full(steps)) {
          self = {.at = static_cast<u8>(steps.size())};
          ++delegated_;
          return true;
        }
        now.pending = 1;
        break;
      case op::lock:
        if (now.mutex) return false;
        now.mutex = 1;
        break;
      case op::clear: now.pending = 0; break;
      case op::detach:
        self.batch = now.queue;
        now.queue = 0;
        self.idle = self.batch == 0 && !is_full(steps);
        break;
      case op::flip:
        self.side = static_cast<u8>(srcu_word::side(now.word));
        if (!self.idle) now.word = (now.word + srcu_word::one_epoch) % (2 * srcu_word::one_epoch);
        break;
      case op::wait:
        if (!self.idle && srcu_word::readers(now.word, self.side)) return false;
        break;
      case op::wait_batches:
        if (now.running) return false;
        break;
      case op::start: ++now.running; break;
      case op::unlock: now.mutex = 0; break;
      case op::reclaim: reclaim(now, self); break;
      case op::finish:
        --now.running;
        if (is_full(steps) && !(now.reclaimed >> self.node & 1)) broken_ = true;
        self = {.at = self.at};
        break;
    }
    ++self.at;
    return true;
  }

  void reclaim(model_state& now, lane_step& self) {
    broken_ = broken_ || (now.reclaimed & self.batch);
    for (u32 lane = 0; lane < programs_.size(); ++lane) {
      bool const reads = programs_[lane].front() == op::guess;
      broken_ = broken_ || (reads && now.lanes[lane].node && (self.batch >> now.lanes[lane].node & 1));
    }
    now.reclaimed |= self.batch;
    self.batch = 0;
  }

  bool ends_well(model_state const& end) const {
    u32 retired = 0;
    for (u32 lane = 0; lane < programs_.size(); ++lane) {
      if (end.lanes[lane].at != programs_[lane].size()) return false;  // stuck
      if (programs_[lane].front() == op::unlink) retired |= 1u << (lane + 2);
    }
    retired = (retired | 2) & ~(1u << end.place);
    return end.reclaimed == retired && end.word % srcu_word::one_epoch == 0 && !end.queue && !end.pending &&
           !end.mutex && !end.running;
  }

  static bool is_full(program const& steps) {
    return std::find(steps.begin(), steps.end(), op::wait_batches) != steps.end();
  }

  std::vector<program> programs_;
  std::set<model_state> seen_;
  size_t delegated_ = 0;
  bool broken_ = false;
};

/// The program with `moved` taken out and put after `before`.
program with_moved(program steps, op moved, op before) {
  std::erase(steps, moved);
  steps.insert(std::find(steps.begin(), steps.end(), before) + 1, moved);
  return steps;
}

program without(program steps, op dropped) {
  std::erase(steps, dropped);
  return steps;
}

/// Readers and writers that run together, each writer with the given barrier.
std::vector<program> together(u32 readers, program const& how_they_read, std::vector<program> const& writers) {
  std::vector<program> all(readers, how_they_read);
  all.insert(all.end(), writers.begin(), writers.end());
  return all;
}

TEST(SrcuProtocol, NoInterleavingReclaimsUnderAReaderOrLosesANode) {
  size_t states = 0, delegated = 0;
  for (auto const& writers : std::vector<std::vector<program>>{{conditional},
                                                               {full},
                                                               {conditional, conditional},
                                                               {conditional, full},
                                                               {full, full},
                                                               {conditional, conditional, conditional},
                                                               {conditional, conditional, full}}) {
    for (u32 readers = 0; readers <= 2; ++readers) {
      if (readers + writers.size() > 4) continue;
      explorer model{together(readers, reader, writers)};
      EXPECT_TRUE(model.is_sound()) << readers << " readers, " << writers.size() << " writers";
      states += model.states();
      delegated += model.delegated();
    }
  }
  EXPECT_GT(states, 50'000u);
  EXPECT_GT(delegated, 0u);
}

/// Whether some writers with this barrier and some readers that read like that go wrong.
bool is_caught(program const& barrier, program const& how_they_read = reader) {
  for (u32 readers = 0; readers <= 2; ++readers) {
    for (u32 writers = 1; writers + readers <= 4 && writers <= 3; ++writers) {
      if (!explorer{together(readers, how_they_read, std::vector<program>(writers, barrier))}.is_sound()) return true;
    }
  }
  return false;
}

// srcu.U1
TEST(SrcuProtocol, AReaderThatDoesNotLookAgainIsCaught) {
  EXPECT_TRUE(is_caught(conditional, {op::guess, op::enter_blind, op::look, op::leave}));
}

// srcu.U3
TEST(SrcuProtocol, DetachingAfterTheWaitIsCaught) {
  EXPECT_TRUE(is_caught(with_moved(conditional, op::detach, op::wait)));
}

TEST(SrcuProtocol, ClearingAfterTheFlipIsCaught) {
  EXPECT_TRUE(is_caught(with_moved(with_moved(conditional, op::clear, op::flip), op::detach, op::clear)));
}

// srcu.U4
TEST(SrcuProtocol, DetachingBeforeTheClearIsCaught) {
  EXPECT_TRUE(is_caught(with_moved(conditional, op::clear, op::detach)));
}

TEST(SrcuProtocol, FlippingAfterTheWaitIsCaught) {
  EXPECT_TRUE(is_caught(with_moved(conditional, op::flip, op::wait)));
}

// srcu.U2
TEST(SrcuProtocol, ABarrierWithoutTheMutexIsCaught) {
  EXPECT_TRUE(is_caught(without(without(conditional, op::lock), op::unlock)));
}

// srcu.U5
TEST(SrcuProtocol, AFullBarrierThatLeavesOthersBatchesBehindIsCaught) {
  // A batch that is counted only when its barrier has left the mutex is missed by the next one.
  EXPECT_TRUE(is_caught(with_moved(full, op::start, op::unlock)));
}

TEST(SrcuProtocol, ASoundBarrierIsNot) {
  EXPECT_FALSE(is_caught(conditional));
  EXPECT_FALSE(is_caught(full));
}

}  // namespace
