// SPDX-License-Identifier: Apache-2.0
// What the tool asks of a backend: plain data in, plain data out, so that parsing, JSON and tables
// are compiled once, and never by a GPU compiler. Sources in a folder called backend/ and those of
// bench/scenarios/ are compiled once for each backend; backend.cpp gives one object of class
// `backend` each.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/scenario.hpp"
#include "workloads/explore/settings.hpp"
#include "workloads/graph/dynamic_graph.hpp"
#include "workloads/join/settings.hpp"
#include "workloads/pic/settings.hpp"
#include "workloads/replay/settings.hpp"
#include "workloads/stress/settings.hpp"
#include "workloads/verify/verification.hpp"

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
  /// Configurations of papers, for verify(), pic(), pic_capacity() and the scenarios that measure
  /// them.
  virtual std::vector<allocator_description> variants() const { return {}; }
  /// From now on one lane runs at a time, in an order that depends on the seed alone. Throws
  /// usage_error on a backend that cannot do that.
  virtual void run_deterministically(u64 seed) = 0;

  /// What `bench` measures, in the order of lists.
  virtual std::vector<bench::scenario> const& scenarios() const = 0;
  /// The scenario's rows of one allocator; none of a scenario that measures no allocators.
  virtual std::vector<bench::result> bench(std::string const& scenario, std::string const& allocator,
                                           bench::request const& asked) const = 0;
  /// The scenario's rows without an allocator, if it has any: a floor, or primitives.
  virtual std::vector<bench::result> bench_floor(std::string const& scenario, bench::request const& asked) const = 0;
  virtual std::vector<verification> verify(std::string const& allocator, bench::request const& asked) const = 0;
  /// Rounds of random calls on one heap, and what was wrong with their results.
  virtual stress_row stress(std::string const& allocator, stress_request const& asked) const = 0;
  /// Tries schedules. Throws usage_error on a backend that cannot choose them.
  virtual exploration_row explore(std::string const& allocator, exploration_request const& asked) const = 0;
  virtual std::unique_ptr<dynamic_graph> make_graph(std::string const& allocator, u64 pool_bytes,
                                                    u32 vertices) const = 0;
  /// Names of the allocators that make_set_graph() takes.
  virtual std::vector<std::string> allocators_of_sets() const = 0;
  /// A graph in a heap set with a member on each of these devices, which may name one twice. Throws
  /// cuda_error if one device cannot reach another.
  virtual std::unique_ptr<dynamic_graph> make_set_graph(std::string const& allocator, u64 pool_bytes, u32 vertices,
                                                        std::vector<int> const& devices) const = 0;
  /// A graph on the default allocator whose calls are recorded.
  virtual std::unique_ptr<dynamic_graph> make_traced_graph(u64 pool_bytes, u32 vertices) const = 0;
  virtual pic_outcome pic(std::string const& allocator, pic_settings const& settings) const = 0;
  /// How many particles one species can have: a row for each number of species up to the one given.
  virtual std::vector<bench::result> pic_capacity(std::string const& allocator, pic_settings const& settings) const = 0;
  /// Times of whole joins, of their part that allocates, and of freeing.
  virtual std::vector<bench::result> join(std::string const& allocator, join_settings const& settings) const = 0;
  /// The calls of a trace, made again.
  virtual bench::result replay(std::string const& allocator, replay_settings const& settings) const = 0;
  /// The floor of a replay: its kernels without an allocator.
  virtual bench::result replay_floor(replay_settings const& settings) const = 0;
};

std::unique_ptr<backend> make_host_backend();
/// Null if the machine has no device that it can use. Only in a program that has the CUDA backend.
std::unique_ptr<backend> make_cuda_backend();

}  // namespace warpheap::tool
