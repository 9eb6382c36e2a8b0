// SPDX-License-Identifier: Apache-2.0
// Every schedule of a few lanes on each primitive, up to a number of preemptions.
#include <gtest/gtest.h>

#include <vector>
#include <warpheap/adaptor/checked/quarantine.hpp>
#include <warpheap/platform/device_buffer.hpp>
#include <warpheap/structure/ring_queue.hpp>
#include <warpheap/sync/bulk_semaphore.hpp>
#include <warpheap/sync/collective_mutex.hpp>
#include <warpheap/sync/counting_semaphore.hpp>
#include <warpheap/sync/spin_mutex.hpp>
#include <warpheap/sync/srcu.hpp>

#include "structure/buddy_tree_fixture.hpp"
#include "support/explorations.hpp"

namespace {

using namespace warpheap;
using test::expect_every_schedule_right;

/// Takes a unit, from a batch that this lane makes if there is none, and gives it back.
struct take_from_batches {
  void operator()(u64* word, u32* made) const {
    bulk_semaphore semaphore{*word};
    if (semaphore.wait(1, 2) == wait_result::make_batch) {
      atomic_ref<u32>{*made}.fetch_add(1, order::relaxed);
      semaphore.signal(1, 1);
    }
    semaphore.signal(1, 0);
  }
};

/// Takes a unit and keeps it. The one batch that there may be has two; a lane that fails to make
/// another withdraws.
struct take_from_one_batch {
  void operator()(u64* word, u32* counts) const {
    bulk_semaphore semaphore{*word};
    atomic_ref<u32> const batches{counts[0]}, taken{counts[1]};
    if (semaphore.wait(1, 2) == wait_result::make_batch) {
      if (batches.fetch_add(1, order::relaxed) == 0) {
        semaphore.signal(1, 1);
      } else if (!semaphore.withdraw(1, 2)) {
        return;
      }
    }
    taken.fetch_add(1, order::relaxed);
  }
};

TEST(ExploredPrimitive, BulkSemaphore) {
  for (u32 const lanes : {2u, 3u}) {
    expect_every_schedule_right("bulk semaphore, " + std::to_string(lanes) + " lanes", {2, 4}, [lanes] {
      device_buffer<u64> const word(1);
      device_buffer<u32> const made(1);
      launch({lanes, 1}, take_from_batches{}, word.data(), made.data());
      return bulk_semaphore_state::check_at_rest(word[0]) &&
             bulk_semaphore_state::available(word[0]) == u64{made[0]} * 2 && made[0] >= 1 && made[0] <= (lanes + 1) / 2;
    });
    expect_every_schedule_right("bulk semaphore that runs out, " + std::to_string(lanes) + " lanes", {2, 4}, [lanes] {
      device_buffer<u64> const word(1);
      device_buffer<u32> const counts(2);
      launch({lanes, 1}, take_from_one_batch{}, word.data(), counts.data());
      return bulk_semaphore_state::check_at_rest(word[0]) && counts[1] == 2 &&
             bulk_semaphore_state::available(word[0]) == 0;
    });
  }
}

struct grow_and_take {
  void operator()(u64* word, u32* counts) const {
    counting_semaphore const semaphore{*word};
    if (u32 const missing = semaphore.wait_or_grow(1)) {
      if (atomic_ref<u32>{counts[0]}.fetch_add(1, order::relaxed) != 0)
        atomic_ref<u32>{counts[1]}.store(1, order::relaxed);
      atomic_ref<u32>{counts[0]}.fetch_sub(1, order::relaxed);
      semaphore.grown(2 - missing);
    }
    semaphore.signal(1);
  }
};

TEST(ExploredPrimitive, CountingSemaphore) {
  for (u32 const lanes : {2u, 3u})
    expect_every_schedule_right("counting semaphore, " + std::to_string(lanes) + " lanes", {2, 4}, [lanes] {
      device_buffer<u64> const word(1);
      device_buffer<u32> const counts(2);
      launch({lanes, 1}, grow_and_take{}, word.data(), counts.data());
      return counts[1] == 0 && word[0] >= 2 && word[0] % 2 == 0;
    });
}

/// A group enters, changes a word in two steps, and leaves, one lane after the other.
template <class Mutex>
struct add_inside {
  void operator()(u32* words) const {
    Mutex const mutex{words[0]};
    auto const group = mutex.lock_converged();
    if (group.leads) {
      atomic_ref<u32> const sum{words[1]};
      sum.store(sum.load(order::relaxed) + group.size, order::relaxed);
      atomic_ref<u32>{words[2]}.store(1, order::relaxed);
    }
    mutex.unlock();
  }
};

TEST(ExploredPrimitive, CollectiveMutex) {
  for (auto const masks : {host::mask_policy::maximal, host::mask_policy::singleton})
    for (auto const shape : {launch_shape{2, 1}, {1, 2}, {3, 1}, {1, 3}}) {
      u32 const lanes = shape.blocks * shape.threads;
      expect_every_schedule_right(
          "collective mutex, " + std::to_string(shape.blocks) + " x " + std::to_string(shape.threads) +
              " lanes, masks " + host::detail::name_of(masks),
          {2, 4},
          [&] {
            device_buffer<u32> const words(3);
            launch(shape, add_inside<collective_mutex>{}, words.data());
            return words[0] == 0 && words[1] == lanes;
          },
          masks);
    }
}

struct node_with_content {
  srcu_node node;
  u32 content;
  u32 reclaimed;
};

struct reclaim_content {
  void operator()(srcu_node& node) const {
    auto& each = reinterpret_cast<node_with_content&>(node);
    atomic_ref<u32>{each.content}.store(2, order::relaxed);
    atomic_ref<u32>{each.reclaimed}.fetch_add(1, order::relaxed);
    node.next = 0;
  }
};

/// Lane 0 replaces a node and retires it; the others read.
struct read_beside_a_writer {
  bool waits;

  void operator()(srcu_state* state, u64* place, node_with_content* nodes, u32* late) const {
    srcu const guard{*state};
    atomic_ref<u64> const at{*place};
    u32 const me = simt::block_index();
    if (me == 0) {
      atomic_ref<u32>{nodes[1].content}.store(1, order::relaxed);
      auto& old = nodes[at.exchange(1, order::acq_rel)];
      guard.retire(old.node);
      if (waits) guard.barrier(reclaim_content{});
      else guard.conditional_barrier(reclaim_content{});
      return;
    }
    u32 const section = guard.read_lock();
    auto& found = nodes[at.load(order::acquire)];
    for (u32 look = 0; look < 2; ++look)
      if (atomic_ref<u32>{found.content}.load(order::relaxed) != 1) atomic_ref<u32>{*late}.store(1, order::relaxed);
    guard.read_unlock(section);
  }
};

TEST(ExploredPrimitive, Srcu) {
  for (u32 const lanes : {2u, 3u})
    for (bool const waits : {true, false})
      expect_every_schedule_right(
          "SRCU, " + std::string{waits ? "barrier, " : "conditional barrier, "} + std::to_string(lanes) + " lanes",
          {2, 4}, [lanes, waits] {
            device_buffer<srcu_state> const state(1);
            device_buffer<u64> const place(1);
            device_buffer<node_with_content> const nodes(std::vector<node_with_content>{{{}, 1, 0}, {{}, 0, 0}});
            device_buffer<u32> const late(1);
            launch({lanes, 1}, read_beside_a_writer{waits}, state.data(), place.data(), nodes.data(), late.data());
            return late[0] == 0 && nodes[0].reclaimed == 1 && nodes[1].reclaimed == 0 &&
                   srcu_word::check_at_rest(state[0]);
          });
}

/// Takes an item and gives it back, or is refused.
struct pass_an_item {
  void operator()(ring_queue items, u32* owners, u32* refused) const {
    u32 const item = items.pop(group_of(simt::active_mask()));
    if (item == ring_queue::none) return static_cast<void>(atomic_ref<u32>{*refused}.fetch_add(1, order::relaxed));
    if (atomic_ref<u32>{owners[item]}.fetch_add(1, order::relaxed) != 0) simt::trap("an item has two owners");
    atomic_ref<u32>{owners[item]}.fetch_sub(1, order::relaxed);
    items.push(group_of(simt::active_mask()), item);
  }
};

TEST(ExploredPrimitive, RingQueue) {
  for (u32 const lanes : {2u, 3u})
    for (u32 const items : {1u, 2u})
      expect_every_schedule_right(
          "ring queue of " + std::to_string(items) + ", " + std::to_string(lanes) + " lanes", {2, 4}, [=] {
            device_buffer<u32> const words(ring_queue::words_for(items)), owners(items), refused(1);
            ring_queue const queue{words.data(), items};
            {
              explore::unexplored const setup;
              launch(
                  {1, 1}, [](ring_queue view) { view.fill(0, 0, 1); }, queue);
            }
            launch({lanes, 1}, pass_an_item{}, queue, owners.data(), refused.data());
            return words[ring_queue::available_word] == items && (items < lanes || refused[0] == 0);
          });
}

/// Holds two blocks back, and counts those that go back.
struct hold_two {
  void operator()(checked_parts::quarantine* ring, u32* returned) const {
    u64 const mine = 2 * global_thread_index() + 1;
    for (u64 block = mine; block < mine + 2; ++block)
      ring->hold(reinterpret_cast<void*>(16 * block), 16, [=](void*) -> u64 {
        atomic_ref<u32>{*returned}.fetch_add(1, order::relaxed);
        return 16;
      });
  }
};

/// While a block leaves the only slot, its next one has nowhere else to go: a lane that asked on
/// without a pause would keep the other from ending.
/// checked.Q2
TEST(ExploredPrimitive, QuarantineOfOneSlot) {
  for (u32 const lanes : {2u, 3u})
    expect_every_schedule_right("quarantine of one slot, " + std::to_string(lanes) + " lanes", {1, 3}, [lanes] {
      device_buffer<u64> const slot(1);
      device_buffer<checked_parts::quarantine> const ring(
          std::vector<checked_parts::quarantine>{{slot.data(), 1, u64{1} << 40}});
      device_buffer<u32> const returned(1);
      launch({lanes, 1}, hold_two{}, ring.data(), returned.data());
      return returned[0] == 2 * lanes - 1 && slot[0] != 0;
    });
}

TEST(ExploredPrimitive, BuddyTreeOfOrder2) {
  for (u32 const lanes : {2u, 3u})
    expect_every_schedule_right("buddy tree of 4 pages, " + std::to_string(lanes) + " lanes", {1, 3}, [lanes] {
      return test::survives<buddy_tree>(4, {lanes, 1}, 1) ? "" : "the tree is not as it was";
    });
}

}  // namespace
