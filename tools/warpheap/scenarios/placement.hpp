// SPDX-License-Identifier: Apache-2.0
// placement: where blocks lie, and what that costs the threads that use them. Every thread asks for
// one block, which it keeps. Then
//
//   range_over_asked  highest end minus lowest start, over the bytes asked for: 1 is a packed array
//   write own         every thread writes all of its own block
//   read own          and reads it
//   write neighbour   lane i writes the block of lane i ^ 1
//   read neighbour    and reads it
//
// A packed array of as many blocks is touched in turn with the heap's; ratio_to_packed is the
// median of one time over the other. Rows of `packed` are of that array alone. With `rounds` 0 the
// heap is fresh, if it can be reset. Otherwise that many rounds of churn come first, after which
// everything is freed. Sizes: `sizes`; numbers of blocks and of threads in the churn: `threads`,
// but no more blocks than half of the pool has bytes for; sizes of the churn: first of `ranges`.
//
// Checked: the burst's blocks do not overlap and are aligned, and readers find what was written.
#pragma once

#include "churn.hpp"
#include "measure/one_call.hpp"
#include "scenario.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

/// The blocks that the threads of a kernel touch: thread i the block of call i, or of call i ^ 1.
struct touched_blocks {
  void* const* blocks;
  u64 bytes;
  u64 threads;
  u64 flip;  ///< 0: their own; 1: their neighbour's

  WARPHEAP_DEVICE u64 owner_of(u64 thread) const {
    u64 const other = thread ^ flip;
    return other < threads ? other : thread;
  }
};

/// Kernel: writes all words of a block, and the bytes behind the last one.
struct write_blocks {
  WARPHEAP_DEVICE void operator()(touched_blocks touched) const {
    u64 const i = global_thread_index();
    if (i >= touched.threads) return;
    u64 const owner = touched.owner_of(i), mark = mix(owner), words_end = touched.bytes / sizeof(u64) * sizeof(u64);
    auto* const block = static_cast<u8*>(touched.blocks[owner]);
    if (!block) return;
    for (u64 at = 0; at < words_end; at += sizeof(u64)) *reinterpret_cast<u64*>(block + at) = mark + at;
    for (u64 at = words_end; at < touched.bytes; ++at) block[at] = static_cast<u8>(mark + at);
  }
};

/// Kernel: reads the blocks, and counts those that hold anything else.
struct read_blocks {
  WARPHEAP_DEVICE void operator()(touched_blocks touched, u64* damaged) const {
    u64 const i = global_thread_index();
    if (i >= touched.threads) return;
    u64 const owner = touched.owner_of(i), mark = mix(owner), words_end = touched.bytes / sizeof(u64) * sizeof(u64);
    auto const* const block = static_cast<u8 const*>(touched.blocks[owner]);
    if (!block) return;
    bool intact = true;
    for (u64 at = 0; at < words_end; at += sizeof(u64))
      intact &= *reinterpret_cast<u64 const*>(block + at) == mark + at;
    for (u64 at = words_end; at < touched.bytes; ++at) intact &= block[at] == static_cast<u8>(mark + at);
    if (!intact) count(*damaged);
  }
};

/// A way to touch all blocks of a burst.
struct touch {
  char const* operation;
  bool reads = false;  ///< else it writes
  bool of_neighbour = false;
};

inline constexpr touch all_touches[] = {{.operation = "write own"},
                                        {.operation = "read own", .reads = true},
                                        {.operation = "write neighbour", .of_neighbour = true},
                                        {.operation = "read neighbour", .reads = true, .of_neighbour = true}};

/// Blocks in a row, with no gaps but the padding of each to whole words.
class packed_array {
 public:
  /// A block for every entry of `like` that is not null.
  packed_array(std::vector<void*> const& like, u64 bytes)
      : words_{(bytes + sizeof(u64) - 1) / sizeof(u64)},
        memory_(words_ * (like.size() - static_cast<u64>(std::count(like.begin(), like.end(), nullptr)))) {
    auto blocks = like;
    u64* next = memory_.data();
    for (void*& block : blocks) {
      if (!block) continue;
      block = next;
      next += words_;
    }
    blocks_ = device_buffer<void*>{blocks};
  }

  device_buffer<void*> const& blocks() const { return blocks_; }

 private:
  u64 words_;
  device_buffer<u64> memory_;
  device_buffer<void*> blocks_;
};

/// Times of touching lists of blocks of one size.
class touching {
 public:
  touching(u64 bytes, u64 threads) : bytes_{bytes}, threads_{threads}, damaged_(1) {}

  /// Time of the second of two passes: what fits in the caches is in them, whatever was touched
  /// before.
  double microseconds(touch way, device_buffer<void*> const& blocks) {
    pass(way, blocks);
    return watch_.microseconds([&] { pass(way, blocks); });
  }

  std::string fault() const {
    u64 const damaged = damaged_[0];
    return damaged ? std::to_string(damaged) + " reads found other words than were written" : std::string{};
  }

 private:
  void pass(touch way, device_buffer<void*> const& blocks) const {
    touched_blocks const touched{blocks.data(), bytes_, threads_, way.of_neighbour ? u64{1} : u64{0}};
    if (way.reads) launch(shape_for(threads_), read_blocks{}, touched, damaged_.data());
    else launch(shape_for(threads_), write_blocks{}, touched);
  }

  u64 bytes_, threads_;
  device_buffer<u64> damaged_;
  stopwatch watch_;
};

inline std::vector<u64> placement_sizes(request const& asked) { return asked.get(options::sizes, {16, 256, 4096}); }
inline u64 placement_threads(request const& asked, u64 bytes) {
  return std::clamp<u64>(asked.pool_bytes / 2 / bytes, 1,
                         default_for_backend(asked[options::threads], 100'000, 10'000));
}

/// The work on packed arrays alone.
inline std::vector<result> placement_baseline(request const& asked) {
  std::vector<result> rows;
  auto const sizes = placement_sizes(asked);
  for (u64 const bytes : sizes) {
    if (!asked.proceed("placement, packed", rows.size() / std::size(all_touches), sizes.size())) return rows;
    u64 const threads = placement_threads(asked, bytes);
    char some = 0;
    packed_array const packed{std::vector<void*>(threads, &some), bytes};
    touching touches{bytes, threads};
    for (auto const& way : all_touches) {
      result row{.scenario = "placement", .allocator = "packed", .operation = way.operation};
      row.parameters = {{"bytes", bytes}, {"threads", threads}};
      row.operations = static_cast<double>(threads);
      row.figures = {{"range_over_asked", range_over_asked(packed.blocks().to_host(), bytes)}, {"ratio_to_packed", 1}};
      for (u32 round = 0; round < warm_up_rounds + asked.repeat; ++round) {
        auto const time = touches.microseconds(way, packed.blocks());
        if (round >= warm_up_rounds) row.times_us.push_back(time);
      }
      row.fault = touches.fault();
      rows.push_back(row);
    }
  }
  return rows;
}

/// One allocator, all sizes, before and after churn.
template <class Allocator>
class placement_rows {
 public:
  placement_rows(test_subject<Allocator> const& subject, request const& asked)
      : subject_{subject}, asked_{asked}, sizes_{placement_sizes(asked)}, heap_{asked.pool_bytes} {}

  std::vector<result> measure() {
    for (u64 const bytes : sizes_) {
      if (skip(rows_, base_row(bytes, 0), unsupported_reason(subject_, bytes))) continue;
      if (!proceed() || !measure_burst(bytes, 0)) return rows_;
    }
    if (skip(rows_, base_row(sizes_.front(), asked_[options::rounds]), unsupported_reason(subject_, churned().most)))
      return rows_;
    for (u64 const bytes : sizes_) {
      if (!unsupported_reason(subject_, bytes).empty()) continue;
      if (!proceed() || !measure_burst(bytes, asked_[options::rounds])) return rows_;
    }
    return rows_;
  }

 private:
  size_range churned() const { return asked_.get(options::ranges, {{16, 512}}).front(); }

  result base_row(u64 bytes, u32 rounds) const {
    result made{.scenario = "placement", .allocator = subject_.name, .operation = all_touches[0].operation};
    made.parameters = {{"bytes", bytes},
                       {"threads", placement_threads(asked_, bytes)},
                       {"rounds", rounds},
                       {"pool_bytes", asked_.pool_bytes}};
    return made;
  }

  /// Four rows, one for each way to touch a burst after `rounds` of churn. False: something was
  /// wrong.
  bool measure_burst(u64 bytes, u32 rounds) {
    if (subject_.resets) heap_.reset();
    u64 const threads = placement_threads(asked_, bytes);
    device_buffer<void*> const blocks(threads);
    auto const shape = shape_for(threads);
    size_draw const draw{bytes};
    result made = base_row(bytes, rounds);
    if (rounds) made.fault = churn(rounds);
    launch(shape, allocate_once{}, heap_.ref(), draw, blocks.data(), threads);
    auto const found = examine<Allocator>(blocks, draw);
    made.failures = found.failures;
    made.operations = served(threads, found.failures);
    if (made.checked()) made.fault = found.fault();
    size_t const first_row = rows_.size();
    if (made.checked()) append_touches(made, blocks, bytes);
    else rows_.push_back(made);
    if (rows_.back().checked()) {
      launch(shape, free_once{}, heap_.ref(), blocks.data(), threads);
      synchronize();
      auto const fault = fault_of_emptied(heap_);
      for (size_t row = first_row; row < rows_.size(); ++row) rows_[row].fault = fault;
    }
    return rows_.back().checked();
  }

  void append_touches(result base_row, device_buffer<void*> const& blocks, u64 bytes) {
    auto const list = blocks.to_host();
    packed_array const packed{list, bytes};
    touching touches{bytes, list.size()};
    for (auto const& way : all_touches) {
      result row = base_row;
      row.operation = way.operation;
      std::vector<double> ratios;
      for (u32 round = 0; round < warm_up_rounds + asked_.repeat; ++round) {
        auto const time = touches.microseconds(way, blocks), packed_time = touches.microseconds(way, packed.blocks());
        if (round < warm_up_rounds) continue;
        row.times_us.push_back(time);
        ratios.push_back(time / packed_time);
      }
      if (row.operations > 0)
        row.figures = {{"range_over_asked", range_over_asked(list, bytes)}, {"ratio_to_packed", median(ratios)}};
      row.fault = touches.fault();
      rows_.push_back(row);
    }
  }

  /// What was wrong with it; empty if nothing was. Everything was freed.
  std::string churn(u32 rounds) {
    auto const range = churned();
    size_draw const draw{range.least, static_cast<u32>(range.most - range.least + 1), asked_.seed};
    u64 const threads = default_for_backend(asked_[options::threads], u64{1} << 18, u64{1} << 12);
    device_buffer<churn_tally> const tallies(threads);
    launch(shape_for(threads), churn_rounds<true>{}, heap_.ref(), draw, rounds, tallies.data(), threads);
    synchronize();
    return total_of(tallies).found.fault();
  }

  bool proceed() { return asked_.proceed("placement, " + subject_.name, step_++, 2 * sizes_.size()); }

  test_subject<Allocator> const& subject_;
  request const& asked_;
  std::vector<u64> sizes_;
  u64 step_ = 0;
  basic_heap<Allocator> heap_;
  std::vector<result> rows_;
};

template <class Allocator>
std::vector<result> placement(test_subject<Allocator> const& subject, request const& asked) {
  return placement_rows<Allocator>{subject, asked}.measure();
}

inline scenario about_placement() {
  return {
      .name = "placement",
      .text = "how far blocks lie apart, and what that costs who writes and reads them, beside a packed array",
      .rank = 190,
      .uses = {{options::sizes},
               {options::ranges, "the first, of its churn"},
               {options::threads, "100000, and 262144 for its churn"},
               {options::rounds, "of its churn"}},
      .baseline = placement_baseline,
  };
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
