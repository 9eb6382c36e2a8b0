// SPDX-License-Identifier: Apache-2.0
// The allocators that the tool knows, picked at run time by name. To add one is to add one line to
// `known_allocators`. Every scenario is then compiled for it, which takes nvcc 20 s to 90 s. So
// configurations that only figures of a paper need are `paper_variants`, which a few sources are
// compiled for: those that name with_variants() or `all_allocators`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "any_allocator.hpp"
#include "cli/usage_error.hpp"
#include "measure/measure.hpp"
#include "parts.hpp"
#include "warpheap/all.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND {

/// Text as a template argument.
template <size_t Size>
struct text {
  char characters[Size]{};
  consteval text(char const (&from)[Size]) {
    for (size_t i = 0; i < Size; ++i) characters[i] = from[i];
  }
};

/// Whether heap.reset() frees everything.
enum class reset { frees_all, does_nothing };

template <class Allocator, text Description, reset Reset = reset::frees_all>
struct entry {
  using allocator_type = Allocator;
  static constexpr char const* name = Allocator::creation_type::name;
  static constexpr char const* description = Description.characters;

  static bench::test_subject<Allocator> subject() { return {.name = name, .resets = Reset == reset::frees_all}; }
};

/// An entry with a name of its own, where the name of the creation policy says too little.
template <class Allocator, text Name, text Description>
struct named_entry : entry<Allocator, Description> {
  static constexpr char const* name = Name.characters;

  static bench::test_subject<Allocator> subject() { return {.name = name}; }
};

template <class... Entries>
struct entry_list {
  /// The entries of both lists.
  template <class... Others>
  static entry_list<Entries..., Others...> with(entry_list<Others...>);

  static std::vector<allocator_description> descriptions() {
    return {{Entries::name, Entries::description, Entries::allocator_type::traits.largest_bytes}...};
  }

  /// What `visit(entry)` returns for the entry of that name. Throws usage_error if there is none.
  template <class Visit>
  static auto visit(std::string const& name, Visit visit) {
    std::optional<std::common_type_t<decltype(visit(Entries{}))...>> answer;
    if (((name == Entries::name && (answer = visit(Entries{}), true)) || ...)) return std::move(*answer);
    std::string names;
    for (auto const& known : descriptions()) names += (names.empty() ? "" : ", ") + known.name;
    throw usage_error{"no allocator is called '" + name + "'; there are: " + names};
  }

  /// What `measure(subject)` returns for the allocator of that name, or on the host backend for the
  /// one that stands for it. Throws as visit().
  template <class Measure>
  static auto measure(std::string const& name, Measure measure) {
    return visit(name, [&](auto entry) { return measure(stand_in_for(entry.subject())); });
  }
};

inline constexpr creation::halloc_config three_quarters{.split_percent = 75};
using halloc_split_allocator = finely_aligned_allocator<creation::halloc<three_quarters>>;
inline constexpr creation::ualloc_config wide_bins{.wide_bins = true, .largest_log2 = 10};
using throughput_wide_allocator = plain_allocator<creation::throughput<wide_bins>>;
inline constexpr creation::ualloc_config wide_bins_to_2048{.wide_bins = true, .largest_log2 = 11};
using throughput_wide_2048_allocator = plain_allocator<creation::throughput<wide_bins_to_2048>>;
inline constexpr creation::ualloc_config blocks_of_8{.least_bytes = 8};
using throughput_8_allocator = finely_aligned_allocator<creation::throughput<blocks_of_8>>;
inline constexpr creation::rw_malloc_config units_of_64{.unit_bytes = 64};
using rw_malloc_64_allocator = plain_allocator<creation::rw_malloc<units_of_64>>;
inline constexpr creation::rw_malloc_config units_of_256{.unit_bytes = 256};
using rw_malloc_256_allocator = plain_allocator<creation::rw_malloc<units_of_256>>;
/// A creation policy behind warp_coalesce.
template <class Creation>
using coalesced_allocator = allocator<Creation, distribution::warp_coalesce, oom::return_null,
                                      reserve_pool::device_memory, alignment::shrink<16>>;
using slab_bitmap_coalesced_allocator = coalesced_allocator<creation::slab_bitmap<>>;
using scatter_coalesced_allocator = coalesced_allocator<creation::scatter<>>;
/// A quarter of the pool is scatter's, and the rest is the heap behind it.
inline constexpr oom::overflow_config three_quarters_behind{.second_sixteenths = 12};
using overflow_allocator =
    allocator<creation::scatter<>, distribution::none, oom::overflow_to<default_allocator, three_quarters_behind>,
              reserve_pool::device_memory, alignment::shrink<16>>;
using host_memory_allocator = allocator<creation::slab_bitmap<>, distribution::none, oom::return_null,
                                        reserve_pool::host_memory, alignment::shrink<16>>;

using known_allocators = entry_list<
    entry<default_allocator, "the default: slabs of one size class, a bitmap each, reserve then search">,
    entry<toolkit_allocator, "device-side malloc of CUDA, the C library's on the host backend", reset::does_nothing>,
    entry<ring_buffer_allocator, "frames of 8 KiB behind a push and a pop index; what is larger is refused">,
    entry<queue_pages_allocator, "Ouroboros: a queue of free pages for each power of two, in chunks of 8 KiB">,
    entry<queue_chunks_allocator, "the same with queues of chunks that have free pages">,
    entry<queue_pages_virtual_allocator, "queue_pages with queues that lie in chunks themselves">,
    entry<queue_chunks_virtual_allocator, "queue_chunks with queues that lie in chunks themselves">,
    entry<rw_allocator, "RW: pages of 8 KiB, found by a walk over random pages; what is larger is refused">,
    entry<rw_bitmap_allocator, "RW-BM: the same over words of a bitmap, 32 pages at a time">,
    entry<corw_allocator, "CoRW: the same by the lanes of a warp, which share what they find">,
    entry<rw_malloc_allocator, "RW_malloc: runs of 16-byte units, found in random windows of a bitmap, any size">,
    entry<scatter_allocator, "ScatterAlloc: pages of one size, found by a hash of size, multiprocessor and warp">,
    entry<halloc_allocator,
          "Halloc: slabs of chunks, found by a hash of a counter; what is larger than 3 KiB is TBuddy's">,
    entry<halloc_split_allocator, "the same with three quarters of the pool for slabs alone, as in the paper">,
    entry<tbuddy_allocator, "TBuddy: powers of two of 4 KiB pages, split and merged; a semaphore an order, and a tree">,
    entry<ualloc_allocator,
          "UAlloc: arenas of 4 KiB bins, counted by bulk semaphores; what is larger than 1 KiB is refused">,
    entry<throughput_allocator, "UAlloc up to 1 KiB and TBuddy above: the allocator of Gelado and Garland">,
    entry<throughput_wide_allocator, "the same with bins as wide as their class wants, and pages of 2 KiB: less waste">,
    named_entry<throughput_wide_2048_allocator, "throughput_wide_2048",
                "throughput_wide with bins for blocks of 2 KiB as well, and pages of 4 KiB">,
    named_entry<throughput_8_allocator, "throughput_8",
                "throughput with blocks of 8 bytes as well, as in the paper; results are aligned to 8">,
    named_entry<rw_malloc_64_allocator, "rw_malloc_64",
                "rw_malloc with units of 64 bytes: a quarter of the bitmap, and more waste">,
    named_entry<rw_malloc_256_allocator, "rw_malloc_256",
                "rw_malloc with units of 256 bytes: a sixteenth of the bitmap, and more waste yet">,
    named_entry<slab_bitmap_coalesced_allocator, "slab_bitmap_coalesced",
                "slab_bitmap behind warp_coalesce: what the lanes of a warp ask for together is one block">,
    named_entry<scatter_coalesced_allocator, "scatter_coalesced", "scatter behind warp_coalesce">,
    named_entry<overflow_allocator, "overflow",
                "scatter in a quarter of the pool, and slab_bitmap in the rest for what scatter refuses">,
    named_entry<host_memory_allocator, "host_memory",
                "slab_bitmap whose pool is pinned memory of the host, which a GPU reaches over the bus">>;

// Configurations of papers: what they print, and what their figures vary.
inline constexpr creation::scatter_config one_open_block{.open_blocks = 1, .reset_freed_pages = false};
using scatter_original_allocator = plain_allocator<creation::scatter<one_open_block>>;
inline constexpr creation::scatter_config pages_of_32_frames{.page_bytes = 32 * 8192};
using scatter_picongpu_allocator = plain_allocator<creation::scatter<pages_of_32_frames>>;
inline constexpr creation::halloc_config one_row{.most_rows = 1};
using halloc_one_head_allocator = finely_aligned_allocator<creation::halloc<one_row>>;
inline constexpr creation::halloc_config rows_of_8_slabs{.slabs_per_row = 8};
using halloc_8_slabs_allocator = finely_aligned_allocator<creation::halloc<rows_of_8_slabs>>;
inline constexpr creation::halloc_config replaced_late{.replace_at = 950};
using halloc_late_allocator = finely_aligned_allocator<creation::halloc<replaced_late>>;
inline constexpr creation::halloc_config replaced_early{.replace_at = 601, .busy_above = 500};
using halloc_early_allocator = finely_aligned_allocator<creation::halloc<replaced_early>>;
template <u32 Words>
inline constexpr creation::rw_malloc_config words_of_a_lane{.words_per_lane = Words};
template <u32 Words>
using rw_malloc_words_allocator = plain_allocator<creation::rw_malloc<words_of_a_lane<Words>>>;
inline constexpr creation::tbuddy_config buddies_by_lane{.shares_requests = false};
using tbuddy_original_allocator = plain_allocator<creation::tbuddy<buddies_by_lane>>;
/// As printed: also no empty bin is kept.
inline constexpr creation::ualloc_config bins_by_lane{.least_bytes = 8, .idle_bins = 0, .shares_requests = false};
using ualloc_original_allocator = finely_aligned_allocator<creation::ualloc<bins_by_lane>>;
using throughput_original_allocator = finely_aligned_allocator<creation::throughput<bins_by_lane>>;

using paper_variants = entry_list<
    named_entry<scatter_original_allocator, "scatter_original",
                "scatter with one access block open, whose freed pages keep their size, as Eckert ran it">,
    named_entry<scatter_picongpu_allocator, "scatter_picongpu",
                "scatter with pages of 256 KiB, which hold 32 frames, as PIConGPU had it">,
    named_entry<halloc_one_head_allocator, "halloc_one_head", "halloc with one head of each size for the whole GPU">,
    named_entry<halloc_8_slabs_allocator, "halloc_8_slabs", "halloc with a row of heads for each 8 slabs, not 64">,
    named_entry<halloc_late_allocator, "halloc_late", "halloc whose heads are replaced when 95% are taken, not 83.5%">,
    named_entry<halloc_early_allocator, "halloc_early", "halloc whose heads are replaced when 60.1% are taken">,
    named_entry<rw_malloc_words_allocator<2>, "rw_malloc_2_words", "rw_malloc whose lanes look at two words each">,
    named_entry<rw_malloc_words_allocator<4>, "rw_malloc_4_words",
                "rw_malloc whose lanes look at four words each: the paper's windows of 4,096 bits">,
    named_entry<tbuddy_original_allocator, "tbuddy_original", "tbuddy by the paper's 4.1: each lane calls for itself">,
    named_entry<ualloc_original_allocator, "ualloc_original",
                "ualloc by the paper's 4.2: lanes wait by compare-and-swap, make bins alone; 8-byte blocks">,
    named_entry<throughput_original_allocator, "throughput_original", "ualloc_original and tbuddy_original as one">>;

using all_allocators = decltype(known_allocators::with(paper_variants{}));

}}  // namespace warpheap::tool::WARPHEAP_BACKEND
