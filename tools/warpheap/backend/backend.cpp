// The backend that this source is compiled for, as an object. Nowhere else does the tool
// distinguish a GPU from the host.
#include "work.hpp"

#if defined(__CUDACC__)
#include <cuda_runtime_api.h>
#else
#include <unistd.h>
#endif

namespace warpheap::tool {

inline namespace WARPHEAP_BACKEND {
namespace {

using run_function = std::vector<bench::result> (*)(std::string const&, bench::request const&);
using floor_function = std::vector<bench::result> (*)(bench::request const&);

struct scenario {
  char const* name;
  run_function run;  ///< null: all rows are those of `floor`
  floor_function floor = nullptr;
};

constexpr scenario scenario_list[] = {{"burst", run_burst, run_burst_floor},
                                      {"mixed", run_mixed, run_mixed_floor},
                                      {"churn", run_churn},
                                      {"long_churn", run_long_churn},
                                      {"fill", run_fill},
                                      {"fill_level", run_fill_level},
                                      {"exhaust", run_exhaust},
                                      {"utilisation", run_utilisation},
                                      {"fragmentation", run_fragmentation},
                                      {"latency", run_latency},
                                      {"init", run_init},
                                      {"workers", run_workers},
                                      {"policy_overhead", run_policy_overhead},
                                      {"two_phase", run_two_phase},
                                      {"scaling", run_scaling},
                                      {"head_replacement", run_head_replacement},
                                      {"prefix_sum", run_prefix_sum, run_prefix_sum_floor},
                                      {"crowd", run_crowd},
                                      {"placement", run_placement, run_placement_floor},
                                      {"bounds", nullptr, run_bounds},
                                      {"semaphore", nullptr, run_semaphore},
                                      {"rcu_delegation", nullptr, run_rcu_delegation},
                                      {"collective_mutex", nullptr, run_collective_mutex},
                                      {"atomic", nullptr, run_atomic},
                                      {"random_walk", nullptr, run_random_walk}};

scenario const& find_scenario(std::string const& name) {
  std::string names;
  for (auto const& known : scenario_list) {
    if (name == known.name) return known;
    names += (names.empty() ? "" : ", ") + std::string{known.name};
  }
  throw usage_error{"no scenario is called '" + name + "'; there are: " + names};
}

/// What is the same on every backend.
class common_backend : public backend {
 public:
  std::vector<allocator_description> allocators() const override { return known_allocators::descriptions(); }

  std::vector<std::string> scenarios() const override {
    std::vector<std::string> names;
    for (auto const& known : scenario_list) names.push_back(known.name);
    return names;
  }

  bool measures_allocators(std::string const& scenario) const override { return find_scenario(scenario).run; }

  std::vector<bench::result> bench(std::string const& scenario, std::string const& allocator,
                                   bench::request const& asked) const override {
    auto const run = find_scenario(scenario).run;
    return run ? run(allocator, asked) : std::vector<bench::result>{};
  }

  std::vector<bench::result> bench_floor(std::string const& scenario, bench::request const& asked) const override {
    auto const floor = find_scenario(scenario).floor;
    return floor ? floor(asked) : std::vector<bench::result>{};
  }

  std::vector<verification> verify(std::string const& allocator, bench::request const& asked) const override {
    return run_verify(allocator, asked);
  }

  std::unique_ptr<dynamic_graph> make_graph(std::string const& allocator, u64 pool_bytes, u32 vertices) const override {
    return make_dynamic_graph(allocator, pool_bytes, vertices);
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
};

#if defined(__CUDACC__)

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

class cuda_backend final : public common_backend {
 public:
  std::string name() const override { return "cuda"; }

  std::vector<device> devices() const override {
    int count = 0;
    cuda::check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
    std::vector<device> made;
    for (int i = 0; i < count; ++i) {
      cudaDeviceProp properties;
      cuda::check(cudaGetDeviceProperties(&properties, i), "cudaGetDeviceProperties");
      made.push_back({properties.name, properties.totalGlobalMem, static_cast<u32>(properties.multiProcessorCount),
                      std::to_string(properties.major) + "." + std::to_string(properties.minor)});
    }
    return made;
  }

  u64 memory_bytes() const override {
    size_t free = 0, total = 0;
    cuda::check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    return free;
  }

  std::string driver_version() const override {
    int version = 0;
    cuda::check(cudaDriverGetVersion(&version), "cudaDriverGetVersion");
    return version_text(version);
  }

  std::string runtime_version() const override {
    int version = 0;
    cuda::check(cudaRuntimeGetVersion(&version), "cudaRuntimeGetVersion");
    return version_text(version);
  }

  void run_deterministically(u64) override {
    throw usage_error{"--deterministic: a GPU schedules its lanes as it likes; use --backend host"};
  }
};

#else

class host_backend final : public common_backend {
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

}  // namespace
}  // namespace WARPHEAP_BACKEND

#if defined(__CUDACC__)
std::unique_ptr<backend> make_cuda_backend() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
    cudaGetLastError();
    return nullptr;
  }
  return std::make_unique<cuda_backend>();
}
#else
std::unique_ptr<backend> make_host_backend() { return std::make_unique<host_backend>(); }
#endif

}  // namespace warpheap::tool
