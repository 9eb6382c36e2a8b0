// SPDX-License-Identifier: Apache-2.0
// One OS thread's scheduler: the lanes of its resident thread blocks, and the choice of the next to
// run.
//
// A lane is running, ready, paused, parked in a collective, or gone. Lanes switch to each other
// directly; the OS thread's own flow (`main_`) comes in between only to start and end lanes. In
// deterministic mode there is one worker, and at every step a schedule (schedule.hpp) chooses the
// next lane. In parallel mode a lane keeps running until a collective, a pause, or `turn_budget`
// atomics, so waiting without a pause cannot hang; no step takes a lock.
//
// host.W1  a lane is in `paused_` if it is paused, or ready but held back by the schedule; any
//     other ready lane is in `ready_` or is running_.
// host.W2  warp::runnable counts its ready lanes; when it falls to 0, lanes parked in active_mask()
//     are released.
// host.W3  lanes of one thread block are all on one worker, so a worker with neither ready nor
//     paused
//     lanes is deadlocked.
#pragma once

#include <sched.h>

#include <exception>
#include <memory>
#include <vector>

#include "diagnosis.hpp"
#include "dispatcher.hpp"
#include "priority_schedule.hpp"

namespace warpheap::host {

/// What the last run did: for tests of determinism and for benchmarks.
struct run_statistics {
  u64 steps = 0;
  u64 schedule_hash = 0;  // of the lane at every step; deterministic mode
  u64 lanes = 0;
  /// Collectives that lanes entered from different call sites: legal here, undefined on some GPUs,
  /// worth checking.
  u64 mixed_site_collectives = 0;
};

namespace detail {

class memory_model;

class worker {
 public:
  worker() = default;
  worker(worker const&) = delete;
  worker& operator=(worker const&) = delete;
  ~worker();

  /// Runs thread blocks from `work` until there are no more or the run has failed; worker `index`
  /// of `workers`.
  void run(dispatcher& work, execution const& how, u32 index, u32 workers, memory_model* model);

  run_statistics const& statistics() const { return statistics_; }

  /// Between runs: gives stacks above `kept` back.
  void trim_stacks(size_t kept) { stacks_.trim(kept); }

  // What lanes call.
  WARPHEAP_NO_TSAN lane& running() const { return *running_; }
  WARPHEAP_NO_TSAN bool runs_a_lane() const { return running_ != nullptr; }
  WARPHEAP_NO_TSAN execution const& settings() const { return how_; }
  WARPHEAP_NO_TSAN bool deterministic() const { return deterministic_; }
  WARPHEAP_NO_TSAN memory_model* model() const { return model_; }
  WARPHEAP_NO_TSAN mask_policy masks() const { return masks_; }
  WARPHEAP_NO_TSAN bool refuses_returned_lanes() const { return how_.refuses_returned_lanes; }
  WARPHEAP_NO_TSAN u64 steps() const { return statistics_.steps; }
  WARPHEAP_NO_TSAN u64 live_lanes() const { return live_lanes_; }
  WARPHEAP_NO_TSAN u64 time() const { return statistics_.steps + slept_; }
  WARPHEAP_NO_TSAN draws& choices() { return draws_; }
  WARPHEAP_NO_TSAN void count_mixed_sites() { ++statistics_.mixed_site_collectives; }

  /// A scheduling point of deterministic mode: others may run before we go on, with an access of
  /// the word at `pending` if that is not 0.
  void point(u64 pending = 0);
  /// A yield point (WARPHEAP_POINT), in deterministic mode.
  void point(char const* name);
  /// Parallel mode: one atomic of the running lane's turn.
  WARPHEAP_NO_TSAN void spend() {
    if (--turn_left_ == 0) pause(0);
  }
  /// Whether this worker notes the words that its lanes look at, to tell a hang.
  WARPHEAP_NO_TSAN bool searches() const { return searches_; }
  /// Deterministic mode: the last change of the word at `address`, if the record has that address.
  WARPHEAP_NO_TSAN change_record& last_change_of(u64 address) const {
    return changes_[(address >> 2) * 0x9e37'79b9'7f4a'7c15ull >> 55];
  }
  /// In words: the lane that made a change, and what it does now.
  std::string describe_maker(change_record const& made) const;
  /// Lets others run first, whatever they do, and comes back.
  void pause(u32 nanoseconds);
  /// Parks the running lane, whose state the caller has set, until `wake` makes it ready.
  void park();
  void wake(lane& parked);
  /// A collective gave the running lane `result`.
  void note_result(u64 result);
  /// The running lane goes on behind a barrier.
  WARPHEAP_NO_TSAN void note_barrier() { running_->watched.met_block = true; }
  /// Something happened that no word shows: lanes that wait may go on. hang.hpp
  WARPHEAP_NO_TSAN void note_progress() {
    last_change_ = statistics_.steps;
    if (how_.policy != schedule_policy::directed) idle_wakes_ = 0;  // an exploration has no host
    if (searches_ && !deterministic_) end_search();
  }
  /// Adds a step to what a failure's report shows, and tells the schedule if it asks.
  void record(operation what, u64 address, u64 before, u64 after, bool stale = false);
  /// Ends the run with a schedule_error, a trap_error, or what the lane threw. Does not come back,
  /// so a caller keeps no string of its own: nothing would free it.
  [[noreturn]] void fail(std::string fault);
  [[noreturn]] void trap(std::string reason);
  [[noreturn]] void fail(std::exception_ptr error);
  /// fail(), or on the worker's own fiber, after a lane has returned, the same at once.
  [[noreturn]] void reject(std::string fault);

 private:
  static constexpr u32 turn_budget = 256, turn_in_search = 16;
  static constexpr u32 full_patience = 16;
  // active_mask() waits for at most this many steps of a warp
  static constexpr u32 parked_step_limit = 2048;
  static constexpr u32 changes_kept = 1 << 9;  // 9 bits of a hash
  static constexpr u32 waits_a_step = 16, waits_a_check = 1024;

  // Block lifetime; worker_blocks.hpp.
  void choose_schedule();
  void make_places(u32 count);
  void take_turn();
  bool wants_block() const;
  bool start_blocks();
  void start(block_ticket const& ticket, thread_block& place);
  void prepare_warps(thread_block& block);
  void note_start(thread_block const& block);
  void retire(lane& ended);
  void give_up_if_awaited(lane const& ended) const;
  void abandon_all();
  std::string deadlock_report() const;
  std::string hang_report();
  std::string blocks_not_started() const;
  std::string explain(std::string const& fault) const;
  std::string describe_step(step_record const& step) const;
  struct place_of_lane {
    grid const* of;
    u32 block;
    u32 thread;
  };
  place_of_lane find(u32 lane) const;
  [[noreturn]] void give_up(std::initializer_list<part> fault) const;
  [[noreturn]] void fail_overflow(lane const& overflowed);
  void raise();
  static void lane_main(fcontext::transfer_t arrived);

  lane* next();
  void wake_first();
  void wake_paused(bool all);
  bool wake_when_none_is_ready();
  void wake_watchers(u64 address);
  void observe(operation what, u64 address, u64 before, u64 after, bool stale);
  WARPHEAP_NO_TSAN situation now(u64 pending = 0) { return {ready_, draws_, statistics_.steps, live_lanes_, pending}; }
  void leave(lane& self, lane* to);
  void tick(lane const& self);
  void became_idle(warp& group);

  // hang.hpp
  void check_steps();
  void look_after(u64 steps);
  u64 steps_and_waits() const { return statistics_.steps + waits_ / waits_a_step; }
  u64 quiet_steps() const;
  void search_for_hang();
  void end_search();
  bool all_lanes_wait() const;

  bool deterministic_ = false;
  bool watches_ = false;  // lanes that pause wait for changes
  mask_policy masks_ = mask_policy::maximal;
  u32 turn_left_ = turn_budget;
  u32 switches_left_ = turn_budget;  // parallel mode: until a paused lane is woken
  lane* running_ = nullptr;
  memory_model* model_ = nullptr;
  schedule* schedule_ = nullptr;
  round_robin_schedule round_robin_;
  random_walk_schedule random_walk_;
  priority_schedule priorities_;
  u32 idle_wakes_ = 0;  // lanes woken because none could run, since a word changed
  bool hangs_ = false;
  bool searches_ = false;  // for a hang: notes which words lanes look at
  bool told_quiet_ = false;
  u64 waits_ = 0;          // parallel mode: of lanes for others
  u64 look_at_ = 0;        // for a hang, of steps and waits
  u64 check_at_step_ = 0;  // check_steps() when there are more
  u64 last_change_ = 0;    // deterministic mode: the last step that changed a word
  u64 quiet_since_ = 0;    // parallel mode: dispatcher::all_are_quiet()
  u64 slept_ = 0;          // nanoseconds
  run_statistics statistics_;
  lane_ring ready_;
  lane_ring paused_;
  draws draws_{0};
  fiber main_;
  dispatcher* work_ = nullptr;
  lane* ended_ = nullptr;
  // What the running lane failed with, for main_ to raise.
  std::exception_ptr error_;
  std::string fault_;
  enum class failure : u8 { none, thrown, diagnosed, trapped };
  failure failure_ = failure::none;
  [[noreturn]] void leave_for_good(failure how);
  execution how_;
  u32 index_ = 0;
  u32 workers_ = 1;
  u32 dry_turns_ = 0;  // times that all lanes waited, since a thread block started
  // dry turns before another thread block starts; halved each time until a lane ends
  u32 patience_ = full_patience;
  u64 live_lanes_ = 0;
  u32 place_count_ = 0;    // places that have memory
  u32 usable_places_ = 0;  // places that this run may use
  u32 places_used_ = 0;
  std::unique_ptr<thread_block[]> places_;
  std::unique_ptr<step_record[]> trace_;
  std::unique_ptr<change_record[]> changes_;
  std::vector<blocks_started> started_;  // in the order of their lanes' numbers
  u64 trace_mask_ = 0;
  u64 trace_count_ = 0;
  stack_pool stacks_;
};

inline constinit thread_local worker* worker_of_thread = nullptr;

/// The calling OS thread's worker, null outside a kernel. Never inlined: the compiler may not keep
/// the thread-local's address from before a switch.
[[gnu::noinline]] WARPHEAP_NO_TSAN inline worker* this_worker() { return worker_of_thread; }

/// The calling lane.
[[gnu::noinline]] WARPHEAP_NO_TSAN inline lane& this_lane() {
  if (!worker_of_thread) throw backend_error{"simt function called outside a kernel"};
  return worker_of_thread->running();
}

inline std::string describe_step_cap(u64 cap) {
  return format_message({"step cap: the run has taken ", cap, " steps"});
}

/// Gives lanes parked in active_mask() their masks; active_mask.hpp.
void release_active_masks(worker& here, warp& group);

WARPHEAP_NO_TSAN inline void worker::tick(lane const& self) {
  if (++statistics_.steps > check_at_step_) [[unlikely]]
    check_steps();
  if (deterministic_) {
    statistics_.schedule_hash = (statistics_.schedule_hash ^ self.serial) * 0x9e37'79b9'7f4a'7c15ull;
    statistics_.schedule_hash ^= statistics_.schedule_hash >> 29;
  }
  auto& group = *self.group;
  if (group.at_active_mask && ++group.parked_steps > parked_step_limit) release_active_masks(*this, group);
}

WARPHEAP_NO_TSAN inline void worker::point(u64 pending) {
  lane& self = *running_;
  tick(self);
  if (!paused_.empty() && paused_.front()->wake_step <= statistics_.steps) wake_paused(false);
  lane* const to = schedule_->at_point(self, now(pending));
  if (to) return leave(self, to);
  if (watches_) return pause(0);
  paused_.push(&self);
  leave(self, next());
}

WARPHEAP_NO_TSAN inline void worker::point(char const* name) {
  lane& self = *running_;
  leave(self, schedule_->at_yield_point(self, name, now()));
}

WARPHEAP_NO_TSAN inline void worker::pause(u32 nanoseconds) {
  lane& self = *running_;
  tick(self);
  slept_ += nanoseconds;
  self.state = lane_state::paused;
  if (watches_) {
    bool const waits = !self.watched.any && self.watched.count != 0;
    self.wake_step = statistics_.steps + schedule_->pause_steps(waits, live_lanes_);
    paused_.push_by_wake_step(&self);
    schedule_->pausing(self, draws_);
  } else {
    self.wake_step = statistics_.steps + 2 * live_lanes_;
    paused_.push(&self);
  }
  if (--self.group->runnable == 0) became_idle(*self.group);
  leave(self, next());
  if (watches_ && !searches_) self.watched.clear();
}

WARPHEAP_NO_TSAN inline void worker::park() {
  lane& self = *running_;
  // No step in parallel mode: paused lanes would come back before other thread blocks start.
  if (!deterministic_ && ++waits_ % waits_a_check == 0) check_steps();
  if (--self.group->runnable == 0) became_idle(*self.group);
  leave(self, next());
}

WARPHEAP_NO_TSAN inline void worker::wake(lane& parked) {
  parked.state = lane_state::ready;
  parked.heard = statistics_.steps;
  ++parked.group->runnable;
  ready_.push(&parked);
}

WARPHEAP_NO_TSAN inline void worker::became_idle(warp& group) {
  if (group.at_active_mask) release_active_masks(*this, group);
}

/// The lane that has been paused for longest becomes ready.
WARPHEAP_NO_TSAN inline void worker::wake_first() {
  lane& woken = *paused_.pop();
  if (woken.state == lane_state::ready) ready_.push(&woken);  // was held back
  else wake(woken);
}

/// Paused lanes whose time has come, or all of them, become ready.
WARPHEAP_NO_TSAN inline void worker::wake_paused(bool all) {
  while (!paused_.empty() && (all || paused_.front()->wake_step <= statistics_.steps)) wake_first();
}

/// Makes paused lanes ready; false if there are none, or main_ must look first.
WARPHEAP_NO_TSAN inline bool worker::wake_when_none_is_ready() {
  if (paused_.empty()) return false;
  if (!deterministic_) {
    if (places_used_ < usable_places_ && ++dry_turns_ >= patience_) return false;
    if (workers_ > 1) sched_yield();  // they may wait for lanes of another worker
  }
  if (!watches_) wake_paused(true);
  else if (++idle_wakes_ <= schedule_->idle_wakes()) wake_first();
  else hangs_ = true;
  return !hangs_;
}

/// Takes the next lane to run out of the queue; null if main_ must look first.
WARPHEAP_NO_TSAN inline lane* worker::next() {
  if (work_->failed()) return nullptr;
  if (!paused_.empty() && paused_.front()->wake_step <= statistics_.steps) wake_paused(false);
  // Lanes that become ready again and again, without spending a turn's atomics, must not keep a
  // paused lane waiting for ever.
  if (!deterministic_ && --switches_left_ == 0) {
    switches_left_ = turn_budget;
    if (!paused_.empty()) wake_first();
  }
  if (ready_.empty() && !wake_when_none_is_ready()) return nullptr;
  return deterministic_ ? schedule_->next(now()) : ready_.pop();
}

/// Switches from the running lane to `to`, or to main_ if that is null.
WARPHEAP_NO_TSAN inline void worker::leave(lane& self, lane* to) {
  turn_left_ = searches_ ? turn_in_search : turn_budget;
  if (to == &self) return;
  if (runs_below_its_stack(self)) [[unlikely]]
    fail_overflow(self);  // host.S2
  running_ = to;
  switch_fiber(self, to ? static_cast<fiber&>(*to) : main_);
}

WARPHEAP_NO_TSAN inline void worker::record(operation what, u64 address, u64 before, u64 after, bool stale) {
  auto& place = trace_[trace_count_++ & trace_mask_];
  place.step = statistics_.steps;
  place.lane = static_cast<u32>(running_->number);
  place.what = what;
  place.stale = stale;
  place.address = address;
  place.before = before;
  place.after = after;
  if (before != after && is_change(what)) {
    last_change_ = statistics_.steps;
    last_change_of(address) = {address, static_cast<u32>(place.step), place.lane};
  }
  if (watches_ || searches_) observe(what, address, before, after, stale);
}

/// The running lane has read `before` at `address` (a load: `after`), and changed it to `after`.
[[gnu::noinline]] WARPHEAP_NO_TSAN inline void worker::observe(operation what, u64 address, u64 before, u64 after,
                                                               bool stale) {
  lane& self = *running_;
  if (what >= operation::fence) return;
  bool const changed = before != after && is_change(what);
  u64 const seen = is_look(what) ? after : before, result = what == operation::store ? 0 : seen;
  self.watched.add(address);
  if (searches_) self.observed = seen;
  if (!deterministic_ && changed) note_progress();
  if (!watches_) return;
  self.watched.any |= stale;
  if (changed) wake_watchers(address);
  schedule_->observed(self, address, seen, after, result);
}

WARPHEAP_NO_TSAN inline void worker::note_result(u64 result) {
  running_->watched.met_warp = true;
  if (watches_) schedule_->observed(*running_, 0, 0, 0, result);
}

/// A word was changed: the paused lanes that have looked at it become ready.
WARPHEAP_NO_TSAN inline void worker::wake_watchers(u64 address) {
  idle_wakes_ = 0;
  for (u64 i = 0; i < paused_.size();) {
    lane* const waiting = paused_.at(i);
    if (waiting->state == lane_state::paused && waiting->watched.has(address)) wake(*paused_.remove(i));
    else ++i;
  }
}

inline void worker::fail(std::string fault) {
  fault_.swap(fault);  // fault_ was empty, so the argument owns no memory now
  leave_for_good(failure::diagnosed);
}

inline void worker::trap(std::string reason) {
  fault_.swap(reason);
  leave_for_good(failure::trapped);
}

inline void worker::fail(std::exception_ptr error) {
  error_.swap(error);
  leave_for_good(failure::thrown);
}

inline void worker::reject(std::string fault) {
  if (!running_) throw schedule_error{explain(fault)};
  fail(static_cast<std::string&&>(fault));
}

WARPHEAP_NO_TSAN inline void worker::leave_for_good(failure how) {
  failure_ = how;
  tsan_release(&failure_);
  lane& self = *running_;
  switch_fiber(self, main_);
  __builtin_unreachable();
}

/// On main_: throws what a lane has failed with, if one has.
WARPHEAP_NO_TSAN inline void worker::raise() {
  if (failure_ == failure::none) return;
  tsan_acquire(&failure_);
  if (failure_ == failure::thrown) std::rethrow_exception(error_);
  if (failure_ == failure::trapped) throw trap_error{explain(fault_)};
  throw schedule_error{explain(fault_)};
}

}  // namespace detail
}  // namespace warpheap::host
