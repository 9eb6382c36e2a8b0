// SPDX-License-Identifier: Apache-2.0
// Mutants of the random walks: a step left out or turned around must be seen by the test that
// guards it.
#include <set>

#include "pool_fixture.hpp"
#include "support/refusals.hpp"

namespace warpheap::test { namespace {

using creation::random_walk;

/// Whether lanes that ask at once for `pages` pages get each page once, and the others nothing.
template <class Walk>
bool serves_each_page_once(u32 pages, launch_shape shape) {
  walk_pool<Walk> const pool{pages};
  auto const got = allocate(pool, shape, 64);
  auto blocks = got;
  u64 const served = blocks.size() - static_cast<u64>(std::count(blocks.begin(), blocks.end(), nullptr));
  std::erase(blocks, nullptr);
  std::set<void*> const distinct{blocks.begin(), blocks.end()};
  if (served != std::min<u64>(pages, got.size()) || distinct.size() != served || !pool.is_quiet(served)) return false;
  release(pool, got, shape);
  return pool.is_quiet(0);
}

/// Whether lanes that hold at most a page each find what they wrote, are served or refused, and
/// leave no page taken.
template <class Walk>
bool keeps_pages_apart(launch_shape shape, u32 rounds) {
  u32 const lanes = shape.blocks * shape.threads;
  walk_pool<Walk> const pool{lanes};
  device_buffer<lanes_report> const report(1);
  launch(shape, walk_churn{}, pool.allocator(), rounds, report.data());
  synchronize();
  auto const seen = report[0];
  return seen.broken == 0 && seen.served != 0 && seen.served + seen.refused == lanes * rounds && pool.is_quiet(0);
}

/// Whether no lane is refused while one of `pages` pages has no owner, in a pool of which `others`
/// more are taken all the time.
template <class Walk>
bool walks_find_what_stays_free(u32 pages, launch_shape shape, u32 rounds, u32 others = 0, u64* refused = nullptr) {
  walk_pool<Walk> const pool{pages + others};
  auto const all = allocate(pool, {1, pages + others}, 64);
  std::vector<void*> const open{all.begin() + others, all.end()};
  release(pool, open);
  auto const found = refusals_of(pool.allocator(), shape, addresses_of(open), 64, rounds, schedule_seed());
  if (refused) *refused += found.refused;
  return found.served != 0 && found.unfounded == 0 && pool.is_quiet(others);
}

template <class Walk>
void expect_sound() {
  u64 refused = 0;
  for_each_schedule(300, [&] {
    for (u32 const pages : {1u, 4u, 7u, 33u}) {
      EXPECT_TRUE(serves_each_page_once<Walk>(pages, {1, 32}));
      EXPECT_TRUE(serves_each_page_once<Walk>(pages, {2, 7}));
    }
    EXPECT_TRUE(keeps_pages_apart<Walk>({1, 1}, 3));
    EXPECT_TRUE(keeps_pages_apart<Walk>({1, 13}, 4));
    EXPECT_TRUE(keeps_pages_apart<Walk>({2, 33}, 2));
    EXPECT_TRUE(keeps_pages_apart<Walk>({8, 1}, 12));
    EXPECT_TRUE(walks_find_what_stays_free<Walk>(1, {3, 1}, 6, 0, &refused));
    EXPECT_TRUE(walks_find_what_stays_free<Walk>(5, {8, 1}, 8, 3, &refused));
    EXPECT_TRUE(walks_find_what_stays_free<Walk>(7, {4, 2}, 8, 0, &refused));
    EXPECT_TRUE(walks_find_what_stays_free<Walk>(33, {2, 20}, 4, 40, &refused));
  });
  EXPECT_GT(refused, test::on_gpu ? 0u : 1000u);
}

// Words of a page, and walks of a step.
constexpr creation::random_walk_config one_plain = tiny_walk(walk_kind::plain, 1, 1);
constexpr creation::random_walk_config one_bitmap = tiny_walk(walk_kind::bitmap, 1, 1);
constexpr creation::random_walk_config wide_plain = tiny_walk(walk_kind::plain, 64);
constexpr creation::random_walk_config wide_bitmap = tiny_walk(walk_kind::bitmap, 64);
constexpr creation::random_walk_config two_shared = tiny_walk(walk_kind::collaborative, 2, 1);

TEST(RandomWalk, GivesEachPageToOneLaneAndNullptrOnlyToTheRest) {
  expect_sound<random_walk<tiny_plain>>();
  expect_sound<random_walk<one_plain>>();
}
TEST(RandomWalkBitmap, GivesEachPageToOneLaneAndNullptrOnlyToTheRest) {
  expect_sound<random_walk<tiny_bitmap>>();
  expect_sound<random_walk<one_bitmap>>();
}
// walk.K3
TEST(RandomWalkBitmap, GivesEachPageOfWordsOf64ToOneLane) {
  u64 refused = 0;
  for_each_schedule(100, [&] {
    for (u32 const pages : {1u, 33u, 64u, 65u, 130u}) {
      EXPECT_TRUE(serves_each_page_once<random_walk<wide_bitmap>>(pages, {5, 32}));
      EXPECT_TRUE(serves_each_page_once<random_walk<wide_plain>>(pages, {2, 7}));
    }
    EXPECT_TRUE(keeps_pages_apart<random_walk<wide_bitmap>>({3, 33}, 3));
    EXPECT_TRUE(keeps_pages_apart<random_walk<wide_plain>>({8, 1}, 12));
    EXPECT_TRUE(walks_find_what_stays_free<random_walk<wide_bitmap>>(5, {8, 1}, 8, 70, &refused));
    EXPECT_TRUE(walks_find_what_stays_free<random_walk<wide_plain>>(33, {2, 20}, 4, 100, &refused));
  });
  EXPECT_GT(refused, test::on_gpu ? 0u : 100u);
}
TEST(RandomWalkTogether, GivesEachPageToOneLaneAndNullptrOnlyToTheRest) {
  expect_sound<random_walk<tiny_shared>>();
  expect_sound<random_walk<two_shared>>();
}

#if !defined(__CUDACC__)

// A word is claimed by a store: what another lane claimed in between is lost.
struct stores_words : no_walk_faults {
  WARPHEAP_DEVICE static walk_word take(atomic_ref<u64> word, u64 wanted) {
    u64 const old = word.load(order::acquire);
    word.store(old | wanted, order::relaxed);
    return {old};
  }
};

// walk.K2 left out: the lock is open before the bits are there.
struct unlocks_first : no_walk_faults {
  WARPHEAP_DEVICE static walk_word publish(atomic_ref<u64> word, u64 taken) {
    u64 const old = word.fetch_and(~walk_word::lock_bit, order::relaxed);
    word.fetch_or(taken, order::relaxed);
    return {old};
  }
};

// A refusal without a look at everything.
struct gives_up : no_walk_faults {
  static constexpr bool searches = false;
};

// A word that another lane has locked counts as full.
struct counts_locked_as_full : no_walk_faults {
  static constexpr bool waits_for_locks = false;
};

// The outcome of any pass, however old, answers a search.
struct shares_older_passes : no_walk_faults {
  template <class Pass>
  WARPHEAP_DEVICE static bool may_share(Pass const& pass, u64, pass_size size = {}) {
    return pass.answers(0, size);
  }
};

template <class Walk>
bool walks_hold() {
  // Lanes that are alone look at one word after the other, so much happens behind them.
  return serves_each_page_once<Walk>(7, {2, 7}) && keeps_pages_apart<Walk>({2, 7}, 4) &&
         keeps_pages_apart<Walk>({8, 1}, 12) && walks_find_what_stays_free<Walk>(7, {8, 1}, 12) &&
         walks_find_what_stays_free<Walk>(7, {4, 2}, 12);
}

template <class Walk>
std::optional<u64> walk_is_caught(u32 seeds = 1500) {
  return find_failing_schedule(seeds, [] { return walks_hold<Walk>(); });
}

/// With enough words that a search asks for other searches' answers on its way.
template <class Walk>
std::optional<u64> shares_too_much() {
  return find_failing_schedule(1500, [] { return walks_find_what_stays_free<Walk>(4, {8, 1}, 12, 150); });
}

// walk.K1
TEST(RandomWalkMutant, ThatClaimsAWordByAStoreIsCaught) {
  EXPECT_TRUE((walk_is_caught<random_walk<tiny_plain, stores_words>>()));
  EXPECT_TRUE((walk_is_caught<random_walk<tiny_bitmap, stores_words>>()));
  EXPECT_TRUE((walk_is_caught<random_walk<wide_bitmap, stores_words>>()));
}
TEST(RandomWalkMutant, ThatUnlocksBeforeItPublishesIsCaught) {
  EXPECT_TRUE((walk_is_caught<random_walk<tiny_shared, unlocks_first>>()));
}
TEST(RandomWalkMutant, ThatGivesUpAfterItsWalkIsCaught) {
  EXPECT_TRUE((walk_is_caught<random_walk<tiny_plain, gives_up>>()));
  EXPECT_TRUE((walk_is_caught<random_walk<tiny_bitmap, gives_up>>()));
  EXPECT_TRUE((walk_is_caught<random_walk<tiny_shared, gives_up>>()));
}
TEST(RandomWalkMutant, ThatCountsALockedWordAsFullIsCaught) {
  EXPECT_TRUE((walk_is_caught<random_walk<two_shared, counts_locked_as_full>>()));
}
TEST(RandomWalkMutant, ThatSharesOlderPassesIsCaught) {
  EXPECT_TRUE((shares_too_much<random_walk<one_plain, shares_older_passes>>()));
  EXPECT_TRUE((shares_too_much<random_walk<one_bitmap, shares_older_passes>>()));
}

#endif

}}  // namespace warpheap::test
