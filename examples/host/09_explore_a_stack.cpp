// SPDX-License-Identifier: Apache-2.0
// Finds a race in a lock-free stack by trying every schedule of a few lanes, and shows that the
// fixed stack has none.
//
// The stack holds free slots by number. A pop reads the head and the slot below it, and moves the
// head there by a compare-exchange. Between these steps another lane may pop two slots and push the
// first one back: the head is unchanged, the slot below is not, and a slot that is in use becomes
// the head (the ABA problem). A count beside the head, raised by each push, prevents that.
#include <cstdio>
#include <warpheap/explore/exploration.hpp>

namespace {

using namespace warpheap;

constexpr u32 slots = 3;
constexpr u32 none = slots;

template <bool Counts>
struct free_slots {
  u64* head;  // the number of the top slot, and above 32 bits a count
  u32* below;

  u32 pop() const {
    u64 seen = atomic_ref<u64>{*head}.load(order::acquire);
    for (;;) {
      u32 const top = static_cast<u32>(seen);
      if (top == none) return none;
      u64 const next = (seen & ~u64{0xffffffff}) | atomic_ref<u32>{below[top]}.load(order::relaxed);
      if (atomic_ref<u64>{*head}.compare_exchange(seen, next, order::acquire, order::acquire)) return top;
    }
  }

  void push(u32 slot) const {
    u64 seen = atomic_ref<u64>{*head}.load(order::relaxed);
    for (;;) {
      atomic_ref<u32>{below[slot]}.store(static_cast<u32>(seen), order::relaxed);
      u64 const count = Counts ? (seen >> 32) + 1 : 0;
      if (atomic_ref<u64>{*head}.compare_exchange(seen, count << 32 | slot, order::release, order::relaxed)) return;
    }
  }
};

/// Takes two slots, returns the first, and keeps the second.
template <bool Counts>
struct take_and_give_back {
  void operator()(free_slots<Counts> stack, u32* owners) const {
    u32 const first = stack.pop(), second = stack.pop();
    for (u32 const slot : {first, second})
      if (slot != none && atomic_ref<u32>{owners[slot]}.fetch_add(1, order::relaxed) != 0)
        simt::trap("a slot has two owners");
    if (first == none) return;
    atomic_ref<u32>{owners[first]}.fetch_sub(1, order::relaxed);
    stack.push(first);
  }
};

template <bool Counts>
bool runs_well() {
  device_buffer<u64> const head(std::vector<u64>{0});
  device_buffer<u32> const below(std::vector<u32>{1, 2, none}), owners(slots);
  launch({2, 1}, take_and_give_back<Counts>{}, free_slots<Counts>{head.data(), below.data()}, owners.data());
  return true;
}

}  // namespace

int main() {
  explore::exploration const how{.preemptions = 3};
  auto const mended = explore::explore(how, runs_well<true>);
  std::printf("with a count: %llu schedules of up to 3 preemptions, %s\n",
              static_cast<unsigned long long>(mended.schedules),
              mended.fault ? "one of them wrong" : "none of them wrong");
  auto const broken = explore::explore(how, runs_well<false>);
  if (!broken.fault) return 1;
  std::printf("without: a wrong one after %llu, with lanes changed at %s\n%s\n",
              static_cast<unsigned long long>(broken.schedules), explore::text_of(broken.fault->deviations).c_str(),
              broken.fault->what.c_str());
  return mended.ended && !mended.fault ? 0 : 1;
}
