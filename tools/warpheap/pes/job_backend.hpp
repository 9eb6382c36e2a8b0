// SPDX-License-Identifier: Apache-2.0
// The CUDA backend of a process of an NVSHMEM job. It has the dynamic graph, and nothing else of
// what the tool runs.
#pragma once

#include <cstdlib>
#include <functional>
#include <numeric>

#include "backend/allocators.hpp"
#include "backend/gpu_queries.hpp"
#include "launcher.hpp"
#include "pes_graph.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND {

using job_allocators = entry_list<entry<symmetric_allocator, "slabs of one size class in symmetric memory">>;

/// All PEs make one, once NVSHMEM has started.
class job_backend final : public backend {
 public:
  job_backend() : memory_bytes_{share_of_memory()} {}

  std::string name() const override { return "cuda"; }
  std::optional<process_place> process() const override {
    return process_place{static_cast<u32>(nvshmem_my_pe()), static_cast<u32>(nvshmem_n_pes())};
  }
  std::vector<device> devices() const override { return gpus(); }
  u32 device_count() const override { return static_cast<u32>(warpheap::backend::device_count()); }
  /// On every PE what the one with least has, if the PEs of a device share its free memory.
  u64 memory_bytes() const override { return memory_bytes_; }
  std::string driver_version() const override { return cuda_driver_version(); }
  std::string runtime_version() const override { return cuda_runtime_version(); }
  std::vector<allocator_description> allocators() const override { return job_allocators::descriptions(); }
  void run_deterministically(u64) override {
    throw usage_error{"--deterministic: a GPU schedules its lanes as it likes; use --backend host"};
  }

 protected:
  part_map const& parts() const override {
    static part_map const all{{typeid(graph_job), graph_job{make_graph, no_trace}},
                              {typeid(set_graph_job), set_graph_job{no_sets, nullptr}}};
    return all;
  }

 private:
  /// Throws usage_error, out_of_memory or std::invalid_argument on every PE.
  static std::unique_ptr<dynamic_graph> make_graph(std::string const& allocator, u64 pool_bytes, u32 vertices) {
    return job_allocators::visit(allocator, [&](auto entry) -> std::unique_ptr<dynamic_graph> {
      return std::make_unique<graph::pes_graph<typename decltype(entry)::allocator_type>>(pool_bytes, vertices);
    });
  }

  static std::unique_ptr<dynamic_graph> no_trace(u64, u32) {
    throw usage_error{"--trace: the processes of a job record nothing"};
  }
  static std::vector<std::string> no_sets() { return {}; }

  static u64 share_of_memory() {
    auto const devices =
        gather_from_pes(std::hash<std::string>{}(graph::host_name() + warpheap::backend::device_name()));
    auto const mine = devices[static_cast<size_t>(nvshmem_my_pe())];
    auto const sharing = static_cast<u64>(std::count(devices.begin(), devices.end(), mine));
    nvshmem_barrier_all();  // no PE takes memory before all have looked
    auto const shares = gather_from_pes(free_gpu_memory() / sharing);
    return *std::min_element(shares.begin(), shares.end());
  }

  u64 memory_bytes_;
};

}}  // namespace warpheap::tool::WARPHEAP_BACKEND
