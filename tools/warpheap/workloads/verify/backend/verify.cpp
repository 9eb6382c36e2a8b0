// SPDX-License-Identifier: Apache-2.0
// The heap is filled to the last block, and every block is stamped by worker and counter. All
// blocks are looked at, all are freed by other workers, and the slots must be what they were. This
// is done twice, so that blocks are handed out again.
// Source: Eckert 2014, section 5.4.
#include "backend/allocators.hpp"
#include "measure/ledger.hpp"
#include "workloads/verify/verification.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND { namespace {

template <class Heap>
u64 slots(Heap const& heap, u64 bytes) {
  if constexpr (requires { heap.available_slots(bytes); }) return heap.available_slots(bytes);
  return 0;
}

/// One fill with sizes in `range`, of a heap from which everything was freed.
template <class Allocator>
verification fill_and_free(basic_heap<Allocator>& heap, std::string const& name, bench::size_range range,
                           verify_settings const& asked) {
  bench::size_draw const draw{range.least, static_cast<u32>(range.most - range.least + 1), asked.seed};
  u64 const most_threads = bench::default_for_backend(asked.threads, u64{1} << 16, u64{1} << 10);
  bench::ledger<Allocator> held{heap, draw, asked.pool_bytes, most_threads};
  verification made{.allocator = name, .least_bytes = range.least, .most_bytes = range.most};
  made.counts_slots = requires { heap.available_slots(range.least); };
  made.slots_before = slots(heap, range.least);
  auto const filled = held.take_until_all_null();
  auto const found = held.examine();
  auto const freed = held.give_back_every(1);
  made.slots_after = slots(heap, range.least);
  made.blocks = filled.blocks;
  made.bytes = filled.blocks * draw.mean();
  made.failures = filled.failures;
  made.damaged = found.damaged;
  made.misaligned = found.misaligned;
  made.seconds = (filled.time_us + freed.time_us) * 1e-6;
  made.fault = found.fault();
  // A block of nearly the whole pool may be more than an allocator promises; a quarter of the pool
  // is not.
  if (made.fault.empty() && filled.blocks == 0 && range.most <= asked.pool_bytes / 4)
    made.fault = "an empty heap served no call";
  if (made.fault.empty() && freed.blocks != filled.blocks)
    made.fault = std::to_string(filled.blocks) + " blocks came and " + std::to_string(freed.blocks) + " went";
  if (made.fault.empty() && made.slots_after != made.slots_before)
    made.fault = "slots were " + std::to_string(made.slots_before) + " and are " + std::to_string(made.slots_after);
  if (made.fault.empty()) made.fault = bench::fault_of_emptied(heap);
  return made;
}

template <class Allocator>
std::vector<verification> verify(bench::test_subject<Allocator> const& subject, verify_settings const& asked) {
  basic_heap<Allocator> heap{asked.pool_bytes};
  std::vector<verification> made;
  u64 done = 0;
  for (auto const& range : asked.ranges) {
    if (auto const why = bench::unsupported_reason(subject, range.most); !why.empty()) {
      made.push_back({.allocator = subject.name, .least_bytes = range.least, .most_bytes = range.most, .skipped = why});
      continue;
    }
    for (u32 round = 0; round < asked.repeat; ++round) {
      if (!asked.proceed("verify, " + subject.name, done++, asked.ranges.size() * asked.repeat)) return made;
      made.push_back(fill_and_free(heap, subject.name, range, asked));
      if (!made.back().verified()) return made;
    }
  }
  return made;
}

std::vector<verification> run_verify(std::string const& allocator, verify_settings const& asked) {
  return all_allocators::measure(allocator, [&](auto const& subject) { return verify(subject, asked); });
}

part_registration const added_verify_job{verify_job{run_verify}};

}}}  // namespace warpheap::tool::WARPHEAP_BACKEND
