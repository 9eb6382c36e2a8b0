// SPDX-License-Identifier: Apache-2.0
// Vectors of many threads beside a plain array of each: after every call a vector has the same
// elements, also when the heap refused, and in the end the heap has all its memory again.
#include "warpheap/container/vector.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "container/heaps.hpp"
#include "support/schedules.hpp"
#include "warpheap/adaptor/checked.hpp"
#include "warpheap/adaptor/trace.hpp"
#include "warpheap/all.hpp"
#include "warpheap/heap/heap_set.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/platform/shared_memory.hpp"
#include "warpheap/util/random.hpp"

namespace vector_test {

using namespace warpheap;
using namespace warpheap::literals;
using namespace warpheap::test;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

/// What a lane's vector is compared with: as many elements as the test lets it have.
struct plain_array {
  static constexpr u32 most = 96;

  u32 size;
  u32 elements[most];

  WARPHEAP_DEVICE void push(u32 value) {
    elements[size] = value;
    ++size;
  }
  WARPHEAP_DEVICE void insert(u32 index, u32 value) {
    for (u32 i = size++; i > index; --i) elements[i] = elements[i - 1];
    elements[index] = value;
  }
  WARPHEAP_DEVICE void erase(u32 index) {
    for (u32 i = index; i + 1 < size; ++i) elements[i] = elements[i + 1];
    --size;
  }
};

/// What a lane saw.
struct tally {
  u32 wrong;      ///< whether the vector was not as the array
  u32 refused;    ///< calls that had no memory
  u32 served;     ///< calls that took some
  u32 first_bad;  ///< the operation of the wrong call, which was the last
};

/// Kernel: every lane does `calls` random operations on a vector and on its array.
template <class Vector>
struct operate {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap, u32 calls, u64 seed, plain_array* arrays, tally* seen) const {
    u64 const me = global_thread_index();
    random_sequence random{seed * 1024 + me};
    plain_array& array = arrays[me];
    tally& mine = seen[me];
    Vector vector;
    for (u32 call = 0; call < calls && !mine.wrong; ++call) {
      u32 const what = random.below(12);
      bool const served = change(heap, what, random, vector, array);
      if (!served) ++mine.refused;
      else ++mine.served;
      if (are_alike(vector, array)) continue;
      ++mine.wrong;
      mine.first_bad = what;
    }
    vector.destroy(heap);
    if (vector.size() + vector.capacity() != 0 || vector.data()) ++mine.wrong;
  }

 private:
  template <class Ref>
  WARPHEAP_DEVICE static bool change(Ref const& heap, u32 what, random_sequence& random, Vector& vector,
                                     plain_array& array) {
    u32 const value = random.next(), more = random.below(plain_array::most - array.size + 1) % 20;
    u32 const index = array.size ? random.below(array.size) : 0;
    bool served = true;
    switch (what) {
      case 0:
      case 1:
      case 2:
        if (array.size == plain_array::most) break;
        if (what == 0 && array.size) {  // one of its own
          served = vector.push_back(heap, vector[index]);
          if (served) array.push(array.elements[index]);
        } else {
          served = vector.push_back(heap, value);
          if (served) array.push(value);
        }
        break;
      case 3:
        if (array.size == plain_array::most) break;
        served = vector.insert(heap, index, array.size ? vector.back() : value);
        if (served) array.insert(index, array.size ? array.elements[array.size - 1] : value);
        break;
      case 4: {
        // A part of itself.
        u32 const part = more < array.size - index ? more : array.size - index;
        served = vector.append(heap, vector.data() + index, part);
        for (u32 i = 0; served && i < part; ++i) array.push(array.elements[index + i]);
        break;
      }
      case 5: {
        u32 const added[] = {value, value + 1, value + 2};
        u32 const count = more < 3 ? more : 3;
        served = vector.append(heap, added, count);
        for (u32 i = 0; served && i < count; ++i) array.push(added[i]);
        break;
      }
      case 6:
        served = vector.resize(heap, array.size + more, value);
        for (u32 i = 0; served && i < more; ++i) array.push(value);
        break;
      case 7: served = vector.reserve(heap, random.below(2 * plain_array::most)); break;
      case 8: vector.shrink_to_fit(heap); break;
      default: remove(heap, what, index, vector, array);
    }
    return served;
  }

  template <class Ref>
  WARPHEAP_DEVICE static void remove(Ref const& heap, u32 what, u32 index, Vector& vector, plain_array& array) {
    if (array.size == 0) return vector.clear();
    u32 const last = array.elements[array.size - 1];
    if (what == 9) {
      vector.erase(index);
      array.erase(index);
    } else if (what == 10) {
      vector.erase_unordered(index);
      array.elements[index] = last;
      --array.size;
    } else if (index % 2 == 0) {
      if (vector.pop_back() == last) --array.size;
    } else {
      array.size = index;
      if (index % 4 == 1) vector.truncate(index);
      else vector.resize(heap, index);
    }
  }

  // vector.V1, vector.V2
  WARPHEAP_DEVICE static bool are_alike(Vector const& vector, plain_array const& array) {
    bool alike = vector.size() == array.size && vector.size() <= vector.capacity() &&
                 (vector.data() == nullptr) == (vector.capacity() == 0) && vector.empty() == (array.size == 0);
    u32 i = 0;
    for (u32 const element : vector) alike = alike && element == array.elements[i++];
    return alike && i == array.size && (i == 0 || vector.back() == array.elements[i - 1]);
  }
};

/// All lanes' tallies together.
template <class Vector, class Ref>
tally operate_in(Ref heap, launch_shape shape, u32 calls) {
  u64 const threads = u64{shape.blocks} * shape.threads;
  device_buffer<plain_array> const arrays(threads);
  device_buffer<tally> const seen(threads);
  launch(shape, operate<Vector>{}, heap, calls, schedule_seed() + 1, arrays.data(), seen.data());
  synchronize();
  tally all{};
  for (auto const& each : seen.to_host()) {
    if (each.wrong && !all.wrong) all.first_bad = each.first_bad;
    all.wrong += each.wrong;
    all.refused += each.refused;
    all.served += each.served;
  }
  return all;
}

constexpr launch_shape shapes[] = {{1, 1}, {1, 32}, {2, 40}};

/// In a heap of its own for each shape; `ref_of(heap.ref())` is what the lanes take.
template <class Heap, class RefOf>
void expect_as_arrays(bool refuses, RefOf ref_of, size_t bytes = 4_MiB) {
  for (launch_shape const shape : shapes) {
    Heap const heap{bytes};
    auto const seen = operate_in<vector<u32>>(ref_of(heap.ref()), shape, 60);
    EXPECT_EQ(seen.wrong, 0u) << "first in operation " << seen.first_bad;
    EXPECT_GT(seen.served, 0u);
    if (shape.threads > 1) {
      EXPECT_EQ(seen.refused != 0, refuses);
    }
    if constexpr (requires { heap.statistics(); }) {
      EXPECT_EQ(heap.statistics().live_blocks, 0u);
      EXPECT_EQ(heap.statistics().double_frees + heap.statistics().foreign_frees, 0u);
    }
    if constexpr (requires { heap.check_blocks(); }) {
      EXPECT_EQ(heap.check_blocks().size() + heap.error_count(), 0u);
    }
  }
}

constexpr auto as_it_is = [](auto ref) { return ref; };

TEST(Vector, HasTheElementsThatItShouldAfterEveryCall) {
  for_each_schedule(30, [] {
    expect_as_arrays<heap>(false, as_it_is);
    expect_as_arrays<heap>(false, around<bare_ref<>>{});
  });
}

TEST(Vector, IsAsItWasWhenTheHeapRefuses) {
  for_each_schedule(30, [] {
    expect_as_arrays<refusing_heap>(true, as_it_is);
    expect_as_arrays<refusing_heap>(true, around<bare_ref<refusing_heap::ref_type>>{});
    expect_as_arrays<heap>(true, around<faulty_ref<fault::none>>{});
  });
}

TEST(Vector, TakesItsMemoryFromAnyHeap) {
  for_each_schedule(4, [] {
    expect_as_arrays<coalescing_heap>(false, as_it_is);
    expect_as_arrays<scatter_heap>(false, as_it_is);
    expect_as_arrays<halloc_heap>(false, as_it_is, 32_MiB);
    expect_as_arrays<throughput_heap>(false, as_it_is);
    expect_as_arrays<toolkit_heap>(false, as_it_is);
    expect_as_arrays<traced<heap>>(false, as_it_is);
    expect_as_arrays<checked<heap>>(false, as_it_is);
  });
}

/// Whether operate finds a fault in a run of some heap, or the heap misses blocks afterwards.
template <class Vector, class Heap, class RefOf>
bool is_right(RefOf ref_of) {
  Heap const heap{4_MiB};
  auto const seen = operate_in<Vector>(ref_of(heap.ref()), {2, 40}, 60);
  auto const counted = heap.statistics();
  return seen.wrong == 0 && counted.live_blocks == 0 && counted.double_frees == 0;
}

struct disorderly : vector<u32> {
  WARPHEAP_DEVICE void erase(u32 index) { erase_unordered(index); }
};
struct hasty : vector<u32> {
  template <class Heap>
  WARPHEAP_DEVICE bool insert(Heap const& heap, u32 index, u32 value) {
    vector<u32>::insert(heap, index, value);
    return true;
  }
};

TEST(Vector, IsToldFromOneWithAFault) {
  EXPECT_TRUE((is_right<vector<u32>, heap>(around<faulty_ref<fault::none>>{})));
  EXPECT_FALSE((is_right<vector<u32>, heap>(around<faulty_ref<fault::loses_the_end>>{})));
  EXPECT_FALSE((is_right<vector<u32>, heap>(around<faulty_ref<fault::keeps_the_old_block>>{})));
  EXPECT_FALSE((is_right<vector<u32>, heap>(around<faulty_ref<fault::frees_when_refused>>{})));
  EXPECT_FALSE((is_right<disorderly, heap>(as_it_is)));
  EXPECT_FALSE((is_right<hasty, refusing_heap>(as_it_is)));
}

/// Kernel: pushes `count` elements, and counts how often the elements moved.
struct push_many {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap, u32 count, vector<u32>* all, u32* moves) const {
    vector<u32> mine;
    for (u32 i = 0; i < count; ++i) {
      u32 const* const before = mine.data();
      if (!mine.push_back(heap, i)) break;
      if (mine.data() != before) ++*moves;
    }
    *all = mine;
  }
};

struct pushed {
  u32 size, capacity, moves;
};

template <class Ref>
pushed push(Ref ref, u32 count) {
  device_buffer<vector<u32>> const all(1);
  device_buffer<u32> const moves(1);
  launch({1, 1}, push_many{}, ref, count, all.data(), moves.data());
  synchronize();
  auto const found = all[0].to_host();
  for (u32 i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], i);
  return {all[0].size(), all[0].capacity(), moves[0]};
}

TEST(Vector, DoublesAndUsesAllOfItsBlock) {
  heap const heap{4_MiB};
  auto const one = push(heap.ref(), 1);
  EXPECT_EQ(one.capacity, 4u) << "the smallest block";
  auto const many = push(heap.ref(), 1000);
  EXPECT_EQ(many.size, 1000u);
  EXPECT_EQ(many.capacity, 1024u);
  EXPECT_LE(many.moves, 9u) << "4 to 1024";
  EXPECT_LE(push(bare_ref<>{heap.ref()}, 1000).moves, 9u) << "a heap that tells no sizes";
}

TEST(Vector, TakesWhatItNeedsWhereThereIsNoMemoryToDouble) {
  heap const heap{4_MiB};
  // 64 elements fit 256 bytes; the next 512 are refused, and 260 to 300 are not.
  auto const found = push(limited_ref{heap.ref(), 300}, 1000);
  EXPECT_EQ(found.size, 75u);
  EXPECT_EQ(found.capacity, 75u);
}

/// Every block is at one address that nobody reads or writes.
struct boundless_ref {
  WARPHEAP_DEVICE void* malloc(size_t) const { return reinterpret_cast<void*>(u64{16}); }
  WARPHEAP_DEVICE void free(void*) const {}
};

struct ask_for_too_much {
  WARPHEAP_DEVICE void operator()(u32* answers) const {
    boundless_ref const heap;
    vector<u8> bytes;
    answers[0] = bytes.extend(heap, 3'000'000'000u) != nullptr;
    answers[1] = bytes.extend(heap, 3'000'000'000u) == nullptr;
    answers[2] = bytes.extend(heap, ~u64{0}) == nullptr;
    answers[3] = !bytes.resize(heap, u64{1} << 32, 0) && !bytes.reserve(heap, u64{1} << 32);
    answers[4] = !bytes.append(heap, bytes.data(), ~u64{0} - 7);
    answers[5] = bytes.size() == 3'000'000'000u;
    vector<u64> words;
    answers[6] = words.extend(heap, vector<u64>::most) && words.capacity() == vector<u64>::most;
    answers[7] = !words.push_back(heap, 1);
  }
};

TEST(Vector, RefusesMoreThanItCanCount) {
  device_buffer<u32> const answers(8);
  launch({1, 1}, ask_for_too_much{}, answers.data());
  synchronize();
  EXPECT_THAT(answers.to_host(), ElementsAre(1, 1, 1, 1, 1, 1, 1, 1));
}

struct alignas(64) line {
  u32 number;
};

/// Kernel: pushes lines, and counts those at other places than they need.
struct push_lines {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap, u32* wrong) const {
    u64 const me = global_thread_index();
    vector<line> lines;
    for (u32 i = 0; i < 5 + me % 9; ++i) {
      if (!lines.push_back(heap, {i})) ++wrong[me];
      if (reinterpret_cast<u64>(lines.data()) % 64 != 0) ++wrong[me];
    }
    lines.shrink_to_fit(heap);
    for (u32 i = 0; i < lines.size(); ++i)
      if (lines[i].number != i || reinterpret_cast<u64>(&lines[i]) % 64 != 0) ++wrong[me];
    lines.destroy(heap);
  }
};

template <class Heap>
void expect_lines_aligned() {
  Heap const heap{4_MiB};
  device_buffer<u32> const wrong(40);
  launch({1, 40}, push_lines{}, heap.ref(), wrong.data());
  synchronize();
  for (u32 const each : wrong.to_host()) EXPECT_EQ(each, 0u);
  EXPECT_EQ(heap.statistics().live_blocks, 0u);
}

TEST(Vector, AlignsElements) {
  for_each_schedule(6, [] {
    expect_lines_aligned<heap>();
    expect_lines_aligned<coalescing_heap>();  // by aligned_alloc
    expect_lines_aligned<checked<heap>>();
  });
}

/// A tree: vectors of what holds vectors.
struct branch {
  u32 number;
  vector<branch> children;
};

/// Kernel: each lane grows a vector of its own in zeroed memory.
struct fill {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap, vector<branch>* trees) const {
    u64 const me = global_thread_index();
    for (u32 i = 0; i < me % 7 + 1; ++i) {
      trees[me].push_back(heap, {i, {}});
      for (u32 j = 0; j < i; ++j) trees[me].back().children.push_back(heap, {j, {}});
    }
  }
};

/// Kernel of another shape: takes them apart, each by a lane that did not make it.
struct take_apart {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap, vector<branch>* trees, u32 count, u32* wrong) const {
    u64 const me = global_thread_index();
    if (me >= count) return;
    u64 const other = count - 1 - me;
    vector<branch>& tree = trees[other];
    if (tree.size() != other % 7 + 1) ++wrong[me];
    for (u32 i = 0; i < tree.size(); ++i) {
      if (tree[i].number != i || tree[i].children.size() != i) ++wrong[me];
      tree[i].children.destroy(heap);
    }
    tree.destroy(heap);
  }
};

template <class Set, class Ref>
void expect_moves(Set const& heap, Ref ref) {
  device_buffer<vector<branch>> const trees(80);
  device_buffer<u32> const wrong(80);
  launch({2, 40}, fill{}, ref, trees.data());
  launch({1, 96}, take_apart{}, ref, trees.data(), 80u, wrong.data());
  synchronize();
  for (u32 const each : wrong.to_host()) EXPECT_EQ(each, 0u);
  for (auto const& tree : trees.to_host()) EXPECT_EQ(tree.capacity(), 0u);
  if constexpr (requires { heap.statistics(); }) {
    EXPECT_EQ(heap.statistics().live_blocks, 0u);
  }
}

TEST(Vector, IsEmptyInZeroedMemoryAndMovesFromKernelToKernel) {
  for_each_schedule(10, [] {
    heap const heap{4_MiB};
    expect_moves(heap, heap.ref());
    heap_set const set{4_MiB};
    expect_moves(set, set.ref(0));
  });
}

/// Kernel: lane 0 of each warp's vector lies in shared memory, and goes from lane to lane, each of
/// which makes it longer.
struct pass_round {
  WARPHEAP_DEVICE void operator()(heap_ref heap, u32* wrong) const {
    u32 const me = simt::thread_index(), threads = simt::block_dim();
    auto& passed = *static_cast<vector<u32>*>(simt::dynamic_shared());
    if (me == 0) passed = {};
    for (u32 turn = 0; turn < threads; ++turn) {
      simt::sync_block();
      if (turn == me && !passed.push_back(heap, me)) ++wrong[me];
    }
    simt::sync_block();
    if (me != 1) return;
    for (u32 i = 0; i < threads; ++i)
      if (passed[i] != i) ++wrong[i];
    passed.destroy(heap);
  }
};

TEST(Vector, PassesFromLaneToLaneThroughSharedMemory) {
  for_each_schedule(20, [] {
    heap const heap{4_MiB};
    device_buffer<u32> const wrong(40);
    launch({.blocks = 3, .threads = 40, .shared_bytes = sizeof(vector<u32>)}, pass_round{}, heap.ref(), wrong.data());
    synchronize();
    for (u32 const each : wrong.to_host()) EXPECT_EQ(each, 0u);
    EXPECT_EQ(heap.statistics().live_blocks, 0u);
  });
}

constexpr u32 first_line = __LINE__ + 4;
struct make_errors {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap) const {
    vector<u64> kept, grown, longer;
    kept.push_back(heap, 1);
    grown.push_back(heap, 1);
    longer.reserve(heap, 8, "a library");
    u64* const dangling = grown.data();
    grown.resize(heap, 9);
    dangling[0] = 2;
    vector<u64> copy = grown;
    grown.destroy(heap);
    copy.destroy(heap);
    longer.data()[8] = 1;
    longer.destroy(heap);
  }
};

TEST(Vector, TellsACheckedHeapTheLineOfTheCall) {
  checked<heap> heap{1_MiB};
  launch({1, 1}, make_errors{}, heap.ref());
  synchronize();
  auto const here = [](u32 line) { return "vector_test.cpp:" + std::to_string(first_line + line); };
  auto const leaks = heap.leaks();
  ASSERT_EQ(leaks.size(), 1u);
  EXPECT_THAT(leaks[0].describe(), HasSubstr(here(1)));
  heap.check_blocks();
  auto const reports = heap.reports();
  ASSERT_EQ(reports.size(), 3u);
  EXPECT_THAT(reports[0].describe(), AllOf(HasSubstr("double free"), HasSubstr("allocated"), HasSubstr(here(5)),
                                           HasSubstr(here(8)), HasSubstr(here(9))));
  EXPECT_THAT(reports[1].describe(), AllOf(HasSubstr("overrun"), HasSubstr(" in a library"), HasSubstr(here(11))));
  EXPECT_THAT(reports[2].describe(),
              AllOf(HasSubstr("use after free: 8 bytes from byte 0 on"), HasSubstr(here(2)), HasSubstr(here(5))));
}

}  // namespace vector_test
