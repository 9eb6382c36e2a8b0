// SPDX-License-Identifier: Apache-2.0
// Scenarios that launch the kernels of listed_calls.hpp and timed_calls.hpp.
#include "crowd.hpp"
#include "efficiency.hpp"
#include "fill_level.hpp"
#include "fragmentation.hpp"
#include "long_churn.hpp"
#include "map.hpp"
#include "workers.hpp"

#include "bench/registry.hpp"
#include "tools/warpheap/backend/allocators.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND { namespace {

bench::registration const registered_workers{{
    .name = "workers",
    .text = "cycles of one call by the number of threads that make it",
    .rank = 120,
    .uses = {{"--sizes"}, {"--workers", "2, 4, 8, ... 16384"}},
    .measures_variants = true,
    .run = with_variants([](auto const& subject, auto const& asked) { return bench::workers(subject, asked); }),
}};

bench::registration const registered_fill_level{{
    .name = "fill_level",
    .text = "blocks that live across kernels and make up a share of the pool; a quarter of them is freed and replaced "
            "in turn; sizes constant or drifting; the pool also over-asked",
    .rank = 60,
    .uses = {{"--ranges", "the first"},
             {"--threads", "1048576 slots"},
             {"--levels", "default 0.3,0.5,0.7,0.8,0.9,0.95,0.99,1,2"},
             {"--kernels", "kernels of each row; default 256 on a GPU, 16 on the host"}},
    .ignores = {"--repeat"},
    .run = with_allocator([](auto const& subject, auto const& asked) { return bench::fill_level(subject, asked); }),
}};

bench::registration const registered_fragmentation{{
    .name = "fragmentation",
    .text = "slabs that survivors of a full pool keep, and large blocks that are still to be had",
    .rank = 90,
    .uses = {{"--sizes", "default 64KiB,1MiB"},
             {"--ranges", "the first"},
             {"--levels", "the first; default 0.9"},
             {"--left-shares"}},
    .pool = {.gpu = u64{512} << 20, .host = u64{32} << 20},
    .measures_variants = true,
    .run = with_variants([](auto const& subject, auto const& asked) { return bench::fragmentation(subject, asked); }),
}};

bench::registration const registered_efficiency{{
    .name = "efficiency",
    .text = "how much of the pool can be used: beside a few blocks of other sizes, by mixed and drifting sizes, and by "
            "large blocks after small ones; how far blocks lie apart",
    .rank = 85,
    .uses = {{"--levels", "of its drift; default 0.3,0.5,0.7,0.85"},
             {"--kernels", "steps of a cycle of its drift; default 32 on a GPU, 8 on the host"}},
    .ignores = {"--repeat"},
    .run = with_allocator([](auto const& subject, auto const& asked) { return bench::efficiency(subject, asked); }),
}};

bench::registration const registered_long_churn{{
    .name = "long_churn",
    .text = "the constant load of fill_level for a long time, by tenths of it",
    .rank = 40,
    .uses = {{"--ranges", "the first"},
             {"--threads", "1048576 slots"},
             {"--levels", "the first; default 0.5"},
             {"--kernels", "steps of two kernels, at least 10, in place of --seconds"},
             {"--seconds"}},
    .ignores = {"--repeat"},
    .run = with_allocator([](auto const& subject, auto const& asked) { return bench::long_churn(subject, asked); }),
}};

bench::registration const registered_map{{
    .name = "map",
    .text = "where in the memory which sizes lie in the course of fill_level's loads, and how full its parts are",
    .rank = 100,
    .uses = {{"--ranges", "the first"},
             {"--threads", "1048576 slots"},
             {"--levels", "the first; default 0.9"},
             {"--kernels", "steps of a load; default 256 on a GPU, 16 on the host"}},
    .ignores = {"--repeat"},
    .run = with_allocator([](auto const& subject, auto const& asked) { return bench::heap_map(subject, asked); }),
}};

bench::registration const registered_crowd{{
    .name = "crowd",
    .text = "large blocks by many threads at once, among small ones too, and what churn of them leaves to be had",
    .rank = 180,
    .uses = {{"--sizes", "default 256KiB,1MiB,16MiB,64MiB,1GiB"},
             {"--workers", "1, 16, 256, 1024, 4096, 16384"},
             {"--rounds", "of its churn, two kernels each"}},
    .run = with_allocator([](auto const& subject, auto const& asked) { return bench::crowd(subject, asked); }),
}};

}}}  // namespace warpheap::tool::WARPHEAP_BACKEND
