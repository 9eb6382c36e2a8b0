// SPDX-License-Identifier: Apache-2.0
// The sizes of a heap: each field reads back what was put in, the parts of the metadata follow one
// another, and slabs are as large as the size of the pool says.
#include "warpheap/policy/creation/slab_bitmap/geometry.hpp"

#include <gtest/gtest.h>

#include <warpheap/policy/creation/slab_bitmap/config.hpp>
#include <warpheap/policy/creation/slab_bitmap/index.hpp>

namespace slab_bitmap_geometry_test {

using namespace warpheap;
using namespace slab_bitmap_parts;

/// Calls visit(geometry, pool_bytes, multiprocessors, largest_log2) for pools of a mebibyte to 16
/// TiB, on both sides of powers of two.
template <class Visitor>
void for_each_geometry(Visitor visit) {
  for (u32 const largest_log2 : {14u, 16u, 18u, 21u})
    for (u32 const multiprocessors : {1u, 5u, 64u, 132u})
      for (u64 power = u64{1} << 20; power <= u64{1} << 44; power *= 2)
        for (u64 const pool_bytes : {power - 1, power, power + 1, power + power / 3}) {
          if (pool_bytes < u64{1} << 20 || pool_bytes >> largest_log2 >= slab_geometry::max_slabs << 2) continue;
          visit(slab_geometry_for(pool_bytes, multiprocessors, largest_log2), pool_bytes, multiprocessors,
                largest_log2);
        }
}

TEST(SlabBitmapGeometry, SlabsAreAsLargeAsLeavesFourThousandOfThem) {
  for_each_geometry([](slab_geometry made, u64 pool_bytes, u32, u32 largest_log2) {
    // From 32 MiB on. 2^24 slabs is more than the word has room for.
    u32 slab_log2 = 14;
    while (pool_bytes >= u64{1} << 25 && pool_bytes >> (slab_log2 + 1) >= 4096 && slab_log2 < largest_log2) ++slab_log2;
    while (pool_bytes >> slab_log2 >= u64{1} << 24) ++slab_log2;
    ASSERT_EQ(made.slab_log2(), slab_log2) << pool_bytes << " bytes, at most 2^" << largest_log2;
    ASSERT_EQ(made.slab_bytes(), 1u << slab_log2);
    ASSERT_EQ(made.slabs(), pool_bytes >> slab_log2);
    ASSERT_LE(made.pool_bytes(), pool_bytes);
    ASSERT_LT(pool_bytes - made.pool_bytes(), made.slab_bytes());
  });
}

TEST(SlabBitmapGeometry, APoolHasAsManyCachesAsLeaveEightSlabsEachAndAMultiprocessorAtMost64) {
  for_each_geometry([](slab_geometry made, u64 pool_bytes, u32 multiprocessors, u32) {
    u32 caches_log2 = 0;
    while (1u << caches_log2 < multiprocessors) ++caches_log2;
    caches_log2 += 6;
    while (caches_log2 != 0 && u64{8} << caches_log2 > made.slabs()) --caches_log2;
    ASSERT_EQ(made.sm_caches(), 1u << caches_log2) << pool_bytes << " bytes, " << multiprocessors << " multiprocessors";
  });
}

TEST(SlabBitmapGeometry, TheMetadataHoldsEachPartBehindTheOther) {
  for_each_geometry([](slab_geometry made, u64, u32, u32) {
    u64 const slab_bytes = made.slab_bytes(), slabs = made.slabs();
    // A bit for each block of 16 bytes, behind the descriptor and the header.
    ASSERT_EQ(made.words(), slab_bytes / 16 / 64);
    ASSERT_EQ(made.record_bytes(), slab_geometry::bitmap_offset + made.words() * 8);
    ASSERT_EQ(made.sm_caches_offset(), slabs * made.record_bytes());
    // Two words a cache and class.
    ASSERT_EQ(made.indexes_offset() - made.sm_caches_offset(), u64{16} * made.sm_caches() * made.classes());
    ASSERT_EQ(made.indexes_offset() % 64, 0u);
    ASSERT_GE(made.index_words(), slab_index::words_for(made.slabs()));
    ASSERT_EQ(made.index_count(), 2 + 2 * made.classes());
    ASSERT_GE(made.control_offset() - made.indexes_offset(), u64{8} * made.index_words() * made.index_count());
    ASSERT_EQ(made.control_offset() % 128, made.indexes_offset() % 128);
    ASSERT_GE(made.control_bytes(), 8 * (made.classes() + 4));
    ASSERT_EQ(made.metadata_bytes(), made.control_offset() + made.control_bytes());
    ASSERT_EQ(made.alignment() % slab_bytes, 0u);
    ASSERT_EQ(made.alignment() % 4096, 0u);
  });
}

TEST(SlabBitmapGeometry, TheLastClassIsAWholeSlab) {
  for_each_geometry([](slab_geometry made, u64, u32, u32) {
    u32 const last = made.classes() - 1;
    ASSERT_EQ(class_bytes(last), made.slab_bytes());
    ASSERT_EQ(made.capacity(last), 1u);
    for (u32 size_class = 0; size_class <= last; ++size_class) {
      u32 const capacity = made.capacity(size_class);
      ASSERT_EQ(capacity, made.slab_bytes() / class_bytes(size_class));
      // One cache where a slab has 2^14 blocks or more, twice as many for each halving, 64 at most.
      u32 const size_log2 = 6 + size_class / 4,
                blocks_log2 = made.slab_log2() < size_log2 ? 0 : made.slab_log2() - size_log2;
      u32 const caches_log2 = blocks_log2 > 14 ? 0 : 14 - blocks_log2;
      ASSERT_EQ(made.sm_caches_used_log2(size_class), caches_log2 < 6 ? caches_log2 : 6) << "class " << size_class;
    }
  });
}

using creation::slab_bitmap_config;
static_assert(is_valid(slab_bitmap_config{14}) && is_valid(slab_bitmap_config{18}) && is_valid(slab_bitmap_config{21}));
static_assert(!is_valid(slab_bitmap_config{13}) && !is_valid(slab_bitmap_config{22}) &&
              !is_valid(slab_bitmap_config{0}));

}  // namespace slab_bitmap_geometry_test
