// SPDX-License-Identifier: Apache-2.0
// Five policies composed: which combinations are allowed, what each policy is asked, and in what
// order.
#include "warpheap/heap/allocator.hpp"

#include <gtest/gtest.h>

#include <string>

#include "warpheap/all.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace allocator_test {

using namespace warpheap;

/// Hands out addresses that encode the request: the bytes above 2^32, which must not be touched.
struct echo {
  static constexpr char const* name = "echo";
  static constexpr allocator_traits traits{.alignment = 16};
  static constexpr size_t limit = 4096;
  u64* destroyed = nullptr;

  WARPHEAP_DEVICE void* create(size_t bytes) const {
    return bytes && bytes <= limit ? reinterpret_cast<void*>((u64{1} << 32) + bytes) : nullptr;
  }
  WARPHEAP_DEVICE void destroy(void* memory) const { *destroyed += reinterpret_cast<u64>(memory); }
};

/// Asks for one block of twice the size, and hands out its second half.
struct second_half {
  static constexpr char const* name = "second_half";
  size_t asked = 0;

  WARPHEAP_DEVICE size_t collect(size_t bytes) {
    asked = bytes;
    return 2 * bytes;
  }
  WARPHEAP_DEVICE void* distribute(void* memory) { return memory ? static_cast<u8*>(memory) + asked : nullptr; }
  WARPHEAP_DEVICE static void* release(void* memory) { return memory ? static_cast<u8*>(memory) - 16 : nullptr; }
};

/// Answers with the number of bytes that could not be served.
struct echo_out_of_memory {
  static constexpr char const* name = "echo_out_of_memory";
  WARPHEAP_DEVICE static void* handle(size_t bytes) { return reinterpret_cast<void*>(bytes); }
};

template <class Creation, class Distribution, class Oom, class Alignment>
concept composes = requires {
  typename allocator<Creation, Distribution, Oom, reserve_pool::device_memory, Alignment>;
};

using shrink_16 = alignment::shrink<16>;
static_assert(composes<echo, distribution::none, oom::return_null, alignment::shrink<16>>);
static_assert(composes<echo, second_half, echo_out_of_memory, alignment::shrink<1>>);
static_assert(!composes<echo, distribution::none, oom::return_null, alignment::shrink<32>>,
              "blocks aligned to 16 cannot keep what sizes padded to 32 promise");
static_assert(!composes<distribution::none, distribution::none, oom::return_null, alignment::shrink<16>>);
static_assert(!composes<echo, echo, oom::return_null, alignment::shrink<16>>);
static_assert(!composes<echo, distribution::none, distribution::none, alignment::shrink<16>>);
static_assert(!composes<echo, distribution::none, oom::return_null, oom::return_null>);

/// A creation policy that also serves pages of 4 KiB, and one whose blocks are aligned to 8.
struct paged : echo {
  static constexpr size_t page_bytes = 4096;
};
struct barely_aligned : echo {
  static constexpr allocator_traits traits{.alignment = 8};
};
/// Policies that refuse one another.
struct wary : echo {
  template <class Other>
  static constexpr bool goes_with = !same_type<Other, oom::trap>;
};
struct wary_oom : echo_out_of_memory {
  template <class Other>
  static constexpr bool goes_with = !same_type<Other, paged>;
};
constexpr distribution::warp_coalesce_config pages_of_8k{.page_bytes = 8192}, pages_of_2k{.page_bytes = 2048};
using in_8k = distribution::basic_warp_coalesce<pages_of_8k>;
using in_2k = distribution::basic_warp_coalesce<pages_of_2k>;

static_assert(composes<paged, distribution::warp_coalesce, oom::return_null, alignment::shrink<16>>);
static_assert(composes<paged, in_2k, oom::return_null, alignment::shrink<16>>);
static_assert(!composes<paged, in_8k, oom::return_null, alignment::shrink<16>>,
              "a combined block has one page at most");
constexpr creation::random_walk_config walk_of_4k{.page_bytes = 4096};
static_assert(composes<creation::scatter<>, distribution::warp_coalesce, oom::return_null, shrink_16> &&
              !composes<creation::scatter<>, in_8k, oom::return_null, shrink_16>);
static_assert(composes<creation::random_walk<walk_of_4k>, in_2k, oom::return_null, shrink_16> &&
              !composes<creation::random_walk<walk_of_4k>, in_8k, oom::return_null, shrink_16>);
static_assert(composes<creation::ring_buffer<>, in_8k, oom::return_null, shrink_16>);
static_assert(composes<echo, in_8k, oom::return_null, alignment::shrink<16>>,
              "where there are no pages, none is too small");
static_assert(!composes<barely_aligned, distribution::warp_coalesce, oom::return_null, alignment::shrink<8>>);
static_assert(composes<barely_aligned, distribution::none, oom::return_null, alignment::shrink<8>>);
static_assert(!composes<creation::slab_bitmap<>, distribution::warp_coalesce, oom::return_null, alignment::shrink<32>>,
              "parts are aligned to 16, whatever the creation policy does");
/// Sizes may be padded to the alignment that the creation policy gives to multiples of it, even if
/// its other blocks are aligned to less. A second heap behind the first must keep that alignment
/// too.
template <class Creation, size_t Bytes, class Oom = oom::return_null>
constexpr bool pads_to = composes<Creation, distribution::none, Oom, alignment::shrink<Bytes>>;
constexpr creation::scatter_config exact_chunks{.page_bytes = 2048, .waste_factor = 1};
constexpr creation::ualloc_config wide{.wide_bins = true};
constexpr creation::random_walk_config odd_pages{.page_bytes = 128 * 9};
constexpr creation::ring_buffer_config odd_frames{.frame_bytes = 64 * 3};
constexpr creation::rw_malloc_config large_units{.unit_bytes = 256};
static_assert(pads_to<creation::slab_bitmap<>, 4096> && !pads_to<creation::slab_bitmap<>, 8192>);
static_assert(pads_to<creation::scatter<>, 4096> && !pads_to<creation::scatter<>, 8192>);
static_assert(pads_to<creation::scatter<exact_chunks>, 2048> && !pads_to<creation::scatter<exact_chunks>, 4096>);
static_assert(pads_to<creation::halloc<>, 1 << 20> && !pads_to<creation::halloc<>, 2 << 20>);
static_assert(pads_to<creation::tbuddy<>, 1 << 20> && !pads_to<creation::tbuddy<>, 2 << 20>);
static_assert(pads_to<creation::ualloc<>, 1024> && !pads_to<creation::ualloc<>, 2048>);
static_assert(pads_to<creation::ualloc<wide>, 128> && !pads_to<creation::ualloc<wide>, 256>);
static_assert(pads_to<creation::throughput<>, 4096> && !pads_to<creation::throughput<>, 8192>);
static_assert(pads_to<creation::throughput<wide>, 128> && !pads_to<creation::throughput<wide>, 256>);
static_assert(pads_to<creation::random_walk<odd_pages>, 128> && !pads_to<creation::random_walk<odd_pages>, 256>);
static_assert(pads_to<creation::ring_buffer<odd_frames>, 64> && !pads_to<creation::ring_buffer<odd_frames>, 128>);
static_assert(pads_to<creation::rw_malloc<large_units>, 256> && !pads_to<creation::rw_malloc<>, 32>);
static_assert(pads_to<creation::slab_bitmap<>, 128, oom::overflow_to<halloc_allocator>> &&
              !pads_to<creation::slab_bitmap<>, 128, oom::overflow_to<scatter_allocator>>);
/// A second heap may be asked for unpadded sizes too: scatter keeps an alignment only if it pads by
/// itself.
using scatter_in_lines = allocator<creation::scatter<>, distribution::none, oom::return_null,
                                   reserve_pool::device_memory, alignment::shrink<128>>;
static_assert(pads_to<creation::slab_bitmap<>, 128, oom::overflow_to<scatter_in_lines>> &&
              !pads_to<creation::slab_bitmap<>, 256, oom::overflow_to<scatter_in_lines>>);
/// All of its blocks are then aligned to the padding.
static_assert(scatter_in_lines::traits.alignment == 128 && scatter_allocator::traits.alignment == 16);
static_assert(allocator<creation::scatter<>, distribution::none, oom::overflow_to<scatter_in_lines>,
                        reserve_pool::device_memory, alignment::shrink<128>>::traits.alignment == 128);
static_assert(plain_allocator<creation::halloc<>>::traits.alignment == 16);
static_assert(forgiving_allocator::traits.alignment == 32 && default_allocator::traits.alignment == 16);

static_assert(composes<wary, distribution::none, oom::return_null, alignment::shrink<16>>);
static_assert(!composes<wary, distribution::none, oom::trap, alignment::shrink<16>>);
static_assert(composes<echo, distribution::none, wary_oom, alignment::shrink<16>>);
static_assert(!composes<paged, distribution::none, wary_oom, alignment::shrink<16>>);
static_assert(!composes<creation::toolkit, distribution::none, oom::return_null, alignment::shrink<16>>,
              "the toolkit's heap lies in no device memory of ours");
struct mixes_heaps : creation::slab_bitmap<> {
  static constexpr bool supports_mixed_heaps = false;
};
static_assert(!composes<mixes_heaps, distribution::none, oom::overflow_to<default_allocator>, shrink_16>,
              "lanes that ask the first heap would be served with those that ask the second");
static_assert(composes<creation::slab_bitmap<>, distribution::none, oom::overflow_to<default_allocator>, shrink_16>);

/// Which of the promises behind it each policy keeps.
using coalesced = allocator<creation::slab_bitmap<>, distribution::warp_coalesce, oom::return_null,
                            reserve_pool::device_memory, alignment::shrink<16>>;
static_assert(default_allocator::traits.self_aligned_up_to == 4096 && default_allocator::traits.whole_pool);
static_assert(coalesced::traits.alignment == 16 && coalesced::traits.self_aligned_up_to == 0);
static_assert(!coalesced::traits.detects_misuse && !coalesced::traits.exact_out_of_memory &&
              !coalesced::traits.whole_pool);
static_assert(sizeof(coalesced) == 16, "a distribution policy takes no room in a kernel's parameters");

template <class Allocator>
concept offers_what_only_some_can = requires(Allocator heap, void* memory) {
  heap.usable_size(memory);
  heap.owns(memory);
  heap.available_slots(16);
  heap.aligned_alloc(16, 16);
  heap.malloc_warp(1, 16);
  heap.realloc(memory, 16);
};
static_assert(offers_what_only_some_can<default_allocator>);
static_assert(offers_what_only_some_can<coalesced>);
static_assert(!offers_what_only_some_can<plain_allocator<echo>>);

/// Over any creation policy, parts know their size, and a warp can ask at once. A heap without a
/// pool to look at cannot tell its own pointers from foreign ones.
template <class Allocator>
constexpr bool knows_sizes = requires(Allocator heap, void* memory) {
  heap.usable_size(memory);
  heap.realloc(memory, 16);
  heap.malloc_warp(1, 16);
};
template <class Allocator>
constexpr bool knows_owners = requires(Allocator heap, void* memory) {
  heap.owns(memory);
};
using coalesced_echo =
    allocator<echo, distribution::warp_coalesce, oom::return_null, reserve_pool::device_memory, shrink_16>;
static_assert(knows_sizes<coalesced_echo> && !knows_owners<coalesced_echo>);
static_assert(!knows_sizes<plain_allocator<echo>>);
/// A distribution that hands out other addresses than were created, and does not say which, has
/// none of these.
using halves_of_slabs =
    allocator<creation::slab_bitmap<>, second_half, oom::return_null, reserve_pool::device_memory, shrink_16>;
static_assert(!knows_sizes<halves_of_slabs> && !knows_owners<halves_of_slabs>);
template <class Allocator>
constexpr bool counts_or_lists = requires(basic_heap<Allocator> const& heap) {
  heap.available_slots(16);
}
|| requires(basic_heap<Allocator> const& heap) { heap.for_each_live(ignore_block{}); };
static_assert(counts_or_lists<coalesced> && !counts_or_lists<halves_of_slabs>);

/// info() is there if all five have a name.
struct nameless {
  WARPHEAP_DEVICE static void* handle(size_t) { return nullptr; }
};
template <class Allocator>
constexpr bool tells = requires(basic_heap<Allocator> const& heap) {
  heap.info();
};
using with_nameless =
    allocator<creation::slab_bitmap<>, distribution::none, nameless, reserve_pool::device_memory, shrink_16>;
static_assert(tells<default_allocator> && tells<coalesced> && !tells<with_nameless>);
static_assert(requires(plain_allocator<echo> heap, void* memory) { heap.realloc(memory, 16, 32); });

using alignment::shrink;
constexpr size_t most = ~size_t{0};
static_assert(shrink<16>::pad(0) == 0 && shrink<16>::pad(1) == 16 && shrink<16>::pad(16) == 16);
static_assert(shrink<16>::pad(17) == 32 && shrink<64>::pad(65) == 128 && shrink<1>::pad(7) == 7);
static_assert(shrink<16>::pad(most) == most - 15, "too large stays too large");
static_assert(shrink<16>::pad(most - 15) == most - 15 && shrink<16>::pad(most - 16) == most - 15);
static_assert(shrink<1>::pad(most) == most);

struct ask {
  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, u64 const* bytes, u64 count, u64* results) const {
    for (u64 i = global_thread_index(); i < count; i += simt::block_dim())
      results[i] = reinterpret_cast<u64>(heap.malloc(bytes[i]));
  }
};

template <class Allocator>
std::vector<u64> results_of(std::vector<u64> const& bytes) {
  device_buffer<u64> const asked{bytes}, results(bytes.size());
  launch({1, 32}, ask{}, Allocator{}, static_cast<u64 const*>(asked.data()), u64{bytes.size()}, results.data());
  synchronize();
  return results.to_host();
}

constexpr u64 base = u64{1} << 32;

TEST(Allocator, PadsBeforeItCreates) {
  EXPECT_EQ(results_of<plain_allocator<echo>>({0, 1, 16, 17, 4095, 4096}),
            (std::vector<u64>{0, base + 16, base + 16, base + 32, base + 4096, base + 4096}));
}

TEST(Allocator, DistributesWhatWasCreatedForAll) {
  using halves = allocator<echo, second_half, oom::return_null, reserve_pool::device_memory, shrink<16>>;
  EXPECT_EQ(results_of<halves>({0, 16, 100, 2048, 2049}),
            (std::vector<u64>{0, base + 32 + 16, base + 224 + 112, base + 4096 + 2048, 0}));
}

TEST(Allocator, AsksTheOutOfMemoryPolicyOnlyWhenMemoryRanOut) {
  using echoing = allocator<echo, distribution::none, echo_out_of_memory, reserve_pool::device_memory, shrink<16>>;
  EXPECT_EQ(results_of<echoing>({0, 16, 4097, 1 << 20}), (std::vector<u64>{0, base + 16, 4112, 1 << 20}));
}

struct free_numbers {
  WARPHEAP_DEVICE void operator()(plain_allocator<echo> heap) const {
    for (u64 i = 0; i < 10; ++i) heap.free(reinterpret_cast<void*>(i));
  }
};

struct free_second_halves {
  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap) const {
    heap.free(reinterpret_cast<void*>(116));
    heap.free(nullptr);
  }
};

TEST(Allocator, GivesBackWhatTheDistributionPolicyReleases) {
  using halves = allocator<echo, second_half, oom::return_null, reserve_pool::device_memory, shrink<16>>;
  device_buffer<u64> const sum(1);
  echo creation;
  creation.destroyed = sum.data();
  launch({1, 1}, free_second_halves{}, halves{creation});
  synchronize();
  EXPECT_EQ(sum[0], 100u);
}

TEST(Allocator, LeavesFreesToTheCreationPolicy) {
  device_buffer<u64> const sum(1);
  echo creation;
  creation.destroyed = sum.data();
  launch({1, 1}, free_numbers{}, plain_allocator<echo>{creation});
  synchronize();
  EXPECT_EQ(sum[0], 45u);
}

template <class T>
char const* name_of_type() {
  return __PRETTY_FUNCTION__;
}

TEST(Allocator, TheDefaultHasAShortNameInReportsOfSanitizersAndProfilers) {
  std::string const name = name_of_type<heap_ref>();
  EXPECT_NE(name.find("default_allocator"), std::string::npos) << name;
  EXPECT_EQ(name.find('<'), std::string::npos) << name;
}

}  // namespace allocator_test
