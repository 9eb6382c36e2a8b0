// SPDX-License-Identifier: Apache-2.0
// random_walk: the steps and the time that taking a page needs as free pages become few: RW, RW-BM,
// CoRW, and a queue of the free pages behind one counter. A share of the pages of 256 bytes is
// free, at random. Every thread of a kernel takes one, and nothing is given back meanwhile. TAS is
// the mean of the threads' steps, WAS the mean over warps of the most that a lane took. Each stands
// beside what theory says (measure/walk_theory.hpp). The last row of each primitive has the
// correlation of both with the time, over all of its rows. Pages: `pool`; shares: `page_shares`,
// half, a tenth, 1%, 0.7% and 0.5% by default; threads: those of `workers` that leave no thread
// without a page. After each walk another kernel gives all its pages back, a call a thread, in
// `free_median_us`.
//
// Checked: every thread got a page, no page twice, and as many are taken as there should be. Times
// are of kernels that count no steps.
// Source: Pham et al. 2022, figures 4, 7 and 8, and section 3.2. Differs: a pool of any size; the
// queue gives a warp's lanes their places by one addition.
#pragma once

#include <algorithm>
#include <functional>
#include <map>

#include "measure/correlation.hpp"
#include "measure/walk_theory.hpp"
#include "primitives.hpp"
#include "scenario.hpp"
#include "warpheap/policy/creation/random_walk.hpp"

namespace warpheap::bench::options {

inline constexpr option<std::vector<double>> page_shares{
    {.name = "--page-shares",
     .rank = 140,
     .type = "SHARE[,SHARE...]",
     .text = "Shares of the pages that are free (default 0.5,0.1,0.01,0.007,0.005)",
     .parse = [](char const* name, std::string const& typed, option_bounds const&) -> std::any {
       return shares_of(name, typed, 0.0001, 1);
     }}};

}  // namespace warpheap::bench::options

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

inline constexpr size_t walked_page_bytes = 256;
/// Walks that are never cut short, so that steps are those of the theory.
inline constexpr u32 endless_walk = 1u << 22;

template <creation::walk_kind Kind, bool Counts>
inline constexpr creation::random_walk_config walked_config{
    .kind = Kind, .page_bytes = walked_page_bytes, .walk_steps = endless_walk, .counts_steps = Counts};
template <creation::walk_kind Kind, bool Counts>
using walked = creation::random_walk<walked_config<Kind, Counts>>;
/// The walk that occupies pages: one page at a time, so that all pages are equally likely.
using occupier = walked<creation::walk_kind::plain, false>;

/// Kernel: takes `count` pages.
struct occupy_pages {
  WARPHEAP_DEVICE void operator()(occupier heap, u64 count, u32* failures) const {
    u64 const threads = u64{simt::block_dim()} * simt::grid_dim();
    for (u64 i = global_thread_index(); i < count; i += threads)
      if (!heap.get_page()) atomic_ref<u32>{*failures}.fetch_add(1, order::relaxed);
  }
};

/// Kernel: every thread takes one page.
struct get_one_page {
  template <class Walk>
  WARPHEAP_DEVICE void operator()(Walk heap, void** pages, u64 threads) const {
    u64 const i = global_thread_index();
    u32 const together = simt::ballot(lanes_of_warp(), i < threads);
    if (i < threads) pages[i] = heap.create_warp(together, walked_page_bytes);
  }

  WARPHEAP_DEVICE static u32 lanes_of_warp() {
    u32 const first = simt::warp_id() * warp_lanes, left = simt::block_dim() - first;
    return low_mask32(left < warp_lanes ? left : warp_lanes);
  }
};

/// Kernel: gives all of them back.
struct free_pages {
  WARPHEAP_DEVICE void operator()(occupier heap, void** pages, u64 threads) const {
    u64 const i = global_thread_index();
    if (i < threads) heap.free_page(pages[i]);
  }
};

/// The queue: a list of the free pages behind a counter. A thread's steps are its place in the line
/// of threads that contend there. The lanes of a warp have one place: one addition is made for all
/// of them.
struct page_queue {
  void** pages;
  u64* head;
  u64* steps;  ///< as walk_steps_taken; null: not counted
};

/// Kernel: every thread takes the next page.
struct dequeue_one_page {
  WARPHEAP_DEVICE void operator()(page_queue queue, void** pages, u64 threads) const {
    u64 const i = global_thread_index();
    u32 const together = simt::ballot(get_one_page::lanes_of_warp(), i < threads);
    if (i >= threads) return;
    u64 const ticket = aggregated_fetch_add(group_of(together), *queue.head);
    pages[i] = queue.pages[ticket];
    if (queue.steps) count_steps(queue.steps, together, static_cast<u32>(ticket) + 1);
  }
};

/// One pool of pages, which is occupied further and further.
class walked_pool {
 public:
  explicit walked_pool(u64 pool_bytes)
      : memory_{occupier::required_bytes(pool_bytes)},
        pool_bytes_{pool_bytes},
        heap_{occupier::place(memory_.data(), pool_bytes)},
        free_{pool_bytes / walked_page_bytes} {
    heap_.initialize({});
    synchronize();
  }

  u64 pages() const { return pool_bytes_ / walked_page_bytes; }
  u64 free() const { return free_; }
  occupier const& heap() const { return heap_; }
  u8* memory() const { return memory_.data(); }

  /// A handle on the same pages that takes them by another walk.
  template <creation::walk_kind Kind, bool Counts>
  walked<Kind, Counts> as() const {
    return walked<Kind, Counts>::place(const_cast<u8*>(memory_.data()), pool_bytes_);
  }

  /// Occupies pages until `free` are left free; false if that went wrong.
  bool occupy_all_but(u64 free) {
    device_buffer<u32> failures(1);
    launch(shape_for(default_for_backend(0, u64{1} << 18, 256)), occupy_pages{}, heap_, free_ - free, failures.data());
    synchronize();
    free_ = free;
    return failures[0] == 0 && is_as_occupied(0);
  }
  bool is_as_occupied(u64 more) const {
    return heap_.snapshot().statistics().live_blocks == pages() - free_ + more &&
           heap_.snapshot().check_invariants().empty();
  }

 private:
  device_buffer<u8> memory_;
  u64 pool_bytes_;
  occupier heap_;
  u64 free_;
};

/// What was seen of one walk.
struct walk_outcome {
  std::vector<double> times_us, free_us;
  walk_steps_taken steps;
  std::string fault;
};

/// No null and no page twice.
inline std::string fault_of_pages(std::vector<void*> pages) {
  std::sort(pages.begin(), pages.end());
  if (!pages.empty() && !pages.front()) return "a thread got no page though one was free";
  if (std::adjacent_find(pages.begin(), pages.end()) != pages.end()) return "a page has two owners";
  return {};
}

/// `repeat` kernels that take a page a thread, and one that counts the steps.
template <creation::walk_kind Kind>
walk_outcome walk_pages_of(walked_pool& pool, u64 threads, u32 repeat) {
  walk_outcome seen;
  device_buffer<void*> got(threads);
  auto const fast = pool.as<Kind, false>();
  auto const counting = pool.as<Kind, true>();
  counting.forget_steps();
  for (u32 round = 0; round <= repeat && seen.fault.empty(); ++round) {
    // The first round counts steps, and takes no time.
    auto const time = stopwatch{}.microseconds([&] {
      if (round == 0) launch(shape_for(threads), get_one_page{}, counting, got.data(), threads);
      else launch(shape_for(threads), get_one_page{}, fast, got.data(), threads);
    });
    if (round == 0) seen.steps = counting.steps_taken();
    else seen.times_us.push_back(time);
    seen.fault = fault_of_pages(got.to_host());
    if (seen.fault.empty() && !pool.is_as_occupied(threads)) seen.fault = "pages taken and pages counted differ";
    auto const free_time =
        stopwatch{}.microseconds([&] { launch(shape_for(threads), free_pages{}, pool.heap(), got.data(), threads); });
    synchronize();
    if (round > 0) seen.free_us.push_back(free_time);
  }
  if (seen.fault.empty() && !pool.is_as_occupied(0)) seen.fault = "a page did not come back";
  return seen;
}

/// `repeat` kernels that take a page a thread from a queue of the free pages, and one that counts
/// the steps.
inline walk_outcome queue_pages_of(walked_pool& pool, u64 threads, u32 repeat) {
  walk_outcome seen;
  std::vector<bool> taken(pool.pages());
  u8* first = nullptr;
  pool.heap().snapshot().for_each_live([&](void* page, size_t) {
    if (!first) first = static_cast<u8*>(page);
    taken[static_cast<u64>(static_cast<u8*>(page) - first) / walked_page_bytes] = true;
  });
  if (!first) first = pool.memory();  // none is taken
  // One entry for each page that is taken from the queue: what lies in the pages does not matter.
  std::vector<void*> list;
  for (u64 i = 0; i < pool.pages() && list.size() < threads; ++i)
    if (!taken[i]) list.push_back(first + i * walked_page_bytes);
  device_buffer<void*> const free{list};
  device_buffer<void*> got(threads);
  device_buffer<u64> steps(sizeof(walk_steps_taken) / sizeof(u64));
  for (u32 round = 0; round <= repeat && seen.fault.empty(); ++round) {
    device_buffer<u64> head(1);
    page_queue const queue{free.data(), head.data(), round == 0 ? steps.data() : nullptr};
    auto const time =
        stopwatch{}.microseconds([&] { launch(shape_for(threads), dequeue_one_page{}, queue, got.data(), threads); });
    if (round > 0) seen.times_us.push_back(time);
    seen.fault = fault_of_pages(got.to_host());
  }
  seen.steps = read_steps(steps.data());
  return seen;
}

/// Rows of all four at one occupancy and one number of threads.
inline void add_walks(std::vector<result>& rows, walked_pool& pool, u64 threads, request const& asked) {
  walk_theory::pages const of{static_cast<double>(pool.pages()), static_cast<double>(pool.free()),
                              static_cast<double>(threads)};
  walk_steps_taken by_page;  // RW's
  auto const add = [&](char const* name, walk_outcome const& seen, double tas, double was) {
    result row{.scenario = "random_walk", .primitive = name, .operation = "get_page"};
    row.parameters = {{"pages", pool.pages()}, {"free_pages", pool.free()}, {"threads", threads}};
    row.figures = {
        {"tas", seen.steps.tas()}, {"predicted_tas", tas}, {"was", seen.steps.was()}, {"predicted_was", was}};
    if (std::string{name} != "queue") {
      row.figures.emplace_back("collisions", static_cast<double>(seen.steps.collisions));
      row.figures.emplace_back("free_median_us", median(seen.free_us));
    }
    if (std::string{name} == "rw") {
      by_page = seen.steps;
      row.figures.emplace_back("predicted_collisions", walk_theory::colliding_pairs_on_free_pages(of));
    }
    if (std::string{name} == "rw_bitmap") {
      row.figures.emplace_back("rw_over_this", by_page.tas() / seen.steps.tas());
      row.figures.emplace_back("predicted_rw_over_this", walk_theory::page_thread_steps(of) / tas);
      row.figures.emplace_back("rw_was_over_this", by_page.was() / seen.steps.was());
      row.figures.emplace_back("predicted_rw_was_over_this", walk_theory::page_warp_steps(of) / was);
    }
    row.times_us = seen.times_us;
    row.operations = static_cast<double>(threads);
    row.fault = seen.fault;
    rows.push_back(row);
  };
  using creation::walk_kind;
  add("rw", walk_pages_of<walk_kind::plain>(pool, threads, asked.repeat), walk_theory::page_thread_steps(of),
      walk_theory::page_warp_steps(of));
  add("rw_bitmap", walk_pages_of<walk_kind::bitmap>(pool, threads, asked.repeat), walk_theory::word_thread_steps(of),
      walk_theory::word_warp_steps(of));
  double const together = walk_theory::together_steps(of);
  add("corw", walk_pages_of<walk_kind::collaborative>(pool, threads, asked.repeat), together, together);
  add("queue", queue_pages_of(pool, threads, asked.repeat), walk_theory::queue_thread_steps(of.threads),
      walk_theory::queue_warp_steps_together(of.threads));
}

inline double figure_of(result const& row, std::string const& name) {
  for (auto const& [known, value] : row.figures)
    if (known == name) return value;
  return 0;
}

/// Adds to the last row of each primitive the correlation of its steps with its median time, over
/// all rows of the primitive; nothing where there is no coefficient.
inline void add_correlations(std::vector<result>& rows) {
  std::map<std::string, result*> last;
  for (auto& row : rows) last[row.primitive] = &row;
  for (auto const& [primitive, to] : last)
    for (std::string const steps : {"tas", "was"}) {
      std::vector<std::pair<double, double>> pairs;
      for (auto const& row : rows)
        if (row.primitive == primitive && row.checked())
          pairs.emplace_back(figure_of(row, steps), median(row.times_us));
      auto const found = correlation_of(pairs);
      if (!found) continue;
      to->figures.emplace_back(steps + "_time_correlation", found->coefficient);
      to->figures.emplace_back(steps + "_time_correlation_least", found->least);
      to->figures.emplace_back(steps + "_time_correlation_most", found->most);
    }
}

/// The rows without their correlations.
inline std::vector<result> walked_rows(request const& asked) {
  auto const numbers =
      asked.get(options::workers, powers(on_gpu ? 1024 : 64, default_for_backend(0, u64{1} << 18, 512), 4));
  walked_pool pool{asked.pool_bytes / walked_page_bytes * walked_page_bytes};
  std::vector<result> rows;
  auto shares = asked.get(options::page_shares, {0.5, 0.1, 0.01, 0.007, 0.005});
  // pages are only occupied, and none is given back
  std::sort(shares.begin(), shares.end(), std::greater{});
  for (double const share : shares) {
    bool const occupied = pool.occupy_all_but(static_cast<u64>(static_cast<double>(pool.pages()) * share + 1e-6));
    for (u64 const threads : numbers) {
      if (threads > pool.free()) continue;
      if (!asked.proceed("random_walk", rows.size() / 4, shares.size() * numbers.size())) return rows;
      add_walks(rows, pool, threads, asked);
      if (!occupied) rows.back().fault = "pages could not be occupied";
      if (std::any_of(rows.end() - 4, rows.end(), [](result const& row) { return !row.checked(); })) return rows;
    }
  }
  return rows;
}

inline std::vector<result> random_walk(request const& asked) {
  auto rows = walked_rows(asked);
  add_correlations(rows);
  return rows;
}

inline scenario about_random_walk() {
  return {
      .name = "random_walk",
      .text = "steps and time of a page by RW, RW-BM, CoRW and a queue as free pages become few, beside theory",
      .kind = scenario_kind::of_primitives,
      .rank = 50,
      .uses = {{options::workers, "1024, 4096, ... 262144"}, {options::page_shares}},
      .baseline = random_walk,
  };
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
