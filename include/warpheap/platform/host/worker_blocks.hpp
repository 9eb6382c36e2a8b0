// SPDX-License-Identifier: Apache-2.0
// The life of thread blocks on a worker: each takes a free place, its lanes start and end, and the
// place is free again.
#pragma once

#include "block_memory.hpp"
#include "hang.hpp"

namespace warpheap::host::detail {

inline worker::~worker() {
  for (u32 i = 0; i < place_count_; ++i) {
    delete[] places_[i].warps;
    delete[] places_[i].lanes;
    delete places_[i].shared;
  }
}

/// Places for `count` resident thread blocks; those that exist keep their memory.
inline void worker::make_places(u32 count) {
  if (count <= place_count_) return;
  auto grown = std::make_unique<thread_block[]>(count);
  for (u32 i = 0; i < place_count_; ++i) grown[i] = places_[i];
  places_ = static_cast<std::unique_ptr<thread_block[]>&&>(grown);
  place_count_ = count;
}

inline void worker::run(dispatcher& work, execution const& how, u32 index, u32 workers, memory_model* model) {
  work_ = &work;
  how_ = how;
  index_ = index;
  workers_ = workers;
  model_ = model;
  deterministic_ = how.mode == execution_mode::deterministic;
  draws_ = draws{how.seed};
  choose_schedule();
  masks_ = how.masks == mask_policy::mixed ? static_cast<mask_policy>(draws_.below(3)) : how.masks;
  if (!deterministic_) masks_ = mask_policy::maximal;
  slept_ = waits_ = 0;
  statistics_ = {};
  dry_turns_ = 0;
  patience_ = full_patience;
  trace_count_ = 0;
  error_ = nullptr;
  std::string{}.swap(fault_);
  failure_ = failure::none;
  trace_mask_ = 15;
  while (trace_mask_ + 1 < how.trace_steps) trace_mask_ = 2 * trace_mask_ + 1;
  trace_ = std::make_unique<step_record[]>(trace_mask_ + 1);
  changes_ = std::make_unique<change_record[]>(changes_kept);
  started_.clear();
  last_change_ = 0;
  searches_ = false;
  look_after(quiet_steps());
  u32 const resident = how.sm_count * how.blocks_per_sm;
  usable_places_ = (resident - index + workers - 1) / workers;
  make_places(usable_places_);
  stacks_.resize(how.stack_bytes);
  adopt_thread(main_);
  auto* const outer = worker_of_thread;
  worker_of_thread = this;
  try {
    while (start_blocks() && !work.failed()) take_turn();
  } catch (...) {
    work.fail(std::current_exception());
  }
  if (work.failed()) abandon_all();
  worker_of_thread = outer;
  stacks_.trim(stack_pool::guarded_limit);
}

/// Runs the next lane, if any can run, until a lane leaves to the worker's own fiber.
inline void worker::take_turn() {
  if (hangs_) give_up({hang_report()});
  lane* const to = next();
  if (!to && live_lanes_ && ready_.empty() && paused_.empty() && !work_->failed()) give_up({deadlock_report()});
  if (!to) return;
  turn_left_ = turn_budget;
  running_ = to;
  switch_fiber(main_, *to);
  running_ = nullptr;
  raise();
  if (ended_) retire(*ended_);
}

inline void worker::choose_schedule() {
  switch (how_.policy) {
    case schedule_policy::round_robin: schedule_ = &round_robin_; break;
    case schedule_policy::random_walk: schedule_ = &random_walk_; break;
    case schedule_policy::priorities: schedule_ = &priorities_; break;
    case schedule_policy::directed: schedule_ = how_.director;
  }
  if (!schedule_) throw backend_error{"execution: the policy `directed` needs a director"};
  schedule_->begin(draws_);
  watches_ = deterministic_ && schedule_->waits_for_changes();
  idle_wakes_ = 0;
  hangs_ = false;
}

/// Whether to start another thread block: a place is free, and in parallel mode the lanes that are
/// here make no progress alone.
inline bool worker::wants_block() const {
  if (places_used_ == usable_places_) return false;
  return deterministic_ || (ready_.empty() && (paused_.empty() || dry_turns_ >= patience_));
}

/// Fills free places with the thread blocks that are wanted. False if no work is left.
inline bool worker::start_blocks() {
  while (wants_block()) {
    bool const impatient = dry_turns_ >= patience_;
    dry_turns_ = 0;
    u64 const now = model_ ? model_->last_stamp() : 0;
    auto const ticket = live_lanes_ ? work_->take(now) : work_->wait(now);
    if (!ticket.of) {
      patience_ = full_patience;
      return live_lanes_ > 0;
    }
    if (impatient && patience_ > 1) patience_ /= 2;
    u32 place = 0;
    while (places_[place].of) ++place;
    places_[place].sm = (index_ + place * workers_) % how_.sm_count;
    start(ticket, places_[place]);
  }
  return true;
}

inline void worker::start(block_ticket const& ticket, thread_block& block) {
  u32 const threads = ticket.of->shape.threads;
  if (block.lane_capacity < threads) {
    delete[] block.warps;
    delete[] block.lanes;
    block.lane_capacity = 0;
    block.warps = new warp[(threads + warp_lanes - 1) / warp_lanes];
    block.lanes = new lane[threads];
    block.lane_capacity = threads;
  }
  block.of = ticket.of;
  block.number = static_cast<u32>(statistics_.lanes) + 1;
  block.index = ticket.index;
  block.live = 0;
  block.at_barrier = 0;
  if (block.shared) block.shared->begin();
  ++places_used_;
  note_progress();
  note_start(block);
  prepare_warps(block);
  tsan_release(&block);  // what came before the kernel happens before its lanes, which acquire this
  ready_.reserve(live_lanes_ + threads);
  paused_.reserve(live_lanes_ + threads);
  for (u32 thread = 0; thread < threads; ++thread) {
    auto& started = block.lanes[thread];
    make_fiber(started, stacks_.take(), lane_main);
    started.block = &block;
    started.group = &block.warps[thread / warp_lanes];
    started.serial = block.index * threads + thread;
    started.thread = thread;
    started.id = static_cast<u8>(thread % warp_lanes);
    started.state = lane_state::ready;
    started.number = statistics_.lanes;
    started.watched.clear();
    schedule_->started(started, draws_);
    started.knows = nullptr;
    started.heard = 0;
    ++block.live;
    ++live_lanes_;
    ++statistics_.lanes;
    ready_.push(&started);
  }
}

inline void worker::note_start(thread_block const& block) {
  if (!started_.empty() && started_.back().of == block.of &&
      started_.back().first_block + started_.back().blocks == block.index)
    return static_cast<void>(++started_.back().blocks);
  started_.push_back({block.of, static_cast<u32>(statistics_.lanes), block.index, 1, block.of->shape.threads});
}

inline void worker::prepare_warps(thread_block& block) {
  u32 const threads = block.of->shape.threads;
  for (u32 first = 0; first < threads; first += warp_lanes) {
    auto& group = block.warps[first / warp_lanes];
    u32 const lanes = threads - first < warp_lanes ? threads - first : warp_lanes;
    group.block = &block;
    group.lanes = &block.lanes[first];
    group.index = first / warp_lanes;
    group.existing = full_mask >> (warp_lanes - lanes);
    group.exited = 0;
    group.runnable = lanes;
    group.at_active_mask = 0;
    group.parked_steps = 0;
    group.open = 0;
  }
}

/// Returns what the lane threw, if anything. A handler must end before the fiber is left, because
/// the OS thread counts open handlers.
inline std::exception_ptr run_body(grid const& kernel) {
  try {
    kernel.body(kernel.closure);
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

/// Where a lane's fiber starts.
WARPHEAP_NO_TSAN inline void worker::lane_main(fcontext::transfer_t arrived) {
  fiber_started(arrived);
  worker& here = *this_worker();
  lane& self = here.running();
  grid& kernel = *self.block->of;
  tsan_acquire(self.block);
  if (auto error = run_body(kernel)) here.fail(static_cast<std::exception_ptr&&>(error));
  tsan_release(&kernel.finished_blocks);
  if (self.block->shared) tsan_release(self.block->shared);
  here.ended_ = &self;
  switch_fiber(self, here.main_, true);
  __builtin_unreachable();
}

/// Takes back what an ended lane held. Others that waited for it alone go on, or the run ends.
inline void worker::retire(lane& ended) {
  ended_ = nullptr;
  auto& block = *ended.block;
  auto& group = *ended.group;
  auto& stack = *ended.stack;
  bool const overflowed = stack.overflowed();
  if (overflowed) stack.canary() = 0;
  ended.state = lane_state::exited;
  note_progress();
  if (model_) model_->forget(ended);
  stacks_.give_back(stack);
  group.exited |= lane_bit(ended.id);
  --group.runnable;
  --block.live;
  --live_lanes_;
  patience_ = full_patience;
  if (overflowed) fail_overflow(ended);
  if (refuses_returned_lanes()) give_up_if_awaited(ended);
  else meet_without(*this, ended);
  if (group.runnable == 0) became_idle(group);
  if (block.live > 0) return;
  if (block.shared) tsan_acquire(block.shared);  // the next thread block here has the same memory
  auto& kernel = *block.of;
  block.of = nullptr;
  --places_used_;
  work_->finish(kernel);
}

/// Ends the run if others wait for a lane that has returned.
inline void worker::give_up_if_awaited(lane const& ended) const {
  auto const& group = *ended.group;
  for (u32 i = 0; i < group.open; ++i) {
    auto const& slot = group.meetings[i];
    if (!(slot.mask >> ended.id & 1)) continue;
    give_up({name_of(ended), " returned while lanes ", lanes_of(slot.arrived), " wait for it in ", name_of(slot.kind),
             "(mask ", lanes_of(slot.mask), ")"});
  }
  if (ended.block->at_barrier) {
    give_up({"divergent sync_block: ", name_of(ended), " returned while ", ended.block->at_barrier,
             " threads of its thread block wait there"});
  }
}

/// After a failure: leaves every lane where it is, without destroying its objects, and takes its
/// stack back.
inline void worker::abandon_all() {
  for (u32 i = 0; i < place_count_; ++i) {
    auto& block = places_[i];
    if (!block.of) continue;
    // Lanes start in order, so those that never started come last; live counts the others.
    u32 started = block.live;
    for (u32 w = 0; w * warp_lanes < block.of->shape.threads; ++w) {
      started += static_cast<u32>(__builtin_popcountll(block.warps[w].exited));
    }
    for (u32 thread = 0; thread < started; ++thread) {
      if (block.lanes[thread].state != lane_state::exited) stacks_.give_back_abandoned(*block.lanes[thread].stack);
    }
    block.of = nullptr;
  }
  places_used_ = 0;
  live_lanes_ = 0;
  ended_ = nullptr;
  ready_.clear();
  paused_.clear();
}

}  // namespace warpheap::host::detail
