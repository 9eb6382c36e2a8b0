// SPDX-License-Identifier: Apache-2.0
// One join with one source of pages. Both tables are cut, hash tables are built and probed, the
// result is compared with the expected one, and its pages are freed. This is repeated as often as
// asked, after a round that does not count.
#pragma once

#include <numeric>

#include "pages.hpp"
#include "probe.hpp"
#include "rows.hpp"

namespace warpheap::tool::join { inline namespace WARPHEAP_BACKEND {

/// `Pages` is heap_pages or direct_pages.
template <class Pages>
class job {
 public:
  job(std::string const& name, join_settings const& settings)
      : settings_{settings},
        pages_{settings.pool_bytes, settings.page_bytes},
        build_{*settings.build, settings.partition_bits},
        probe_{*settings.probe, settings.partition_bits},
        table_{build_},
        chains_((settings.probe->tuples() + settings.lanes_a_chain - 1) / settings.lanes_a_chain),
        watch_{5} {
    join_ = bench::result{.scenario = "join", .allocator = name, .operation = "join"};
    join_.parameters = {{"build_tuples", settings.build->tuples()}, {"probe_tuples", settings.probe->tuples()},
                        {"page_bytes", settings.page_bytes},        {"lanes_a_chain", settings.lanes_a_chain},
                        {"partitions", build_.partitions()},        {"pool_bytes", settings.pool_bytes}};
    join_.operations = static_cast<double>(settings.build->tuples() + settings.probe->tuples());
    probing_ = freeing_ = join_;
    probing_.operation = "probe";
    probing_.operations = static_cast<double>(settings.probe->tuples());
    freeing_.operation = "free";
  }

  /// A row for the whole join, one for its probe, and one for freeing where pages are freed.
  std::vector<bench::result> run() {
    for (u32 round = 0; round <= settings_.repeat && sound(); ++round) {
      settings_.report("join, " + join_.allocator, round, settings_.repeat + 1);
      make_round(round > 0, round == settings_.repeat);
    }
    join_.figures = {{"partition_us", bench::median(partition_us_)},
                     {"build_us", bench::median(build_us_)},
                     {"without_partition_us", bench::median(without_partition_us_)},
                     {"tuples", static_cast<double>(found_.tuples)},
                     {"pages", static_cast<double>(held_)},
                     {"utilisation", held_ ? static_cast<double>(found_.tuples * join_tuple_bytes) /
                                                 static_cast<double>(held_ * settings_.page_bytes)
                                           : 0}};
    freeing_.operations = static_cast<double>(held_);
    probing_.failures = join_.failures;
    probing_.fault = freeing_.fault = join_.fault;
    if constexpr (requires { pages_.trace(); }) settings_.take_trace(pages_.trace());
    if (!Pages::frees) return {join_, probing_};
    return {join_, probing_, freeing_};
  }

 private:
  bool sound() const { return join_.checked(); }
  u32 slots() const { return slots_of(settings_.page_bytes); }

  void make_round(bool keep, bool is_last) {
    pages_.prepare();
    device_buffer<u64> const failures(1);
    watch_.mark();
    build_.cut();
    probe_.cut();
    watch_.mark();
    table_.build();
    watch_.mark();
    if (settings_.lanes_a_chain == 1) probe<lane_writer>(failures.data());
    else probe<warp_writer>(failures.data());
    watch_.mark();
    auto const laps = watch_.laps();
    check(failures[0]);
    if (!sound() && !join_.failures) return;  // pages with two owners must not be freed
    if (sound() && is_last && settings_.take_rows) give_rows(chains_, slots(), settings_.take_rows);
    auto const freeing = stopwatch_.microseconds([&] {
      launch(thread_each(chains_.size()), free_chains{}, pages_.ref(), chains_.data(), chains_.size(), slots());
    });
    note(pages_.fault());
    if (!keep) return;
    partition_us_.push_back(laps[0]);
    build_us_.push_back(laps[1]);
    without_partition_us_.push_back(laps[1] + laps[2]);
    probing_.times_us.push_back(laps[2]);
    join_.times_us.push_back(laps[0] + laps[1] + laps[2]);
    freeing_.times_us.push_back(freeing);
  }

  template <class Writer>
  void probe(u64* failures) {
    launch(thread_each(probe_.tuples().size), probe_tuples<Writer>{}, pages_.ref(), table_.view(), probe_.tuples(),
           settings_.page_bytes, chains_.data(), failures);
  }

  /// Compares what the kernel wrote with the expected result.
  void check(u64 failures) {
    held_ = 0;
    found_ = {};
    for (auto const& each : chains_.to_host()) {
      held_ += each.pages;
      if (each.pages) found_.tuples += u64{each.pages - 1} * slots() + each.used;
    }
    join_.failures = failures;
    if (failures)
      return note("out of memory: " + std::to_string(found_.tuples) + " of " +
                  std::to_string(settings_.expected.tuples) + " tuples of the result found pages of " +
                  std::to_string(settings_.page_bytes) + " bytes in a pool of " + std::to_string(settings_.pool_bytes) +
                  " bytes");
    device_buffer<u64> const sums(sum_chains::sum_slots);
    launch(thread_each(chains_.size() * settings_.lanes_a_chain), sum_chains{settings_.lanes_a_chain}, chains_.data(),
           chains_.size(), slots(), sums.data());
    auto const parts = sums.to_host();
    found_.checksum = std::accumulate(parts.begin(), parts.end(), u64{0});
    if (found_.tuples != settings_.expected.tuples)
      note("the result has " + std::to_string(found_.tuples) + " tuples, and it should have " +
           std::to_string(settings_.expected.tuples));
    else if (found_ != settings_.expected)
      note("the result's tuples are not those that it should have: checksums differ");
  }

  /// Keeps the first fault.
  void note(std::string const& fault) {
    if (join_.fault.empty()) join_.fault = fault;
  }

  join_settings const& settings_;
  Pages pages_;
  partitioned_table build_, probe_;
  hash_table table_;
  device_buffer<chain> chains_;
  bench::lap_watch watch_;
  bench::stopwatch stopwatch_;
  bench::result join_, probing_, freeing_;
  std::vector<double> partition_us_, build_us_, without_partition_us_;
  join_sum found_;
  u64 held_ = 0;  ///< pages
};

}}  // namespace warpheap::tool::join::WARPHEAP_BACKEND
