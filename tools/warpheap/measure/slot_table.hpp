// SPDX-License-Identifier: Apache-2.0
// The slots of a load in device memory, and how its steps are run. A kernel without a heap lists
// the calls of a step, the kernels of listed_calls.hpp make them, and another kernel without a heap
// puts the new blocks into their slots. So blocks can be stamped when they are taken and looked at
// when they are freed, or the cycles of calls be read, while the timed kernels of the allocator are
// always the same two.
#pragma once

#include <algorithm>
#include <numeric>

#include "large_blocks.hpp"
#include "listed_calls.hpp"
#include "slot_load.hpp"
#include "timed_calls.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

/// What kernels take of the slots and of a step's calls.
struct slot_view {
  void** blocks;   ///< by slot, as all up to `size`
  u32* bytes;      ///< asked for of the block in the slot; 0 if it is empty
  void** leaving;  ///< by call: the block that the slot had, and its bytes
  u32* left_bytes;
  u64* wanted;  ///< by call: bytes to ask for, or 0
  void** came;  ///< by call
  u64* refused;
  findings* found;
};

/// Kernel: call i's slot gives up its block, and says what it wants.
struct list_calls {
  WARPHEAP_DEVICE void operator()(slot_step step, slot_view slots, u64 calls) const {
    u64 const i = global_thread_index();
    if (i >= calls) return;
    u64 const slot = step.slot_of(i);
    slots.leaving[i] = slots.blocks[slot];
    slots.left_bytes[i] = slots.bytes[slot];
    slots.wanted[i] = step.bytes(slot);
    slots.came[i] = nullptr;
  }
};

/// Kernel: call i's slot takes the block that came.
struct settle_calls {
  WARPHEAP_DEVICE void operator()(slot_step step, slot_view slots, u64 calls) const {
    u64 const i = global_thread_index();
    if (i >= calls) return;
    u64 const slot = step.slot_of(i);
    void* const block = slots.came[i];
    slots.blocks[slot] = block;
    slots.bytes[slot] = block ? static_cast<u32>(slots.wanted[i]) : 0;
    if (!block && slots.wanted[i]) count(*slots.refused);
  }
};

/// Kernel: looks at the blocks that leave.
struct inspect_leaving {
  WARPHEAP_DEVICE void operator()(block_promise promise, slot_step step, slot_view slots, u64 calls) const {
    u64 const i = global_thread_index();
    if (i >= calls || !slots.leaving[i]) return;
    if (!promise.is_stamped(slots.leaving[i], slots.left_bytes[i], step.slot_of(i))) count(slots.found->damaged);
  }
};

/// Kernel: stamps the blocks that came.
struct stamp_came {
  WARPHEAP_DEVICE void operator()(block_promise promise, slot_step step, slot_view slots, u64 calls) const {
    u64 const i = global_thread_index();
    if (i >= calls || !slots.came[i]) return;
    if (!promise.is_kept_by(slots.came[i], slots.wanted[i])) count(slots.found->misaligned);
    promise.stamp(slots.came[i], slots.wanted[i], step.slot_of(i));
  }
};

/// Kernel: stamps every block in a slot, whatever stands in it.
struct stamp_held {
  WARPHEAP_DEVICE void operator()(block_promise promise, slot_view slots, u64 size) const {
    u64 const slot = global_thread_index();
    if (slot < size && slots.blocks[slot]) promise.stamp(slots.blocks[slot], slots.bytes[slot], slot);
  }
};

/// Times of the two kernels of each step.
struct step_times {
  std::vector<double> malloc_us, free_us;

  std::vector<double> sums() const {
    auto both = malloc_us;
    for (size_t i = 0; i < both.size(); ++i) both[i] += free_us[i];
    return both;
  }
};

/// Cycles of every call.
struct call_cycles {
  std::vector<u64> malloc_cycles, free_cycles;
};

template <class Allocator>
class slot_table {
 public:
  slot_table(basic_heap<Allocator>& heap, u64 slots)
      : heap_{heap},
        blocks_(slots),
        leaving_(slots),
        came_(slots),
        bytes_(slots),
        left_bytes_(slots),
        wanted_(slots),
        refused_(1),
        found_(1) {}

  /// One step; does not wait.
  void play(slot_step const& step) {
    list(step);
    make_calls(step);
    settle(step);
  }

  /// One step whose blocks are stamped when they come and looked at when they go.
  void play_checked(slot_step const& step) {
    u64 const calls = step.calls(size());
    list(step);
    launch(shape_for(calls), inspect_leaving{}, promise_, step, view(), calls);
    make_calls(step);
    launch(shape_for(calls), stamp_came{}, promise_, step, view(), calls);
    settle(step);
  }

  /// Steps [first, first + number) by the stopwatch.
  step_times time(slot_load const& load, u64 first, u64 number) {
    step_times times;
    while (times.malloc_us.size() < number) {
      u64 const done = times.malloc_us.size(), now = std::min(number - done, steps_in_flight);
      for (u64 i = 0; i < now; ++i) {
        auto const step = load.step(first + done + i);
        list(step);
        watch_.mark();
        launch_freeing(heap_, leaving_, step.calls(size()));
        watch_.mark();
        launch_asking(heap_, wanted_, came_, step.calls(size()));
        watch_.mark();
        settle(step);
      }
      auto const laps = watch_.laps();  // a free, a malloc, and what lies between two steps
      for (u64 i = 0; i < now; ++i) {
        times.free_us.push_back(laps[3 * i]);
        times.malloc_us.push_back(laps[3 * i + 1]);
      }
    }
    return times;
  }

  /// One step by the clock. Appends the cycles of its calls.
  void clock(slot_step const& step, call_cycles& cycles) {
    u64 const calls = step.calls(size());
    device_buffer<u64> const of_malloc(calls), of_free(calls);
    list(step);
    launch_timed_freeing(heap_.ref(), shape_for(calls), leaving_.data(), of_free);
    launch_timed_asking(heap_.ref(), shape_for(calls), {.list = wanted_.data()}, came_.data(), of_malloc);
    settle(step);
    for (auto const& [from, to] :
         {std::pair{&of_malloc, &cycles.malloc_cycles}, std::pair{&of_free, &cycles.free_cycles}})
      for (u64 const each : from->to_host())
        if (each) to->push_back(each);
  }

  /// Stamps every block that is held, checks and frees all. Returns what is wrong, if anything,
  /// also in the checked steps before.
  std::string fault_of_emptying() {
    launch(shape_for(size()), stamp_held{}, promise_, view(), size());
    return fault_of_checked_emptying();
  }
  /// fault_of_emptying() where checked steps have stamped the blocks already.
  std::string fault_of_checked_emptying() {
    play_checked(slot_load::emptying());
    synchronize();
    auto const fault = found_[0].fault();
    return fault.empty() ? fault_of_emptied(heap_) : fault;
  }

  struct holding {
    u64 blocks = 0, bytes = 0;  ///< bytes asked for
  };
  holding held() const {
    holding sum;
    for (u32 const bytes : bytes_.to_host()) {
      sum.blocks += bytes != 0;
      sum.bytes += bytes;
    }
    return sum;
  }

  std::vector<asked_block> held_blocks() const {
    auto const blocks = blocks_.to_host();
    auto const bytes = bytes_.to_host();
    std::vector<asked_block> held;
    held.reserve(blocks.size());
    for (size_t i = 0; i < blocks.size(); ++i)
      if (blocks[i]) held.push_back({blocks[i], bytes[i]});
    return held;
  }

  /// Calls that returned nullptr since this was asked last.
  u64 take_refused() {
    u64 const refused = refused_[0];
    refused_ = device_buffer<u64>(1);
    return refused;
  }

 private:
  static constexpr u64 steps_in_flight = 128;

  u64 size() const { return blocks_.size(); }
  slot_view view() const {
    return {blocks_.data(), bytes_.data(), leaving_.data(), left_bytes_.data(),
            wanted_.data(), came_.data(),  refused_.data(), found_.data()};
  }

  void list(slot_step const& step) {
    launch(shape_for(step.calls(size())), list_calls{}, step, view(), step.calls(size()));
  }
  void make_calls(slot_step const& step) {
    launch_freeing(heap_, leaving_, step.calls(size()));
    launch_asking(heap_, wanted_, came_, step.calls(size()));
  }
  void settle(slot_step const& step) {
    launch(shape_for(step.calls(size())), settle_calls{}, step, view(), step.calls(size()));
  }

  basic_heap<Allocator>& heap_;
  device_buffer<void*> blocks_, leaving_, came_;
  device_buffer<u32> bytes_, left_bytes_;
  device_buffer<u64> wanted_, refused_;
  device_buffer<findings> found_;
  block_promise promise_ = block_promise::of<Allocator>();
  lap_watch watch_{3 * steps_in_flight};
};

/// Runs the load with checks: fills the slots, makes `steps` steps, and empties them. Returns what
/// is wrong. Leaves the heap without a block, and fresh if it can be reset.
template <class Allocator>
std::string fault_of_load(basic_heap<Allocator>& heap, slot_load const& load, u64 steps, bool resets) {
  slot_table<Allocator> slots{heap, load.slots()};
  slots.play_checked(load.filling());
  for (u64 i = 1; i <= steps; ++i) slots.play_checked(load.step(i));
  auto const fault = slots.fault_of_checked_emptying();
  if (resets) heap.reset();
  synchronize();
  return fault;
}

/// Whether the slabs that a policy counts are all of its pool. Halloc's split one serves large
/// blocks beside them.
template <class Creation>
constexpr bool pool_is_slabs() {
  if constexpr (requires { Creation::config.split_percent; }) return Creation::config.split_percent == 0;
  else return true;
}

/// The slabs of a heap, where the allocator has some and counts them: their share of the pool, and
/// live blocks' share of them.
template <class Allocator>
std::vector<std::pair<std::string, double>> slab_figures(basic_heap<Allocator> const& heap) {
  if constexpr (requires { heap.statistics(); }) {
    auto const now = heap.statistics();
    if (!pool_is_slabs<typename Allocator::creation_type>() || now.slabs == now.free_slabs) return {};
    double const share = static_cast<double>(now.slabs - now.free_slabs) / static_cast<double>(now.slabs);
    return {{"slab_share", share},
            {"live_over_slabs", static_cast<double>(now.live_bytes) / (share * static_cast<double>(now.pool_bytes))}};
  }
  return {};
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
