// SPDX-License-Identifier: Apache-2.0
// The mailbox: each address that is posted comes out once, no drain misses what was posted before
// it, and each part of the protocol is needed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "support/schedules.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/structure/mailbox_drain.hpp"
#include "warpheap/structure/mailbox_snapshot.hpp"

namespace mailbox_test {

using namespace warpheap;
using box_type = mailbox<16>;
/// Of which a region has many words of the summary, as in a pool of many GiB.
using coarse_box = mailbox<16, 2>;

/// A mailbox for a pool of addresses that are never read.
template <class Box>
class box_of {
 public:
  explicit box_of(size_t pool_bytes) : memory_(Box::bytes_for(pool_bytes) / 8 + 16) {
    u64 const aligned = align_up(reinterpret_cast<u64>(memory_.data()), 128);
    box_ = Box::place(reinterpret_cast<void*>(aligned), pool(), pool_bytes);
  }
  static void* pool() { return reinterpret_cast<void*>(u64{1} << 40); }
  Box operator()() const { return box_; }

 private:
  device_buffer<u64> memory_;
  Box box_;
};

WARPHEAP_HOST_DEVICE inline u64 unit_of(void const* memory) {
  return (reinterpret_cast<u64>(memory) - (u64{1} << 40)) / 16;
}

TEST(Mailbox, HasAWordForEveryUnitAndFewRegions) {
  for (u64 const bytes : {u64{16}, u64{1} << 20, (u64{2} << 20) + 16, u64{1} << 30, u64{5} << 30, u64{141} << 30}) {
    auto const box = box_type::place(nullptr, box_of<box_type>::pool(), bytes);
    EXPECT_LE(box.regions(), box_type::most_regions);
    EXPECT_TRUE(box.regions() == 1024 || 2 * box.regions() > box.rows()) << "no coarser than it must be";
    u64 const last = (bytes - 1) / 16;
    EXPECT_LT(last / 64, box.bitmap_words());
    EXPECT_EQ(last / 64 / box_type::row_words, box.rows() - 1);
    EXPECT_EQ(unit_of(box.address(last / 64, last % 64)), last);
    EXPECT_LE(reinterpret_cast<u64>(box.bitmap() + box.bitmap_words()), box_type::bytes_for(bytes));
    EXPECT_LE(box_type::bytes_for(bytes), bytes / 128 + bytes / 60'000 + 10'000) << "0.8% of the pool";
  }
}

TEST(Mailbox, GivesEachRowABitOfItsOwnAndItsNeighbourAnotherRegion) {
  for (u64 const bytes : {u64{16}, u64{1} << 20, (u64{33} << 20) + 16, u64{1} << 30, u64{5} << 30}) {
    auto const box = box_type::place(nullptr, box_of<box_type>::pool(), bytes);
    std::vector<bool> taken(size_t{64} * box.summary_words());
    auto const region_of = [&](u32 row) { return box.summary_bit(row) / 64 >> box.span_log2(); };
    for (u32 row = 0; row < box.rows(); ++row) {
      u32 const bit = box.summary_bit(row);
      ASSERT_LT(bit, taken.size());
      ASSERT_FALSE(taken[bit]) << row;
      taken[bit] = true;
      ASSERT_EQ(box.row_of(bit), row);
      ASSERT_LT(region_of(row), box.regions());
      ASSERT_TRUE(row == 0 || region_of(row) != region_of(row - 1)) << row;
    }
  }
}

/// Kernel: every thread posts a unit; counts those that were not taken.
struct post_units {
  WARPHEAP_DEVICE void operator()(box_type box, u64 const* units, u32 count, u32 offset, u32* refused) const {
    u64 const me = global_thread_index();
    if (me >= count) return;
    u8* const memory = static_cast<u8*>(box.address(0, 0)) + 16 * units[me] + offset;
    if (!box.post(memory)) atomic_ref<u32>{*refused}.fetch_add(1, order::relaxed);
  }
};

/// Kernel: all threads drain, and count what comes out.
struct drain_all {
  WARPHEAP_DEVICE void operator()(box_type box, u32* freed) const {
    mailbox_drain{&box, simt::active_mask()}(
        [=](void* memory) { atomic_ref<u32>{freed[unit_of(memory)]}.fetch_add(1, order::relaxed); });
  }
};

// mailbox.M1
TEST(Mailbox, GivesBackEachAddressOnce) {
  constexpr u64 pool_bytes = u64{12} << 20, all = pool_bytes / 16;
  u64 turn = 0;
  test::for_each_schedule(60, [&] {
    launch_shape const shapes[] = {{1, 1}, {1, 31}, {2, 33}, {3, 64}, {1, 32}};
    u64 const strides[] = {1, 3, 64, 2048, 3333};
    auto const shape = shapes[turn % 5];
    u64 const stride = strides[turn++ / 5 % 5];
    u32 const count = shape.blocks * shape.threads;
    std::vector<u64> units(count);
    for (u32 i = 0; i < count; ++i) units[i] = (all - 1 - i * stride) % all;
    box_of<box_type> const box{pool_bytes};
    device_buffer<u64> const posted(units);
    device_buffer<u32> const freed(all), refused(1);
    for (u32 round = 1; round < 3; ++round) {
      launch(shape, post_units{}, box(), posted.data(), count, 0u, refused.data());
      synchronize();
      EXPECT_EQ(mailbox_snapshot{box()}.pending(), count);
      EXPECT_THAT(mailbox_snapshot{box()}.check_invariants(), testing::IsEmpty());
      launch(shapes[turn % 5], drain_all{}, box(), freed.data());
      synchronize();
      EXPECT_EQ(mailbox_snapshot{box()}.pending(), 0u);
      EXPECT_THAT(mailbox_snapshot{box()}.check_invariants(), testing::IsEmpty());
      auto const counts = freed.to_host();
      std::vector<u32> wanted(all);
      for (u64 const unit : units) wanted[unit] += round;
      EXPECT_TRUE(counts == wanted);
    }
    EXPECT_EQ(refused[0], 0u);
    EXPECT_EQ(mailbox_snapshot{box()}.repeats(), 0u);
  });
}

TEST(Mailbox, CountsRepeatsAndRefusesWhatIsNoBlock) {
  test::for_each_schedule(40, [&] {
    box_of<box_type> const box{u64{1} << 20};
    device_buffer<u64> const units(std::vector<u64>{7, 7, 8, 7, 65535, 70});
    device_buffer<u32> const refused(1), freed(65536);
    launch({1, 32}, post_units{}, box(), units.data(), 6u, 0u, refused.data());
    launch({1, 32}, post_units{}, box(), units.data(), 2u, 0u, refused.data());
    synchronize();
    EXPECT_EQ(refused[0], 0u);
    EXPECT_EQ(mailbox_snapshot{box()}.pending(), 4u);
    EXPECT_EQ(mailbox_snapshot{box()}.repeats(), 4u);
    launch({1, 32}, post_units{}, box(), units.data(), 6u, 8u, refused.data());
    device_buffer<u64> const outside(std::vector<u64>{65536, ~u64{0}, u64{1} << 40});
    launch({1, 32}, post_units{}, box(), outside.data(), 3u, 0u, refused.data());
    synchronize();
    EXPECT_EQ(refused[0], 9u);
    EXPECT_EQ(mailbox_snapshot{box()}.pending(), 4u);
    launch({1, 5}, drain_all{}, box(), freed.data());
    synchronize();
    EXPECT_EQ(freed[7], 1u);
    EXPECT_EQ(freed[65535], 1u);
  });
}

TEST(MailboxSnapshot, SeesAMissingBit) {
  box_of<box_type> const box{u64{4} << 20};
  device_buffer<u64> const units(std::vector<u64>{200'000});
  device_buffer<u32> const refused(1);
  launch({1, 1}, post_units{}, box(), units.data(), 1u, 0u, refused.data());
  synchronize();
  EXPECT_THAT(mailbox_snapshot{box()}.check_invariants(), testing::IsEmpty());
  backend::fill_bytes(box().state()->root, 0, sizeof box().state()->root);
  EXPECT_THAT(mailbox_snapshot{box()}.check_invariants(), testing::ElementsAre(testing::HasSubstr("M2: region 97")));
  backend::fill_bytes(box().summary(), 0, box().summary_words() * sizeof(u64));
  EXPECT_THAT(mailbox_snapshot{box()}.check_invariants(), testing::ElementsAre(testing::HasSubstr("M2: row 97")));
}

// One launch in which some threads post and others drain. A poster writes to its block, posts it,
// and then says so. A drain that begins after that must find the block, and what was written, and
// when it returns, all that was posted before it has been freed, by whatever thread. Some threads
// drain without having heard of any post: they may do the work for those that have.

constexpr u32 rounds = 4, most_posters = 64;

struct exchange_words {
  u64 payload[rounds * most_posters];  ///< of each post
  u32 freed[rounds * most_posters];
  u32 said[most_posters];  ///< rounds that a poster has posted
  u32 missed;              ///< posts that a drain did not find
  u32 unwritten;           ///< posts that came out before what was written
};

/// Thread block 0 posts, those of odd index have heard of posts, the others have not.
template <class Box, class Far>
struct post_and_drain {
  WARPHEAP_DEVICE void operator()(Box box, exchange_words* words, u64 stride, u32 posters) const {
    if (simt::block_index() == 0) post_some(box, words, stride, posters);
    else if (simt::block_index() % 2 == 1) drain_what_was_said(box, words, stride, posters);
    else
      for (u32 round = 0; round < rounds; ++round) drain(box, words, stride);
  }

  WARPHEAP_DEVICE static void post_some(Box box, exchange_words* words, u64 stride, u32 posters) {
    u32 const mine = simt::thread_index();
    if (mine >= posters) return;
    for (u32 round = 0; round < rounds; ++round) {
      u32 const post = round * posters + mine;
      atomic_ref<u64>{words->payload[post]}.store(mine + 1, order::relaxed);
      box.post(box.address(post * stride / 64, post * stride % 64), Far{});
      // release: the drainers' acquire.
      atomic_ref<u32>{words->said[mine]}.store(round + 1, order::release);
    }
  }

  WARPHEAP_DEVICE static void drain_what_was_said(Box box, exchange_words* words, u64 stride, u32 posters) {
    for (u32 round = 0; round < 2 * rounds; ++round) {
      u8 known[most_posters];
      for (u32 i = 0; i < posters; ++i)
        known[i] = static_cast<u8>(atomic_ref<u32>{words->said[i]}.load(order::acquire));
      drain(box, words, stride);
      for (u32 i = 0; i < posters; ++i)
        for (u32 earlier = 0; earlier < known[i]; ++earlier)
          if (atomic_ref<u32>{words->freed[earlier * posters + i]}.load(order::relaxed) == 0)
            atomic_ref<u32>{words->missed}.fetch_add(1, order::relaxed);
    }
  }

  WARPHEAP_DEVICE static void drain(Box box, exchange_words* words, u64 stride) {
    mailbox_drain{&box, simt::active_mask()}([=](void* memory) {
      u64 const post = unit_of(memory) / stride;
      if (atomic_ref<u64>{words->payload[post]}.load(order::relaxed) == 0)
        atomic_ref<u32>{words->unwritten}.fetch_add(1, order::relaxed);
      atomic_ref<u32>{words->freed[post]}.fetch_add(1, order::relaxed);
    });
  }
};

/// Whether all went well. `turn` chooses shape and places: one word, one row, several regions. In a
/// coarse mailbox one thread posts, each time to another word of the summary: more posts would hide
/// what one has missed.
template <class Box, class Far = peer_access>
bool exchange_goes_well(u64 turn) {
  launch_shape const shapes[] = {{2, 1}, {3, 1}, {5, 1}, {3, 4}, {2, 31}, {2, 33}, {5, 2}, {3, 2}};
  u64 const strides[] = {1, 17, 64, 2048, 6000, 131072};
  auto const shape = shapes[turn % 8];
  bool const is_coarse = Box::most_regions < box_type::most_regions;
  u64 const stride = is_coarse ? 129 * 2048 : strides[turn / 8 % 6];
  u32 const posters = is_coarse ? 1 : shape.threads;
  box_of<Box> const box{16 * rounds * posters * stride};
  device_buffer<exchange_words> const words(1);
  launch(shape, post_and_drain<Box, Far>{}, box(), words.data(), stride, posters);
  synchronize();
  auto const after = words[0];
  u64 freed = 0;
  bool once = true;
  for (u32 const count : after.freed) {
    freed += count;
    once = once && count <= 1;
  }
  mailbox_snapshot const rest{box()};
  return once && after.missed == 0 && after.unwritten == 0 && freed + rest.pending() == rounds * posters &&
         rest.repeats() == 0 && rest.check_invariants().empty();
}

#if !defined(__CUDACC__)
/// Kernel, one lane a thread block: drains, and counts what it freed itself.
struct drain_and_count {
  WARPHEAP_DEVICE void operator()(box_type box, u32* freed) const {
    mailbox_drain{&box, simt::active_mask()}([=](void*) {
      simt::pause(50);
      ++freed[simt::block_index()];
    });
  }
};

// All are there from the start, and are drawn at random. What one does alone, the others wait for.
// drain.D1
TEST(Mailbox, IsDrainedByContendingThreads) {
  constexpr u32 regions = 64, drains = 64;
  for (u64 seed = 0; seed < 50; ++seed) {
    host::scoped_execution const use{{.mode = host::execution_mode::deterministic,
                                      .policy = host::schedule_policy::random_walk,
                                      .seed = seed,
                                      .sm_count = 8,
                                      .blocks_per_sm = 8}};
    box_of<box_type> const box{u64{regions} * box_type::row_words * 64 * 16};
    ASSERT_EQ(box().regions(), regions);
    std::vector<u64> units(regions);
    for (u32 i = 0; i < regions; ++i) units[i] = u64{i} * box_type::row_words * 64;
    device_buffer<u64> const told(units);
    device_buffer<u32> const refused(1), freed(drains);
    launch({1, regions}, post_units{}, box(), told.data(), regions, 0u, refused.data());
    launch({drains, 1}, drain_and_count{}, box(), freed.data());
    synchronize();
    auto const counts = freed.to_host();
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0u), regions);
    EXPECT_LE(*std::max_element(counts.begin(), counts.end()), 4u) << "of 64 regions, by one of 64; seed " << seed;
  }
}
#endif

// drain.D3
TEST(Mailbox, LosesNothingBetweenPostsAndDrains) {
  u64 turn = 0;
  test::for_each_schedule(2500, [&] { EXPECT_TRUE(exchange_goes_well<box_type>(turn++)); });
}

TEST(Mailbox, LosesNothingWhereRegionsAreLarge) {
  u64 turn = 0;
  test::for_each_schedule(4000, [&] { EXPECT_TRUE(exchange_goes_well<coarse_box>(turn++)); });
}

/// Thread block 0 posts to two regions, one after the other. Of the others, some drain as soon as
/// the first post is there, and may do so for those that drain because of both.
struct drain_for_others {
  WARPHEAP_DEVICE void operator()(box_type box, u32* said, u32* freed, u32* missed) const {
    u32 const wanted = 1 + simt::block_index() % 2;
    if (simt::block_index() == 0) {
      for (u32 post = 0; post < 2; ++post) {
        box.post(box.address((1 - post) * 32 * 64, 0));
        atomic_ref<u32>{*said}.store(post + 1, order::release);
      }
      return;
    }
    while (atomic_ref<u32>{*said}.load(order::acquire) < wanted) simt::pause(100);
    mailbox_drain{&box, simt::active_mask()}(
        [=](void* memory) { atomic_ref<u32>{freed[unit_of(memory) == 0 ? 1 : 0]}.fetch_add(1, order::relaxed); });
    for (u32 post = 0; post < wanted; ++post)
      if (atomic_ref<u32>{freed[post]}.load(order::relaxed) != 1) atomic_ref<u32>{*missed}.fetch_add(1, order::relaxed);
  }
};

// drain.D2
TEST(Mailbox, DrainsForCallsThatHaveHeardOfMore) {
  test::for_each_schedule(16000, [&] {
#if !defined(__CUDACC__)
    auto roomy = host::current_execution();  // the posting thread must run
    roomy.sm_count = 4;
    roomy.blocks_per_sm = 2;
    host::scoped_execution const use{roomy};
#endif
    box_of<box_type> const box{u64{4} << 20};
    device_buffer<u32> const said(1), freed(2), missed(1);
    launch({5, 1}, drain_for_others{}, box(), said.data(), freed.data(), missed.data());
    synchronize();
    EXPECT_EQ(missed[0], 0u);
    EXPECT_EQ(mailbox_snapshot{box()}.pending(), 0u);
  });
}

#if !defined(__CUDACC__)

/// Mutants of the posting side.
/// mailbox.M2 left out
struct no_summary : peer_access {
  static u64 fetch_or(u64* word, u64 bits, order how) {
    return how == order::acquire ? 0 : peer_access::fetch_or(word, bits, how);
  }
};
struct no_root : peer_access {
  static u64 fetch_or(u64* word, u64 bits, order how) {
    return how == order::relaxed ? 0 : peer_access::fetch_or(word, bits, how);
  }
};
// mailbox.M5 left out
struct no_release_of_blocks : peer_access {
  static u64 fetch_or(u64* word, u64 bits, order how) {
    return peer_access::fetch_or(word, bits, how == order::acq_rel ? order::acquire : how);
  }
};
// mailbox.M3 left out
struct no_acquire_of_clears : peer_access {
  static u64 fetch_or(u64* word, u64 bits, order how) {
    return peer_access::fetch_or(word, bits, how == order::acq_rel ? order::release : how);
  }
};
// mailbox.M4 left out
struct no_acquire_of_the_summary : peer_access {
  static u64 load(u64* word, order) { return peer_access::load(word, order::relaxed); }
  static u64 fetch_or(u64* word, u64 bits, order how) {
    return peer_access::fetch_or(word, bits, how == order::acquire ? order::relaxed : how);
  }
};
struct load_and_store : peer_access {
  static u64 fetch_or(u64* word, u64 bits, order how) {
    u64 const before = peer_access::load(word, order::acquire);
    atomic_ref<u64, scope::system>{*word}.store(before | bits, how == order::relaxed ? how : order::release);
    return before;
  }
};
/// Believes that the first post of a word has told the summary.
struct trusts_the_first : peer_access {
  static inline bool was_empty = true;
  static u64 load(u64* word, order how) { return was_empty ? peer_access::load(word, how) : ~u64{0}; }
  static u64 fetch_or(u64* word, u64 bits, order how) {
    u64 const before = peer_access::fetch_or(word, bits, how);
    if (how == order::acq_rel) was_empty = before == 0;
    return before;
  }
};

template <class Far>
class MailboxMutant : public testing::Test {};
using mutants = testing::Types<no_summary, no_root, no_release_of_blocks, no_acquire_of_clears,
                               no_acquire_of_the_summary, load_and_store, trusts_the_first>;
TYPED_TEST_SUITE(MailboxMutant, mutants);

TYPED_TEST(MailboxMutant, IsCaught) {
  u64 turn = 0;
  EXPECT_TRUE(test::find_failing_schedule(12000, [&] { return exchange_goes_well<box_type, TypeParam>(turn++); }));
}

#endif

}  // namespace mailbox_test
