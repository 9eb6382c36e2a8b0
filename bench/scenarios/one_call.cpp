// SPDX-License-Identifier: Apache-2.0
// Scenarios that launch the kernels of one_call.hpp and ledger.hpp. A kernel is compiled for every
// allocator in each source that launches it, and that makes up most of the program: so scenarios
// with the same kernels share a source.
#include "burst.hpp"
#include "exhaust.hpp"
#include "fill.hpp"
#include "head_replacement.hpp"
#include "init.hpp"
#include "mixed.hpp"
#include "prefix_sum.hpp"
#include "scaling.hpp"
#include "utilisation.hpp"

#include "bench/registry.hpp"
#include "tools/warpheap/backend/allocators.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND { namespace {

std::vector<bench::result> run_head_replacement(std::string const& allocator, bench::request const& asked) {
  if (allocator != halloc_allocator::creation_type::name) return bench::no_head_replacement(allocator, asked);
  return bench::head_replacement(bench::test_subject<halloc_allocator>{.name = allocator}, asked);
}

bench::registration const registered_burst{{
    .name = "burst",
    .text = "every thread one call, one size",
    .rank = 10,
    .uses = {{"--sizes"}, {"--threads", "1048576"}},
    .measures_variants = true,
    .run = with_variants([](auto const& subject, auto const& asked) { return bench::burst(subject, asked); }),
    .floor = bench::burst_floor,
}};

bench::registration const registered_mixed{{
    .name = "mixed",
    .text = "every thread one call, a size of its own",
    .rank = 20,
    .uses = {{"--ranges"}, {"--threads", "1048576"}},
    .run = with_allocator([](auto const& subject, auto const& asked) { return bench::mixed(subject, asked); }),
    .floor = [](bench::request const& asked) { return std::vector{bench::mixed_floor(asked)}; },
}};

bench::registration const registered_fill{{
    .name = "fill",
    .text = "the pool to the first nullptr, contending threads at the full heap, and again after frees",
    .rank = 50,
    .uses = {{"--sizes"}, {"--threads", "65536"}},
    .pool = {.host = u64{8} << 20},
    .run = with_allocator([](auto const& subject, auto const& asked) { return bench::fill(subject, asked); }),
}};

bench::registration const registered_exhaust{{
    .name = "exhaust",
    .text = "every thread one call, together for exactly the pool",
    .rank = 70,
    .uses = {{"--sizes"},
             {"--threads", "1048576"},
             {"--thread-blocks", "a row for each; default one row, the mean over 1, 2, 4, ... 1024"}},
    .pool = {.gpu = u64{512} << 20, .host = u64{8} << 20},
    .measures_variants = true,
    .run = with_variants([](auto const& subject, auto const& asked) { return bench::exhaust(subject, asked); }),
}};

bench::registration const registered_utilisation{{
    .name = "utilisation",
    .text = "bytes asked for and held at the first nullptr, by size",
    .rank = 80,
    .uses = {{"--sizes"}, {"--ranges"}},
    .pool = {.host = u64{8} << 20},
    .run = with_allocator([](auto const& subject, auto const& asked) { return bench::utilisation(subject, asked); }),
}};

bench::registration const registered_init{{
    .name = "init",
    .text = "making and resetting a heap",
    .rank = 110,
    .run = with_allocator([](auto const& subject, auto const& asked) { return bench::init(subject, asked); }),
}};

bench::registration const registered_scaling{{
    .name = "scaling",
    .text = "a burst by the number of threads",
    .rank = 150,
    .uses = {{"--sizes"}, {"--workers", "32, 64, ... 2097152"}},
    .pool = {.gpu = u64{512} << 20},
    .measures_variants = true,
    .run = with_variants([](auto const& subject, auto const& asked) { return bench::scaling(subject, asked); }),
}};

bench::registration const registered_head_replacement{{
    .name = "head_replacement",
    .text = "of halloc alone: bursts whose slabs are replaced meanwhile, and as large ones whose slabs are not",
    .rank = 160,
    .uses = {{"--sizes"}, {"--threads", "four slabs' blocks for each of halloc's rows"}},
    .run = run_head_replacement,
}};

bench::registration const registered_prefix_sum{{
    .name = "prefix_sum",
    .text = "a call a thread against sizes, scan and one allocation",
    .rank = 170,
    .uses = {{"--ranges"}, {"--workers", "1024, 32768, 1048576"}},
    .run = with_allocator([](auto const& subject, auto const& asked) { return bench::prefix_sum(subject, asked); }),
    .floor = bench::prefix_sum_floor,
}};

}}}  // namespace warpheap::tool::WARPHEAP_BACKEND
