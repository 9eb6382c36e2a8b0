// SPDX-License-Identifier: Apache-2.0
// The inspection functions see of a heap what its owner sees: at rest, and with damaged metadata.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "warpheap/heap/growing_heap.hpp"
//
#include "inspection_functions.hpp"
#include "warpheap/all.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace inspection_test {

using namespace warpheap;
using namespace warpheap::literals;
using testing::AllOf;
using testing::HasSubstr;

int read(void* to, u64 from, u64 bytes, u64 pitch, u64 rows) {
  for (u64 row = 0; row < rows; ++row)
    std::memcpy(static_cast<u8*>(to) + row * bytes, reinterpret_cast<void const*>(from + row * pitch), bytes);
  return 0;
}
int refuse(void*, u64, u64, u64, u64) { return 1; }

std::string answer;
void keep(void const* given, u64 bytes) { answer.assign(static_cast<char const*>(given), bytes); }

using function = int (*)(inspected_heap const*);

template <class Allocator, function Statistics, function Check, function Live>
struct subject {
  using allocator = Allocator;
  static constexpr function statistics = Statistics, check = Check, live = Live;
};
#define SUBJECT(name, allocator) \
  subject<allocator, &inspect_##name##_statistics, &inspect_##name##_check, &inspect_##name##_live>
using subjects = testing::Types<SUBJECT(slab_bitmap, default_allocator), SUBJECT(polled, polled_allocator),
                                SUBJECT(ring_buffer, ring_buffer_allocator), SUBJECT(rw, rw_allocator),
                                SUBJECT(rw_bitmap, rw_bitmap_allocator), SUBJECT(corw, corw_allocator),
                                SUBJECT(rw_malloc, rw_malloc_allocator), SUBJECT(scatter, scatter_allocator),
                                SUBJECT(halloc, halloc_allocator), SUBJECT(tbuddy, tbuddy_allocator),
                                SUBJECT(ualloc, ualloc_allocator), SUBJECT(throughput, throughput_allocator)>;

/// Blocks of many sizes; a third of them are freed again.
struct allocate {
  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap) const {
    void* const memory = heap.malloc(size_t{16} << (global_thread_index() % 10));
    if (global_thread_index() % 3 == 0) heap.free(memory);
  }
};

template <class Subject>
class Inspection : public testing::Test {
 protected:
  using heap_type = basic_heap<typename Subject::allocator>;

  Inspection() {
    launch({4, 64}, allocate{}, heap.ref());
    synchronize();
  }

  inspected_heap request() const { return {heap.handle(), heap.pool_bytes(), heap.metadata_bytes(), &read, &keep}; }
  std::string ask(function what) const {
    auto const asked = request();
    answer = "none";
    EXPECT_EQ(what(&asked), 0);
    return answer;
  }

  std::string statistics() const {
    auto const counted = heap.statistics();
    return {reinterpret_cast<char const*>(&counted), sizeof counted};
  }
  std::string report() const {
    std::string lines;
    for (auto const& line : heap.check_invariants()) lines += line + "\n";
    return lines;
  }
  std::vector<std::pair<u64, u64>> live() const {
    std::vector<std::pair<u64, u64>> blocks;
    heap.for_each_live([&](void* memory, size_t bytes) { blocks.emplace_back(reinterpret_cast<u64>(memory), bytes); });
    return blocks;
  }

  /// A damage is looked for in all of a pool, so one that grows is there from the start.
  static heap_type made() {
    if constexpr (growing_pool<typename heap_type::reserve_pool_type>)
      return heap_type{growth{.initial = 4_MiB, .limit = 4_MiB}};
    else return heap_type{4_MiB};
  }

  heap_type heap = made();
};
TYPED_TEST_SUITE(Inspection, subjects);

TYPED_TEST(Inspection, SeesWhatTheOwnerSees) {
  auto const blocks = this->live();
  ASSERT_GT(blocks.size(), 50u);
  std::string numbers;
  for (auto const& [address, bytes] : blocks)
    for (u64 const number : {address, bytes}) numbers.append(reinterpret_cast<char const*>(&number), sizeof number);
  EXPECT_EQ(this->ask(TypeParam::live), numbers);
  EXPECT_EQ(this->ask(TypeParam::statistics), this->statistics());
  EXPECT_EQ(this->ask(TypeParam::check), "");
}

TYPED_TEST(Inspection, FindsTheDamageThatTheOwnerFinds) {
  auto const piece = this->heap.memory().front();
  auto* const words = static_cast<u64*>(piece.begin);
  auto const blocks = this->live();
  std::vector<u64> const used(words, words + piece.bytes / 8);
  this->heap.reset();
  synchronize();
  std::vector<u64> changed;  // words of metadata that the blocks changed
  auto block = blocks.begin();
  for (u64 i = 0; i < used.size(); ++i) {
    while (block != blocks.end() && block->first + block->second <= reinterpret_cast<u64>(words + i)) ++block;
    bool const in_block = block != blocks.end() && block->first <= reinterpret_cast<u64>(words + i);
    if (!in_block && used[i] != words[i]) changed.push_back(i);
  }
  std::memcpy(words, used.data(), 8 * used.size());
  std::mt19937_64 random{1};
  std::shuffle(changed.begin(), changed.end(), random);
  changed.resize(std::min<size_t>(changed.size(), 200));
  u32 found = 0;
  for (u64 const word : changed) {
    words[word] ^= u64{1} << random() % 64;
    auto const report = this->ask(TypeParam::check);
    EXPECT_EQ(report, this->report());
    EXPECT_EQ(this->ask(TypeParam::statistics), this->statistics());
    found += !report.empty();
    words[word] = used[word];
  }
  EXPECT_GT(found, 0u) << "of " << changed.size();
}

TYPED_TEST(Inspection, SaysWhatItCannotLookInto) {
  for (function const what : {TypeParam::statistics, TypeParam::check, TypeParam::live}) {
    answer = "none";
    auto unreadable = this->request();
    unreadable.read = &refuse;
    EXPECT_EQ(what(&unreadable), static_cast<int>(inspection::unreadable));
    EXPECT_EQ(answer, "none");
    auto larger = this->request();
    ++larger.pool_bytes;
    EXPECT_EQ(what(&larger), static_cast<int>(inspection::other_heap));
    EXPECT_THAT(answer, AllOf(HasSubstr("pool of " + std::to_string(this->heap.pool_bytes()) + " bytes"),
                              HasSubstr("pool of " + std::to_string(larger.pool_bytes) + " bytes")));
    auto other = this->request();
    ++other.metadata_bytes;
    EXPECT_EQ(what(&other), static_cast<int>(inspection::other_heap));
    EXPECT_THAT(answer, HasSubstr(std::to_string(other.metadata_bytes) + " bytes of metadata"));
  }
}

/// Each word of the stamp and of the reference's first, changed, is told; so no code reads on.
TYPED_TEST(Inspection, RefusesAHeapOfAnotherLayout) {
  auto const asked = this->request();
  auto* const stamp = reinterpret_cast<detail::layout_stamp*>(detail::layout_stamp::address(asked.handle));
  auto const right = *stamp;
  auto const expect_refused = [&](std::string const& said) {
    EXPECT_EQ(TypeParam::check(&asked), static_cast<int>(inspection::other_heap));
    EXPECT_THAT(answer, HasSubstr(said));
    EXPECT_THAT(answer, HasSubstr(TypeParam::allocator::creation_type::name)) << "what was wanted";
    *stamp = right;
    EXPECT_EQ(TypeParam::check(&asked), 0);
  };
  stamp->version = 71203;
  expect_refused("of Warpheap 7.12.3");
  std::strcpy(stamp->policy, "another");
  expect_refused("of another of Warpheap");
  ++stamp->reference_bytes;
  expect_refused("reference of " + std::to_string(sizeof(typename TypeParam::allocator) + 1));
  stamp->magic = 0;
  expect_refused("no heap");
}

/// A heap of one allocator, asked for by the code of each other one.
TEST(InspectionOfAnotherAllocator, NamesBoth) {
  scatter_heap const heap{2_MiB};
  inspected_heap const asked{heap.handle(), heap.pool_bytes(), heap.metadata_bytes(), &read, &keep};
  EXPECT_EQ(inspect_tbuddy_statistics(&asked), static_cast<int>(inspection::other_heap));
  EXPECT_THAT(answer, AllOf(HasSubstr("the handle is of scatter of Warpheap"), HasSubstr("and not of tbuddy of")));
}

TEST(InspectionOfAGrowingHeap, SeesWhatHasMemory) {
  polled_heap heap{growth{.initial = 2_MiB, .limit = 16_MiB}};
  for (u64 const bytes : {2_MiB, 4_MiB}) {
    inspected_heap const asked{heap.handle(), heap.pool_bytes(), heap.metadata_bytes(), &read, &keep};
    ASSERT_EQ(inspect_polled_statistics(&asked), 0);
    heap_statistics counted;
    ASSERT_EQ(answer.size(), sizeof counted);
    std::memcpy(&counted, answer.data(), sizeof counted);
    EXPECT_EQ(counted.pool_bytes, bytes);
    heap.grow(2_MiB);
    synchronize();
  }
}

}  // namespace inspection_test
