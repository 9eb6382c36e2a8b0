// SPDX-License-Identifier: Apache-2.0
// Entries by paper, in the order of its figures. A file is named after what it shows: one scenario
// has several, since options hold for a whole file. Seconds follow from times in bench/results: a
// row's kernels, times the rounds that warm up and check.
#include "paper_suite.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "workloads/join/reference.hpp"
#include "workloads/join/settings.hpp"
#include "workloads/join/tables.hpp"
#include "workloads/pic/settings.hpp"

namespace warpheap::tool {

namespace {

using names = std::vector<std::string>;
using numbers = std::vector<u64>;
using bench::powers;

constexpr u64 mebibyte = u64{1} << 20, gibibyte = u64{1} << 30;

std::string list(numbers const& all) { return fmt::format("{}", fmt::join(all, ",")); }

/// `step`, 2 * `step`, … up to `last`.
numbers multiples(u64 step, u64 last) {
  numbers all;
  for (u64 each = step; each <= last; each += step) all.push_back(each);
  return all;
}

/// Thread blocks over which Gelado and Garland take means.
std::string all_shapes() { return list(powers(1, 1024)); }

/// The thesis's footnote 1 of section 5.1.1.
numbers worker_counts() {
  return {2,    4,    6,    8,    12,   16,   20,   24,   28,   32,   40,   48,    56,    64,    80,
          96,   128,  160,  192,  224,  256,  320,  384,  448,  512,  640,  768,   896,   1024,  1280,
          1536, 1792, 2048, 2560, 3072, 3584, 4096, 5120, 6144, 7168, 8192, 10240, 12288, 14336, 16384};
}

/// Every count to 64, and from there on counts that are mostly no multiple of a warp.
numbers dense_worker_counts() {
  numbers all;
  for (u64 count = 1; count <= 64; ++count) all.push_back(count);
  for (u64 count = 64 + 185; count <= 16640; count += 185) all.push_back(count);
  return all;
}

/// A simulation of `warpheap pic`; all allocators must end in the same state.
suite_entry pic_entry(std::string name, names allocators, pic_settings settings, double seconds) {
  auto const state = std::make_shared<std::optional<u64>>();
  suite_entry entry{"pic", std::move(allocators), "--pool " + std::to_string(settings.pool_bytes), seconds,
                    std::move(name)};
  entry.workload = [=](backend const& on, std::string const& allocator, bench::request const& asked) {
    auto here = settings;
    if (on.name() == "host") {
      here.cells_x = 32, here.cells_y = 8;
      here.particles_per_cell = here.steps = 2;
    }
    here.pool_bytes = asked.pool_bytes;
    here.seed = asked.seed;
    here.report = [&](std::string const& task, u64 done, u64 total) { asked.proceed(task, done, total); };
    auto made = on.part<pic_job>().run(allocator, here);
    if (!state->has_value()) *state = made.state;
    if (*state != made.state)
      for (auto& row : made.results) row.fault = "the particles end in another state than with the first allocator";
    return made.results;
  };
  return entry;
}

suite_entry capacity_entry(std::string name, names allocators, u32 species, u64 pool_bytes, double seconds) {
  suite_entry entry{"pic", std::move(allocators), "--pool " + std::to_string(pool_bytes), seconds, std::move(name)};
  entry.workload = [=](backend const& on, std::string const& allocator, bench::request const& asked) {
    return on.part<pic_job>().capacities(
        allocator, {.species = on.name() == "host" ? 2 : species, .pool_bytes = asked.pool_bytes});
  };
  return entry;
}

/// Joins of tables of these many tuples each, with chains of pages for each warp and for each lane.
suite_entry join_entry(std::string name, names allocators, numbers tuples, u64 pool_bytes, double seconds) {
  struct input {
    join_tables tables;
    join_sum expected;
  };
  auto const made = std::make_shared<std::map<u64, input>>();
  auto const input_of = [=](u64 count, u64 seed) -> input const& {
    auto& found = (*made)[count];
    if (found.tables.build.tuples() == 0) {
      found.tables = make_join_tables({.build_tuples = count, .probe_tuples = count, .seed = seed});
      found.expected = reference_join(found.tables.build, found.tables.probe);
    }
    return found;
  };
  suite_entry entry{"join", std::move(allocators), "--pool " + std::to_string(pool_bytes), seconds, std::move(name)};
  entry.workload = [=](backend const& on, std::string const& allocator, bench::request const& asked) {
    std::vector<bench::result> rows;
    for (u64 const count : on.name() == "host" ? numbers{1000} : tuples)
      for (u32 const lanes : {join_settings{}.lanes_a_chain, 1u}) {
        auto const& [tables, expected] = input_of(count, asked.seed);
        join_settings settings{.build = &tables.build, .probe = &tables.probe, .expected = expected};
        settings.lanes_a_chain = lanes;
        settings.partition_bits = default_partition_bits(count);
        settings.pool_bytes = asked.pool_bytes;
        settings.report = [&](std::string const& task, u64 done, u64 total) { asked.proceed(task, done, total); };
        for (auto& row : on.part<join_job>().run(allocator, settings)) rows.push_back(std::move(row));
      }
    return rows;
  };
  return entry;
}

template <class Value>
std::vector<Value> joined(std::vector<Value> list, std::vector<Value> const& more) {
  list.insert(list.end(), more.begin(), more.end());
  return list;
}

std::vector<suite_entry> eckert_entries() {
  names const scatters{"scatter_original", "scatter", "slab_bitmap", "ring_buffer"};
  pic_settings const small{.cells_x = 512, .cells_y = 512, .particles_per_cell = 25, .pool_bytes = 8 * gibibyte};
  auto long_run = small, large = small, of_toolkit = small;
  long_run.steps = 1600;
  large.cells_x = large.cells_y = 1024;
  large.particles_per_cell = 108;  // 9 to 10 frames a list: 60% of the pool
  large.steps = 200;
  of_toolkit.steps = 20;
  return {
      {"workers", scatters, "--pool 512MiB --repeat 3 --sizes 16,32,64,128 --workers " + list(worker_counts()), 300,
       "workers"},
      {"workers",
       {"toolkit"},
       "--pool 512MiB --repeat 1 --sizes 16,32,64,128 --workers " + list(worker_counts()),
       150,
       "workers-toolkit"},
      {"workers",
       {"scatter_original", "slab_bitmap"},
       "--pool 512MiB --repeat 1 --sizes 16,128 --workers " + list(dense_worker_counts()),
       250,
       "workers-every"},
      {"policy_overhead", {"scatter", "slab_bitmap", "ring_buffer"}, "", 5, "policy-overhead"},
      {"init", {"scatter", "slab_bitmap"}, "--pool 512MiB", 3, "slots"},
      {"long_churn", {"scatter", "scatter_coalesced", "slab_bitmap"}, "--kernels 500", 60, "long-churn"},
      {"burst",
       {"scatter_original", "scatter", "scatter_coalesced", "slab_bitmap", "slab_bitmap_coalesced"},
       "--sizes " + list(powers(16, 1024)),
       15,
       "coalesced"},
      pic_entry("pic", {"ring_buffer", "slab_bitmap", "scatter_picongpu"}, long_run, 10),
      pic_entry("pic-large", {"ring_buffer", "slab_bitmap", "scatter_picongpu"}, large, 20),
      pic_entry("pic-toolkit", {"toolkit", "slab_bitmap"}, of_toolkit, 10),
      capacity_entry("pic-capacity", {"scatter", "slab_bitmap", "ring_buffer"}, 16, 8 * gibibyte, 10),
      capacity_entry("pic-capacity-toolkit", {"toolkit", "slab_bitmap"}, 1, 512 * mebibyte, 20),
  };
}

std::vector<suite_entry> adinetz_entries() {
  names const hallocs{"halloc", "halloc_split", "halloc_one_head", "halloc_8_slabs", "halloc_late", "halloc_early"};
  names const all = joined({"slab_bitmap", "scatter"}, hallocs);
  names const few{"slab_bitmap", "scatter", "halloc", "halloc_split"};
  names const with_toolkit = joined({"toolkit"}, few);
  std::string const of_classes = "16,24,32,48,64,96,128,192,256,384,512,768,1024,1536,2048,3072";
  return {
      {"burst", all, "--repeat 5 --sizes 16,32,64,256,1024,4096,8192", 60, "halloc"},
      {"mixed", few, "--repeat 5 --ranges 16-64,16-256,16-1024,16-4096", 20, "halloc-mixed"},
      {"churn",
       {"slab_bitmap", "scatter", "halloc", "halloc_split", "throughput", "rw_malloc"},
       "--repeat 5",
       15,
       "halloc-churn"},
      {"two_phase",
       {"slab_bitmap", "scatter", "scatter_original", "halloc", "halloc_split", "halloc_one_head"},
       "--pool 512MiB --repeat 5 --sizes 16,32,256 --divergence thread,warp,block",
       150,
       "two-phase"},
      {"two_phase",
       {"slab_bitmap", "scatter", "halloc", "halloc_split", "halloc_one_head"},
       "--pool 512MiB --repeat 3 --sizes 16,256 --workers "
       "32,128,512,1024,2048,4096,8192,12288,16384,20480,25000,65536,262144",
       15,
       "two-phase-threads"},
      {"two_phase", few, "--pool 8GiB --repeat 3 --sizes " + of_classes, 100, "two-phase-sizes"},
      {"two_phase", all, "--pool 8GiB --repeat 3 --ranges 16-16,256-256,16-64,16-256,16-1024,16-3072", 60,
       "two-phase-mixed"},
      {"two_phase", with_toolkit, "--pool 512MiB --repeat 1 --rounds 16 --sizes 16,256 --workers 1024,4096,16384", 5,
       "two-phase-toolkit"},
      // mallocs in even steps, and frees in odd ones
      {"two_phase", few, "--pool 512MiB --repeat 3 --sizes 16,256 --allocate-shares 0.95,0 --free-shares 0,0.95", 5,
       "two-phase-spree"},
      {"head_replacement", {"halloc"}, "--repeat 3", 20, "head-replacement"},
      {"scaling",
       {"slab_bitmap", "scatter", "halloc", "halloc_one_head", "halloc_8_slabs", "halloc_late", "halloc_early", "rw",
        "rw_malloc", "throughput"},
       "--pool 512MiB --repeat 3",
       60,
       "scaling"},
      {"prefix_sum", {"slab_bitmap", "halloc", "throughput"}, "", 5, "prefix-sum"},
      {"utilisation",
       {"halloc", "slab_bitmap", "scatter"},
       "--pool 16MiB --repeat 1 --sizes " + list(multiples(8, 3072)),
       20,
       "internal-fragmentation"},
      {"fragmentation",
       {"slab_bitmap", "halloc", "halloc_8_slabs", "throughput", "throughput_wide", "tbuddy", "scatter", "rw_malloc"},
       "--pool 512MiB --repeat 1",
       120,
       "fragmentation"},
      {"fill_level",
       {"halloc", "slab_bitmap", "rw_malloc"},
       "--ranges 16-3072 --levels 0.3,0.5,0.7,0.85 --kernels 8",
       60,
       "fill-level"},
  };
}

std::vector<suite_entry> gelado_entries() {
  names const with_toolkit{"toolkit", "throughput", "slab_bitmap"};
  // In files of their own: they may take long where every contending lane compares and swaps.
  names const as_printed{"throughput_original", "ualloc_original", "tbuddy_original"};
  auto const semaphores = [](u32 batch, u64 most_threads) {
    return "--repeat 1 --workers " + list(powers(1024, most_threads, 4)) + " --thread-blocks " + all_shapes() +
           " --batch " + std::to_string(batch);
  };
  std::vector<suite_entry> all{
      {"semaphore",
       {},
       "--repeat 1 --workers " + list(powers(32, 65536)) + " --thread-blocks " + all_shapes(),
       40,
       "semaphore"},
      {"semaphore", {}, semaphores(8, 16384), 10, "semaphore-batch-8"},
      {"semaphore", {}, semaphores(64, 65536), 25, "semaphore-batch-64"},
      {"semaphore", {}, semaphores(4096, 65536), 25, "semaphore-batch-4096"},
      {"semaphore",
       {},
       "--repeat 5 --workers " + list(powers(1024, 65536, 4)) + " --batch-ns 10000",
       15,
       "semaphore-10us"},
      {"semaphore",
       {},
       "--repeat 5 --workers " + list(powers(1024, 16384, 4)) + " --thread-blocks 32,256,1024 --batch 8",
       5,
       "semaphore-warps"},
      {"rcu_delegation", {}, "--repeat 3 --thread-blocks " + all_shapes(), 200, "rcu-delegation"},
      {"rcu_delegation",
       {},
       "--repeat 1 --workers 131072,524288 --thread-blocks 32,256,1024 --readers-per-writer 1024,4096",
       20,
       "rcu-delegation-readers"},
      {"collective_mutex", {}, "--repeat 3 --thread-blocks " + all_shapes(), 30, "collective-mutex"},
      {"exhaust",
       {"throughput", "throughput_8", "throughput_wide", "throughput_wide_2048", "ualloc", "tbuddy", "slab_bitmap",
        "halloc", "scatter"},
       "--repeat 1 --thread-blocks " + all_shapes(),
       200,
       "exhaust"},
      {"exhaust", as_printed, "--repeat 1 --thread-blocks " + all_shapes(), 250, "exhaust-original"},
      {"exhaust", with_toolkit, "--repeat 1 --sizes " + list(powers(2048, 524288)) + " --thread-blocks " + all_shapes(),
       90, "exhaust-toolkit"},
      {"burst",
       {"toolkit", "throughput", "tbuddy", "slab_bitmap"},
       "--pool 2GiB --repeat 1 --threads 65536 --sizes " + list(powers(16, 16384, 4)),
       20,
       "burst-toolkit"},
      {"burst",
       {"throughput", "ualloc", "tbuddy"},
       "--repeat 1 --sizes " + list(powers(16, 4096, 4)),
       30,
       "throughput"},
      {"burst", as_printed, "--repeat 1 --sizes " + list(powers(16, 4096, 4)), 200, "throughput-original"},
      {"churn", {"throughput", "ualloc", "tbuddy"}, "--repeat 1 --rounds 16", 20, "throughput-churn"},
  };
  // CUDA's heap has one size in a process, which has to be that of the pool.
  for (u64 const bytes : powers(64, 1024))
    all.push_back({"exhaust", with_toolkit,
                   "--repeat 1 --threads 65536 --sizes " + std::to_string(bytes) + " --thread-blocks 256", 8,
                   "exhaust-toolkit-" + std::to_string(bytes)});
  return all;
}

std::vector<suite_entry> pham_entries() {
  names const walks{"direct", "direct_warp", "slab_bitmap", "rw_256", "rw_bitmap_256", "corw_256"};
  names const every_queue{"queue_pages", "queue_chunks", "queue_pages_virtual", "queue_chunks_virtual"};
  names const queues{"queue_pages", "queue_chunks_virtual"}, chunk_queues{"queue_chunks", "queue_chunks_virtual"};
  auto const with_others = joined(joined(walks, {"scatter", "halloc"}), queues);
  auto const with_queues = joined({"slab_bitmap", "rw_malloc"}, queues);
  names const units{"rw_malloc", "rw_malloc_64", "rw_malloc_256"};
  auto const by_threads =
      joined(joined(units, {"rw_malloc_2_words", "rw_malloc_4_words", "slab_bitmap"}), chunk_queues);
  auto const fillers = joined(joined(units, {"slab_bitmap", "scatter", "halloc", "throughput_wide"}), queues);
  std::string const mixed = "4-64,4-256,4-1024,4-4096,4-8192";
  std::string const filled = "16,24,64,100,256,500,1000,1024,2048,3000,4096,5000,8192 --ranges " + mixed;
  std::vector<suite_entry> all{
      {"atomic", {}, "", 5, "atomic"},
      {"atomic", {}, "--thread-blocks " + all_shapes(), 10, "atomic-thread-blocks"},
      {"instruction_latency", {}, "", 1, "instruction-latency"},
      {"random_walk", {}, "--pool 8GiB", 20, "random-walk"},
      {"random_walk",
       {},
       "--pool 256MiB --workers 1024,4096,5000 --page-shares 0.01,0.005",
       10,
       "random-walk-few-pages"},
      // A million of the largest blocks take 8 GiB. A queue that refuses has looked at every chunk,
      // and each check of queue_pages reads slots of half the pool's bytes.
      {"scaling", by_threads,
       "--pool 16GiB --repeat 5 --sizes 16,256,1024,8192 --workers " + list(powers(1024, 1048576)), 200,
       "rw-malloc-scaling"},
      {"burst", joined({"slab_bitmap", "rw_malloc"}, chunk_queues),
       "--pool 16GiB --repeat 5 --sizes " + list(powers(4, 8192)), 35, "rw-malloc"},
      {"burst", joined({"slab_bitmap", "rw", "rw_bitmap", "corw"}, every_queue),
       "--pool 4GiB --repeat 5 --threads 262144 --sizes 8192", 5, "pages-of-queues"},
      // Every block is freed in the step after its malloc.
      {"two_phase", joined({"rw_malloc"}, every_queue),
       "--pool 1GiB --repeat 3 --rounds 16 --sizes 16,256,1024 --workers 1024,32768,262144 --allocate-shares 1,0 "
       "--free-shares 0,1",
       70, "freed-at-once"},
      {"utilisation", fillers, "--pool 64MiB --repeat 1 --sizes " + filled, 10, "utilisation"},
      {"utilisation",
       {"rw_malloc", "rw_malloc_64", "rw_malloc_256", "slab_bitmap"},
       "--pool 8GiB --repeat 1 --sizes " + filled,
       70,
       "utilisation-8gib"},
      join_entry("join", with_others, {16384, 131072, 1048576}, 8 * gibibyte, 120),
      join_entry("join-32gib", walks, {10485760}, 32 * gibibyte, 60),
  };
  for (u64 const threads : {1024, 32768, 1048576})
    all.push_back({"mixed", with_queues,
                   std::string{"--pool "} + (threads < 1048576 ? "4GiB" : "16GiB") + " --repeat 5 --threads " +
                       std::to_string(threads) + " --ranges " + mixed,
                   40, "rw-malloc-mixed-" + std::to_string(threads)});
  return all;
}

/// The first of a list as it is typed, and with `also_small` the last number that is.
std::string some_of(std::string const& typed, bool also_small) {
  auto const all = split_list("", typed);
  auto const is_small = [](std::string const& each) { return parse_bytes("", each) <= 128; };
  auto const last = also_small ? std::find_if(all.rbegin(), all.rend() - 1, is_small) : all.rend() - 1;
  return last == all.rend() - 1 ? all.front() : all.front() + "," + *last;
}

}  // namespace

std::vector<suite_entry> paper_entries() {
  return joined(joined(eckert_entries(), adinetz_entries()), joined(gelado_entries(), pham_entries()));
}

suite_entry sample_of(suite_entry entry) {
  auto& names = entry.allocators;
  if (names.size() > 2) names = {names.front(), names.back()};
  auto typed = options_of_line(entry.options);
  for (auto const* const option : {"--sizes", "--workers", "--thread-blocks", "--readers-per-writer"})
    if (typed.count(option)) typed[option] = some_of(typed[option], true);
  for (auto const* const option : {"--ranges", "--divergence", "--levels", "--page-shares"})
    if (typed.count(option)) typed[option] = some_of(typed[option], false);
  if (typed.count("--threads")) typed["--threads"] = "256";
  if (typed.count("--workers") && parse_count("", split_list("", typed["--workers"]).front()) > 128)
    typed["--workers"] = "64";
  typed.erase("--batch-ns");
  for (auto const& [option, value] :
       {std::pair{"--pool", "4MiB"}, {"--repeat", "1"}, {"--rounds", "2"}, {"--left-shares", "0.5"}})
    typed[option] = value;
  entry.options.clear();
  for (auto const& [option, value] : typed) entry.options += option + " " + value + " ";
  return entry;
}

}  // namespace warpheap::tool
