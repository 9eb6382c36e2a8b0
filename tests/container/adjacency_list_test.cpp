// SPDX-License-Identifier: Apache-2.0
// Neighbour lists beside sets: after every batch by every kind of team, and after calls one by one,
// a list has the set's numbers, also when the heap refused, and in the end the heap has all its
// memory again.
#include "warpheap/container/adjacency_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "container/heaps.hpp"
#include "support/schedules.hpp"
#include "warpheap/adaptor/checked.hpp"
#include "warpheap/all.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/util/random.hpp"

namespace adjacency_list_test {

using namespace warpheap;
using namespace warpheap::literals;
using namespace warpheap::test;
using testing::HasSubstr;
using numbers = std::vector<u32>;

/// A batch for each list: list i has `targets[first[i]]` up to `targets[first[i + 1]]`.
struct batches {
  numbers first{0}, targets;

  void add(numbers const& more) {
    targets.insert(targets.end(), more.begin(), more.end());
    first.push_back(static_cast<u32>(targets.size()));
  }
};

/// What a lane was told, and how many neighbours it sees then.
struct answer {
  batch_result made;
  u32 size;
};

/// Kernel: team i inserts, or erases, batch i, and notes each lane's answer.
template <class Team>
struct apply_batches {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap, adjacency_list* lists, u32 const* first, u32* targets, u32* places,
                                  bool inserts, u64* scratch, answer* told) const {
    u64 const me = global_thread_index(), i = me / Team::size;
    if constexpr (Team::size > warp_lanes) {
      run(Team{scratch + i * Team::scratch_words}, heap, lists[i], targets + first[i], places + first[i],
          first[i + 1] - first[i], inserts, told[me]);
    } else {
      run(Team{}, heap, lists[i], targets + first[i], places + first[i], first[i + 1] - first[i], inserts, told[me]);
    }
  }

 private:
  template <class Ref>
  WARPHEAP_DEVICE static void run(Team team, Ref const& heap, adjacency_list& list, u32* targets, u32* places,
                                  u32 count, bool inserts, answer& told) {
    told.made = inserts ? list.insert_sorted(team, heap, targets, places, count)
                        : list.erase_sorted(team, heap, targets, count);
    told.size = list.size();
  }
};

/// Kernel: frees all lists.
struct destroy_all {
  template <class Ref, class List>
  WARPHEAP_DEVICE void operator()(Ref heap, List* lists, u32 count) const {
    u64 const me = global_thread_index();
    if (me >= count) return;
    if constexpr (requires { lists->list; }) lists[me].list.destroy(heap);
    else lists[me].destroy(heap);
  }
};

/// Lists of teams, each of which is a set as well.
template <class Team, class Heap>
class lists_and_sets {
 public:
  explicit lists_and_sets(u32 teams_a_block)
      : shape_{2, teams_a_block * Team::size}, count_{2 * teams_a_block}, lists_(count_), sets_(count_) {}

  /// Applies a batch to each list; returns how many neighbours were lost.
  u32 apply(batches const& given, bool inserts) {
    device_buffer<u32> const first{given.first}, targets{given.targets}, places(given.targets.size() + 1);
    device_buffer<u64> const scratch(u64{count_} * (1 + Team::size));
    device_buffer<answer> const told(u64{count_} * Team::size);
    launch(shape_, apply_batches<Team>{}, heap_.ref(), lists_.data(), first.data(), targets.data(), places.data(),
           inserts, scratch.data(), told.data());
    synchronize();
    auto const results = told.to_host();
    auto const lists = lists_.to_host();
    u32 lost = 0;
    for (u32 i = 0; i < count_; ++i) {
      numbers const batch(given.targets.begin() + given.first[i], given.targets.begin() + given.first[i + 1]);
      auto const wanted = inserts ? insert(sets_[i], batch, lists[i].size()) : erase(sets_[i], batch);
      for (u32 lane = 0; lane < Team::size; ++lane) {
        auto const& seen = results[i * Team::size + lane];
        EXPECT_EQ(seen.made.changed, wanted.changed) << i;
        EXPECT_EQ(seen.made.lost, wanted.lost) << i;
        EXPECT_EQ(seen.size, lists[i].size()) << i;
      }
      EXPECT_EQ(lists[i].to_host(), numbers(sets_[i].begin(), sets_[i].end())) << i;
      EXPECT_LE(lists[i].size(), lists[i].capacity());
      EXPECT_EQ(lists[i].capacity() == 0, lists[i].data() == nullptr);
      bool const may_stay_large = inserts || !wanted.changed || same_type<Heap, refusing_heap>;
      EXPECT_TRUE(may_stay_large || lists[i].capacity() <= 4 * lists[i].size()) << i;
      EXPECT_TRUE(wanted.lost == 0 || lists[i].size() == lists[i].capacity()) << i;
      lost += wanted.lost;
    }
    return lost;
  }

  void destroy() {
    launch({1, count_}, destroy_all{}, heap_.ref(), lists_.data(), count_);
    synchronize();
    EXPECT_EQ(heap_.statistics().live_blocks, 0u);
    EXPECT_TRUE(heap_.check_invariants().empty());
  }

  u32 size() const { return count_; }
  std::vector<std::set<u32>> const& sets() const { return sets_; }

 private:
  /// As the list does that ends with `size`: the lowest of the new ones have room.
  static batch_result insert(std::set<u32>& set, numbers const& batch, u32 size) {
    numbers fresh;
    for (u32 const each : batch)
      if (!set.contains(each)) fresh.push_back(each);
    auto const room = std::min<size_t>(fresh.size(), size - set.size());
    set.insert(fresh.begin(), fresh.begin() + static_cast<std::ptrdiff_t>(room));
    return {static_cast<u32>(room), static_cast<u32>(fresh.size() - room)};
  }
  static batch_result erase(std::set<u32>& set, numbers const& batch) {
    u32 erased = 0;
    for (u32 const each : batch) erased += static_cast<u32>(set.erase(each));
    return {erased, 0};
  }

  Heap heap_{4_MiB};
  launch_shape shape_;
  u32 count_;
  device_buffer<adjacency_list> lists_;
  std::vector<std::set<u32>> sets_;
};

/// Up to `most` numbers below `below`, ascending, none twice.
numbers some_numbers(random_sequence& random, u32 most, u32 below) {
  std::set<u32> drawn;
  for (u32 left = random.below(most + 1); left; --left) drawn.insert(random.below(below));
  return {drawn.begin(), drawn.end()};
}

/// Rounds of insertions and deletions, of batches of very different lengths. Returns what was lost.
template <class Team, class Heap>
u32 change_lists(u32 teams_a_block, u32 rounds, u32 longest) {
  lists_and_sets<Team, Heap> all{teams_a_block};
  random_sequence random{schedule_seed()};
  u32 lost = 0;
  for (u32 round = 0; round < rounds; ++round) {
    batches inserted, erased;
    for (u32 i = 0; i < all.size(); ++i) inserted.add(some_numbers(random, i % 3 ? longest / 8 : longest, 2 * longest));
    lost += all.apply(inserted, true);
    for (u32 i = 0; i < all.size(); ++i) {
      auto const& set = all.sets()[i];
      // All of a third of the lists, or all but the highest: they shrink.
      auto const kept = round % 2 && set.size() > 9 ? 9 : 0;
      if (i % 3 == round % 3) erased.add({set.begin(), std::prev(set.end(), kept)});
      else erased.add(some_numbers(random, longest, 2 * longest));
    }
    lost += all.apply(erased, false);
  }
  all.destroy();
  return lost;
}

TEST(AdjacencyList, IsASetUnderBatchesOfEveryTeam) {
  for_each_schedule(6, [] {
    EXPECT_EQ((change_lists<lone_lane, heap>(40, 3, 60)), 0u);
    EXPECT_EQ((change_lists<whole_warp, heap>(2, 3, 500)), 0u);
    EXPECT_EQ((change_lists<whole_block<64>, heap>(1, 2, 900)), 0u);
    EXPECT_EQ((change_lists<whole_warp, checked<heap>>(2, 2, 300)), 0u);
  });
}

TEST(AdjacencyList, InsertsTheLowestOfABatchThatHasNoRoom) {
  u32 lost = 0;
  for_each_schedule(6, [&] {
    lost += change_lists<lone_lane, refusing_heap>(40, 4, 60);
    lost += change_lists<whole_warp, refusing_heap>(2, 4, 300);
    lost += change_lists<whole_block<64>, refusing_heap>(1, 3, 300);
  });
  EXPECT_GT(lost, 0u);
}

/// A heap of five blocks of 256 bytes, of which the first that is free is handed out.
struct five_blocks {
  u32* memory;
  u32* taken;  ///< a bit for each block

  WARPHEAP_DEVICE void* malloc(size_t bytes) const {
    atomic_ref<u32> const bits{*taken};
    for (u32 i = 0; i < 5 && bytes <= 256; ++i)
      // acquire: the last owner's accesses; pairs with the release in free().
      if (!(bits.fetch_or(1u << i, order::acquire) >> i & 1)) return memory + 64 * i;
    return nullptr;
  }
  WARPHEAP_DEVICE void free(void* block) const {
    if (block) atomic_ref<u32>{*taken}.fetch_and(~(1u << (static_cast<u32*>(block) - memory) / 64), order::release);
  }
};

/// Kernel: each warp fills a list, which grows once, and gives it back, again and again, so that
/// blocks go from warp to warp. The heap may refuse.
struct pass_blocks_on {
  static constexpr u32 count = 20;

  WARPHEAP_DEVICE void operator()(five_blocks heap, adjacency_list* lists, u32* targets, u32* places,
                                  u32* wrong) const {
    whole_warp const team;
    u64 const warp = global_thread_index() / warp_lanes;
    adjacency_list& mine = lists[warp];
    u32* const batch = targets + warp * count;
    for (u32 round = 0; round < 6; ++round) {
      u32 const before = mine.size();
      for (u32 i = team.rank(); i < count; i += team.size) batch[i] = before + i;
      team.sync();
      auto const made = mine.insert_sorted(team, heap, batch, places + warp * count, count);
      bool right = made.changed + made.lost == count && mine.size() == before + made.changed;
      for (u32 i = 0; i < mine.size(); ++i) right = right && mine[i] == i;
      if (!right) atomic_ref<u32>{*wrong}.fetch_add(1, order::relaxed);
      team.sync();
      if (team.rank() == 0 && round % 2 == 1) mine.destroy(heap);
      team.sync();
    }
  }
};

TEST(AdjacencyList, TakesBlocksOfOtherTeams) {
  for_each_schedule(24, [] {
    constexpr u32 warps = 4, numbers = warps * pass_blocks_on::count;
    device_buffer<u32> const memory(5 * 64), taken(1), targets(numbers), places(numbers), wrong(1);
    device_buffer<adjacency_list> const lists(warps);
    launch({2, 64}, pass_blocks_on{}, five_blocks{memory.data(), taken.data()}, lists.data(), targets.data(),
           places.data(), wrong.data());
    synchronize();
    EXPECT_EQ(wrong[0], 0u);
    EXPECT_EQ(taken[0], 0u);
  });
}

/// What a lane does to its own list: one call after the other, beside bits that say what is in it.
struct call_one_by_one {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap, u64 seed, u32* wrong, u32* refused) const {
    u64 const me = global_thread_index();
    random_sequence random{seed * 1024 + me};
    adjacency_list list;
    u64 members = 0;
    for (u32 call = 0; call < 300; ++call) {
      u32 const target = random.below(64);
      bool const inserts = random.below(5) < (call / 100 % 2 == 0 ? 3u : 0u);
      bool const right =
          inserts ? insert(heap, list, members, target, refused[me]) : erase(heap, list, members, target);
      if (!right || !is_set(list, members)) ++wrong[me];
    }
    list.destroy(heap);
    if (list.capacity() != 0 || list.contains(0)) ++wrong[me];
  }

 private:
  template <class Ref>
  WARPHEAP_DEVICE static bool insert(Ref const& heap, adjacency_list& list, u64& members, u32 target, u32& refused) {
    bool const is_there = members >> target & 1, is_found = list.contains(target);
    auto const made = list.insert(heap, target);
    if (made == insert_result::refused) ++refused;
    if (made == insert_result::inserted) members |= u64{1} << target;
    return is_found == is_there && (made == insert_result::exists) == is_there;
  }

  template <class Ref>
  WARPHEAP_DEVICE static bool erase(Ref const& heap, adjacency_list& list, u64& members, u32 target) {
    bool const is_there = members >> target & 1, is_found = list.contains(target);
    bool const is_erased = list.erase(heap, target);
    members &= ~(u64{1} << target);
    bool const may_stay_large = !is_there || same_type<Ref, refusing_heap::ref_type>;
    return is_found == is_there && is_erased == is_there && (may_stay_large || list.capacity() <= 4 * list.size());
  }

  WARPHEAP_DEVICE static bool is_set(adjacency_list const& list, u64 members) {
    bool right = list.size() == popcount(members) && list.size() <= list.capacity();
    for (u32 i = 0; i < list.size(); ++i)
      right = right && (members >> list[i] & 1) && (i == 0 || list[i - 1] < list[i]);
    return right;
  }
};

template <class Heap, class Wrap>
u64 call_lists(Wrap wrap) {
  Heap const heap{4_MiB};
  device_buffer<u32> const wrong(80), refused(80);
  launch({2, 40}, call_one_by_one{}, wrap(heap.ref()), schedule_seed(), wrong.data(), refused.data());
  synchronize();
  EXPECT_EQ(wrong.to_host(), numbers(80));
  EXPECT_EQ(heap.statistics().live_blocks, 0u);
  u64 sum = 0;
  for (u32 const each : refused.to_host()) sum += each;
  return sum;
}

TEST(AdjacencyList, IsASetUnderCallsOneByOne) {
  u64 refused = 0;
  for_each_schedule(10, [&] {
    auto const as_it_is = [](auto ref) { return ref; };
    EXPECT_EQ(call_lists<heap>(as_it_is), 0u);
    EXPECT_EQ(call_lists<heap>(around<bare_ref<>>{}), 0u);
    EXPECT_EQ(call_lists<checked<heap>>(as_it_is), 0u);
    refused += call_lists<refusing_heap>(as_it_is);
  });
  EXPECT_GT(refused, 0u);
}

/// Kernel: inserts `count` numbers, from the highest on, until the heap refuses.
struct insert_descending {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap, u32 count, adjacency_list* made) const {
    adjacency_list list;
    for (u32 i = count; i > 0 && list.insert(heap, i) == insert_result::inserted;) --i;
    *made = list;
  }
};

TEST(AdjacencyList, DoublesOrTakesWhatItNeeds) {
  heap const heap{4_MiB};
  device_buffer<adjacency_list> const made(1);
  launch({1, 1}, insert_descending{}, heap.ref(), 65u, made.data());
  synchronize();
  EXPECT_EQ(made[0].size(), 65u);
  EXPECT_EQ(made[0].capacity(), 128u);
  launch({1, 1}, insert_descending{}, limited_ref{heap.ref(), 300}, 1000u, made.data());
  synchronize();
  EXPECT_EQ(made[0].capacity(), 75u) << "64 fit 256 bytes; the next 512 are refused, and 260 to 300 are not";
  EXPECT_EQ(made[0].to_host().front(), 926u);
}

/// Kernel: every lane brings and takes neighbours of shared lists, in `calls` calls, and counts for
/// each list and target what it brought and took.
struct share_lists {
  static constexpr u32 lists = 2, targets = 24;

  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap, shared_adjacency_list* shared, u32 calls, u64 seed, u32* brought,
                                  u32* taken, u32* contradictions) const {
    random_sequence random{seed * 1024 + global_thread_index()};
    for (u32 call = 0; call < calls; ++call) {
      u32 const which = random.below(lists), target = random.below(targets), at = which * targets + target;
      switch (random.below(3)) {
        case 0:
          if (shared[which].insert(heap, target) == insert_result::inserted) add(brought[at]);
          break;
        case 1:
          if (shared[which].erase(heap, target)) add(taken[at]);
          break;
        default:
          if (shared[which].contains(targets + target) != (target == 0)) add(*contradictions);
      }
    }
  }

 private:
  WARPHEAP_DEVICE static void add(u32& count) { atomic_ref<u32>{count}.fetch_add(1, order::relaxed); }
};

/// Kernel: a neighbour of each list that stays.
struct insert_what_stays {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap, shared_adjacency_list* shared) const {
    while (shared[global_thread_index()].insert(heap, share_lists::targets) == insert_result::refused) {
    }
  }
};

/// Whether shared lists have just what was brought and not taken again.
template <class Heap>
bool is_right(launch_shape shape, u32 calls, u64 seed) {
  using kernel = share_lists;
  constexpr u32 counts = kernel::lists * kernel::targets;
  Heap const heap{4_MiB};
  device_buffer<shared_adjacency_list> const lists(kernel::lists);
  device_buffer<u32> const brought(counts), taken(counts), contradictions(1);
  launch({1, kernel::lists}, insert_what_stays{}, heap.ref(), lists.data());
  launch(shape, kernel{}, heap.ref(), lists.data(), calls, seed, brought.data(), taken.data(), contradictions.data());
  synchronize();
  bool right = contradictions[0] == 0;
  for (u32 i = 0; i < kernel::lists; ++i) {
    numbers wanted;
    for (u32 target = 0; target < kernel::targets; ++target) {
      u32 const count = brought[i * kernel::targets + target] - taken[i * kernel::targets + target];
      right = right && count <= 1;
      if (count) wanted.push_back(target);
    }
    wanted.push_back(kernel::targets);
    right = right && lists[i].list.to_host() == wanted;
  }
  launch({1, kernel::lists}, destroy_all{}, heap.ref(), lists.data(), kernel::lists);
  synchronize();
  return right && heap.statistics().live_blocks == 0;
}

TEST(SharedAdjacencyList, HasWhatWasBroughtAndNotTaken) {
  for_each_schedule(24, [] {
    EXPECT_TRUE(is_right<heap>({2, 40}, 6, schedule_seed()));
    EXPECT_TRUE(is_right<refusing_heap>({3, 33}, 4, schedule_seed()));
  });
  if (on_gpu) {
    EXPECT_TRUE(is_right<heap>({64, 256}, 20, 7));
  }
}

constexpr u32 first_line = __LINE__ + 4;
struct make_errors {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap, shared_adjacency_list* shared) const {
    adjacency_list kept;
    kept.insert(heap, 1);
    shared->insert(heap, 2);
    u32 targets[] = {3, 4}, places[2];
    adjacency_list batch;
    batch.insert_sorted(lone_lane{}, heap, targets, places, 2);
  }
};

TEST(AdjacencyList, TellsACheckedHeapTheLineOfTheCall) {
  checked<heap> heap{1_MiB};
  device_buffer<shared_adjacency_list> const shared(1);
  launch({1, 1}, make_errors{}, heap.ref(), shared.data());
  synchronize();
  std::vector<std::string> found;
  for (auto const& leak : heap.leaks()) found.push_back(leak.describe());
  auto const at = [](u32 line) { return HasSubstr("adjacency_list_test.cpp:" + std::to_string(first_line + line)); };
  EXPECT_THAT(found, testing::UnorderedElementsAre(at(1), at(2), at(5)));
}

}  // namespace adjacency_list_test
