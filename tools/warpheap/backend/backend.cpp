// SPDX-License-Identifier: Apache-2.0
// The backend that this source is compiled for, as an object. Nowhere else does the tool
// distinguish a GPU from the host.
#include "allocators.hpp"
#include "parts.hpp"

#if defined(__CUDACC__)
#include "gpu_queries.hpp"
#else
#include <unistd.h>
#endif

namespace warpheap::tool {

inline namespace WARPHEAP_BACKEND { namespace {

/// What is the same on every backend.
class common_backend : public backend {
 public:
  std::vector<allocator_description> allocators() const override { return known_allocators::descriptions(); }
  std::vector<allocator_description> variants() const override { return paper_variants::descriptions(); }

  u32 device_count() const override { return static_cast<u32>(warpheap::backend::device_count()); }

 protected:
  part_map const& parts() const override { return registered_parts(); }
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
