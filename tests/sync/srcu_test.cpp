// SPDX-License-Identifier: Apache-2.0
// SRCU between real lanes: nothing is reclaimed under a reader, every retired node is reclaimed
// once, and a barrier that is delegated leaves nothing behind.
#include <gtest/gtest.h>

#include <vector>
#include <warpheap/platform/backoff.hpp>
#include <warpheap/platform/device_buffer.hpp>
#include <warpheap/sync/srcu.hpp>
#include <warpheap/util/random.hpp>

#include "support/schedules.hpp"

namespace {

using namespace warpheap;
using test::for_each_schedule;

/// A record behind a pointer that writers replace. `content` is what readers look at.
struct record {
  srcu_node node;
  u32 content;
  u32 visits;     // sections that held it
  u32 reclaimed;  // times
};
constexpr u32 alive = 0x600d;
constexpr u32 dead = 0xdead;

struct tally {
  u32 read;       // sections
  u32 late;       // looks at a record that had been reclaimed
  u32 retired;    // records
  u32 reclaimed;  // by callbacks
  u32 delegated;  // barriers that another lane ran
  u32 kept;       // own records that a full barrier's caller found not reclaimed
  u32 visits;     // that callbacks found in their records
};

WARPHEAP_DEVICE void count(u32& total, u32 more = 1) { atomic_ref<u32>{total}.fetch_add(more, order::relaxed); }

/// The callback: the record is another lane's from here on.
struct reclaim_record {
  tally* total;

  WARPHEAP_DEVICE void operator()(srcu_node& node) const {
    auto& each = reinterpret_cast<record&>(node);
    // relaxed throughout: SRCU orders them.
    atomic_ref<u32>{each.content}.store(dead, order::relaxed);
    atomic_ref<u32>{each.reclaimed}.fetch_add(1, order::relaxed);
    node.next = 0;
    count(total->visits, atomic_ref<u32>{each.visits}.load(order::relaxed));
    count(total->reclaimed);
  }
};

/// What all lanes share: `places` pointers to records, and records to put there.
struct arena {
  srcu_state state;
  u64 places[2];  // index of the record there
  u32 made;       // records handed out
};

enum class use { conditional, full, mixed };

/// Every lane reads, and now and then replaces a record: one in `readers_a_writer` times.
template <class Srcu>
struct read_and_replace {
  WARPHEAP_DEVICE void operator()(arena* shared, record* records, u32 rounds, u32 readers_a_writer, use how,
                                  tally* total) const {
    Srcu const guard{shared->state};
    random_sequence random{global_thread_index()};
    for (u32 round = 0; round < rounds; ++round) {
      atomic_ref<u64> const place{shared->places[random.below(2)]};
      if (random.below(readers_a_writer + 1) == 0) replace(guard, shared, place, records, how, random, total);
      else read(guard, place, records, total);
    }
  }

 private:
  WARPHEAP_DEVICE static void read(Srcu const& guard, atomic_ref<u64> place, record* records, tally* total) {
    auto const section = guard.read_lock();
    // acquire: the record's contents; pairs with the exchange in replace().
    auto& found = records[place.load(order::acquire)];
    atomic_ref<u32> const content{found.content};
    for (u32 look = 0; look < 3; ++look) {
      if (content.load(order::relaxed) != alive) count(total->late);
      simt::pause(30);
    }
    count(found.visits);
    guard.read_unlock(section);
    count(total->read);
  }

  WARPHEAP_DEVICE static void replace(Srcu const& guard, arena* shared, atomic_ref<u64> place, record* records, use how,
                                      random_sequence& random, tally* total) {
    u64 const fresh = atomic_ref<u32>{shared->made}.fetch_add(1, order::relaxed);
    atomic_ref<u32>{records[fresh].content}.store(alive, order::relaxed);
    // release: the new record's contents. acquire: the old one's, for the writer.
    auto& old = records[place.exchange(fresh, order::acq_rel)];
    count(total->retired);
    guard.retire(old.node);
    bool const full = how == use::full || (how == use::mixed && random.below(3) == 0);
    if (!full) {
      if (!guard.conditional_barrier(reclaim_record{total})) count(total->delegated);
      return;
    }
    guard.barrier(reclaim_record{total});
    if (atomic_ref<u32>{old.reclaimed}.load(order::relaxed) != 1) count(total->kept);
  }
};

template <class Srcu>
bool is_sound(launch_shape shape, u32 rounds, u32 readers_a_writer, use how, tally& sum) {
  u32 const lanes = shape.blocks * shape.threads;
  device_buffer<arena> shared(std::vector<arena>{{.state = {}, .places = {0, 1}, .made = 2}});
  record fresh{};
  fresh.content = alive;
  device_buffer<record> records(std::vector<record>(lanes * rounds + 2, fresh));
  device_buffer<tally> total(1);
  launch(shape, read_and_replace<Srcu>{}, shared.data(), records.data(), rounds, readers_a_writer, how, total.data());
  synchronize();
  auto const done = total[0];
  auto const end = shared[0];
  bool sound = srcu_word::check_at_rest(end.state) && done.late == 0 && done.kept == 0 &&
               done.reclaimed == done.retired && done.read + done.retired == lanes * rounds &&
               end.made == done.retired + 2;
  auto const all = records.to_host();
  u32 visits = done.visits;
  for (u32 i = 0; i < all.size(); ++i) {
    bool const retired = i < end.made && end.places[0] != i && end.places[1] != i;
    sound = sound && all[i].reclaimed == (retired ? 1 : 0);
    visits += retired ? 0 : all[i].visits;
  }
  // srcu.U3: no lane reads what is being reclaimed, and all reads are over by then
  sound = sound && visits == done.read;
  sum.read += done.read;
  sum.retired += done.retired;
  sum.delegated += done.delegated;
  return sound;
}

constexpr launch_shape shapes[] = {{1, 1}, {1, 31}, {2, 33}, {4, 7}};

TEST(Srcu, ReclaimsEachRetiredRecordOnceAndNoneUnderAReader) {
  for (auto const how : {use::conditional, use::full, use::mixed}) {
    tally sum{};
    for (auto const shape : shapes) {
      for_each_schedule(
          150, [&] { EXPECT_TRUE(is_sound<srcu>(shape, 4, 2, how, sum)) << shape.blocks << " x " << shape.threads; });
      EXPECT_TRUE(shape.threads > 1 || sum.delegated == 0) << "there was nobody to delegate to";
    }
    EXPECT_GT(sum.read, 0u);
    EXPECT_GT(sum.retired, 0u);
    EXPECT_EQ(sum.delegated > 0, how != use::full);
  }
}

/// Lane 0 reads for a while; the others call a barrier once its section has begun. Nothing was
/// retired, and a conditional barrier need not wait then.
struct wait_for_a_reader {
  WARPHEAP_DEVICE void operator()(srcu_state* state, u32* steps, tally* total) const {
    srcu const guard{*state};
    atomic_ref<u32> const begun{steps[0]}, written{steps[1]};
    if (global_thread_index() == 0) {
      u32 const section = guard.read_lock();
      // release: the section has begun before; pairs with the acquire below.
      begun.store(1, order::release);
      simt::pause(200);
      // relaxed: SRCU orders it before what comes after a barrier.
      written.store(1, order::relaxed);
      guard.read_unlock(section);
      return;
    }
    while (begun.load(order::acquire) == 0) simt::pause(10);
    guard.barrier(reclaim_record{total});
    if (written.load(order::relaxed) == 0) count(total->late);
    count(total->kept);
  }
};

TEST(Srcu, ABarrierWaitsForReadersThoughNothingWasRetired) {
  for (launch_shape const shape : {launch_shape{2, 1}, {4, 1}, {2, 3}})
    for_each_schedule(60, [&] {
      device_buffer<srcu_state> const state(1);
      device_buffer<u32> const steps(2);
      device_buffer<tally> const total(1);
      launch(shape, wait_for_a_reader{}, state.data(), steps.data(), total.data());
      synchronize();
      EXPECT_EQ(total[0].kept, shape.blocks * shape.threads - 1);
      EXPECT_EQ(total[0].late, 0u);
      EXPECT_TRUE(srcu_word::check_at_rest(state[0]));
    });
}

/// One lane reads twice at a time, in sections of different epochs.
struct read_in_layers {
  WARPHEAP_DEVICE void operator()(srcu_state* state, record* records, tally* total) const {
    srcu const guard{*state};
    if (global_thread_index() > 0) {
      guard.retire(records[global_thread_index()].node);
      guard.conditional_barrier(reclaim_record{total});
      return;
    }
    for (u32 round = 0; round < 8; ++round) {
      auto const outer = guard.read_lock();
      simt::pause(50);
      auto const inner = guard.read_lock();
      simt::pause(50);
      guard.read_unlock(outer);
      guard.read_unlock(inner);
      count(total->read);
    }
  }
};

TEST(Srcu, SectionsMayNestAcrossEpochs) {
  for_each_schedule(200, [] {
    device_buffer<srcu_state> state(1);
    device_buffer<record> records(12);
    device_buffer<tally> total(1);
    launch({3, 4}, read_in_layers{}, state.data(), records.data(), total.data());
    synchronize();
    EXPECT_EQ(total[0].read, 8u);
    EXPECT_EQ(total[0].reclaimed, 11u);
    EXPECT_TRUE(srcu_word::check_at_rest(state[0]));
  });
}

/// A reader that stays while writers come and go: all writers but the one that waits for the reader
/// are told to leave at once.
struct wait_for_one_reader {
  WARPHEAP_DEVICE void operator()(srcu_state* state, record* records, u32* steps, tally* total) const {
    srcu const guard{*state};
    atomic_ref<u32> const inside{steps[0]}, left{steps[1]};
    u32 const writers = simt::block_dim() * simt::grid_dim() - 1;
    if (global_thread_index() == 0) {
      auto const section = guard.read_lock();
      inside.store(1, order::release);
      // All but two writers leave though we stay: one waits for us, and one for the mutex.
      while (left.load(order::relaxed) + 2 < writers) simt::pause(50);
      count(total->late, atomic_ref<u32>{total->reclaimed}.load(order::relaxed));
      guard.read_unlock(section);
      return;
    }
    // acquire: the reader is counted before we retire; pairs with the release above.
    while (inside.load(order::acquire) == 0) simt::pause(50);
    guard.retire(records[global_thread_index()].node);
    if (!guard.conditional_barrier(reclaim_record{total})) count(total->delegated);
    left.fetch_add(1, order::relaxed);
  }
};

TEST(Srcu, DelegationLetsAllWritersButTwoGo) {
  for_each_schedule(200, [] {
    // No schedule holds fewer than one thread block of 33: all are there together.
    device_buffer<srcu_state> state(1);
    device_buffer<record> records(33);
    device_buffer<u32> steps(2);
    device_buffer<tally> total(1);
    launch({1, 33}, wait_for_one_reader{}, state.data(), records.data(), steps.data(), total.data());
    synchronize();
    EXPECT_EQ(total[0].late, 0u);
    EXPECT_EQ(total[0].reclaimed, 32u);
    EXPECT_GE(total[0].delegated, 30u);
    EXPECT_TRUE(srcu_word::check_at_rest(state[0]));
  });
}

/// Lane 0 reads for a while; the others retire a record each, or nothing, and wait for it.
struct wait_for_a_reader_alone {
  WARPHEAP_DEVICE void operator()(srcu_state* state, record* records, u32* steps, tally* total) const {
    srcu const guard{*state};
    u64 const i = global_thread_index();
    atomic_ref<u32> const is_in{steps[0]}, has_left{steps[1]};
    if (i == 0) {
      u32 const section = guard.read_lock();
      is_in.store(1, order::relaxed);
      for (u32 turn = 0; turn < 20; ++turn) simt::pause(100);
      has_left.store(1, order::relaxed);
      guard.read_unlock(section);
      return;
    }
    for (backoff wait; is_in.load(order::relaxed) == 0;) wait.while_working();
    if (i % 2 == 0) guard.retire(records[i].node);
    guard.classical_barrier(reclaim_record{total});
    if (has_left.load(order::relaxed) == 0) count(total->late);
  }
};

TEST(Srcu, AClassicalBarrierWaitsForReadersWhateverIsQueued) {
  for_each_schedule(100, [] {
    device_buffer<srcu_state> state(1);
    device_buffer<record> records(33);
    device_buffer<u32> steps(2);
    device_buffer<tally> total(1);
    launch({1, 33}, wait_for_a_reader_alone{}, state.data(), records.data(), steps.data(), total.data());
    synchronize();
    EXPECT_EQ(total[0].late, 0u);
    EXPECT_EQ(total[0].reclaimed, 16u);
    EXPECT_TRUE(srcu_word::check_at_rest(state[0]));
  });
}

#if !defined(__CUDACC__)

using test::find_failing_schedule;

/// What is wrong with a mutant.
enum class fault {
  none,
  no_second_look,       // a reader is counted where the epoch was when it looked
  detach_after_wait,    // nodes retired meanwhile are not waited for
  clear_after_flip,     // a writer is told to go whose node is not waited for
  detach_before_clear,  // a writer is told to go whose node stays
  relaxed_read_lock,
  relaxed_read_unlock,
  relaxed_flip,
  relaxed_retire,
  hasty_walk  // takes a link that is not written yet for the end of a batch
};

template <fault Fault>
class broken_srcu {
 public:
  explicit broken_srcu(srcu_state& state) : state_{&state} {}

  u32 read_lock() const {
    auto const how = Fault == fault::relaxed_read_lock ? order::relaxed : order::acquire;
    u32 side = srcu_word::side(word().load(order::relaxed));
    u64 seen = word().fetch_add(srcu_word::one_reader(side), how);
    while (Fault != fault::no_second_look && srcu_word::side(seen) != side) {
      side ^= 1;
      seen = word().fetch_add(srcu_word::one_reader(side) - srcu_word::one_reader(side ^ 1), how);
    }
    return side;
  }

  void read_unlock(u32 side) const {
    word().fetch_sub(srcu_word::one_reader(side),
                     Fault == fault::relaxed_read_unlock ? order::relaxed : order::release);
  }

  void retire(srcu_node& node) const {
    atomic_ref<u64> const next{node.next};
    next.store(srcu_node::not_linked, order::relaxed);
    next.store(queue().exchange(reinterpret_cast<u64>(&node),
                                Fault == fault::relaxed_retire ? order::relaxed : order::release),
               order::relaxed);
  }

  template <class Reclaim>
  void barrier(Reclaim reclaim) const {
    pending().exchange(1, order::acq_rel);
    become_barrier(reclaim);
  }

  template <class Reclaim>
  bool conditional_barrier(Reclaim reclaim) const {
    if (pending().exchange(1, order::acq_rel) == 1) return false;
    become_barrier(reclaim);
    return true;
  }

 private:
  template <class Reclaim>
  void become_barrier(Reclaim reclaim) const {
    scoped_lock const held{spin_mutex{state_->mutex}};
    u64 batch = 0;
    if (Fault == fault::detach_before_clear) batch = detach();
    if (Fault != fault::clear_after_flip) pending().exchange(0, order::acq_rel);
    if (Fault != fault::detach_before_clear && Fault != fault::detach_after_wait && Fault != fault::clear_after_flip)
      batch = detach();
    u64 seen = word().fetch_add(srcu_word::one_epoch, Fault == fault::relaxed_flip ? order::relaxed : order::acq_rel);
    if (Fault == fault::clear_after_flip) {
      pending().exchange(0, order::acq_rel);
      batch = detach();
    }
    u32 const side = srcu_word::side(seen);
    while (srcu_word::readers(seen, side) != 0) {
      simt::pause(50);
      seen = word().load(order::acquire);
    }
    if (Fault == fault::detach_after_wait) batch = detach();
    for (auto* node = reinterpret_cast<srcu_node*>(batch); node;) {
      u64 next = srcu_node::not_linked;
      for (; next == srcu_node::not_linked; simt::pause(20)) {
        next = atomic_ref<u64>{node->next}.load(order::relaxed);
        if (Fault == fault::hasty_walk && next == srcu_node::not_linked) next = 0;
      }
      reclaim(*node);
      node = reinterpret_cast<srcu_node*>(next);
    }
  }

  u64 detach() const { return queue().exchange(0, order::acquire); }
  atomic_ref<u64> word() const { return atomic_ref<u64>{state_->word}; }
  atomic_ref<u64> queue() const { return atomic_ref<u64>{state_->queue}; }
  atomic_ref<u32> pending() const { return atomic_ref<u32>{state_->pending}; }

  srcu_state* state_;
};

/// The first of 4,000 schedules in which the mutant goes wrong.
template <fault Fault>
std::optional<u64> caught_at() {
  tally sum{};
  return find_failing_schedule(4000, [&] { return is_sound<broken_srcu<Fault>>({2, 7}, 6, 2, use::conditional, sum); });
}

TEST(Srcu, AReaderThatDoesNotLookAgainIsCaught) { EXPECT_TRUE(caught_at<fault::no_second_look>()); }

TEST(Srcu, DetachingAfterTheWaitIsCaught) { EXPECT_TRUE(caught_at<fault::detach_after_wait>()); }

TEST(Srcu, ClearingAfterTheFlipIsCaught) { EXPECT_TRUE(caught_at<fault::clear_after_flip>()); }

TEST(Srcu, DetachingBeforeTheClearIsCaught) { EXPECT_TRUE(caught_at<fault::detach_before_clear>()); }

TEST(Srcu, AReadSectionThatBeginsWithoutAcquireIsCaught) { EXPECT_TRUE(caught_at<fault::relaxed_read_lock>()); }

TEST(Srcu, AReadSectionThatEndsWithoutReleaseIsCaught) { EXPECT_TRUE(caught_at<fault::relaxed_read_unlock>()); }

TEST(Srcu, AnEpochThatBeginsWithoutReleaseIsCaught) { EXPECT_TRUE(caught_at<fault::relaxed_flip>()); }

TEST(Srcu, ARetirementWithoutReleaseIsCaught) { EXPECT_TRUE(caught_at<fault::relaxed_retire>()); }

TEST(Srcu, AWalkThatWaitsForNoLinkIsCaught) { EXPECT_TRUE(caught_at<fault::hasty_walk>()); }

TEST(Srcu, ASoundOneIsNot) { EXPECT_EQ(caught_at<fault::none>(), std::nullopt); }

#endif

}  // namespace
