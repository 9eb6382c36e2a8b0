// SPDX-License-Identifier: Apache-2.0
// Options of several scenarios.
#pragma once

#include "cli/numbers.hpp"
#include "request.hpp"

namespace warpheap::bench {

/// Each worker has sixteen blocks that live at a time.
inline constexpr u64 most_workers = u64{1} << 22;

/// Parses a number in [Least, Most].
template <class Value, u64 Least, u64 Most>
std::any count_of(char const* name, std::string const& typed, option_bounds const&) {
  return static_cast<Value>(tool::parse_count(name, typed, Least, Most));
}
/// Parses numbers in [1, Most].
template <u64 Most>
std::any counts_of(char const* name, std::string const& typed, option_bounds const&) {
  std::vector<u64> numbers;
  for (auto const& part : tool::split_list(name, typed)) numbers.push_back(tool::parse_count(name, part, 1, Most));
  return numbers;
}
/// Parses shares in [`least`, `most`].
inline std::vector<double> shares_of(char const* name, std::string const& typed, double least, double most) {
  std::vector<double> shares;
  for (auto const& part : tool::split_list(name, typed)) shares.push_back(tool::parse_real(name, part, least, most));
  return shares;
}

namespace options {

inline constexpr option<std::vector<u64>> sizes{
    {.name = "--sizes",
     .rank = 10,
     .type = "SIZE[,SIZE...]",
     .text = "Sizes that are asked for; LEAST-MOST:STEP stands for all sizes of these steps, as in 8-3072:8",
     .parse = [](char const*, std::string const& typed, option_bounds const& bounds) -> std::any {
       return tool::parse_sizes(typed, bounds.pool_bytes);
     }}};

inline constexpr option<std::vector<size_range>> ranges{
    {.name = "--ranges",
     .rank = 20,
     .type = "SIZE-SIZE[,SIZE-SIZE...]",
     .text = "Ranges from which each call draws its size",
     .parse = [](char const*, std::string const& typed, option_bounds const& bounds) -> std::any {
       return tool::parse_ranges(typed, bounds.pool_bytes);
     }}};

inline constexpr option<u64> threads{{.name = "--threads",
                                      .rank = 30,
                                      .type = "N",
                                      .text = "Threads, with their default on a GPU; on the host there are fewer",
                                      .parse = count_of<u64, 1, tool::most_threads>}};

inline constexpr option<std::vector<u64>> workers{
    {.name = "--workers",
     .rank = 40,
     .type = "N[,N...]",
     .text = "Numbers of threads, with their defaults on a GPU; on the host there are fewer",
     .parse = counts_of<most_workers>}};

inline constexpr option<std::vector<u64>> thread_blocks{{.name = "--thread-blocks",
                                                         .rank = 50,
                                                         .type = "N[,N...]",
                                                         .text = "Threads of a thread block",
                                                         .parse = counts_of<1024>}};

/// Shares of the pool, of at least a thousandth. More than 1 asks for more than there is.
inline constexpr option<std::vector<double>> levels{
    {.name = "--levels",
     .rank = 120,
     .type = "SHARE[,SHARE...]",
     .text = "Shares of the pool that are asked for",
     .parse = [](char const* name, std::string const& typed, option_bounds const&) -> std::any {
       return shares_of(name, typed, 0.001, 8);
     }}};

/// Each kernel has a time in the results.
inline constexpr option<u64> kernels{
    {.name = "--kernels", .rank = 150, .type = "N", .text = "Length of a run", .parse = count_of<u64, 1, 10'000'000>}};

inline constexpr option<u32> rounds{{.name = "--rounds",
                                     .rank = 190,
                                     .type = "N",
                                     .text = "Rounds",
                                     .parse = count_of<u32, 1, 1'000'000>,
                                     .initial = "64"}};

}  // namespace options

/// A range for each of the sizes, and then the ranges.
inline std::vector<size_range> sizes_and_ranges(request const& asked) {
  std::vector<size_range> all;
  for (u64 const bytes : asked[options::sizes]) all.push_back({bytes, bytes});
  for (auto const& range : asked[options::ranges]) all.push_back(range);
  return all;
}

}  // namespace warpheap::bench
