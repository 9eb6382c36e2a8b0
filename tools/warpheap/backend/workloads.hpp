// SPDX-License-Identifier: Apache-2.0
// The jobs of a backend beside the scenarios of `bench`. Each has a source of its own, because each
// is compiled for every allocator.
#pragma once

#include "allocators.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND {

std::vector<verification> run_verify(std::string const& allocator, bench::request const& asked);
stress_row run_stress(std::string const& allocator, stress_request const& asked);
exploration_row run_exploration(std::string const& allocator, exploration_request const& asked);
pic_outcome run_pic(std::string const& allocator, pic_settings const& settings);
std::vector<bench::result> run_pic_capacity(std::string const& allocator, pic_settings const& settings);
bench::result run_replay(std::string const& allocator, replay_settings const& settings);
bench::result run_replay_floor(replay_settings const& settings);
std::vector<bench::result> run_join(std::string const& allocator, join_settings const& settings);
std::unique_ptr<dynamic_graph> make_dynamic_graph(std::string const& allocator, u64 pool_bytes, u32 vertices);
/// Names of the allocators that a heap set can have.
std::vector<std::string> allocators_of_sets();
/// A graph in a heap of `pool_bytes` on each of these devices.
std::unique_ptr<dynamic_graph> make_set_graph(std::string const& allocator, u64 pool_bytes, u32 vertices,
                                              std::vector<int> const& devices);
std::unique_ptr<dynamic_graph> make_traced_dynamic_graph(u64 pool_bytes, u32 vertices);

}}  // namespace warpheap::tool::WARPHEAP_BACKEND
