// SPDX-License-Identifier: Apache-2.0
// Objects made and destroyed by a heap's reference: each constructor and destructor runs once, in
// its place, for what fits and for nothing else, and with every heap.
#include "warpheap/heap/typed_calls.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/schedules.hpp"
#include "warpheap/adaptor/checked.hpp"
#include "warpheap/adaptor/trace.hpp"
#include "warpheap/all.hpp"
#include "warpheap/heap/heap_set.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/policy/creation/refuse_some.hpp"

namespace typed_calls_test {

using namespace warpheap;
using namespace warpheap::literals;
using test::for_each_schedule;
using testing::ElementsAre;
using testing::HasSubstr;

static_assert(sizeof(heap_ref) == 16 && __is_trivially_copyable(heap_ref), "the base class takes no room");
static_assert(sizeof(checked<heap>::ref_type) == 24);

struct pair {
  u32 first;
  u32* second;
};

/// A class with a constructor, for which an aggregate's braces would not do.
class square {
 public:
  WARPHEAP_DEVICE explicit square(u32 side, u32 factor = 1) : area_{side * side * factor} {}
  WARPHEAP_DEVICE u32 area() const { return area_; }

 private:
  u32 area_;
};

struct five {
  u32 values[5];
};

/// Kernel: one lane notes what it made.
struct make_one_of_each {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u32* seen) const {
    u32 other = 7;
    auto* const braced = heap.template make<pair>(3u, &other);
    auto* const constructed = heap.template make<square>(5u);
    auto* const twice = heap.template make<square>(5u, 2u);
    auto* const number = heap.template make<u32>(11);
    auto* const zero = heap.template make<pair>();
    auto* const many = heap.template make_at<five>("a test", 1u, 2u, 3u, 4u, 5u);
    u32 const made[] = {braced->first,  *braced->second, constructed->area(),
                        twice->area(),  *number,         zero->first + (zero->second != nullptr),
                        many->values[4]};
    for (u32 i = 0; i < 7; ++i) seen[i] = made[i];
    heap.destroy(braced);
    heap.destroy(constructed);
    heap.destroy(twice);
    heap.destroy(number);
    heap.destroy(zero);
    heap.destroy(many);
    heap.destroy(static_cast<square*>(nullptr));
    heap.destroy_array(static_cast<square*>(nullptr), 3);
  }
};

/// All blocks are filled before, so that a zero was written.
struct fill_and_free {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap) const {
    u8* blocks[8];
    for (auto& block : blocks) block = static_cast<u8*>(heap.malloc(sizeof(five)));
    for (auto* block : blocks) {
      for (u32 i = 0; i < sizeof(five); ++i) block[i] = 0xaa;
      heap.free(block);
    }
  }
};

template <class Heap>
void expect_made(Heap const& heap) {
  device_buffer<u32> const seen(7);
  launch({1, 1}, fill_and_free{}, heap.ref());
  launch({1, 1}, make_one_of_each{}, heap.ref(), seen.data());
  synchronize();
  EXPECT_THAT(seen.to_host(), ElementsAre(3, 7, 25, 50, 11, 0, 5));
  if constexpr (requires { heap.statistics(); }) {
    EXPECT_EQ(heap.statistics().live_blocks, 0u);
  }
}

TEST(TypedCalls, MakeWhatTheArgumentsSayInEveryHeap) {
  expect_made(heap{1_MiB});
  expect_made(scatter_heap{1_MiB});
  expect_made(halloc_heap{16_MiB});
  expect_made(throughput_heap{4_MiB});
  expect_made(toolkit_heap{1_MiB});
  expect_made(traced<heap>{1_MiB});
  checked<heap> const watched{1_MiB};
  expect_made(watched);
  EXPECT_EQ(watched.check_blocks().size() + watched.error_count(), 0u);
}

TEST(TypedCalls, AreThoseOfTheReferenceOfAHeapSet) {
  heap_set set{1_MiB};
  device_buffer<u32> const seen(7);
  launch({1, 1}, make_one_of_each{}, set.ref(0), seen.data());
  synchronize();
  EXPECT_THAT(seen.to_host(), ElementsAre(3, 7, 25, 50, 11, 0, 5));
}

/// What became of objects that note it.
struct lives {
  u32 begun, ended;
  u32 last;        ///< number of the object that ended last
  u32 disordered;  ///< ends that were not in falling order of numbers
};

/// Notes its begin once it is told where, and its end there. Not trivial, so a default constructor
/// has to run; `number` is its own to set.
struct noting {
  static constexpr u32 alive = 0x11fe;

  u32 state = alive;
  u32 number = 0;
  lives* notes = nullptr;

  noting() = default;
  WARPHEAP_DEVICE explicit noting(lives* where) : notes{where} { ++where->begun; }
  WARPHEAP_DEVICE ~noting() {
    if (state != alive) return;
    state = 0;
    if (notes->ended != 0 && notes->last != number + 1) ++notes->disordered;
    notes->last = number;
    ++notes->ended;
  }
};

/// Kernel: each lane makes an object and an array of its index more than one, and destroys them.
/// A `forgetful` one frees the blocks only.
struct live_and_die {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, lives* notes, u32* refused, bool forgetful) const {
    u64 const me = global_thread_index(), count = me % 7 + 1;
    auto* const one = heap.template make<noting>(&notes[2 * me]);
    if (!one) ++refused[me];
    else if (forgetful) heap.free(one);
    else heap.destroy(one);
    auto* const all = heap.template make_array<noting>(count);
    lives& mine = notes[2 * me + 1];
    for (u32 i = 0; all && i < count; ++i) {
      if (all[i].state == noting::alive) ++mine.begun;
      all[i].notes = &mine;
      all[i].number = i;
    }
    if (!all) ++refused[me];
    else if (forgetful) heap.free(all);
    else heap.destroy_array(all, count);
  }
};

struct tally {
  u64 begun = 0, ended = 0, disordered = 0, refused = 0, live_blocks = 0, expected = 0;
};

template <class Heap>
tally live_in(launch_shape shape, bool forgetful = false) {
  u64 const threads = u64{shape.blocks} * shape.threads;
  Heap const heap{1_MiB};
  device_buffer<lives> const notes(2 * threads);
  device_buffer<u32> const refused(threads);
  launch(shape, live_and_die{}, heap.ref(), notes.data(), refused.data(), forgetful);
  synchronize();
  tally found;
  for (auto const& each : notes.to_host()) {
    found.begun += each.begun;
    found.ended += each.ended;
    found.disordered += each.disordered;
  }
  for (u32 const each : refused.to_host()) found.refused += each;
  for (u64 t = 0; t < threads; ++t) found.expected += 1 + t % 7 + 1;
  found.live_blocks = heap.statistics().live_blocks;
  return found;
}

TEST(TypedCalls, RunEveryConstructorAndDestructorOnceTheLastObjectFirst) {
  for_each_schedule(20, [&] {
    for (launch_shape const shape : {launch_shape{1, 1}, launch_shape{2, 40}}) {
      auto const found = live_in<heap>(shape);
      EXPECT_EQ(found.refused, 0u);
      EXPECT_EQ(found.begun, found.expected);
      EXPECT_EQ(found.ended, found.expected);
      EXPECT_EQ(found.disordered, 0u);
      EXPECT_EQ(found.live_blocks, 0u);
    }
  });
  EXPECT_EQ(live_in<heap>({2, 40}, true).ended, 0u) << "destructors that free() does not run are missed";
}

inline constexpr creation::refuse_some_config a_third{.seed = 5, .one_in = 3};
inline constexpr creation::refuse_some_config everything{.one_in = 1};
using refusing_heap = basic_heap<plain_allocator<creation::refuse_some<creation::slab_bitmap<>, a_third>>>;
using full_heap = basic_heap<plain_allocator<creation::refuse_some<creation::slab_bitmap<>, everything>>>;

TEST(TypedCalls, RunNoConstructorWithoutMemory) {
  for_each_schedule(20, [&] {
    auto const found = live_in<refusing_heap>({2, 40});
    EXPECT_GT(found.refused, 0u);
    EXPECT_LT(found.refused, 160u);
    EXPECT_EQ(found.begun, found.ended);
    EXPECT_EQ(found.disordered, 0u);
    EXPECT_EQ(found.live_blocks, 0u);
  });
  auto const found = live_in<full_heap>({2, 40});
  EXPECT_EQ(found.refused, 160u);
  EXPECT_EQ(found.begun + found.ended, 0u);
}

/// Kernel: what make_array() answers for `count` objects.
struct make_many {
  WARPHEAP_DEVICE void operator()(heap_ref heap, u64 count, u32* made) const {
    auto* const all = heap.make_array<noting>(count);
    *made = all != nullptr;
    for (u64 i = 0; all && i < count; ++i) all[i].state = 0;
    heap.destroy_array(all, count);
  }
};

TEST(TypedCalls, RefuseArraysOfNoneAndThoseWhoseBytesOverflow) {
  heap const heap{1_MiB};
  device_buffer<u32> const made(1);
  auto const is_made = [&](u64 count) {
    launch({1, 1}, make_many{}, heap.ref(), count, made.data());
    synchronize();
    return made[0] != 0;
  };
  EXPECT_TRUE(is_made(1000));
  EXPECT_FALSE(is_made(0));
  constexpr u64 overflowing = ~u64{0} / sizeof(noting) + 2;
  static_assert(overflowing * sizeof(noting) == sizeof(noting), "the product is small");
  EXPECT_FALSE(is_made(overflowing));
  EXPECT_EQ(heap.statistics().failures, 0u) << "the heap was not asked";
  EXPECT_FALSE(is_made(u64{1} << 40));
}

template <size_t Alignment>
struct alignas(Alignment) aligned {
  u8 bytes[Alignment + 1];
};

/// Kernel: each lane makes objects of an alignment, and notes what is not aligned.
template <size_t Alignment>
struct make_aligned {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u32* wrong, u32* made) const {
    u64 const me = global_thread_index();
    auto* const one = heap.template make<aligned<Alignment>>();
    auto* const all = heap.template make_array<aligned<Alignment>>(me % 3 + 1);
    made[me] = (one != nullptr) + (all != nullptr);
    wrong[me] = reinterpret_cast<u64>(one) % Alignment != 0 || reinterpret_cast<u64>(all) % Alignment != 0;
    heap.destroy(one);
    heap.destroy_array(all, me % 3 + 1);
  }
};

template <size_t Alignment, class Heap>
void expect_aligned(Heap const& heap) {
  device_buffer<u32> const wrong(40), made(40);
  launch({1, 40}, make_aligned<Alignment>{}, heap.ref(), wrong.data(), made.data());
  synchronize();
  for (u32 const each : wrong.to_host()) EXPECT_EQ(each, 0u) << Alignment;
  for (u32 const each : made.to_host()) EXPECT_EQ(each, 2u) << Alignment;
  EXPECT_EQ(heap.statistics().live_blocks, 0u);
}

using coalescing = basic_heap<allocator<creation::slab_bitmap<>, distribution::warp_coalesce, oom::return_null,
                                        reserve_pool::device_memory, alignment::shrink<16>>>;
static_assert(detail::malloc_aligns<heap_ref, 4096> && !detail::malloc_aligns<heap_ref, 8192>);
static_assert(!detail::malloc_aligns<coalescing::ref_type, 64>, "parts of blocks need aligned_alloc");

TEST(TypedCalls, AlignTypesByMallocOrByAlignedAlloc) {
  for_each_schedule(6, [&] {
    expect_aligned<64>(heap{4_MiB});
    expect_aligned<4096>(heap{4_MiB});
    expect_aligned<8192>(heap{8_MiB});
    expect_aligned<64>(coalescing{4_MiB});
    expect_aligned<16>(halloc_heap{16_MiB});
    expect_aligned<64>(checked<heap>{4_MiB});
  });
}

constexpr u32 line_of_make = __LINE__ + 5;
struct make_and_leak {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap) const {
    auto* const freed = heap.template make<square>(2u);
    heap.template make<pair>(3u, nullptr);
    heap.template make_array<u32>(5, "a table");
    heap.destroy(freed);
    heap.destroy(freed);
  }
};

TEST(TypedCalls, TellACheckedHeapTheLineOfTheCall) {
  checked<heap> heap{1_MiB};
  launch({1, 1}, make_and_leak{}, heap.ref());
  synchronize();
  auto const here = [](u32 line) { return "typed_calls_test.cpp:" + std::to_string(line); };
  auto const leaks = heap.leaks();
  ASSERT_EQ(leaks.size(), 2u);
  EXPECT_THAT(leaks[0].describe(), HasSubstr(" in a table"));
  EXPECT_THAT(leaks[1].describe(), HasSubstr(here(line_of_make)));
  ASSERT_EQ(heap.reports().size(), 1u);
  auto const text = heap.reports()[0].describe();
  EXPECT_THAT(text, HasSubstr("double free of a block of 4 bytes"));
  for (u32 const line : {line_of_make - 1, line_of_make + 2, line_of_make + 3})
    EXPECT_THAT(text, HasSubstr(here(line)));
}

}  // namespace typed_calls_test
