// The jobs of a backend, each in a source of its own because each is compiled for every allocator.
#pragma once

#include "allocators.hpp"

namespace warpheap::tool {
inline namespace WARPHEAP_BACKEND {

std::vector<bench::result> run_burst(std::string const& allocator, bench::request const& asked);
std::vector<bench::result> run_mixed(std::string const& allocator, bench::request const& asked);
std::vector<bench::result> run_churn(std::string const& allocator, bench::request const& asked);
std::vector<bench::result> run_long_churn(std::string const& allocator, bench::request const& asked);
std::vector<bench::result> run_fill(std::string const& allocator, bench::request const& asked);
std::vector<bench::result> run_fill_level(std::string const& allocator, bench::request const& asked);
std::vector<bench::result> run_exhaust(std::string const& allocator, bench::request const& asked);
std::vector<bench::result> run_utilisation(std::string const& allocator, bench::request const& asked);
std::vector<bench::result> run_fragmentation(std::string const& allocator, bench::request const& asked);
std::vector<bench::result> run_latency(std::string const& allocator, bench::request const& asked);
std::vector<bench::result> run_init(std::string const& allocator, bench::request const& asked);
std::vector<bench::result> run_workers(std::string const& allocator, bench::request const& asked);
std::vector<bench::result> run_policy_overhead(std::string const& allocator, bench::request const& asked);
std::vector<bench::result> run_two_phase(std::string const& allocator, bench::request const& asked);
std::vector<bench::result> run_head_replacement(std::string const& allocator, bench::request const& asked);
std::vector<bench::result> run_scaling(std::string const& allocator, bench::request const& asked);
std::vector<bench::result> run_prefix_sum(std::string const& allocator, bench::request const& asked);
std::vector<bench::result> run_prefix_sum_floor(bench::request const& asked);
std::vector<bench::result> run_burst_floor(bench::request const& asked);
std::vector<bench::result> run_mixed_floor(bench::request const& asked);
std::vector<bench::result> run_crowd(std::string const& allocator, bench::request const& asked);
std::vector<bench::result> run_placement(std::string const& allocator, bench::request const& asked);
std::vector<bench::result> run_placement_floor(bench::request const& asked);
std::vector<bench::result> run_bounds(bench::request const& asked);
std::vector<bench::result> run_semaphore(bench::request const& asked);
std::vector<bench::result> run_collective_mutex(bench::request const& asked);
std::vector<bench::result> run_atomic(bench::request const& asked);
std::vector<bench::result> run_random_walk(bench::request const& asked);
std::vector<bench::result> run_rcu_delegation(bench::request const& asked);

std::vector<verification> run_verify(std::string const& allocator, bench::request const& asked);
pic_outcome run_pic(std::string const& allocator, pic_settings const& settings);
std::vector<bench::result> run_pic_capacity(std::string const& allocator, pic_settings const& settings);
std::vector<bench::result> run_join(std::string const& allocator, join_settings const& settings);
std::unique_ptr<dynamic_graph> make_dynamic_graph(std::string const& allocator, u64 pool_bytes, u32 vertices);

}  // namespace WARPHEAP_BACKEND
}  // namespace warpheap::tool
