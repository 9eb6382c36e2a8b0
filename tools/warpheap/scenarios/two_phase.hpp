// SPDX-License-Identifier: Apache-2.0
// two_phase: threads that hold one block or none, and that are more likely to allocate in even
// steps and to free in odd ones. Most of the heap is taken and freed all the time, in waves. Two
// ways to run the same steps: `spree`, a kernel a step, and `private`, all steps in one kernel.
// Sizes: `sizes`, and `ranges`, from which each malloc draws its own; threads: `workers`; steps:
// two for each of `rounds`. `divergences` says which threads draw one random number together and
// then do the same: a thread alone, a warp, or a thread block.
//
// A thread without a block asks for one with a probability of 0.95 in even steps and 0.55 in odd
// ones; a thread with a block frees it with 0.55 and 0.95. Operations are mallocs that returned a
// block: the figure is their number per second.
//
// The timed kernels touch no block. The same steps run once more with blocks stamped when they are
// taken and looked at when they are freed. Source: Adinetz and Pleiter 2014, the evaluation.
// Differs: both ways make the same draws.
#pragma once

#include <cmath>

#include "measure/one_call.hpp"
#include "scenario.hpp"

namespace warpheap::bench {

/// Groups of threads that draw one random number together, and so do the same.
enum class divergence { per_thread, per_warp, per_thread_block };

inline std::any parse_divergences(char const* name, std::string const& typed, option_bounds const&) {
  std::vector<divergence> kinds;
  for (auto const& part : tool::split_list(name, typed)) {
    if (part == "thread") kinds.push_back(divergence::per_thread);
    else if (part == "warp") kinds.push_back(divergence::per_warp);
    else if (part == "block") kinds.push_back(divergence::per_thread_block);
    else
      throw tool::usage_error{std::string{name} + ": there is no '" + part + "'; " +
                              tool::names_instead_of(part, {"thread", "warp", "block"})};
  }
  return kinds;
}

inline std::any parse_step_shares(char const* name, std::string const& typed, option_bounds const&) {
  auto shares = shares_of(name, typed, 0, 1);
  if (shares.size() == 2) return shares;
  throw tool::usage_error{std::string{name} + ": '" + typed + "' is not two shares, like 0.95,0.55"};
}

namespace options {

inline constexpr option<std::vector<divergence>> divergences{
    {.name = "--divergence",
     .rank = 90,
     .type = "thread|warp|block[,...]",
     .text = "The threads that draw what to do, and do it, together (default warp)",
     .parse = parse_divergences}};

inline constexpr option<std::vector<double>> allocate_shares{
    {.name = "--allocate-shares",
     .rank = 100,
     .type = "EVEN,ODD",
     .text = "How likely a thread without a block allocates in an even step, and in an odd one",
     .parse = parse_step_shares,
     .initial = "0.95,0.55"}};

inline constexpr option<std::vector<double>> free_shares{
    {.name = "--free-shares",
     .rank = 110,
     .type = "EVEN,ODD",
     .text = "How likely a thread with a block frees it in an even step, and in an odd one",
     .parse = parse_step_shares,
     .initial = "0.55,0.95"}};

}  // namespace options

}  // namespace warpheap::bench

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

inline constexpr u32 two_phase_thread_block = 256;

/// What a step does, as a pure function of thread and step.
struct two_phase_plan {
  u64 seed;
  u32 unit;                                              ///< threads that draw together, neighbours
  u64 allocate_even, allocate_odd, free_even, free_odd;  ///< of 2^32

  WARPHEAP_HOST_DEVICE bool changes(bool holds, u64 thread, u32 step) const {
    u64 const drawn = mix(mix(seed + thread / unit) + step) >> 32;
    u64 const even = holds ? free_even : allocate_even, odd = holds ? free_odd : allocate_odd;
    return drawn < (step % 2 ? odd : even);
  }
};

/// What one thread did.
struct two_phase_tally {
  u32 mallocs = 0;   ///< that came back with a block
  u32 failures = 0;  ///< calls that returned nullptr

  WARPHEAP_HOST_DEVICE u32 calls() const { return mallocs + failures; }
};

/// What `thread` asks for in its malloc number `call`, from 0: a pure function, so that no thread
/// has to keep the size of its block.
WARPHEAP_HOST_DEVICE inline u64 two_phase_bytes(size_draw draw, u64 thread, u32 call) {
  return draw.of(thread << 32 | call);
}

/// What the checked steps found.
struct two_phase_findings {
  findings blocks;
  u64 bytes = 0;  ///< asked for by the mallocs that came back with a block
};

/// Kernel: steps [first, first + steps) of every thread. blocks[i] is what thread i holds.
template <bool Checked>
struct two_phase_steps {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, two_phase_plan plan, size_draw draw, u32 first, u32 steps, void** blocks,
                                  two_phase_tally* tallies, two_phase_findings* found, u64 threads) const {
    u64 const i = global_thread_index();
    if (i >= threads) return;
    void* block = blocks[i];
    two_phase_tally tally = tallies[i];
    for (u32 step = first; step < first + steps; ++step) {
      if (!plan.changes(block != nullptr, i, step)) continue;
      if (block) {
        if constexpr (Checked)
          if (!holds_stamp<Heap>(block, two_phase_bytes(draw, i, tally.calls() - 1), i)) count(found->blocks.damaged);
        heap.free(block);
        block = nullptr;
      } else {
        u64 const bytes = two_phase_bytes(draw, i, tally.calls());
        block = heap.malloc(bytes);
        ++(block ? tally.mallocs : tally.failures);
        if constexpr (Checked)
          if (block) receive<Heap>(block, bytes, i, found);
      }
    }
    blocks[i] = block;
    tallies[i] = tally;
  }

 private:
  template <class Heap>
  WARPHEAP_DEVICE static void receive(void* block, u64 bytes, u64 thread, two_phase_findings* found) {
    atomic_ref<u64>{found->bytes}.fetch_add(bytes, order::relaxed);
    if (!is_aligned<Heap>(block, bytes)) count(found->blocks.misaligned);
    stamp<Heap>(block, bytes, thread);
  }
};

/// One size or range of sizes, and one way to draw what to do.
template <class Allocator>
class two_phase_at {
 public:
  two_phase_at(basic_heap<Allocator>& heap, two_phase_plan plan, size_draw draw, u64 threads, u32 steps)
      : heap_{heap}, plan_{plan}, draw_{draw}, steps_{steps}, blocks_(threads), tallies_(threads), found_(1) {}

  /// A kernel a step, or one for all.
  enum class way { spree, in_one };

  /// Appends a row with the times of one way, and what was wrong.
  void measure(way by, u32 repeat, result row) {
    row.operation = by == way::spree ? "spree" : "private";
    if (sound()) play<true>(by);  // to warm up, too
    // The timed kernels add up no bytes. They make the same draws, and ask for the same as long as
    // no malloc fails.
    double const bytes_of_malloc = mallocs_ > 0 ? static_cast<double>(bytes_) / mallocs_ : 0;
    for (u32 round = 0; round < repeat && sound(); ++round) row.times_us.push_back(play<false>(by));
    row.operations = mallocs_;
    row.bytes = mallocs_ * bytes_of_malloc;
    row.failures = failures_;
    row.fault = fault_;
    row.figures = {{"live_share", live_ / static_cast<double>(blocks_.size())}};
    rows_.push_back(row);
  }

  std::vector<result> const& rows() const { return rows_; }
  bool sound() const { return fault_.empty(); }

 private:
  /// All steps, from a heap without a block to one without a block.
  template <bool Checked>
  double play(way by) {
    found_ = device_buffer<two_phase_findings>(1);
    tallies_ = device_buffer<two_phase_tally>(tallies_.size());
    blocks_ = device_buffer<void*>(blocks_.size());
    u32 const each = by == way::spree ? 1 : steps_;
    auto const shape = shape_for(blocks_.size(), two_phase_thread_block);
    auto const time = watch_.microseconds([&] {
      for (u32 first = 0; first < steps_; first += each)
        launch(shape, two_phase_steps<Checked>{}, heap_.ref(), plan_, draw_, first, each, blocks_.data(),
               tallies_.data(), found_.data(), blocks_.size());
    });
    note();
    if (sound()) launch(shape, free_once{}, heap_.ref(), blocks_.data(), blocks_.size());
    synchronize();
    if (sound()) fault_ = fault_of_emptied(heap_);
    return time;
  }

  void note() {
    mallocs_ = live_ = 0;
    failures_ = 0;
    for (auto const& tally : tallies_.to_host()) {
      mallocs_ += tally.mallocs;
      failures_ += tally.failures;
    }
    for (void* const block : blocks_.to_host()) live_ += block != nullptr;
    auto const found = found_[0];
    bytes_ = found.bytes;
    fault_ = found.blocks.fault();
  }

  basic_heap<Allocator>& heap_;
  two_phase_plan plan_;
  size_draw draw_;
  u32 steps_;
  device_buffer<void*> blocks_;
  device_buffer<two_phase_tally> tallies_;
  device_buffer<two_phase_findings> found_;
  stopwatch watch_;
  std::vector<result> rows_;
  double mallocs_ = 0, live_ = 0;
  u64 failures_ = 0, bytes_ = 0;
  std::string fault_;
};

/// Threads that draw together.
constexpr u32 unit_of(divergence kind) {
  if (kind == divergence::per_thread) return 1;
  return kind == divergence::per_warp ? warp_lanes : two_phase_thread_block;
}

template <class Allocator>
std::vector<result> two_phase(test_subject<Allocator> const& subject, request const& asked) {
  auto ranges = sizes_and_ranges(asked);
  if (ranges.empty()) ranges = {{16, 16}, {256, 256}};
  auto const kinds = asked.get(options::divergences, {divergence::per_warp});
  auto const numbers = asked.get(options::workers, {default_for_backend(0, u64{1} << 18, u64{1} << 11)});
  auto const of_2_32 = [](double share) { return static_cast<u64>(share * 4294967296.0); };
  auto const thousandths = [](double share) { return static_cast<u64>(std::llround(share * 1000)); };
  auto const ask = asked[options::allocate_shares], give = asked[options::free_shares];
  basic_heap<Allocator> heap{asked.pool_bytes};
  std::vector<result> rows;
  for (auto const [least, most] : ranges)
    for (size_t i = 0; i < numbers.size() * kinds.size(); ++i) {
      u64 const threads = numbers[i / kinds.size()];
      auto const kind = kinds[i % kinds.size()];
      if (!asked.proceed("two_phase, " + subject.name, rows.size() / 2, ranges.size() * numbers.size() * kinds.size()))
        return rows;
      result base_row{.scenario = "two_phase", .allocator = subject.name, .operation = "private"};
      if (asked[options::ranges].empty()) base_row.parameters = {{"bytes", least}};
      else base_row.parameters = {{"least_bytes", least}, {"most_bytes", most}};
      base_row.parameters.insert(base_row.parameters.end(), {{"threads", threads},
                                                             {"rounds", asked[options::rounds]},
                                                             {"drawn_by", unit_of(kind)},
                                                             {"pool_bytes", asked.pool_bytes}});
      if (ask != request{}[options::allocate_shares] || give != request{}[options::free_shares])
        base_row.parameters.insert(base_row.parameters.end(), {{"allocate_even_permille", thousandths(ask[0])},
                                                               {"allocate_odd_permille", thousandths(ask[1])},
                                                               {"free_even_permille", thousandths(give[0])},
                                                               {"free_odd_permille", thousandths(give[1])}});
      if (skip(rows, base_row, unsupported_reason(subject, most))) continue;
      two_phase_plan const plan{asked.seed,      unit_of(kind),    of_2_32(ask[0]),
                                of_2_32(ask[1]), of_2_32(give[0]), of_2_32(give[1])};
      size_draw const draw{least, static_cast<u32>(most - least + 1), asked.seed};
      two_phase_at<Allocator> here{heap, plan, draw, threads, 2 * asked[options::rounds]};
      here.measure(two_phase_at<Allocator>::way::spree, asked.repeat, base_row);
      here.measure(two_phase_at<Allocator>::way::in_one, asked.repeat, base_row);
      rows.insert(rows.end(), here.rows().begin(), here.rows().end());
      if (!here.sound()) return rows;  // what a broken heap says next means nothing
    }
  return rows;
}

inline scenario about_two_phase() {
  return {
      .name = "two_phase",
      .text = "threads that rather allocate in even steps and rather free in odd ones, a kernel a step or one for all",
      .rank = 140,
      .uses = {{options::sizes},
               {options::ranges},
               {options::workers, "262144"},
               {options::divergences},
               {options::allocate_shares},
               {options::free_shares},
               {options::rounds, "two steps each"}},
  };
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
