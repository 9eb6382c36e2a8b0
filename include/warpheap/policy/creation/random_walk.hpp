// SPDX-License-Identifier: Apache-2.0
// Pages of one size, found by looking at random places. Threads share no queue, counter or list: a
// bit a page says whether it is taken, and a free clears it. There are three walks. RW looks at one
// page after another, RW-BM at 32 or 64 with each load, and in CoRW the lanes of a warp share what
// they find. How many places a call looks at hardly depends on the number of callers, and grows as
// fewer pages are free: about 1 / (free share) for RW, and a 32nd of that for the others where few
// are free.
//
// A request takes a page whatever its size; a larger one is refused. A thread whose walk has become
// long looks at every word, so that a refusal is certain. Cost: two bits a page, and the unused
// rest of pages: half a page or more for requests of at most half.
//
// Source: Pham et al. 2022, sections 3, 4.1 and 4.2. Differs: the walk ends:
// docs/design/random_walk.md.
#pragma once

#include "../../sync/warp_aggregate.hpp"
#include "../memory_range.hpp"
#include "random_walk/search.hpp"
#include "random_walk/snapshot.hpp"
#include "random_walk/walk.hpp"
#include "report.hpp"
#include "shared/policy_base.hpp"
#include "shared/pool_units.hpp"
#include "shared/step_count.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace creation {

/// A handle on a heap of pages: 16 bytes, trivially copyable; all copies serve the same heap.
/// `Faults` has the operations that change words; tests replace it.
template <random_walk_config Config = random_walk_config{}, class Faults = no_walk_faults>
class random_walk : public policy_base<random_walk<Config, Faults>, random_walk_parts::table<Config>> {
  static_assert(
      is_valid(Config),
      "random_walk: page_bytes is a multiple of 16, word_pages a power of two up to 32, or 64 unless collaborative");
  static constexpr bool shares = Config.kind == walk_kind::collaborative;
  using table_type = random_walk_parts::table<Config>;
  using base_type = policy_base<random_walk, table_type>;
  using base_type::table_, base_type::refuse, base_type::key_of;
  using search_type = random_walk_parts::search<Config, Faults>;

 public:
  static constexpr char const* name = name_of(Config.kind);
  static constexpr random_walk_config config = Config;
  /// Bytes of every block, and the most that a distribution policy may combine requests into.
  static constexpr size_t page_bytes = Config.page_bytes;
  static constexpr allocator_traits traits{.alignment = 16,
                                           .self_aligned_up_to = table_type::unit_alignment,
                                           .multiples_aligned_up_to = table_type::unit_alignment,
                                           .detects_misuse = true,
                                           .exact_out_of_memory = true,
                                           .one_pass_refusals = true,
                                           .largest_bytes = page_bytes};

  /// A page; nullptr for 0 bytes, for more than a page has, and when no page stayed free during the
  /// whole call. Any lanes, converged or not.
  WARPHEAP_DEVICE void* create(size_t bytes) const {
    if (bytes == 0) return nullptr;
    if (bytes > page_bytes) return refuse();
    if constexpr (shares || Config.counts_steps) return serve(simt::match_any(simt::active_mask(), key_of()));
    else return serve(0);
  }

  /// A page at a multiple of `alignment`, a power of two; refused if pages are not aligned to it.
  WARPHEAP_DEVICE void* create_aligned(size_t alignment, size_t bytes) const {
    return alignment <= table_type::unit_alignment || bytes == 0 ? create(bytes) : refuse();
  }

  /// A page for each lane of `mask`, each with its own size. All of them call, with the same mask.
  WARPHEAP_DEVICE void* create_warp(lane_mask mask, size_t bytes) const {
    bool const fits = bytes != 0 && bytes <= page_bytes;
    lane_mask const together = simt::ballot(mask, fits);
    if (!fits) return create(bytes);
    if constexpr (shares || Config.counts_steps) return serve(simt::match_any(together, key_of()));
    else return serve(0);
  }

  /// The paper's names for a page and its return.
  WARPHEAP_DEVICE void* get_page() const { return create(page_bytes); }
  WARPHEAP_DEVICE void free_page(void* page) const { destroy(page); }

  /// Gives a page back. Any lane alone. nullptr does nothing; any other pointer to no owned page is
  /// counted and ignored.
  WARPHEAP_DEVICE void destroy(void* memory) const {
    if (!memory) return;
    u32 const page = table_.number_of(memory);
    if (page == table_type::none) return table_.add_count(count::foreign_frees);
    auto const bit = table_type::bit_of(page);
    walk_word const old = Faults::give_back(table_.word(page / table_type::word_pages), bit);
    if (old.free(bit)) table_.add_count(count::double_frees);
  }

  /// page_bytes if `memory` is an owned page, else 0.
  WARPHEAP_DEVICE size_t usable_size(void const* memory) const { return owns(memory) ? page_bytes : 0; }

  /// Whether `memory` is an owned page.
  WARPHEAP_DEVICE bool owns(void const* memory) const {
    u32 const page = table_.number_of(memory);
    return page != table_type::none && table_.is_taken(page);
  }

  /// For slot_survey.hpp, which counts in parts.
  WARPHEAP_HOST_DEVICE u64 slot_places() const { return table_.words(); }
  WARPHEAP_DEVICE slot_part count_slots(size_t bytes, slot_share share) const {
    if (bytes == 0 || bytes > page_bytes) return {};
    slot_part part;
    u32 const end = static_cast<u32>(share.end(slot_places()));
    WARPHEAP_NO_UNROLL
    for (u32 i = static_cast<u32>(share.first(slot_places())); i < end; ++i)
      part.count += popcount(table_.look_at(i).free(table_type::valid));
    return part;
  }

  /// Pages of a pool. Throws std::invalid_argument for less than a page, and for more pages than
  /// allowed.
  WARPHEAP_HOST static u32 plan(size_t pool_bytes) {
    return static_cast<u32>(count_units("random_walk", "pages", pool_bytes, page_bytes, table_type::max_pages));
  }
  /// The pool, of which the policy reads and writes no byte.
  WARPHEAP_HOST memory_range untouched_pool() const { return {table_.pool(), table_.pool_bytes()}; }

#if !defined(__CUDACC_RTC__)
  /// A copy of the heap's state, which answers the host's questions: report.hpp.
  random_walk_parts::snapshot<Config> snapshot() const { return random_walk_parts::snapshot<Config>{table_}; }

  /// Steps of all calls since the last forget_steps(), of a quiet heap. Only walks count
  /// collisions.
  walk_steps_taken steps_taken() const requires(Config.counts_steps) { return read_steps(table_.steps()); }
  void forget_steps(stream_view on = {}) const requires(Config.counts_steps) { reset_steps(table_.steps(), on); }
#endif

 private:
  /// A page for the calling lane; nullptr if none is free. `together`: the lanes that call with it,
  /// used only if lanes share pages or steps are counted.
  WARPHEAP_DEVICE void* serve(lane_mask together) const {
    random_walk_parts::walk<Config, Faults> walk{table_};
    u32 page = search_type::none;
    if constexpr (shares) page = walk.together(together);
    else page = walk.alone();
    u32 steps = walk.steps();
    if (page == search_type::none) {
      auto const found = search_type::run(table_, simt::match_any(simt::active_mask(), key_of()), walk.somewhere());
      page = found.page;
      steps += found.steps;
    }
    if constexpr (Config.counts_steps) count_steps(table_.steps(), together, steps, walk.collisions());
    return page != search_type::none ? table_.address(page) : refuse();
  }
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::creation
