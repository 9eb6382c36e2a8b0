// SPDX-License-Identifier: Apache-2.0
// Read-copy-update for many threads: readers walk a structure while others unlink parts of it, and
// an unlinked part is reclaimed when no reader can hold it any more. Waiting for that is delegated
// to a lane that is about to wait anyway.
//
// A counter a thread, as RCU for CPUs has it, is too much to look through with 200,000 threads.
// Sleepable RCU counts the readers of two epochs in two counters. Here both share a word with the
// epoch, so a reader learns by the very addition that registers it whether it is counted where the
// next barrier looks:
//
//    63      48 47             24 23              0
//   |  epoch   |   readers[1]    |   readers[0]    |   a reader counts in readers[epoch & 1]
//
//   srcu.U1  a lane inside a read section is counted, from its read_lock to its read_unlock, in
//       readers[e & 1], where e was the epoch when it registered.
//   srcu.U2  one barrier at a time holds the mutex; it leaves it only when readers[e & 1] was 0
//       after it made epoch e into e + 1. So when epoch e + 1 begins, readers[(e + 1) & 1] counts
//       no lanes but those that take their count back at once.
//   srcu.U3  a node is detached before the flip of the barrier that waits for it. A reader that
//       could reach what the node stands for registered before that flip; any other sees that it is
//       unlinked (acquire of the flip).
//   srcu.U4  pending = 1: some running lane has yet to detach the queue. Clearing it comes before
//       detaching, so a node whose owner found it set is in that batch or a later one. A node's
//       link is written just after it came into the queue; a lane that walks a batch waits for
//       that.
//   srcu.U5  running counts the batches that are detached and not reclaimed yet, once their barrier
//       has left the mutex.
//   srcu.U6  at rest the readers are 0, the queue is empty, and so are pending, mutex and running.
//       Zeroed state is valid.
//
// Progress: read_unlock and retire do not wait, nor loop; read_lock goes round once for each flip
// that it meets. Barriers wait for the mutex, for readers and for each other's callbacks, all held
// by lanes that run: so never call one inside a read section, nor from a callback of the same srcu.
// Cost: a read section is one load and two additions, without a fence; a retirement one exchange; a
// barrier that is delegated one exchange.
// Source: Gelado and Garland 2019, section 4.2.1; McKenney 2006. Differs: see docs/design/srcu.md.
// As described there, a reader that read the epoch and slept across a flip escapes the next
// barrier.
#pragma once

#include "../platform/assert.hpp"
#include "../platform/backoff.hpp"
#include "../platform/simt.hpp"
#include "spin_mutex.hpp"

namespace warpheap {

/// What is queued for reclamation: part of the record that it stands for, or beside a tag that says
/// what to do. Its owner does not touch it from retire() until it is handed to a callback.
struct srcu_node {
  u64 next;  ///< address of the node that was retired before it, or 0

  static constexpr u64 not_linked = 1;  ///< `next` of a node in the queue until its link is written
};

/// All the state there is; zeroed is valid.
struct srcu_state {
  u64 word;   ///< epoch and readers
  u64 queue;  ///< address of the node retired last, or 0
  u32 pending;
  u32 mutex;
  u32 running;
  u32 unused;
};

/// The fields of srcu_state::word: pure functions.
namespace srcu_word {

inline constexpr u32 reader_bits = 24;
inline constexpr u64 max_readers = (u64{1} << reader_bits) - 1;
inline constexpr u64 one_epoch = u64{1} << 2 * reader_bits;

/// Which of the two counters the readers of the word's epoch use.
WARPHEAP_HOST_DEVICE constexpr u32 side(u64 word) { return static_cast<u32>(word >> 2 * reader_bits) & 1; }
WARPHEAP_HOST_DEVICE constexpr u64 epoch(u64 word) { return word >> 2 * reader_bits; }
WARPHEAP_HOST_DEVICE constexpr u64 readers(u64 word, u32 side) { return word >> side * reader_bits & max_readers; }
WARPHEAP_HOST_DEVICE constexpr u64 one_reader(u32 side) { return u64{1} << side * reader_bits; }

/// Whether a state can be what is left when no lane is inside a call or a read section, and every
/// node's owner has asked for a barrier (srcu.U6).
WARPHEAP_HOST_DEVICE constexpr bool check_at_rest(srcu_state const& state) {
  return state.word % one_epoch == 0 && state.queue == 0 && state.pending == 0 && state.mutex == 0 &&
         state.running == 0;
}

}  // namespace srcu_word

inline namespace WARPHEAP_BACKEND {

class srcu {
 public:
  WARPHEAP_DEVICE explicit srcu(srcu_state& state) : state_{&state} {}

  /// Begins a read section: what was not yet retired when it began is not reclaimed before it ends.
  /// Returns what read_unlock takes. Any lane alone; sections may nest, each with its own number,
  /// fewer than 2^24 at a time.
  WARPHEAP_DEVICE u32 read_lock() const {
    // relaxed: a guess; the addition returns the epoch that counts.
    u32 side = srcu_word::side(word().load(order::relaxed));
    // acquire: what was unlinked before the last flip is not reached (srcu.U3); pairs with the
    // release of the flip.
    u64 seen = word().fetch_add(srcu_word::one_reader(side), order::acquire);
    while (srcu_word::side(seen) != side) {
      // srcu.U1: to the other counter, in one step, and look again. Until then a barrier may wait
      // for us in vain.
      u32 const wrong = side;
      side ^= 1;
      seen = word().fetch_add(srcu_word::one_reader(side) - srcu_word::one_reader(wrong), order::acquire);
    }
    WARPHEAP_ASSERT(srcu_word::readers(seen, side) < srcu_word::max_readers, "srcu: 2^24 readers");
    return side;
  }

  /// Ends the read section that `side` was returned for.
  WARPHEAP_DEVICE void read_unlock(u32 side) const {
    // release: our reads happen before the reclamation; pairs with the acquires in
    // wait_for_readers().
    u64 const seen = word().fetch_sub(srcu_word::one_reader(side), order::release);
    WARPHEAP_ASSERT(srcu_word::readers(seen, side) > 0, "srcu: end of a read section that nobody began");
    static_cast<void>(seen);
  }

  /// Queues what `node` stands for, which no reader that comes now can reach any more. A barrier
  /// must follow, by the caller or by a lane that it tells. Any lane alone, inside a read section
  /// or not.
  WARPHEAP_DEVICE void retire(srcu_node& node) const {
    atomic_ref<u64> const next{node.next};
    // relaxed: the exchange releases it.
    next.store(srcu_node::not_linked, order::relaxed);
    // An exchange, because among many lanes a compare-exchange would fail most of the time.
    // release: the node, and that it was unlinked; pairs with the acquire in detach(), for the
    // nodes below too: each exchange passes on what the last released.
    u64 const before = queue().exchange(reinterpret_cast<u64>(&node), order::release);
    // relaxed: the lane that detaches the queue knows the node before; only the link is news.
    next.store(before, order::relaxed);
  }

  /// Waits for all readers there are, then calls `reclaim(srcu_node&)` for each node of the queue.
  /// On return every node that was retired before the call has been reclaimed, by us or by another
  /// lane.
  ///
  /// reclaim  may reuse the node; calls no barrier of this srcu, and waits for no lane that may be
  ///          in one
  /// thread   any lane alone, in no read section
  template <class Reclaim>
  WARPHEAP_DEVICE void barrier(Reclaim reclaim) const {
    pending().exchange(1, order::acq_rel);  // as in conditional_barrier()
    become_barrier(*this, reclaim, barrier_kind::full);
  }

  /// As barrier(), unless another lane is on its way to do it. Then it returns at once, and that
  /// lane will reclaim the nodes that were retired before this call. Returns whether it was a
  /// barrier of its own.
  template <class Reclaim>
  WARPHEAP_DEVICE bool conditional_barrier(Reclaim reclaim) const {
    // srcu.U4. release: what we retired and unlinked is there for the lane that clears it; pairs
    // with the acquire in detach(). acquire: keeps the chain for lanes that find it set after us.
    if (pending().exchange(1, order::acq_rel) == 1) return false;
    become_barrier(*this, reclaim, barrier_kind::conditional);
    return true;
  }

  /// As conditional_barrier(), but never leaves it to another lane, and waits for readers even if
  /// others have reclaimed all nodes: SRCU's own barrier, to compare with.
  template <class Reclaim>
  WARPHEAP_DEVICE void classical_barrier(Reclaim reclaim) const {
    pending().exchange(1, order::acq_rel);  // as above
    become_barrier(*this, reclaim, barrier_kind::classical);
  }

 private:
  /// A full barrier waits for all readers and all batches, a classical one for all readers, and a
  /// conditional one for those who may read its own batch.
  enum class barrier_kind : u32 { full, classical, conditional };

  template <class Reclaim>
  WARPHEAP_COLD static void become_barrier(srcu self, Reclaim reclaim, barrier_kind kind) {
    spin_mutex const mutex{self.state_->mutex};
    mutex.lock();
    srcu_node* const batch = self.detach();
    // A batch that another lane has detached is that lane's to wait for.
    if (batch || kind != barrier_kind::conditional) self.wait_for_readers();
    if (kind == barrier_kind::full) self.wait_for_batches();
    // relaxed: ordered before the next barrier by the mutex. srcu.U5
    self.running().fetch_add(1, order::relaxed);
    mutex.unlock();
    for (srcu_node* node = batch; node;) {
      srcu_node* const next = next_of(*node);
      reclaim(*node);
      node = next;
    }
    // release: what was reclaimed is there for a full barrier's caller; pairs with the acquire in
    // wait_for_batches().
    self.running().fetch_sub(1, order::release);
  }

  /// Takes all nodes that were retired by lanes that found pending set. Under the mutex.
  WARPHEAP_DEVICE srcu_node* detach() const {
    // srcu.U4: before the queue is looked at. acquire: the nodes of the lanes that set it; pairs
    // with the exchanges in the barriers.
    pending().exchange(0, order::acq_rel);
    // acquire: the nodes' contents and that they were unlinked; pairs with the release in retire().
    return reinterpret_cast<srcu_node*>(queue().exchange(0, order::acquire));
  }

  /// The node that was retired before this one, both of a detached batch.
  WARPHEAP_DEVICE static srcu_node* next_of(srcu_node& node) {
    atomic_ref<u64> const link{node.next};
    // relaxed: see retire(). Its owner is on the way to write it.
    u64 next = link.load(order::relaxed);
    for (backoff nap; next == srcu_node::not_linked; next = link.load(order::relaxed)) nap.while_working();
    return reinterpret_cast<srcu_node*>(next);
  }

  /// Begins an epoch and waits for the readers of the last. Under the mutex (srcu.U2).
  WARPHEAP_DEVICE void wait_for_readers() const {
    // release: a reader that registers from now on sees what was unlinked (srcu.U3); pairs with the
    // acquire in read_lock(). acquire: what readers that have left did happens before the
    // reclamation; pairs with the release in read_unlock().
    u64 seen = word().fetch_add(srcu_word::one_epoch, order::acq_rel);
    u32 const side = srcu_word::side(seen);
    for (backoff nap; srcu_word::readers(seen, side) != 0;) {
      nap.while_working();
      // acquire: as above, for readers that leave now.
      seen = word().load(order::acquire);
    }
  }

  /// Waits for the batches of earlier barriers. Under the mutex, so that no batch is added
  /// meanwhile.
  WARPHEAP_DEVICE void wait_for_batches() const {
    // acquire: what they reclaimed; pairs with the release at the end of become_barrier().
    for (backoff nap; running().load(order::acquire) != 0;) nap.while_working();
  }

  WARPHEAP_DEVICE atomic_ref<u64> word() const { return atomic_ref<u64>{state_->word}; }
  WARPHEAP_DEVICE atomic_ref<u64> queue() const { return atomic_ref<u64>{state_->queue}; }
  WARPHEAP_DEVICE atomic_ref<u32> pending() const { return atomic_ref<u32>{state_->pending}; }
  WARPHEAP_DEVICE atomic_ref<u32> running() const { return atomic_ref<u32>{state_->running}; }

  srcu_state* state_;
};

}  // namespace WARPHEAP_BACKEND

}  // namespace warpheap
