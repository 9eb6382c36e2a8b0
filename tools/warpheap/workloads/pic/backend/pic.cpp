// SPDX-License-Identifier: Apache-2.0
// `warpheap pic` on one backend: the simulation with one allocator, and how many particles one
// species can have.
#include "backend/allocators.hpp"
#include "backend/traced_heap.hpp"
#include "measure/ledger.hpp"
#include "simulation.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND { namespace {

/// A row of what is not measured, if the allocator cannot serve frames of this size.
template <class Allocator>
std::vector<bench::result> skipped(bench::test_subject<Allocator> const& subject, pic_settings const& settings,
                                   char const* operation) {
  bench::result row{.scenario = "pic", .allocator = subject.name, .operation = operation};
  row.parameters = {{"frame_bytes", settings.frame_bytes}, {"pool_bytes", settings.pool_bytes}};
  std::vector<bench::result> made;
  bench::skip(made, row, bench::unsupported_reason(subject, settings.frame_bytes));
  return made;
}

template <class Allocator>
pic_outcome simulate(bench::test_subject<Allocator> const& subject, pic_settings const& settings) {
  if (auto const row = skipped(subject, settings, "step"); !row.empty()) return {.results = row};
  return pic::simulation<Allocator>{subject.name, settings}.run();
}

/// The particles that one species can have when it shares the memory with `species` - 1 others that
/// have none. A heap that each species has for itself is a fixed part of the memory, needed or not.
template <class Allocator>
bench::result capacity_of(bench::test_subject<Allocator> const& subject, pic_settings const& settings, u32 species) {
  bench::result made{.scenario = "pic", .allocator = subject.name, .operation = "capacity"};
  made.parameters = {{"species", species}, {"frame_bytes", settings.frame_bytes}, {"pool_bytes", settings.pool_bytes}};
  u64 const part = settings.pool_bytes / (pic::splits_the_pool(subject.name) ? species : 1);
  basic_heap<Allocator> heap{part};
  bench::ledger<Allocator> frames{heap, bench::size_draw{settings.frame_bytes}, part,
                                  bench::default_for_backend(0, u64{1} << 16, u64{1} << 10)};
  auto const taken = frames.take_until_all_null();
  made.fault = frames.examine().fault();
  auto const freed = frames.give_back_every(1);
  if (made.checked() && freed.blocks != taken.blocks)
    made.fault = std::to_string(taken.blocks) + " frames came and " + std::to_string(freed.blocks) + " went";
  if (made.checked()) made.fault = bench::fault_of_emptied(heap);
  u64 const slots = pic::frame::slots_in(settings.frame_bytes);
  made.operations = static_cast<double>(taken.blocks);
  made.times_us = {taken.time_us};
  made.failures = taken.failures;
  made.figures = {{"particles", static_cast<double>(taken.blocks * slots)},
                  {"share_of_pool", static_cast<double>(taken.blocks * settings.frame_bytes) /
                                        static_cast<double>(settings.pool_bytes)}};
  return made;
}

template <class Allocator>
std::vector<bench::result> capacities(bench::test_subject<Allocator> const& subject, pic_settings const& settings) {
  if (auto const row = skipped(subject, settings, "capacity"); !row.empty()) return row;
  std::vector<bench::result> made;
  for (u32 species = 1; species <= settings.species; ++species) {
    settings.report("pic, " + subject.name, species - 1, settings.species);
    made.push_back(capacity_of(subject, settings, species));
  }
  return made;
}

pic_outcome run_pic(std::string const& allocator, pic_settings const& settings) {
  if (settings.take_trace)
    return pic::simulation<default_allocator, pic::leap_frog, traced_heap>{allocator, settings}.run();
  return all_allocators::measure(allocator, [&](auto const& subject) { return simulate(subject, settings); });
}

std::vector<bench::result> run_pic_capacity(std::string const& allocator, pic_settings const& settings) {
  return all_allocators::measure(allocator, [&](auto const& subject) { return capacities(subject, settings); });
}

part_registration const added_pic_job{pic_job{run_pic, run_pic_capacity}};

}}}  // namespace warpheap::tool::WARPHEAP_BACKEND
