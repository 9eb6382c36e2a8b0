// SPDX-License-Identifier: Apache-2.0
// The join on the host backend finds the tuples of a nested loop, whatever the tables, the pages,
// the partitions, the allocator and the schedule. Faults are noticed, and a pool that runs out does
// no harm.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>

#include "backend/backend.hpp"
#include "cli/usage_error.hpp"
#include "tests/support/schedules.hpp"
#include "tests/tool/measured_fixture.hpp"
#include "tests/tool/scenarios/broken_allocators_fixture.hpp"
#include "warpheap/warpheap.hpp"
#include "workloads/join/backend/job.hpp"
#include "workloads/join/reference.hpp"
#include "workloads/join/settings.hpp"
#include "workloads/join/tables.hpp"

namespace warpheap::tool { namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

/// Key, build payload, probe payload.
using tuple = std::array<u32, 3>;

/// Every pair of a key, sorted: by a nested loop.
std::vector<tuple> pairs_of(join_table const& build, join_table const& probe) {
  std::vector<tuple> found;
  for (size_t p = 0; p < probe.tuples(); ++p)
    for (size_t b = 0; b < build.tuples(); ++b)
      if (probe.keys[p] == build.keys[b]) found.push_back({probe.keys[p], build.payloads[b], probe.payloads[p]});
  std::sort(found.begin(), found.end());
  return found;
}

join_sum sum_of(std::vector<tuple> const& tuples) {
  join_sum sum{tuples.size(), 0};
  for (auto const& [key, build, probe] : tuples) sum.checksum += build_factor(key, build) * probe_factor(key, probe);
  return sum;
}

/// The tuples that the kernels write to pages, sorted.
template <class Pages, class Writer = join::warp_writer>
std::vector<tuple> joined(join_table const& build, join_table const& probe, u64 page_bytes, u32 bits) {
  Pages pages{8 * mebibyte, page_bytes};
  join::partitioned_table first{build, bits}, second{probe, bits};
  join::hash_table table{first};
  device_buffer<join::chain> const chains((probe.tuples() + Writer::lanes_a_chain - 1) / Writer::lanes_a_chain);
  device_buffer<u64> const failures(1);
  first.cut();
  second.cut();
  synchronize();
  table.build();
  launch(join::thread_each(probe.tuples()), join::probe_tuples<Writer>{}, pages.ref(), table.view(), second.tuples(),
         page_bytes, chains.data(), failures.data());
  synchronize();
  EXPECT_EQ(failures[0], 0u);
  std::vector<tuple> found;
  u32 const slots = join::slots_of(page_bytes);
  for (auto const& each : chains.to_host()) {
    join::page here{reinterpret_cast<u8*>(each.head), slots};
    for (u32 left = each.pages, used = each.used; left > 0; --left, used = slots, here = here.before())
      for (u32 slot = 0; slot < used; ++slot) found.push_back({here.key(slot), here.build(slot), here.probe(slot)});
  }
  launch(join::thread_each(chains.size()), join::free_chains{}, pages.ref(), chains.data(), chains.size(), slots);
  synchronize();
  EXPECT_THAT(pages.fault(), IsEmpty());
  std::sort(found.begin(), found.end());
  return found;
}

using default_pages = join::heap_pages<default_allocator>;

/// Few keys for many tuples, so that many have several partners: a key of `keys`, at random.
join_table random_table(u64 tuples, u32 keys, u64 seed) {
  join_table made;
  random_sequence random{seed};
  for (u64 i = 0; i < tuples; ++i) {
    made.keys.push_back(0x8000'0000u + random.below(keys) * 0x0101'0101u);
    made.payloads.push_back(random.next());
  }
  return made;
}

std::vector<bench::result> run(join_table const& build, join_table const& probe, std::string const& allocator,
                               join_settings settings = {}) {
  settings.build = &build;
  settings.probe = &probe;
  settings.expected = reference_join(build, probe);
  settings.repeat = 2;
  if (!settings.pool_bytes) settings.pool_bytes = 8 * mebibyte;
  return make_host_backend()->part<join_job>().run(allocator, settings);
}

TEST(Join, FindsThePairsOfANestedLoopInTablesOfEverySize) {
  u64 pairs = 0;
  for (u64 const build : {0u, 1u, 2u, 31u, 33u, 200u})
    for (u64 const probe : {0u, 1u, 32u, 33u, 257u}) {
      auto const left = random_table(build, 40, build), right = random_table(probe, 40, probe + 1000);
      auto const wanted = pairs_of(left, right);
      pairs += wanted.size();
      EXPECT_EQ(joined<default_pages>(left, right, 256, 2), wanted) << build << " and " << probe;
      EXPECT_EQ(joined<join::direct_pages<join::page_counting::by_lane>>(left, right, 256, 2), wanted)
          << build << " and " << probe;
      EXPECT_EQ((joined<default_pages, join::lane_writer>(left, right, 256, 2)), wanted) << build << " and " << probe;
      EXPECT_EQ(reference_join(left, right), sum_of(wanted));
    }
  EXPECT_GT(pairs, 2000u);
}

// join.O1
TEST(Join, FindsThemWhateverThePagesAndThePartitions) {
  auto const build = random_table(150, 25, 1), probe = random_table(150, 25, 2);
  auto const wanted = pairs_of(build, probe);
  // Pages of one tuple, of not quite two, of as many as a warp has lanes and one more or less, and
  // of all.
  for (u64 const page_bytes : {20u, 31u, 32u, 380u, 392u, 404u, 65536u})
    for (u32 const bits : {0u, 1u, 5u, 11u}) {
      EXPECT_EQ(joined<default_pages>(build, probe, page_bytes, bits), wanted) << page_bytes << ", " << bits;
      EXPECT_EQ(joined<join::direct_pages<join::page_counting::by_lane>>(build, probe, page_bytes, bits), wanted)
          << page_bytes << ", " << bits;
      if (page_bytes > 4096) continue;  // 150 of them do not fit
      EXPECT_EQ((joined<default_pages, join::lane_writer>(build, probe, page_bytes, bits)), wanted)
          << page_bytes << ", " << bits;
    }
}

TEST(Join, FindsThemUnderEverySchedule) {
  auto const build = random_table(40, 12, 3), probe = random_table(70, 12, 4);
  auto const wanted = pairs_of(build, probe);
  ASSERT_GT(wanted.size(), 150u);
  test::for_each_schedule(100, [&] {
    EXPECT_EQ(joined<default_pages>(build, probe, 64, 1), wanted);
    EXPECT_EQ(joined<join::direct_pages<join::page_counting::by_lane>>(build, probe, 64, 1), wanted);
    EXPECT_EQ((joined<default_pages, join::lane_writer>(build, probe, 32, 1)), wanted);
  });
}

TEST(Join, IsCutIntoPartitionsThatKeepEveryTuple) {
  auto const table = random_table(5000, 3000, 5);
  join::partitioned_table cut{table, 7};
  for (u32 round = 0; round < 2; ++round) {
    cut.cut();
    synchronize();
    std::map<std::pair<u32, u32>, int> balance;
    for (u64 i = 0; i < table.tuples(); ++i) ++balance[{table.keys[i], table.payloads[i]}];
    u32 place = 0;
    for (u32 partition = 0; partition < cut.partitions(); ++partition) {
      EXPECT_EQ(cut.first()[partition], place);
      for (; place < cut.first()[partition + 1]; ++place) {
        EXPECT_EQ(join::partition_of(join::hash_of(cut.tuples().keys[place]), 7), partition);
        --balance[{cut.tuples().keys[place], cut.tuples().payloads[place]}];
      }
    }
    EXPECT_EQ(place, 5000u);
    for (auto const& [tuple, left] : balance) EXPECT_EQ(left, 0) << tuple.first;
  }
}

// join.H1, join.H2
TEST(Join, HasEveryTupleInOneChainOfItsOwnPartition) {
  for (u32 const bits : {0u, 3u, 9u}) {
    auto const source = random_table(1000, 200, bits);
    join::partitioned_table first{source, bits};
    join::hash_table table{first};
    for (u32 round = 0; round < 2; ++round) {
      first.cut();
      synchronize();
      table.build();
      synchronize();
      auto const view = table.view();
      std::vector<u32> seen(source.tuples());
      for (u64 bucket = 0; bucket < 2 * source.tuples(); ++bucket) {
        u32 const head = view.buckets[bucket];
        for (u32 link = head; link; link = view.next[link - 1]) {
          ++seen[link - 1];
          EXPECT_EQ(join::partition_of(join::hash_of(view.tuples.keys[link - 1]), bits),
                    join::partition_of(join::hash_of(view.tuples.keys[head - 1]), bits));
          EXPECT_EQ(view.bucket_of(view.tuples.keys[link - 1]), view.buckets + bucket);
        }
      }
      EXPECT_THAT(seen, testing::Each(1u));
    }
  }
}

TEST(Join, GivesTheSameResultWithEveryAllocatorInBothOrders) {
  auto const tables = make_join_tables({.build_tuples = 1200, .probe_tuples = 3001, .match = 0.7, .skew = 1.1});
  auto names = std::vector<std::string>{direct_output, direct_output_by_warp};
  for (auto const& known : make_host_backend()->allocators()) names.push_back(known.name);
  names.insert(names.end(), std::begin(join_walks), std::end(join_walks));
  for (auto const& name : names)
    for (bool const turned : {false, true}) {
      auto const rows = turned ? run(tables.probe, tables.build, name, {.partition_bits = 4})
                               : run(tables.build, tables.probe, name, {.partition_bits = 4});
      ASSERT_THAT(rows, SizeIs(name == direct_output || name == direct_output_by_warp ? 2 : 3));
      for (auto const& made : rows) {
        EXPECT_EQ(made.fault, "") << name << " " << made.operation;
        EXPECT_EQ(made.allocator, name);
        EXPECT_THAT(made.times_us, SizeIs(2)) << name;
        EXPECT_GT(made.operations, 0);
      }
      EXPECT_EQ(figure(rows[0], "tuples"), 2100) << name;
      EXPECT_GT(figure(rows[0], "without_partition_us"), figure(rows[0], "build_us")) << name;
      EXPECT_LT(figure(rows[0], "without_partition_us"), bench::median(rows[0].times_us)) << name;
      // A warp has a page for 20 tuples and a part of one, at the most, for what is left.
      u64 const pages = static_cast<u64>(figure(rows[0], "pages"));
      EXPECT_GE(pages, 105u) << name;
      EXPECT_LE(pages, 2100u / 20 + 3001 / 32 + 1) << name;
      EXPECT_DOUBLE_EQ(figure(rows[0], "utilisation"), 2100.0 * 12 / (static_cast<double>(pages) * 256)) << name;
    }
}

TEST(Join, GivesEachLaneAPageWhereItIsAsked) {
  auto const tables = make_join_tables({.build_tuples = 900, .probe_tuples = 1001, .match = 0.4, .skew = 0.5});
  auto names = std::vector<std::string>{direct_output, direct_output_by_warp};
  for (auto const& known : make_host_backend()->allocators()) names.push_back(known.name);
  names.insert(names.end(), std::begin(join_walks), std::end(join_walks));
  for (auto const& name : names) {
    auto const rows = run(tables.build, tables.probe, name, {.page_bytes = 32, .lanes_a_chain = 1});
    for (auto const& made : rows) EXPECT_EQ(made.fault, "") << name << " " << made.operation;
    EXPECT_EQ(figure(rows[0], "pages"), 400) << name << ": keys of the first table are distinct";
    EXPECT_DOUBLE_EQ(figure(rows[0], "utilisation"), 12.0 / 32);
    // The other way round lanes have several partners.
    auto const turned = run(tables.probe, tables.build, name, {.page_bytes = 32, .lanes_a_chain = 1});
    EXPECT_EQ(turned[0].fault, "") << name;
    EXPECT_LT(figure(turned[0], "pages"), 400) << name;
    EXPECT_GT(figure(turned[0], "pages"), 199) << name;
  }
}

TEST(Join, OfEmptyTablesHasNoPages) {
  join_table const none, some = random_table(100, 10, 1);
  for (auto const& [build, probe] : {std::pair{&none, &none}, {&none, &some}, {&some, &none}})
    for (auto const* const name : {direct_output, direct_output_by_warp, "slab_bitmap"}) {
      auto const rows = run(*build, *probe, name);
      EXPECT_EQ(rows[0].fault, "");
      EXPECT_EQ(figure(rows[0], "tuples"), 0);
      EXPECT_EQ(figure(rows[0], "pages"), 0);
      EXPECT_EQ(figure(rows[0], "utilisation"), 0);
    }
}

TEST(Join, OfOneKeyMakesAllPairs) {
  auto const build = random_table(300, 1, 1), probe = random_table(500, 1, 2);
  for (auto const* const name : {direct_output, "slab_bitmap", "scatter"}) {
    auto const rows = run(build, probe, name, {.page_bytes = 1024, .partition_bits = 3, .pool_bytes = 4 * mebibyte});
    EXPECT_EQ(rows[0].fault, "") << name;
    EXPECT_EQ(figure(rows[0], "tuples"), 150'000);
    EXPECT_GT(figure(rows[0], "utilisation"), 0.97);
  }
}

TEST(Join, SaysHowMuchOfTheResultFoundPagesAndLosesNothing) {
  auto const tables = make_join_tables({.build_tuples = 5000, .probe_tuples = 70'000});
  for (auto const* const name : {direct_output, "slab_bitmap", "scatter", "tbuddy"}) {
    // 4,096 pages at the most, and two for each of 2,188 warps are needed.
    auto const rows = run(tables.build, tables.probe, name, {.partition_bits = 1, .pool_bytes = mebibyte});
    for (auto const& made : rows) {
      EXPECT_THAT(made.fault, HasSubstr("out of memory: ")) << name;
      EXPECT_THAT(made.fault, HasSubstr(" of 70000 tuples of the result found pages of 256 bytes")) << name;
    }
    EXPECT_GT(rows[0].failures, 0u);
    EXPECT_GT(figure(rows[0], "pages"), 255) << name;
    auto const lanes = run(tables.build, tables.build, name, {.lanes_a_chain = 1, .pool_bytes = mebibyte});
    EXPECT_THAT(lanes[0].fault, HasSubstr("out of memory: ")) << name;
    EXPECT_LE(figure(rows[0], "pages"), 4096) << name;
  }
  EXPECT_EQ(run(tables.build, tables.probe, "slab_bitmap", {.pool_bytes = 2 * mebibyte})[0].fault, "");
}

TEST(Join, TakesNoMoreOfThePoolThanPagesOfAWalkHave) {
  auto const tables = make_join_tables({.build_tuples = 1000, .probe_tuples = 64'000});
  // 2,000 warps take two pages each: 1 MiB of pages of 256 bytes, and 32 MiB of those of 8 KiB.
  for (auto const* const name : join_walks)
    EXPECT_EQ(run(tables.build, tables.probe, name, {.pool_bytes = 2 * mebibyte})[0].fault, "") << name;
  EXPECT_THAT(run(tables.build, tables.probe, "corw", {.pool_bytes = 2 * mebibyte})[0].fault,
              HasSubstr("out of memory"));
}

TEST(Join, RefusesPagesThatAnAllocatorDoesNotServe) {
  auto const table = random_table(10, 10, 1);
  EXPECT_THROW(run(table, table, "ring_buffer", {.page_bytes = 8193}), usage_error);
  for (auto const* const name : join_walks) {
    EXPECT_THROW(run(table, table, name, {.page_bytes = 257}), usage_error) << name;
    auto const rows = run(table, table, name, {.page_bytes = 256});
    EXPECT_EQ(rows[0].fault, "") << name;
    EXPECT_EQ(rows[0].allocator, name);
  }
  EXPECT_THROW(run(table, table, "nobody"), usage_error);
}

/// Now and then hands out a block that it has handed out before.
class doubling : public creation::slab_bitmap<> {
 public:
  doubling() = default;
  void* create(size_t bytes) const {
    static void* lent = nullptr;
    void* const block = slab_bitmap<>::create(bytes);
    if (global_thread_index() == 32) lent = block;
    return global_thread_index() == 320 && lent ? lent : block;
  }
  static doubling place(void* memory, size_t bytes) { return doubling{slab_bitmap<>::place(memory, bytes)}; }

 private:
  explicit doubling(slab_bitmap<> sound) : slab_bitmap<>{sound} {}
};

template <class Creation>
std::string join_fault_over() {
  host::scoped_execution const use{{.mode = host::execution_mode::deterministic, .seed = 1}};
  auto const tables = make_join_tables({.build_tuples = 400, .probe_tuples = 400});
  join_settings settings{.build = &tables.build, .probe = &tables.probe, .pool_bytes = mebibyte};
  settings.expected = reference_join(tables.build, tables.probe);
  return join::job<join::heap_pages<plain_allocator<Creation>>>{"broken", settings}.run()[0].fault;
}

TEST(Join, NoticesAnAllocatorThatGivesAPageTwiceOrLosesOne) {
  EXPECT_THAT(join_fault_over<creation::slab_bitmap<>>(), IsEmpty());
  EXPECT_THAT(join_fault_over<doubling>(), HasSubstr("the result's tuples are not those"));
  EXPECT_THAT(join_fault_over<leaking>(), HasSubstr("blocks lost"));
}

TEST(Join, NoticesAResultThatIsNotTheReferences) {
  auto const table = random_table(100, 30, 1);
  join_settings settings{.build = &table, .probe = &table, .pool_bytes = mebibyte};
  settings.expected = reference_join(table, table);
  auto const fault = [&](u64 tuples, u64 checksum) {
    auto asked = settings;
    asked.expected = {settings.expected.tuples + tuples, settings.expected.checksum + checksum};
    return make_host_backend()->part<join_job>().run("slab_bitmap", asked)[0].fault;
  };
  EXPECT_THAT(fault(0, 0), IsEmpty());
  EXPECT_THAT(fault(1, 0), HasSubstr("tuples, and it should have"));
  EXPECT_THAT(fault(0, 1), HasSubstr("checksums differ"));
}

// Results of the same number of tuples that a checksum must tell apart.
TEST(Join, ChecksumsTellResultsApart) {
  auto const build = random_table(60, 10, 1), probe = random_table(60, 10, 2);
  auto const right = pairs_of(build, probe);
  auto const sum = sum_of(right);
  EXPECT_EQ(reference_join(build, probe), sum);
  random_sequence random{7};
  for (u32 round = 0; round < 1000; ++round) {
    auto wrong = right;
    auto& one = wrong[random.below(static_cast<u32>(wrong.size()))];
    auto& other = wrong[random.below(static_cast<u32>(wrong.size()))];
    u32 const column = round % 3;
    if (one == other) continue;
    switch (round / 3 % 3) {
      case 0: one = other; break;  // one twice, another never
      case 1: one[column] ^= 1u << random.below(32); break;
      default:
        if (one[column] == other[column] ||
            (one[(column + 1) % 3] == other[(column + 1) % 3] && one[(column + 2) % 3] == other[(column + 2) % 3]))
          continue;
        std::swap(one[column], other[column]);  // columns out of step
    }
    EXPECT_NE(sum_of(wrong), sum) << round;
  }
}

}}  // namespace warpheap::tool
