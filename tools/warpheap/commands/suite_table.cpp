// SPDX-License-Identifier: Apache-2.0
// `quick` has one allocator of each design, and few sizes. `full` has all allocators and each
// scenario's own sizes. toolkit is in `latency` alone: a burst of 2^20 threads takes it minutes.
// `papers` has its entries in paper_suite.cpp.
//
// Seconds of `quick` are those of an H200. Those of `full` follow from times in bench/results: a
// scenario's timed kernels, times the passes that warm up and check, and half a second for each
// heap.
#include "suite_table.hpp"

#include <algorithm>

#include "paper_suite.hpp"

namespace warpheap::tool {

namespace {

using names = std::vector<std::string>;

names without(names from, names const& left_out) {
  auto const is_out = [&](auto const& name) {
    return std::find(left_out.begin(), left_out.end(), name) != left_out.end();
  };
  from.erase(std::remove_if(from.begin(), from.end(), is_out), from.end());
  return from;
}

std::vector<suite_entry> quick_entries() {
  names const designs{"slab_bitmap", "scatter", "halloc", "throughput", "rw_malloc"};
  names const with_toolkit{"slab_bitmap", "scatter", "halloc", "throughput", "rw_malloc", "toolkit"};
  names const of_waves{"slab_bitmap", "scatter", "halloc"};
  names const quick_to_fill = without(designs, {"scatter"});  // which takes up to a minute
  std::string const few = "16,64,256,1024,4096";
  return {
      {"latency", with_toolkit, "--repeat 3 --sizes " + few, 10},
      {"burst", designs, "--repeat 3 --sizes " + few, 10},
      {"mixed", designs, "--repeat 3 --ranges 16-64,16-1024,16-4096", 6},
      {"scaling", designs, "--repeat 3 --sizes 16,256", 3},
      {"churn", designs, "--repeat 3", 3},
      {"two_phase", of_waves, "--repeat 2", 11},
      {"workers", of_waves, "--repeat 2 --sizes " + few + " --workers 2,32,512,16384", 31},
      {"exhaust", designs, "--repeat 1 --sizes " + few, 8},
      {"utilisation", quick_to_fill, "--repeat 1 --sizes " + few, 38},
      {"fragmentation", {"slab_bitmap", "halloc", "throughput"}, "--repeat 1 --left-shares 0.5,0.1,0.01", 3},
      {"fill_level", {"slab_bitmap", "halloc", "rw_malloc"}, "--levels 0.25,0.5 --kernels 32", 9},
      {"map", {"slab_bitmap"}, "", 1},
      {"long_churn", {"slab_bitmap"}, "--seconds 2", 3},
      {"placement", designs, "--repeat 3 --sizes 16,64,256", 8},
      {"crowd", {"slab_bitmap", "tbuddy"}, "--repeat 2", 7},
      {"prefix_sum", of_waves, "--repeat 3", 4},
      {"init", designs, "--repeat 3", 4},
  };
}

std::vector<suite_entry> full_entries(names const& all) {
  names const pooled = without(all, {"toolkit"});
  names const designs{"slab_bitmap", "halloc", "throughput", "rw_malloc"};
  return {
      {"latency", all, "--sizes 16,64,256,1024,4096,8192", 30},
      {"burst", pooled, "", 60},
      {"mixed", pooled, "", 60},
      {"scaling", pooled, "", 60},
      {"churn", pooled, "", 90},
      {"two_phase", pooled, "", 60},
      {"workers", pooled, "", 60},
      {"exhaust", pooled, "", 60},
      {"utilisation", pooled, "", 60},
      {"fill", pooled, "", 120},
      {"efficiency", designs, "--kernels 16", 120},
      {"fragmentation", pooled, "", 120},
      {"fill_level", designs, "--kernels 64", 90},
      {"map", designs, "", 30},
      {"long_churn", designs, "", 60},
      {"placement", pooled, "", 60},
      {"crowd", {"slab_bitmap", "tbuddy", "throughput"}, "--repeat 3", 30},
      {"prefix_sum", pooled, "", 30},
      {"init", pooled, "", 30},
      {"policy_overhead", {"slab_bitmap"}, "", 20},
      {"head_replacement", {"halloc"}, "", 20},
      {"bounds", {}, "", 10},
      {"growth", {}, "", 10},
      {"tracing", {}, "", 20},
      {"atomic", {}, "", 5},
      {"semaphore", {}, "", 20},
      {"collective_mutex", {}, "", 20},
      {"rcu_delegation", {}, "", 20},
      {"random_walk", {}, "", 20},
      {"instruction_latency", {}, "", 1},
      {"append", {}, "", 10},
      {"arena", {}, "", 10},
      {"hash_map", {}, "", 5},
  };
}

}  // namespace

std::vector<suite_entry> suite_entries(std::string const& suite, std::vector<std::string> const& all) {
  if (suite == "papers") return paper_entries();
  return suite == "quick" ? quick_entries() : full_entries(all);
}

}  // namespace warpheap::tool
