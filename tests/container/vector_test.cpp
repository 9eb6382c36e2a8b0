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
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/util/random.hpp"

namespace vector_test {

using namespace warpheap;
using namespace warpheap::literals;
using namespace warpheap::test;

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
      case 3: return array.size == plain_array::most || add_one(heap, what, index, value, vector, array);
      case 4: return append_own(heap, index, more < array.size - index ? more : array.size - index, vector, array);
      case 5: return append_others(heap, value, more < 3 ? more : 3, vector, array);
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

  /// At the end, also one of its own, or in between.
  template <class Ref>
  WARPHEAP_DEVICE static bool add_one(Ref const& heap, u32 what, u32 index, u32 value, Vector& vector,
                                      plain_array& array) {
    bool const inserts = what == 3, is_own = array.size != 0 && (what == 0 || inserts);
    u32 const from = inserts ? array.size - 1 : index, added = is_own ? array.elements[from] : value;
    u32 const& given = is_own ? static_cast<u32 const&>(vector[from]) : value;
    bool const served = inserts ? vector.insert(heap, index, given) : vector.push_back(heap, given);
    if (served) array.insert(inserts ? index : array.size, added);
    return served;
  }

  template <class Ref>
  WARPHEAP_DEVICE static bool append_own(Ref const& heap, u32 index, u32 part, Vector& vector, plain_array& array) {
    bool const served = vector.append(heap, vector.data() + index, part);
    for (u32 i = 0; served && i < part; ++i) array.push(array.elements[index + i]);
    return served;
  }

  template <class Ref>
  WARPHEAP_DEVICE static bool append_others(Ref const& heap, u32 value, u32 count, Vector& vector, plain_array& array) {
    u32 const added[] = {value, value + 1, value + 2};
    bool const served = vector.append(heap, added, count);
    for (u32 i = 0; served && i < count; ++i) array.push(added[i]);
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
void expect_as_arrays(bool refuses, RefOf ref_of, size_t bytes = size_t{4} << 20) {
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
  auto const seen = operate_in<Vector>(ref_of(heap.ref()), {2, 40}, 300);
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

}  // namespace vector_test
