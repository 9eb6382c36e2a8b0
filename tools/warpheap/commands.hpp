// The subcommands. Each takes what was typed, as text and flags, does the work and returns the exit
// status: 0 when all is well, 1 when a check of results failed. Bad usage and bad input are
// usage_error.
#pragma once

#include <string>
#include <vector>

#include "backend/backend.hpp"

namespace warpheap::tool {

/// Flags of every subcommand that runs something. Text is as typed; empty means the default.
struct common_flags {
  std::string backend;
  std::string allocators;
  std::string pool;
  std::string seed;
  std::string json;
  bool deterministic = false;
};

struct graph_flags {
  common_flags common;
  std::string input;
  std::string scale;
  std::string edge_factor;
  std::string rounds = "4";
  std::string batch_size;
  bool replace = false;
  bool undirected = false;
  bool drop_self_loops = false;
};

struct bench_flags {
  common_flags common;
  std::vector<std::string> scenarios;
  std::string sizes;
  std::string ranges;
  std::string threads;
  std::string workers;
  std::string thread_blocks;
  std::string batch;
  std::string batch_ns;
  std::string readers_per_writer;
  std::string divergence;
  std::string allocate_shares;
  std::string free_shares;
  std::string levels;
  std::string left_shares;
  std::string page_shares;
  std::string kernels;
  std::string seconds;
  std::string rounds;
  std::string repeat;
};

struct verify_flags {
  common_flags common;
  std::string sizes;
  std::string ranges;
  std::string threads;
  std::string repeat = "2";
};

struct pic_flags {
  common_flags common;
  std::string cells;
  std::string particles_per_cell;
  std::string species;
  std::string steps;
  std::string frame_bytes = "8192";
  std::string repeat;
  bool find_capacity = false;
};

struct join_flags {
  common_flags common;
  std::string build;
  std::string probe;
  std::string tuples;
  std::string probe_tuples;
  std::string match;
  std::string skew;
  std::string page_bytes = "256";
  std::string chains = "warp";
  std::string partition_bits;
  std::string output;
  std::string repeat = "3";
};

int run_info(common_flags const& flags);
int run_graph(graph_flags const& flags);
int run_bench(bench_flags const& flags);
int run_verify(verify_flags const& flags);
int run_pic(pic_flags const& flags);
int run_join(join_flags const& flags);

/// The most threads that a flag takes.
inline constexpr u64 most_threads = u64{1} << 26;

}  // namespace warpheap::tool
