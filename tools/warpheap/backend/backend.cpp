// SPDX-License-Identifier: Apache-2.0
// The backend that this source is compiled for, as an object. Nowhere else does the tool
// distinguish a GPU from the host.
#include <algorithm>

#include "bench/registry.hpp"
#include "cli/usage_error.hpp"
#include "workloads.hpp"

#if defined(__CUDACC__)
#include "gpu_queries.hpp"
#else
#include <unistd.h>
#endif

namespace warpheap::tool {

inline namespace WARPHEAP_BACKEND { namespace {

bench::scenario const& find_scenario(std::string const& name) {
  auto const& known = bench::registered_scenarios();
  auto const at = std::find_if(known.begin(), known.end(), [&](auto const& each) { return each.name == name; });
  if (at != known.end()) return *at;
  std::string names;
  for (auto const& each : known) names += (names.empty() ? "" : ", ") + each.name;
  throw usage_error{"no scenario is called '" + name + "'; there are: " + names};
}

/// What is the same on every backend.
class common_backend : public backend {
 public:
  std::vector<allocator_description> allocators() const override { return known_allocators::descriptions(); }
  std::vector<allocator_description> variants() const override { return paper_variants::descriptions(); }

  std::vector<bench::scenario> const& scenarios() const override { return bench::registered_scenarios(); }

  std::vector<bench::result> bench(std::string const& scenario, std::string const& allocator,
                                   bench::request const& asked) const override {
    auto const& chosen = find_scenario(scenario);
    return chosen.run ? chosen.run(allocator, asked) : std::vector<bench::result>{};
  }

  std::vector<bench::result> bench_floor(std::string const& scenario, bench::request const& asked) const override {
    auto const& chosen = find_scenario(scenario);
    return chosen.floor ? chosen.floor(asked) : std::vector<bench::result>{};
  }

  std::vector<verification> verify(std::string const& allocator, bench::request const& asked) const override {
    return run_verify(allocator, asked);
  }

  stress_row stress(std::string const& allocator, stress_request const& asked) const override {
    return run_stress(allocator, asked);
  }

  exploration_row explore(std::string const& allocator, exploration_request const& asked) const override {
    return run_exploration(allocator, asked);
  }

  std::unique_ptr<dynamic_graph> make_graph(std::string const& allocator, u64 pool_bytes, u32 vertices) const override {
    return make_dynamic_graph(allocator, pool_bytes, vertices);
  }

  u32 device_count() const override { return static_cast<u32>(warpheap::backend::device_count()); }

  std::vector<std::string> allocators_of_sets() const override { return WARPHEAP_BACKEND::allocators_of_sets(); }

  std::unique_ptr<dynamic_graph> make_set_graph(std::string const& allocator, u64 pool_bytes, u32 vertices,
                                                std::vector<int> const& devices) const override {
    return WARPHEAP_BACKEND::make_set_graph(allocator, pool_bytes, vertices, devices);
  }

  std::unique_ptr<dynamic_graph> make_traced_graph(u64 pool_bytes, u32 vertices) const override {
    return make_traced_dynamic_graph(pool_bytes, vertices);
  }

  pic_outcome pic(std::string const& allocator, pic_settings const& settings) const override {
    return run_pic(allocator, settings);
  }

  std::vector<bench::result> pic_capacity(std::string const& allocator, pic_settings const& settings) const override {
    return run_pic_capacity(allocator, settings);
  }

  std::vector<bench::result> join(std::string const& allocator, join_settings const& settings) const override {
    return run_join(allocator, settings);
  }

  bench::result replay(std::string const& allocator, replay_settings const& settings) const override {
    return run_replay(allocator, settings);
  }

  bench::result replay_floor(replay_settings const& settings) const override { return run_replay_floor(settings); }
};

#if defined(__CUDACC__)

class gpu_backend final : public common_backend {
 public:
  std::string name() const override { return "cuda"; }

  std::vector<device> devices() const override { return gpus(); }
  u64 memory_bytes() const override { return free_gpu_memory(); }
  std::string driver_version() const override { return cuda_driver_version(); }
  std::string runtime_version() const override { return cuda_runtime_version(); }

  void run_deterministically(u64) override {
    throw usage_error{"--deterministic: a GPU schedules its lanes as it likes; use --backend host"};
  }
};

#else

class cpu_backend final : public common_backend {
 public:
  std::string name() const override { return "host"; }
  std::vector<device> devices() const override { return {}; }
  u64 memory_bytes() const override {
    return static_cast<u64>(sysconf(_SC_PHYS_PAGES)) * static_cast<u64>(sysconf(_SC_PAGE_SIZE));
  }
  std::string driver_version() const override { return {}; }
  std::string runtime_version() const override { return {}; }

  void run_deterministically(u64 seed) override {
    run_.emplace(host::execution{.mode = host::execution_mode::deterministic, .seed = seed});
  }

 private:
  std::optional<host::scoped_execution> run_;
};

#endif

}}  // namespace WARPHEAP_BACKEND

#if defined(__CUDACC__)
std::unique_ptr<backend> make_cuda_backend() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
    cudaGetLastError();
    return nullptr;
  }
  return std::make_unique<gpu_backend>();
}
#else
std::unique_ptr<backend> make_host_backend() { return std::make_unique<cpu_backend>(); }
#endif

}  // namespace warpheap::tool
