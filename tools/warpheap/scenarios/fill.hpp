// SPDX-License-Identifier: Apache-2.0
// fill: how much of the pool is in callers' hands when the first call returns nullptr, how long
// contending threads on a full heap wait for their nullptr, and whether the heap serves again once
// half of the blocks are freed. Sizes: `sizes`; threads that ask the full heap: `threads`.
#pragma once

#include "measure/ledger.hpp"
#include "measure/one_call.hpp"
#include "scenario.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

/// The three operations at one size.
template <class Allocator>
class fill_at_size {
 public:
  fill_at_size(test_subject<Allocator> const& subject, request const& asked, u64 bytes)
      : heap_{asked.pool_bytes},
        draw_{bytes},
        ledger_{heap_, draw_, asked.pool_bytes, default_for_backend(0, u64{1} << 16, u64{1} << 10)},
        taken_(default_for_backend(asked[options::threads], u64{1} << 16, u64{1} << 11)) {
    result base_row{.scenario = "fill", .allocator = subject.name};
    base_row.parameters = {{"bytes", bytes}, {"pool_bytes", asked.pool_bytes}};
    filling_ = asking_ = refilling_ = base_row;
    filling_.operation = "fill";
    filling_.parameters.push_back({"threads", ledger_.threads()});
    asking_.operation = "ask_full";
    asking_.parameters.push_back({"threads", taken_.size()});
    refilling_.operation = "refill";
    refilling_.parameters.push_back({"threads", ledger_.threads()});
  }

  /// One round more; false once something was wrong.
  bool round(bool counts, u64 pool_bytes) {
    auto filled = ledger_.take_until_first_null();
    bool const full = filled.failures > 0;
    filling_.operations = static_cast<double>(filled.blocks);
    filling_.failures = filled.failures;
    filling_.figures = {{"full", full ? 1 : 0}};
    if (full)
      filling_.figures.push_back({"utilisation", static_cast<double>(filled.blocks * draw_.least) / pool_bytes});
    if (full) filled.blocks += ledger_.take_until_all_null().blocks;
    if (full) ask(counts);
    if (!sound(ledger_.examine())) return false;
    auto const freed = ledger_.give_back_every(2);
    auto const again = ledger_.take_until_all_null();
    if (freed.blocks && again.blocks == 0)
      return fail(std::to_string(freed.blocks) + " blocks came back and none was served again");
    refilling_.operations = static_cast<double>(again.blocks);
    refilling_.failures = again.failures;
    if (freed.blocks)
      refilling_.figures = {{"served_again", static_cast<double>(again.blocks) / static_cast<double>(freed.blocks)}};
    if (!sound(ledger_.examine())) return false;
    ledger_.give_back_every(1);
    if (auto const fault = fault_of_emptied(heap_); !fault.empty()) return fail(fault);
    if (!counts) return true;
    filling_.times_us.push_back(filled.time_us);
    refilling_.times_us.push_back(again.time_us);
    return true;
  }

  void append_to(std::vector<result>& results) const {
    results.push_back(filling_);
    if (asking_.failures || !asking_.checked()) results.push_back(asking_);
    results.push_back(refilling_);
  }

 private:
  /// Contending threads ask the full heap, each once, and free the blocks that they still get.
  void ask(bool counts) {
    auto const time = watch_.microseconds(
        [&] { launch(shape_for(taken_.size()), allocate_once{}, heap_.ref(), draw_, taken_.data(), taken_.size()); });
    auto const blocks = taken_.to_host();
    asking_.failures = static_cast<u64>(std::count(blocks.begin(), blocks.end(), nullptr));
    // refusals count too: they are what is timed
    asking_.operations = static_cast<double>(taken_.size());
    launch(shape_for(taken_.size()), free_once{}, heap_.ref(), taken_.data(), taken_.size());
    synchronize();
    if (counts) asking_.times_us.push_back(time);
  }

  bool sound(findings const& found) { return found.fault().empty() || fail(found.fault()); }

  bool fail(std::string const& fault) {
    filling_.fault = asking_.fault = refilling_.fault = fault;
    return false;
  }

  basic_heap<Allocator> heap_;
  size_draw draw_;
  ledger<Allocator> ledger_;
  device_buffer<void*> taken_;
  stopwatch watch_;
  result filling_, asking_, refilling_;
};

template <class Allocator>
std::vector<result> fill(test_subject<Allocator> const& subject, request const& asked) {
  auto const sizes = asked.get(options::sizes, {16, 1000, 1024, 4096});
  std::vector<result> results;
  u64 done = 0;
  for (u64 const bytes : sizes) {
    result row{.scenario = "fill", .allocator = subject.name, .operation = "fill"};
    row.parameters = {{"bytes", bytes}, {"pool_bytes", asked.pool_bytes}};
    if (skip(results, row, unsupported_reason(subject, bytes))) continue;
    fill_at_size<Allocator> at_size{subject, asked, bytes};
    bool sound = true;
    for (u32 round = 0; round <= asked.repeat && sound; ++round) {
      if (!asked.proceed("fill, " + subject.name, done++, sizes.size() * (asked.repeat + 1))) return results;
      sound = at_size.round(round > 0, asked.pool_bytes);
    }
    at_size.append_to(results);
    if (!sound) break;
  }
  return results;
}

inline scenario about_fill() {
  return {
      .name = "fill",
      .text = "the pool to the first nullptr, contending threads at the full heap, and again after frees",
      .rank = 50,
      .uses = {{options::sizes}, {options::threads, "65536"}},
      .pool = {.host = u64{8} << 20},
  };
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
