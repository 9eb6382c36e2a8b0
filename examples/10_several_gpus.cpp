// SPDX-License-Identifier: Apache-2.0
// One heap for each GPU of a host, and blocks that one GPU allocates and another reads and frees.
// With one GPU, or on the host backend, both members of the set are on the same device.
#include <warpheap/heap/heap_set.hpp>
#include <warpheap/warpheap.hpp>

#include <cstdio>
#include <vector>

#include "warpheap/platform/device_buffer.hpp"

namespace {

using namespace warpheap::literals;

constexpr warpheap::launch_shape shape{64, 64};
constexpr unsigned threads = 64 * 64;

struct message {
  unsigned sender;
  unsigned numbers[255];
};

/// Kernel of the first member: every thread writes a message; counts those without memory.
struct write_messages {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, message** sent, unsigned long long* refused) const {
    auto const me = static_cast<unsigned>(warpheap::global_thread_index());
    auto* const mine = static_cast<message*>(heap.malloc(sizeof(message)));
    sent[me] = mine;
    if (!mine) {
      warpheap::atomic_ref<unsigned long long>{*refused}.fetch_add(1, warpheap::order::relaxed);
      return;
    }
    mine->sender = me;
    for (unsigned i = 0; i < 255; ++i) mine->numbers[i] = me + i;
  }
};

/// Kernel of the second member: reads each message, and frees it; counts the wrong ones.
struct read_messages {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, message* const* sent, unsigned long long* wrong) const {
    auto const me = static_cast<unsigned>(warpheap::global_thread_index());
    message* const theirs = sent[me];
    if (!theirs) return;
    bool right = theirs->sender == me && heap.owner(theirs) != heap.self();
    for (unsigned i = 0; i < 255; ++i) right = right && theirs->numbers[i] == me + i;
    if (!right) warpheap::atomic_ref<unsigned long long>{*wrong}.fetch_add(1, warpheap::order::relaxed);
    heap.free(theirs);
  }
};

template <class Functor, class... Arguments>
void run_as(warpheap::heap_set const& set, unsigned member, Functor functor, Arguments... arguments) {
  warpheap::backend::device_scope const current{set.device(member)};
  warpheap::launch(shape, functor, set.ref(member), arguments...);
  warpheap::synchronize();
}

}  // namespace

int main() {
  int const devices = warpheap::backend::device_count();
  if (devices < 2) std::printf("one device here: both members are on it\n");
  // 6,144 messages of 1 KiB fit: those of one round and a half.
  warpheap::heap_set set{6_MiB, {0, devices < 2 ? 0 : 1}};

  warpheap::device_buffer<message*> const sent(threads);
  warpheap::device_buffer<unsigned long long> const refused(1), wrong(1);
  for (int round = 0; round < 3; ++round) {
    // From the second round on, malloc finds the heap full, and makes the pending frees.
    run_as(set, 0, write_messages{}, sent.data(), refused.data());
    run_as(set, 1, read_messages{}, sent.data(), wrong.data());
    std::printf("round %d: %llu frees wait in the mailbox of member 0\n", round, set.pending(0));
  }
  set.drain();
  for (unsigned member = 0; member < set.size(); ++member) {
    warpheap::backend::device_scope const current{set.device(member)};
    warpheap::synchronize();
  }
  auto const left = set.statistics().live_blocks;
  std::printf("%llu refused, %llu wrong, %llu live in the end\n", refused[0], wrong[0], left);
  return refused[0] == 0 && wrong[0] == 0 && left == 0 ? 0 : 1;
}
