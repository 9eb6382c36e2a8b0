// SPDX-License-Identifier: Apache-2.0
// Pages found by random walks, in pools small enough that words fill and are locked all the time:
// words of 64 and of 32 pages, and of few, of which no pool is a multiple.
#include "suite.hpp"
#include "warpheap/all.hpp"

namespace {

using namespace warpheap;
using creation::walk_kind;

constexpr creation::random_walk_config single_pages{.kind = walk_kind::plain, .page_bytes = 256};
constexpr creation::random_walk_config words_of_pages{.page_bytes = 2000};
constexpr creation::random_walk_config shared_pages{
    .kind = walk_kind::collaborative, .page_bytes = 1024, .word_pages = 8};

constexpr creation::random_walk_config words_of_64{.page_bytes = 2000, .word_pages = 64};

using rw_of_256 = plain_allocator<creation::random_walk<single_pages>>;
using rw_bitmap_of_2000 = plain_allocator<creation::random_walk<words_of_pages>>;
using rw_bitmap_of_64 = plain_allocator<creation::random_walk<words_of_64>>;
using corw_of_1024 = plain_allocator<creation::random_walk<shared_pages>>;

WARPHEAP_CONFORMANCE(rw, rw_of_256, conformance::contention::full, 50);
WARPHEAP_CONFORMANCE(rw_bitmap, rw_bitmap_of_2000, conformance::contention::full, 25);
WARPHEAP_CONFORMANCE(rw_bitmap_64, rw_bitmap_of_64, conformance::contention::full, 25);
WARPHEAP_CONFORMANCE(corw, corw_of_1024, conformance::contention::full, 25);

}  // namespace
