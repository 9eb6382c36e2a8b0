// SPDX-License-Identifier: Apache-2.0
// head_replacement: what it costs halloc to replace a row's head slab. Every thread asks once for a
// block of `sizes`. There are as many threads as make each row take four heads, unless `threads`
// says otherwise.
//
//   first_burst, burst    one kernel; on a fresh heap, whose slabs come from TBuddy, and on a heap
//                         that has free slabs
//   first_waves, waves    kernels of a quarter of a head's blocks for each row; all of them are
//                         kept
//   waves_in_place        the same kernels, but each wave is given back before the next: no head is
//                         ever replaced
//
// The two kinds of waves make the same calls in the same kernels. The difference in time is what
// replacements cost all the threads; `ratio` is the median of one time over the other. A heap that
// `counts_work` counts the replacements, and times each from when the lane has the row until the
// row is in service again (`replacing`), and until the next heads are found as well (`caching`).
// That happens in rounds of their own, since counting takes time.
//
// Times are counted in cycles of a multiprocessor, since the nanosecond clock of the whole GPU
// ticks in steps that may be as long as what is measured. The cycles of a microsecond are measured
// too.
// Source: Adinetz and Pleiter 2014, "Head replacement". There, 64 us until a slab is consumed, and
// O(10 us) for a replacement.
#pragma once

#include <algorithm>
#include <array>

#include "measure/one_call.hpp"
#include "scenario.hpp"
#include "warpheap/all.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

inline constexpr creation::halloc_config counts_replacements{.counts_work = true};
using counting_halloc_allocator = finely_aligned_allocator<creation::halloc<counts_replacements>>;

/// What is measured; the last one replaces no head.
struct replacement_way {
  char const* name;
  bool fresh = false, in_waves = false, keeps = false;
};
inline constexpr std::array<replacement_way, 5> replacement_ways = {
    {{.name = "first_burst", .fresh = true, .keeps = true},
     {.name = "burst", .keeps = true},
     {.name = "first_waves", .fresh = true, .in_waves = true, .keeps = true},
     {.name = "waves", .in_waves = true, .keeps = true},
     {.name = "waves_in_place", .in_waves = true}}};

/// Small, so that a wave comes to all multiprocessors and no row gets the part of several.
inline constexpr u32 wave_thread_block = 64;

/// How many threads ask at a time.
struct replacement_plan {
  u64 bytes, rows, blocks_of_head, threads, wave;

  template <class Allocator>
  static replacement_plan of(basic_heap<Allocator> const& heap, u64 bytes, u64 asked_threads) {
    auto const geometry = heap.ref().creation().table().geometry();
    u32 const size = halloc_parts::size_for(static_cast<u32>(bytes));
    u64 const each = geometry.capacity(halloc_parts::kind_of(size)) >> halloc_parts::length_of(size),
              head = geometry.rows() * each;
    u64 const threads = default_for_backend(asked_threads, 4 * head, std::min<u64>(4 * head, 1 << 12));
    return {bytes, geometry.rows(), each, threads, std::min(threads, std::max<u64>(head / 4, 1))};
  }

  u64 waves() const { return (threads + wave - 1) / wave; }
};

template <class Allocator>
class head_replacement_at {
 public:
  head_replacement_at(basic_heap<Allocator>& heap, replacement_plan plan)
      : heap_{heap}, plan_{plan}, draw_{plan.bytes}, blocks_(plan.threads), watch_(2 * plan.waves() + 1) {}

  /// Time of the kernels that allocate. Ends with a heap without a block.
  double play(replacement_way how) {
    if (how.fresh) heap_.reset();
    u64 const each = how.in_waves ? plan_.wave : plan_.threads;
    watch_.mark();
    for (u64 first = 0; first < plan_.threads; first += each) {
      u64 const here = std::min(each, plan_.threads - first);
      launch(shape_for(here, how.in_waves ? wave_thread_block : 256), allocate_once{}, heap_.ref(), draw_,
             blocks_.data() + first, here);
      watch_.mark();
      if (!how.keeps) give_back(first, here);
      watch_.mark();
    }
    if (how.keeps) give_back(0, plan_.threads);
    auto const laps = watch_.laps();
    double time = 0;
    for (size_t i = 0; i < laps.size(); i += 2) time += laps[i];
    return time;
  }

  /// Every thread asks, and the blocks are checked.
  findings look() {
    launch(shape_for(plan_.threads), allocate_once{}, heap_.ref(), draw_, blocks_.data(), plan_.threads);
    auto const found = examine<Allocator>(blocks_, draw_);
    if (found.fault().empty()) give_back(0, plan_.threads);
    synchronize();
    return found;
  }

 private:
  void give_back(u64 first, u64 count) {
    launch(shape_for(count), free_once{}, heap_.ref(), blocks_.data() + first, count);
  }

  basic_heap<Allocator>& heap_;
  replacement_plan plan_;
  size_draw draw_;
  device_buffer<void*> blocks_;
  lap_watch watch_;
};

/// Kernel of one lane: waits until `cycles` have passed, and says how many did.
struct spend_cycles {
  WARPHEAP_DEVICE void operator()(u64 cycles, u64* spent) const {
    u64 const began = simt::clock();
    while (simt::clock() - began < cycles) simt::pause(1000);
    *spent = simt::clock() - began;
  }
};

inline double cycles_per_microsecond() {
  device_buffer<u64> const spent(1);
  stopwatch watch;
  // The first launch loads the kernel. The second takes some milliseconds, beside which the time of
  // a launch does not count.
  for (u64 const cycles : {u64{1}, u64{1} << 23}) {
    auto const time = watch.microseconds([&] { launch({1, 1}, spend_cycles{}, cycles, spent.data()); });
    if (cycles != 1) return static_cast<double>(spent[0]) / std::max(time, 1e-3);
  }
  return 1;
}

/// What is wrong with the counts of `rounds` rounds; empty if nothing is.
inline std::string fault_of_counts(replacement_way how, replacement_plan plan, creation::halloc_work const& work,
                                   u64 rounds) {
  // Each row begins with a head, unless the heap is fresh. Other heads must hold the blocks that it
  // does not, unless a search found room for them.
  u64 const heads = plan.threads / plan.blocks_of_head, least = rounds * (heads > plan.rows ? heads - plan.rows : 0);
  if (how.keeps && work.searches == 0 && work.replacements < least)
    return std::to_string(work.replacements) + " heads replaced, and not " + std::to_string(least) + " or more";
  if (work.longest_replacing_cycles > work.replacing_cycles || work.longest_caching_cycles > work.caching_cycles)
    return "the longest replacement takes longer than all of them";
  return {};
}

/// Adds the figures of each way, means over rounds and the longest of each duration, to its row.
/// Returns what was wrong.
template <class Allocator = counting_halloc_allocator>
std::string count_replacements(request const& asked, u64 bytes, std::vector<result>& rows) {
  basic_heap<Allocator> heap{asked.pool_bytes};
  auto const plan = replacement_plan::of(heap, bytes, asked[options::threads]);
  head_replacement_at<Allocator> here{heap, plan};
  if (auto const found = here.look(); !found.fault().empty()) return found.fault();
  double const speed = cycles_per_microsecond(), rounds = asked.repeat;
  for (size_t i = 0; i < replacement_ways.size(); ++i) {
    creation::halloc_work all;
    for (u32 round = 0; round < asked.repeat; ++round) {
      heap.ref().creation().clear_work({});
      here.play(replacement_ways[i]);
      auto const made = heap.ref().creation().work();
      all.replacements += made.replacements;
      all.dry_rows += made.dry_rows;
      all.waits += made.waits;
      all.searches += made.searches;
      all.probes += made.probes;
      all.replacing_cycles += made.replacing_cycles;
      all.caching_cycles += made.caching_cycles;
      all.longest_replacing_cycles = std::max(all.longest_replacing_cycles, made.longest_replacing_cycles);
      all.longest_caching_cycles = std::max(all.longest_caching_cycles, made.longest_caching_cycles);
    }
    auto const mean = [&](u64 count) { return static_cast<double>(count) / rounds; };
    rows[i].figures.insert(rows[i].figures.end(),
                           {{"replacements", mean(all.replacements)},
                            {"dry_rows", mean(all.dry_rows)},
                            {"waits", mean(all.waits)},
                            {"searches", mean(all.searches)},
                            {"probes", mean(all.probes)},
                            {"replacing_us", mean(all.replacing_cycles) / speed},
                            {"longest_replacing_us", static_cast<double>(all.longest_replacing_cycles) / speed},
                            {"caching_us", mean(all.caching_cycles) / speed},
                            {"longest_caching_us", static_cast<double>(all.longest_caching_cycles) / speed},
                            {"cycles_per_us", speed}});
    if (auto const fault = fault_of_counts(replacement_ways[i], plan, all, asked.repeat); !fault.empty()) return fault;
  }
  return fault_of_emptied(heap);
}

/// Five rows of one size.
template <class Allocator, class Counting>
std::vector<result> head_replacement_of(test_subject<Allocator> const& subject, request const& asked, u64 bytes) {
  std::vector<result> rows;
  std::string fault;
  {
    basic_heap<Allocator> heap{asked.pool_bytes};
    auto const plan = replacement_plan::of(heap, bytes, asked[options::threads]);
    result row{.scenario = "head_replacement", .allocator = subject.name};
    row.parameters = {{"bytes", bytes},
                      {"threads", plan.threads},
                      {"rows", plan.rows},
                      {"blocks_of_head", plan.blocks_of_head},
                      {"pool_bytes", asked.pool_bytes}};
    head_replacement_at<Allocator> here{heap, plan};
    auto const found = here.look();
    fault = found.fault();
    row.failures = found.failures;
    row.operations = served(plan.threads, found.failures);
    for (auto const& how : replacement_ways) {
      row.operation = how.name;
      rows.push_back(row);
      if (how.in_waves) rows.back().parameters.push_back({"waves", plan.waves()});
    }
    for (u32 round = 0; round < 1 + asked.repeat && fault.empty(); ++round)
      for (size_t i = 0; i < rows.size(); ++i) {
        auto const time = here.play(replacement_ways[i]);
        if (round > 0) rows[i].times_us.push_back(time);  // the first is to warm up
      }
    if (fault.empty()) fault = fault_of_emptied(heap);
  }
  for (size_t i = 2; i < 4 && fault.empty(); ++i) {
    std::vector<double> ratios;
    for (u32 round = 0; round < asked.repeat; ++round)
      ratios.push_back(rows[i].times_us[round] / std::max(rows[4].times_us[round], 1e-3));
    rows[i].figures.push_back({"ratio", median(ratios)});
  }
  if (fault.empty()) fault = count_replacements<Counting>(asked, bytes, rows);
  for (auto& row : rows) row.fault = fault;
  return rows;
}

/// `Counting` is the same allocator, but counts its work.
template <class Allocator = halloc_allocator, class Counting = counting_halloc_allocator>
std::vector<result> head_replacement(test_subject<Allocator> const& subject, request const& asked) {
  auto const sizes = asked.get(options::sizes, {16, 64, 256, 1024, 3072});
  std::vector<result> rows;
  for (u64 const bytes : sizes) {
    if (!asked.proceed("head_replacement, " + subject.name, rows.size() / replacement_ways.size(), sizes.size())) break;
    result const refused{.scenario = "head_replacement",
                         .allocator = subject.name,
                         .operation = "burst",
                         .parameters = {{"bytes", bytes}, {"pool_bytes", asked.pool_bytes}}};
    if (skip(rows, refused,
             bytes <= halloc_parts::largest_bytes ? "" : "no head: blocks above 3072 bytes are TBuddy's"))
      continue;
    auto const made = head_replacement_of<Allocator, Counting>(subject, asked, bytes);
    rows.insert(rows.end(), made.begin(), made.end());
    if (!made.front().checked()) return rows;  // what a broken heap says next means nothing
  }
  return rows;
}

/// The row of an allocator that has no heads.
inline std::vector<result> no_head_replacement(std::string const& allocator, request const& asked) {
  return {{.scenario = "head_replacement",
           .allocator = allocator,
           .operation = "burst",
           .parameters = {{"pool_bytes", asked.pool_bytes}},
           .skipped = allocator + " replaces no heads; --allocator halloc does"}};
}

inline std::vector<result> run_head_replacement(std::string const& allocator, request const& asked) {
  if (allocator != halloc_allocator::creation_type::name) return no_head_replacement(allocator, asked);
  return head_replacement(test_subject<halloc_allocator>{.name = allocator}, asked);
}

inline scenario about_head_replacement() {
  return {
      .name = "head_replacement",
      .text = "of halloc alone: bursts whose slabs are replaced meanwhile, and as large ones whose slabs are not",
      .rank = 160,
      .uses = {{options::sizes}, {options::threads, "four slabs' blocks for each of halloc's rows"}},
      .run = run_head_replacement,
  };
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
