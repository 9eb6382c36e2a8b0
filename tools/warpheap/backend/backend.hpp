// What the tool asks of a backend: plain data in, plain data out, so that parsing, JSON and tables
// are compiled once, and never by a GPU compiler. backend/*.cpp is compiled once for each backend
// and gives one object of class `backend` each.
#pragma once

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/scenario.hpp"

namespace warpheap::tool {

/// Bad usage or bad input: exit status 2. The message is one line that names what was given and
/// what is wrong with it.
struct usage_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

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

/// Edges of one batch, grouped by their first vertex: group i is `targets[first[i]] …
/// targets[first[i + 1]]` of vertex `vertices[i]`, ascending and without duplicates. Each vertex
/// has one group.
struct edge_groups {
  std::vector<u32> vertices;
  std::vector<u32> first{0};
  std::vector<u32> targets;
};

/// What a dynamic graph's kernels did since it was made.
struct graph_counts {
  u64 mallocs = 0;   ///< blocks handed out: by malloc, and by realloc when the block moved
  u64 frees = 0;     ///< blocks given back, likewise
  u64 failures = 0;  ///< calls that returned nullptr
  u64 lost = 0;      ///< adjacency entries that found no room
  u64 inserted = 0;  ///< adjacency entries
  u64 erased = 0;
  /// usable bytes of live blocks, or the bytes asked for where the allocator cannot tell
  u64 live_bytes = 0;
  double seconds = 0;  ///< of device work: kernels, without copies to and from the host
};

/// All adjacency lists: vertex v's neighbours are `targets[first[v]] … targets[first[v + 1]]`.
struct adjacency_lists {
  std::vector<u64> first;
  std::vector<u32> targets;
};

/// A graph in device memory, each adjacency list a block of one heap. Edges are directed.
class dynamic_graph {
 public:
  virtual ~dynamic_graph() = default;
  /// Inserts the edges that are not there yet.
  virtual void insert(edge_groups const& batch) = 0;
  /// Erases the edges that are there.
  virtual void erase(edge_groups const& batch) = 0;
  virtual graph_counts counts() const = 0;
  virtual adjacency_lists read() const = 0;
  /// What is wrong with the heap, or contradicts the counts; empty if nothing is.
  virtual std::string fault() const = 0;
  /// Frees every list. After that, fault() also finds blocks that were lost.
  virtual void clear() = 0;
};

/// One fill of a heap in `verify`.
struct verification {
  std::string allocator = {};
  u64 least_bytes = 0;
  u64 most_bytes = 0;
  u64 blocks = 0;
  u64 bytes = 0;
  u64 failures = 0;
  u64 damaged = 0;
  u64 misaligned = 0;
  bool counts_slots = false;
  u64 slots_before = 0;
  u64 slots_after = 0;
  double seconds = 0;
  std::string fault = {};
  std::string skipped = {};  ///< why the heap was not filled; empty if it was

  bool verified() const { return fault.empty(); }
};

/// One particle-in-cell simulation.
struct pic_settings {
  u32 cells_x = 32, cells_y = 32;  ///< powers of two
  u32 particles_per_cell = 8;      ///< of each species
  u32 species = 2;
  u32 steps = 10;
  u64 frame_bytes = 8192;
  u64 pool_bytes = 0;
  u64 seed = 1;
  u32 repeat = 1;
  bench::progress report = [](std::string const&, u64, u64) {};
};

/// The outcome: the times of whole steps and of their part that allocates.
struct pic_outcome {
  std::vector<bench::result> results = {};
  u64 state = 0;  ///< a checksum of all particles at the end: the same for all allocators
};

/// A table of a join, by columns of the same length.
struct join_table {
  std::vector<u32> keys = {}, payloads = {};

  u64 tuples() const { return keys.size(); }
};

/// A result of a join as a checksum that does not depend on the order of its tuples.
struct join_sum {
  u64 tuples = 0;
  u64 checksum = 0;

  friend bool operator==(join_sum const&, join_sum const&) = default;
};

/// Rows of a join's result, by columns of the same length.
struct join_rows {
  std::vector<u32> keys = {}, build_payloads = {}, probe_payloads = {};
};

/// One hash join. The tables outlive it.
struct join_settings {
  join_table const* build = nullptr;
  join_table const* probe = nullptr;
  join_sum expected = {};  ///< the result that is expected
  u64 page_bytes = 256;    ///< of the output
  u32 lanes_a_chain = 32;  ///< lanes that share a chain of pages: a whole warp, or 1
  u32 partition_bits = 0;  ///< both tables are cut into 2^partition_bits partitions
  u64 pool_bytes = 0;
  u32 repeat = 3;
  bench::progress report = [](std::string const&, u64, u64) {};
  /// If set, it is given every row of the last round's result once, in batches and in no order.
  std::function<void(join_rows const&)> take_rows = {};
};

/// The name under which join() takes its pages from an array in its order, and from no allocator.
inline constexpr char const* direct_output = "direct";
/// Direct output in which the lanes of a warp that take a page together make one addition.
inline constexpr char const* direct_output_by_warp = "direct_warp";
/// Names that only join() knows: the random walks with pages of 256 bytes, as Pham et al. 2022
/// joined. rw, rw_bitmap and corw have pages of 8 KiB.
inline constexpr char const* join_walks[] = {"rw_256", "rw_bitmap_256", "corw_256"};

class backend {
 public:
  virtual ~backend() = default;
  virtual std::string name() const = 0;
  /// GPUs that kernels can run on; none on the host backend.
  virtual std::vector<device> devices() const = 0;
  /// Memory that a pool can be made of: the device's, or this machine's.
  virtual u64 memory_bytes() const = 0;
  /// Versions of the driver's interface and of the runtime; empty where there is none.
  virtual std::string driver_version() const = 0;
  virtual std::string runtime_version() const = 0;
  virtual std::vector<allocator_description> allocators() const = 0;
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
  virtual std::unique_ptr<dynamic_graph> make_graph(std::string const& allocator, u64 pool_bytes,
                                                    u32 vertices) const = 0;
  virtual pic_outcome pic(std::string const& allocator, pic_settings const& settings) const = 0;
  /// How many particles one species can have: a row for each number of species up to the one given.
  virtual std::vector<bench::result> pic_capacity(std::string const& allocator, pic_settings const& settings) const = 0;
  /// Times of whole joins, of their part that allocates, and of freeing.
  virtual std::vector<bench::result> join(std::string const& allocator, join_settings const& settings) const = 0;
};

std::unique_ptr<backend> make_host_backend();
/// Null if the machine has no device that it can use. Only in a program that has the CUDA backend.
std::unique_ptr<backend> make_cuda_backend();

}  // namespace warpheap::tool
