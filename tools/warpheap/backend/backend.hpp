// SPDX-License-Identifier: Apache-2.0
// A backend as the rest of the program sees it: devices, allocators, and parts. A part is what a
// source that is compiled once a backend offers to code that is compiled once: a struct of
// functions, or the list of scenarios. It is declared beside the settings of these functions.
#pragma once

#include <any>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <typeindex>
#include <vector>

#include "cli/usage_error.hpp"
#include "warpheap/platform/types.hpp"

namespace warpheap::tool {

/// A GPU.
struct device {
  std::string name;
  u64 memory_bytes = 0;
  u32 multiprocessors = 0;
  std::string compute_capability;
};

/// An allocator that `--allocator` takes.
struct allocator_description {
  std::string name;
  std::string text;
  u64 largest_bytes;  ///< of a block
};

/// Which process this is of a job of several.
struct process_place {
  u32 rank, size;
};

class backend {
 public:
  virtual ~backend() = default;
  virtual std::string name() const = 0;
  /// The job's processes all make the same calls. None if this process is on its own.
  virtual std::optional<process_place> process() const { return std::nullopt; }
  /// GPUs that kernels can run on; none on the host backend.
  virtual std::vector<device> devices() const = 0;
  /// Devices that a job on several may name, from 0 on. The host backend has one, itself.
  virtual u32 device_count() const = 0;
  /// Memory that a pool can be made of: the device's, or this machine's.
  virtual u64 memory_bytes() const = 0;
  /// Versions of the driver's interface and of the runtime; empty where there is none.
  virtual std::string driver_version() const = 0;
  virtual std::string runtime_version() const = 0;
  virtual std::vector<allocator_description> allocators() const = 0;
  /// Configurations of papers.
  virtual std::vector<allocator_description> variants() const { return {}; }
  /// From now on one lane runs at a time, in an order that depends on the seed alone. Throws
  /// usage_error on a backend that cannot do that.
  virtual void run_deterministically(u64 seed) = 0;

  template <class Part>
  Part const& part() const {
    auto const& all = parts();
    auto const at = all.find(typeid(Part));
    if (at == all.end()) throw usage_error{"this program has no such part on the " + name() + " backend"};
    return std::any_cast<Part const&>(at->second);
  }

 protected:
  using part_map = std::map<std::type_index, std::any>;
  virtual part_map const& parts() const = 0;
};

std::unique_ptr<backend> make_host_backend();
/// Null if the machine has no device that it can use. Only in a program that has the CUDA backend.
std::unique_ptr<backend> make_cuda_backend();

}  // namespace warpheap::tool
