// SPDX-License-Identifier: Apache-2.0
// peers: what it costs to free the blocks of another GPU. A heap set has two members, on two GPUs
// where there are two, else both on one. A burst of blocks of the first is freed three ways in
// turn: by the first itself (`local free`); by the second, which posts them (`post`), and then by
// the first, which the host tells to drain its mailbox (`drain`). Last, the first fills a pool of
// just that size, the second frees all of it, and each thread of the first asks again: a call that
// finds no memory drains (`draining malloc`). Sizes: the first of `sizes`; threads: `threads`.
#pragma once

#include <optional>

#include "measure/measure.hpp"
#include "measure/one_call.hpp"
#include "scenario.hpp"
#include "warpheap/heap/heap_set.hpp"
#include "warpheap/warpheap.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

/// `Creation` is slab_bitmap, but for tests.
template <class Creation = creation::slab_bitmap<>>
class peers_scenario {
 public:
  explicit peers_scenario(request const& asked)
      : asked_{asked},
        threads_{default_for_backend(asked[options::threads], u64{1} << 20, u64{1} << 13)},
        draw_{asked.get(options::sizes, {64}).front()} {
    for (u32 member = 0; member < 2; ++member) {
      backend::device_scope const current{devices_[member]};
      watches_[member].emplace();
    }
  }

  std::vector<result> rows() {
    // What a broken heap says next means nothing.
    for (auto const part : {&peers_scenario::free_three_ways, &peers_scenario::refill}) {
      if (!asked_.proceed("peers", parts_done_++, 2)) break;
      (this->*part)();
      if (!rows_.back().checked()) break;
    }
    return rows_;
  }

 private:
  using set_type = basic_heap_set<plain_allocator<Creation>>;

  /// The current device, and another one if there is one.
  static std::vector<int> two_devices() {
    int const first = backend::current_device();
    if (backend::device_count() < 2) return {first, first};
    return {first, first == 0 ? 1 : 0};
  }

  result row(char const* operation, u64 pool_bytes, u64 threads) const {
    result made{.scenario = "peers", .allocator = "slab_bitmap", .operation = operation};
    made.parameters = {{"bytes", draw_.least}, {"threads", threads}, {"pool_bytes", pool_bytes}};
    if (devices_[0] != devices_[1]) {
      made.parameters.emplace_back("owner_device", static_cast<u64>(devices_[0]));
      made.parameters.emplace_back("peer_device", static_cast<u64>(devices_[1]));
    }
    return made;
  }

  /// Microseconds of `work` on the device of a member; waits for it.
  template <class Work>
  double time_as(u32 member, Work work) {
    backend::device_scope const current{devices_[member]};
    return watches_[member]->microseconds(work);
  }

  /// Times of the three ways.
  struct round_times {
    double local_us, post_us, drain_us;
  };

  void free_three_ways() {
    set_type const set{asked_.pool_bytes, devices_};
    device_buffer<void*> const blocks(threads_);
    std::vector<double> local_us, post_us, drain_us;
    for (u32 round = 0; round < warm_up_rounds + asked_.repeat && fault_.empty(); ++round) {
      auto const times = free_each_way(set, blocks);
      if (round < warm_up_rounds) continue;
      local_us.push_back(times.local_us);
      post_us.push_back(times.post_us);
      drain_us.push_back(times.drain_us);
    }
    append("local free", local_us, local_us);
    append("post", post_us, local_us);
    append("drain", drain_us, local_us);
  }

  round_times free_each_way(set_type const& set, device_buffer<void*> const& blocks) {
    round_times times{};
    burst(set, blocks);
    times.local_us = free_as(0, set, blocks);
    check(set, 0, 0);
    burst(set, blocks);
    times.post_us = free_as(1, set, blocks);
    check(set, got_, got_);
    times.drain_us = time_as(0, [&] { set.drain(0); });
    check(set, 0, 0);
    return times;
  }

  /// Every thread asks, and the blocks are examined. Returns the time of the asking.
  double burst(set_type const& set, device_buffer<void*> const& blocks) {
    auto const us = time_as(
        0, [&] { launch(shape_for(blocks.size()), allocate_once{}, set.ref(0), draw_, blocks.data(), blocks.size()); });
    auto const found = examine<typename set_type::allocator_type>(blocks, draw_);
    got_ = blocks.size() - found.failures;
    if (fault_.empty()) fault_ = found.fault();
    return us;
  }

  double free_as(u32 member, set_type const& set, device_buffer<void*> const& blocks) {
    return time_as(member, [&] {
      launch(shape_for(blocks.size()), free_once{}, set.ref(member), static_cast<void* const*>(blocks.data()),
             blocks.size());
    });
  }

  /// The set should have this many live blocks, and of these this many whose frees wait.
  void check(set_type const& set, u64 live, u64 waiting) {
    if (fault_.empty()) fault_ = fault_of(set, live, waiting);
  }

  static std::string fault_of(set_type const& set, u64 live, u64 waiting) {
    auto const now = set.statistics(0);
    u64 const pending = set.pending(0);
    if (pending != waiting) return std::to_string(pending) + " frees wait, and not " + std::to_string(waiting);
    if (now.live_blocks != live)
      return std::to_string(now.live_blocks) + " blocks are live, and not " + std::to_string(live);
    if (now.double_frees + now.foreign_frees != 0) return "frees took a block for none";
    auto const violated = set.check_invariants();
    return violated.empty() ? std::string{} : violated.front();
  }

  void append(char const* operation, std::vector<double> const& times_us, std::vector<double> const& local_us) {
    rows_.push_back(row(operation, asked_.pool_bytes, threads_));
    rows_.back().times_us = times_us;
    rows_.back().operations = static_cast<double>(got_);
    rows_.back().fault = fault_;
    if (fault_.empty() && &times_us != &local_us) rows_.back().figures = {{"ratio", median_ratio(times_us, local_us)}};
  }

  void refill() {
    u64 const pool = std::max<u64>(set_type::heap_type::minimum_bytes, threads_ * align_up(draw_.least, 16));
    result asking = row("draining malloc", pool, threads_);
    if (skip(rows_, asking, pool > asked_.pool_bytes ? "the blocks of all threads are more than the pool" : "")) return;
    set_type const set{pool, devices_};
    u64 const fit = set.heap(0).available_slots(draw_.least);
    if (skip(rows_, asking, fit == 0 ? "no such block in the pool" : "")) return;
    asking = row("draining malloc", pool, fit);
    device_buffer<void*> const blocks(fit);
    for (u32 round = 0; round <= asked_.repeat && fault_.empty(); ++round) {
      burst(set, blocks);
      free_as(1, set, blocks);
      check(set, got_, got_);
      auto const us = burst(set, blocks);
      check(set, got_, 0);
      free_as(0, set, blocks);
      if (round != 0) asking.times_us.push_back(us);
    }
    asking.operations = static_cast<double>(got_);
    asking.failures = fit - got_;
    asking.fault = fault_;
    rows_.push_back(asking);
  }

  request const& asked_;
  u64 threads_;
  size_draw draw_;
  std::vector<int> devices_ = two_devices();
  std::optional<stopwatch> watches_[2];
  u64 got_ = 0;  ///< blocks of the last burst
  std::string fault_;
  u64 parts_done_ = 0;
  std::vector<result> rows_;
};

inline scenario about_peers() {
  return {
      .name = "peers",
      .text = "blocks of a heap set freed by another GPU: posted, drained, and asked for again; beside a local free",
      .kind = scenario_kind::of_default_allocator,
      .rank = 30,
      .uses = {{options::sizes, "the first"}, {options::threads, "1048576"}},
      .baseline = [](request const& asked) { return peers_scenario<>{asked}.rows(); },
  };
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
