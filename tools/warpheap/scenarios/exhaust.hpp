// SPDX-License-Identifier: Apache-2.0
// exhaust: every thread makes one call, and together they ask for exactly the pool, which is fresh.
// So every call that returns nullptr stands for memory that the allocator could not hand out,
// because of rounding, headers, fragments, or a search that gave up. Figure 7 of Gelado and Garland
// 2019.
//
// The pool is as large as all threads' blocks, up to the pool that was asked for (512 MiB there);
// for larger blocks, fewer threads ask. Times and failures are means over thread blocks of 1 to
// 1,024 threads; with `thread_blocks` there is a row for each of these instead. Sizes: `sizes`;
// threads: `threads`.
#pragma once

#include "measure/one_call.hpp"
#include "scenario.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

/// Sizes of thread blocks: for each row those over which its times are the mean.
inline std::vector<std::vector<u32>> exhaust_shapes(request const& asked) {
  std::vector<std::vector<u32>> rows;
  for (u64 const threads : asked[options::thread_blocks]) rows.push_back({static_cast<u32>(threads)});
  if (!rows.empty()) return rows;
  if constexpr (on_gpu) return {{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}};
  else return {{1, 32, 1024}};
}

/// A pool and as many threads as exhaust it with one block of `bytes` each.
struct exhaust_size {
  u64 bytes, pool_bytes, threads;

  exhaust_size(u64 bytes, u64 most_threads, u64 least_pool_bytes, u64 most_pool_bytes)
      : bytes{bytes},
        pool_bytes{std::max(std::min(bytes * most_threads, most_pool_bytes), least_pool_bytes)},
        threads{pool_bytes / bytes} {}
};

/// What all rows of one allocator at one size have in common.
inline result exhaust_row(std::string const& allocator, exhaust_size size) {
  result row{.scenario = "exhaust", .allocator = allocator, .operation = "malloc"};
  row.parameters = {{"bytes", size.bytes}, {"threads", size.threads}, {"pool_bytes", size.pool_bytes}};
  return row;
}

/// One allocator at one size, by kernels of some shapes.
template <class Allocator>
class exhaust_at_size {
 public:
  exhaust_at_size(basic_heap<Allocator>& heap, test_subject<Allocator> const& subject, exhaust_size size)
      : heap_{heap},
        resets_{subject.resets},
        draw_{size.bytes},
        blocks_(size.threads),
        row_{exhaust_row(subject.name, size)} {}

  result measure(std::vector<u32> const& shapes, u32 repeat) {
    std::vector<double> by_shape(shapes.size());
    u64 failures = 0;
    for (u32 round = 0; round <= repeat && row_.checked(); ++round) {
      failures = 0;
      double sum = 0;
      for (size_t i = 0; i < shapes.size() && row_.checked(); ++i) {
        auto const time = ask(shapes[i]);
        failures += round == 0 ? check() : count_failures();
        give_back();
        sum += time;
        if (round > 0) by_shape[i] += time / repeat;
      }
      if (round > 0) row_.times_us.push_back(sum / static_cast<double>(shapes.size()));
    }
    if (row_.checked()) row_.fault = fault_of_emptied(heap_);
    row_.failures = (failures + shapes.size() - 1) / shapes.size();
    auto const calls = static_cast<double>(blocks_.size() * shapes.size());
    row_.operations = served(blocks_.size() * shapes.size(), failures) / static_cast<double>(shapes.size());
    row_.figures = {{"failed_share", static_cast<double>(failures) / calls}};
    if (shapes.size() == 1) row_.parameters.emplace_back("thread_block", shapes.front());
    else
      row_.figures.insert(row_.figures.end(),
                          {{"fastest_shape_us", *std::min_element(by_shape.begin(), by_shape.end())},
                           {"slowest_shape_us", *std::max_element(by_shape.begin(), by_shape.end())}});
    return row_;
  }

 private:
  double ask(u32 threads) {
    return watch_.microseconds([&] {
      launch(shape_for(blocks_.size(), threads), allocate_once{}, heap_.ref(), draw_, blocks_.data(), blocks_.size());
    });
  }

  u64 count_failures() const {
    auto const blocks = blocks_.to_host();
    return static_cast<u64>(std::count(blocks.begin(), blocks.end(), nullptr));
  }

  /// In the round that does not count: checks that blocks are apart and aligned, and that freeing
  /// all of them leaves nothing. Returns the calls that failed.
  u64 check() {
    auto const found = examine<Allocator>(blocks_, draw_);
    row_.fault = found.fault();
    if (!row_.checked()) return found.failures;
    launch(shape_for(blocks_.size()), free_once{}, heap_.ref(), blocks_.data(), blocks_.size());
    synchronize();
    row_.fault = fault_of_emptied(heap_);
    is_empty_ = true;
    return found.failures;
  }

  /// Leaves a heap as fresh as it can be made.
  void give_back() {
    if (!resets_ && !is_empty_ && row_.checked())
      launch(shape_for(blocks_.size()), free_once{}, heap_.ref(), blocks_.data(), blocks_.size());
    if (resets_) heap_.reset();
    synchronize();
    is_empty_ = false;
  }

  basic_heap<Allocator>& heap_;
  bool resets_;
  bool is_empty_ = false;
  size_draw draw_;
  device_buffer<void*> blocks_;
  stopwatch watch_;
  result row_;
};

template <class Allocator>
std::vector<result> exhaust(test_subject<Allocator> const& subject, request const& asked) {
  auto const sizes = asked.get(options::sizes, powers(on_gpu ? 8 : 64, u64{1} << 19, on_gpu ? 2 : 8));
  u64 const most_threads = default_for_backend(asked[options::threads], u64{1} << 20, u64{1} << 14);
  auto const planned = [&](u64 bytes) {
    return exhaust_size{bytes, most_threads, basic_heap<Allocator>::minimum_bytes, asked.pool_bytes};
  };
  std::vector<result> results;
  auto const shapes = exhaust_shapes(asked);
  u64 done = 0;
  for (u64 const bytes : sizes) {
    auto const size = planned(bytes);
    auto const row = exhaust_row(subject.name, size);
    if (skip(results, row, unsupported_reason(subject, size.bytes))) continue;
    // An allocator with one pool a process has the pool of the last size.
    bool const has_pool = subject.resets || size.pool_bytes == planned(sizes.back()).pool_bytes;
    if (!has_pool && skip(results, row, subject.name + " has one pool a process: ask for this size alone")) continue;
    basic_heap<Allocator> heap{size.pool_bytes};
    for (auto const& of_row : shapes) {
      if (!asked.proceed("exhaust, " + subject.name, done++, sizes.size() * shapes.size())) return results;
      results.push_back(exhaust_at_size<Allocator>{heap, subject, size}.measure(of_row, asked.repeat));
      if (!results.back().checked()) return results;  // what a broken heap says next means nothing
    }
  }
  return results;
}

inline scenario about_exhaust() {
  return {
      .name = "exhaust",
      .text = "every thread one call, together for exactly the pool",
      .rank = 70,
      .uses = {{options::sizes},
               {options::threads, "1048576"},
               {options::thread_blocks, "a row for each; default one row, the mean over 1, 2, 4, ... 1024"}},
      .pool = {.gpu = u64{512} << 20, .host = u64{8} << 20},
  };
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
