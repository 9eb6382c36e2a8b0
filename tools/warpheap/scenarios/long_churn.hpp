// SPDX-License-Identifier: Apache-2.0
// long_churn: whether a heap stays as fast as it was. It runs the constant load of fill_level at
// one level for `kernels` steps, or else for `seconds` of device time, and tells how fast each
// tenth of that was. A time is that of both kernels of a step. Slots: `threads`; sizes: the first
// of `ranges`; level: the first of `levels`.
//
// Each part of the run is compared with the first part: a minute, or a tenth of the run if that is
// shorter. Blocks of a few first steps are checked before the run. At the end the live blocks are
// looked at, all are freed, and the heap must be whole.
#pragma once

#include "fill_level.hpp"
#include "scenario.hpp"

namespace warpheap::bench::options {

/// At most a day.
inline constexpr option<double> seconds{
    {.name = "--seconds",
     .rank = 160,
     .type = "SECONDS",
     .text = "Time on the device (default 10 on a GPU, 0.5 on the host)",
     .parse = [](char const* name, std::string const& typed, option_bounds const&) -> std::any {
       return tool::parse_real(name, typed, 0.001, 86'400);
     }}};

}  // namespace warpheap::bench::options

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

/// Where a run ends, and where each of its parts does.
struct run_length {
  u64 steps = 0;       ///< 0: not known
  double seconds = 0;  ///< counts if `steps` is 0

  /// A multiple of ten.
  u64 parts() const { return steps ? 10 : 10 * std::max<u64>(1, static_cast<u64>(std::ceil(seconds / 600))); }
  u64 steps_until(u64 part) const { return steps * part / parts(); }
  double seconds_until(u64 part) const { return seconds * static_cast<double>(part) / static_cast<double>(parts()); }
};

/// A stretch of a run.
struct stretch {
  std::vector<double> times_us;  ///< of each step: of both its kernels together
  double seconds = 0;            ///< their sum
  u64 calls = 0;                 ///< that were served, and frees of blocks
  u64 refused = 0;

  double calls_per_second() const { return static_cast<double>(calls) / seconds; }
  void append(stretch const& next) {
    times_us.insert(times_us.end(), next.times_us.begin(), next.times_us.end());
    seconds += next.seconds;
    calls += next.calls;
    refused += next.refused;
  }
};

/// At most `most` of the values, evenly spaced.
inline std::vector<double> thinned(std::vector<double> const& values, size_t most) {
  size_t const step = (values.size() + most - 1) / most;
  std::vector<double> kept;
  for (size_t i = 0; i < values.size(); i += step) kept.push_back(values[i]);
  return kept;
}

template <class Allocator>
class long_run {
 public:
  static constexpr size_t most_times = 1000;  ///< that a row keeps

  long_run(basic_heap<Allocator>& heap, slot_load const& load, run_length length, result base_row)
      : heap_{heap}, load_{load}, length_{length}, slots_{heap, load.slots()}, base_row_{std::move(base_row)} {}

  /// A row for each tenth; only the finished ones if `proceed(done, total)` ends the run.
  template <class Proceed>
  std::vector<result> measure(Proceed proceed) {
    slots_.play(load_.filling());
    slots_.take_refused();
    held_ = slots_.held().blocks;
    stretch tenth;
    double first_rate = 0;
    for (u64 part = 1; part <= length_.parts(); ++part) {
      auto const now = play_until(part, proceed);
      if (ended_) break;
      if (part == 1) first_rate = now.calls_per_second();
      tenth.append(now);
      if (part % (length_.parts() / 10) != 0) continue;
      add_row(tenth, now.calls_per_second() / first_rate);
      tenth = {};
    }
    auto const fault = slots_.fault_of_emptying();
    if (rows_.empty() && !fault.empty()) rows_.push_back(base_row_);
    for (auto& row : rows_) row.fault = fault;
    return rows_;
  }

 private:
  /// At least one step, so that every part has something to say.
  template <class Proceed>
  stretch play_until(u64 part, Proceed const& proceed) {
    stretch made;
    do {
      if (ended_ = !proceed(done(), u64{1000}); ended_) return made;
      auto const times_us = slots_.time(load_, steps_ + 1, steps_at_once(part, made)).sums();
      made.times_us.insert(made.times_us.end(), times_us.begin(), times_us.end());
      double const seconds = 1e-6 * std::accumulate(times_us.begin(), times_us.end(), 0.0);
      steps_ += times_us.size();
      seconds_ += seconds;
      made.seconds += seconds;
    } while (length_.steps ? steps_ < length_.steps_until(part) : seconds_ < length_.seconds_until(part));
    made.refused = slots_.take_refused();
    u64 const mallocs = made.times_us.size() * load_.step(1).mallocs(), served = mallocs - made.refused;
    u64 const held = slots_.held().blocks;
    made.calls = served + (held_ + served - held);
    held_ = held;
    return made;
  }

  /// All steps that are left of the part, but no more than take a moment, since a run can be ended
  /// only between such batches.
  u64 steps_at_once(u64 part, stretch const& so_far) const {
    u64 left = most_at_once;
    if (length_.steps) left = length_.steps_until(part) - steps_;
    else if (so_far.times_us.empty()) left = 1;
    else left = static_cast<u64>((length_.seconds_until(part) - seconds_) / (1e-6 * so_far.times_us.back())) + 1;
    return std::clamp<u64>(left, 1, most_at_once);
  }

  /// Thousandths of the run.
  u64 done() const {
    if (length_.steps) return 1000 * steps_ / length_.steps;
    return std::min<u64>(1000, static_cast<u64>(1000 * seconds_ / length_.seconds));
  }

  void add_row(stretch const& tenth, double over_first) {
    auto const steps = static_cast<double>(tenth.times_us.size());
    result row = base_row_;
    row.parameters.insert(row.parameters.begin(), {"tenth", rows_.size() + 1});
    row.times_us = thinned(tenth.times_us, most_times);
    row.operations = static_cast<double>(tenth.calls) / steps;
    row.failures = tenth.refused;
    row.figures = {{"over_first", over_first},
                   {"steps", steps},
                   {"seconds", tenth.seconds},
                   {"p99_us", quantile(tenth.times_us, 0.99)},
                   {"longest_us", quantile(tenth.times_us, 1)}};
    for (auto const& figure : slab_figures(heap_)) row.figures.push_back(figure);
    rows_.push_back(row);
  }

  static constexpr u64 most_at_once = 64;

  basic_heap<Allocator>& heap_;
  slot_load load_;
  run_length length_;
  slot_table<Allocator> slots_;
  result base_row_;
  std::vector<result> rows_;
  u64 steps_ = 0;       ///< that have run
  double seconds_ = 0;  ///< that they took
  u64 held_ = 0;        ///< blocks
  bool ended_ = false;
};

template <class Allocator>
std::vector<result> long_churn(test_subject<Allocator> const& subject, request const& asked) {
  constexpr u64 checked_kernels = 16;
  constexpr double usual_seconds = on_gpu ? 10 : 0.5;
  auto const range = asked.get(options::ranges, {{16, 4096}}).front();
  double const level = asked.get(options::levels, {0.5}).front();
  run_length const length{.steps = asked[options::kernels] ? std::max<u64>(asked[options::kernels], 10) : 0,
                          .seconds = asked[options::seconds] > 0 ? asked[options::seconds] : usual_seconds};
  u64 const pool_bytes = pool_for_level(default_for_backend(asked[options::threads], u64{1} << 20, u64{1} << 12),
                                        log_uniform_draw::from(range).mean(), level,
                                        basic_heap<Allocator>::minimum_bytes, asked.pool_bytes);
  slot_load const load{load_kind::constant, range, pool_bytes, level, 1, asked.seed};
  result row{.scenario = "long_churn", .allocator = subject.name, .operation = "churn"};
  row.parameters = {{"level_permille", permille_of(level)},
                    {"least_bytes", range.least},
                    {"most_bytes", range.most},
                    {"slots", load.slots()},
                    {"pool_bytes", pool_bytes}};
  if (std::vector<result> rows; skip(rows, row, unsupported_reason(subject, range.most))) return rows;
  auto const proceed = [&](u64 done, u64 total) { return asked.proceed("long_churn, " + subject.name, done, total); };
  if (!proceed(0, 1000)) return {};
  basic_heap<Allocator> heap{pool_bytes};
  row.fault = fault_of_load(heap, load, checked_kernels, subject.resets);
  if (!row.checked()) return {row};
  return long_run<Allocator>{heap, load, length, row}.measure(proceed);
}

inline scenario about_long_churn() {
  return {
      .name = "long_churn",
      .text = "the constant load of fill_level for a long time, by tenths of it",
      .rank = 40,
      .uses = {{options::ranges, "the first"},
               {options::threads, "1048576 slots"},
               {options::levels, "the first; default 0.5"},
               {options::kernels, "steps of two kernels, at least 10, in place of --seconds"},
               {options::seconds}},
      .ignores = {"--repeat"},
  };
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
