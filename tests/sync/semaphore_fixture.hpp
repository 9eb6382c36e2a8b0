// SPDX-License-Identifier: Apache-2.0
// What the tests of both semaphores share: counts of what lanes did, and trade in batches of which
// there is a limited supply.
#pragma once

#include <vector>

#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/util/random.hpp"

namespace warpheap::test {

/// What a kernel has done, summed over its lanes.
struct tally {
  u32 made;      ///< batches
  u32 held;      ///< units acquired and not given back
  u32 acquired;  ///< waits that got their units
  u32 refused;   ///< waits whose batch failed and that found none
  u32 blind;     ///< waits that got units before they could see what their maker wrote
  u32 making;    ///< lanes that make a batch now
  u32 beside;    ///< batches that were begun while another was in the making
  u32 at_once;   ///< the most batches that were in the making together
};

/// Adds to a total. Returns the total as it was.
WARPHEAP_DEVICE inline u32 count(u32& total, u32 more) {
  return atomic_ref<u32>{total}.fetch_add(more, order::relaxed);
}

/// Takes one of the batches that are left. False if none is.
WARPHEAP_DEVICE inline bool take_batch(u32& supply) {
  atomic_ref<u32> const left{supply};
  for (u32 seen = left.load(order::relaxed); seen > 0;)
    if (left.compare_exchange(seen, seen - 1, order::relaxed, order::relaxed)) return true;
  return false;
}

/// Kernel: lanes take several units at a time, keep some, give some back, steal some without
/// waiting. `Acquire` waits for n units, or makes a batch for them while any of `supply` is left.
template <class Semaphore, class Acquire>
struct trade {
  WARPHEAP_DEVICE void operator()(u64* word, u32 batch, u32 rounds, u32* supply, tally* total) const {
    Semaphore semaphore{*word};
    random_sequence random{global_thread_index()};
    for (u32 round = 0; round < rounds; ++round) {
      auto const n = 1 + random.below(batch);
      bool ours;
      if (random.below(4) == 0) {
        ours = semaphore.try_wait(n);
      } else {
        ours = Acquire{}(semaphore, n, batch, supply, total);
        count(ours ? total->acquired : total->refused, 1);
      }
      if (!ours) continue;
      if (random.below(2) == 0) give_back(semaphore, n);
      else count(total->held, n);
    }
  }

 private:
  WARPHEAP_DEVICE static void give_back(Semaphore& semaphore, u32 n) {
    if constexpr (requires { semaphore.signal(n, 0); }) semaphore.signal(n, 0);
    else semaphore.signal(n);
  }
};

/// What 2 x 24 lanes left that traded in batches of 8.
struct traded {
  u64 word;  ///< of the semaphore
  u32 left;  ///< batches
  tally done;

  /// Whether as many batches were made as are gone, and some waits came to an end.
  bool adds_up(u32 supply) const { return done.made + left == supply && done.acquired + done.refused > 0; }
};

template <class Semaphore, class Acquire>
traded trade_batches(u32 supply) {
  device_buffer<u64> word(1);
  device_buffer<u32> left(std::vector<u32>{supply});
  device_buffer<tally> total(1);
  launch({2, 24}, trade<Semaphore, Acquire>{}, word.data(), 8u, 6u, left.data(), total.data());
  synchronize();
  return {word[0], left[0], total[0]};
}

/// Kernel: every lane takes `n` units without waiting.
template <class Semaphore>
struct try_once {
  WARPHEAP_DEVICE void operator()(u64* word, u32 n, tally* total) const {
    Semaphore semaphore{*word};
    count(semaphore.try_wait(n) ? total->acquired : total->refused, 1);
  }
};

/// Whether lanes that try for `n` units each, as many as there are together, are all served.
template <class Semaphore>
bool serves_all_that_try(launch_shape shape, u32 n) {
  u32 const lanes = shape.blocks * shape.threads;
  device_buffer<u64> word(std::vector<u64>{u64{lanes} * n});
  device_buffer<tally> total(1);
  launch(shape, try_once<Semaphore>{}, word.data(), n, total.data());
  synchronize();
  return total[0].acquired == lanes && total[0].refused == 0 && word[0] == 0;
}

/// Kernel: the first lane writes and adds a unit for each of the others, which try until they have
/// one and then look.
template <class Semaphore, class Signal>
struct try_until_served {
  WARPHEAP_DEVICE void operator()(u64* word, u32* contents, tally* total) const {
    Semaphore semaphore{*word};
    u32 const others = simt::grid_dim() * simt::block_dim() - 1;
    if (global_thread_index() == 0) {
      atomic_ref<u32>{*contents}.store(1, order::relaxed);
      Signal{}(semaphore, others);
      return;
    }
    while (!semaphore.try_wait(1)) simt::pause(1);
    count(atomic_ref<u32>{*contents}.load(order::relaxed) == 0 ? total->blind : total->acquired, 1);
  }
};

/// Whether each lane that got a unit by trying sees what was written before it was added.
template <class Semaphore, class Signal>
bool shows_contents_to_lanes_that_try(launch_shape shape) {
  device_buffer<u64> word(1);
  device_buffer<u32> contents(1);
  device_buffer<tally> total(1);
  launch(shape, try_until_served<Semaphore, Signal>{}, word.data(), contents.data(), total.data());
  synchronize();
  return total[0].blind == 0 && total[0].acquired == shape.blocks * shape.threads - 1;
}

}  // namespace warpheap::test
