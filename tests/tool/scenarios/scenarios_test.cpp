// SPDX-License-Identifier: Apache-2.0
// Every scenario gives sound results for every allocator, and none for one that is broken.
#include <gmock/gmock.h>

#include <atomic>
#include <vector>

#include "backend/backend.hpp"
#include "cli/usage_error.hpp"
#include "scenarios/atomic.hpp"
#include "scenarios/burst.hpp"
#include "scenarios/churn.hpp"
#include "scenarios/collective_mutex.hpp"
#include "scenarios/exhaust.hpp"
#include "scenarios/fill.hpp"
#include "scenarios/fragmentation.hpp"
#include "scenarios/init.hpp"
#include "scenarios/instruction_latency.hpp"
#include "scenarios/policy_overhead.hpp"
#include "scenarios/rcu_delegation.hpp"
#include "scenarios/scenario.hpp"
#include "scenarios/semaphore.hpp"
#include "scenarios/utilisation.hpp"
#include "scenarios/workers.hpp"
#include "tests/tool/scenarios/broken_allocators_fixture.hpp"
#include "tests/tool/scenarios/small_request_fixture.hpp"
#include "warpheap/warpheap.hpp"

namespace warpheap::tool { namespace {

using testing::AllOf;
using testing::Ge;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Le;
using testing::Not;
using testing::SizeIs;

/// A test for each scenario, since together they take long.
class EachScenario : public testing::TestWithParam<std::string> {};

TEST_P(EachScenario, IsSoundForEveryAllocator) {
  auto const on = make_host_backend();
  auto const& scenario = GetParam();
  auto asked = small_request();
  // A pool full of smaller ones takes long.
  if (scenario == "fill" || scenario == "exhaust" || scenario == "utilisation") asked[options::sizes] = {256, 2048};
  if (scenario == "fill_level" || scenario == "long_churn" || scenario == "map") {
    asked[options::ranges] = {{256, 1024}};  // every one serves these
    asked[options::levels] = {0.5};          // of the smallest pool
    asked[options::threads] = 100;
  }
  if (scenario == "long_churn") asked[options::kernels] = 20;  // two for each tenth
  if (scenario == "fragmentation") {
    asked[options::ranges] = {{256, 1024}};  // every one serves these
    asked[options::left_shares] = {0};       // so that each has room for a large block
    asked[options::sizes] = {4096};
  }
  if (scenario == "efficiency") {
    asked.pool_bytes = u64{1} << 20;  // a full pool takes some long
    asked[options::levels] = {0.3};
  }
  if (scenario == "crowd") {
    asked[options::sizes] = {1024, 65536};
    asked[options::workers] = {1, 40};
  }
  if (scenario == "placement") {
    asked[options::sizes] = {100};
    asked[options::threads] = 100;
  }
  for (auto const& allocator : on->allocators()) {
    auto const results = bench::scenario_called(scenario, *on).run(allocator.name, asked);
    u64 measured = 0;
    for (auto const& made : results) {
      if (!made.skipped.empty()) continue;
      ++measured;
      EXPECT_TRUE(made.allocator == allocator.name || made.allocator == "null") << scenario << " " << made.allocator;
      EXPECT_THAT(made.operation, Not(IsEmpty())) << scenario << " " << allocator.name;
      EXPECT_THAT(made.fault, IsEmpty()) << scenario << " " << allocator.name << " " << made.operation;
      bool const may_be_one = scenario == "crowd" || scenario == "map" || scenario == "efficiency";
      EXPECT_THAT(made.times_us, SizeIs(AllOf(Ge(may_be_one ? 1u : 2u), Le(2u))))
          << scenario << " " << allocator.name << " " << made.operation;
      // Survivors may leave no room for a large block.
      if (scenario != "efficiency")
        EXPECT_GT(made.operations, 0) << scenario << " " << allocator.name << " " << made.operation;
    }
    bool const can_be =
        scenario == "head_replacement" ? allocator.name == "halloc" : scenario != "map" || allocator.name != "toolkit";
    EXPECT_EQ(measured > 0, can_be) << scenario << " " << allocator.name;
  }
}

std::vector<std::string> scenarios_of_allocators() {
  std::vector<std::string> names;
  for (auto const& each : bench::scenarios_of(*make_host_backend()))
    if (each.measures_allocators()) names.push_back(each.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Of, EachScenario, testing::ValuesIn(scenarios_of_allocators()),
                         [](auto const& given) { return given.param; });

TEST(Scenarios, OfPrimitivesAreSoundWhateverTheAllocators) {
  auto const on = make_host_backend();
  u32 found = 0;
  for (auto const& each : bench::scenarios_of(*on)) {
    if (each.kind != bench::scenario_kind::of_primitives) continue;
    auto const& scenario = each.name;
    ++found;
    EXPECT_FALSE(bench::scenario_called(scenario, *on).measures_allocators());
    auto const results = bench::scenario_called(scenario, *on).baseline(small_request());
    EXPECT_THAT(results, Not(IsEmpty()));
    for (auto const& made : results) {
      EXPECT_THAT(made.fault, IsEmpty()) << scenario << " " << made.operation;
      EXPECT_THAT(made.times_us, SizeIs(2)) << scenario << " " << made.operation;
      EXPECT_THAT(made.primitive, Not(IsEmpty()));
      EXPECT_GT(made.operations, 0);
    }
  }
  EXPECT_EQ(found, 7u);
}

TEST(Scenarios, FillTellsHowMuchOfThePoolWasUsedAndThatItServesAgain) {
  auto asked = small_request();
  asked[options::sizes] = {64};
  auto const results = run_on_host("fill", "slab_bitmap", asked);
  ASSERT_THAT(results, SizeIs(3));
  EXPECT_THAT(results[0].figures, testing::Contains(testing::Pair("utilisation", testing::Gt(0.97))));
  EXPECT_THAT(results[0].figures, testing::Contains(testing::Pair("utilisation", testing::Le(1.0))));
  EXPECT_EQ(results[1].failures, 500u);
  EXPECT_THAT(results[2].figures, testing::Contains(testing::Pair("served_again", 1.0)));
}

TEST(Scenarios, ExhaustAsksForExactlyThePool) {
  auto asked = small_request();
  asked[options::sizes] = {64, 2048, 4096, 65536};
  asked[options::threads] = 1 << 13;
  auto const results = run_on_host("exhaust", "tbuddy", asked);
  ASSERT_THAT(results, SizeIs(4));
  u64 const pools[] = {u64{1} << 20, asked.pool_bytes, asked.pool_bytes, asked.pool_bytes};
  for (size_t i = 0; i < 4; ++i) {
    u64 const threads = pools[i] / asked[options::sizes][i];
    EXPECT_EQ(results[i].operations, static_cast<double>(threads - results[i].failures));
    EXPECT_THAT(results[i].parameters, testing::Contains(std::pair{std::string{"pool_bytes"}, pools[i]}));
  }
  // A page for each block smaller than one; from there on nothing is lost.
  EXPECT_EQ(results[0].failures, pools[0] / 64 - pools[0] / 4096);
  EXPECT_EQ(results[1].failures, pools[1] / 4096);
  EXPECT_THAT(results[1].figures, testing::Contains(testing::Pair("failed_share", 0.5)));
  EXPECT_EQ(results[2].failures, 0u);
  EXPECT_EQ(results[3].failures, 0u);
}

TEST(Scenarios, ExhaustTakesOnePoolOfWhatHasOneAProcess) {
  auto asked = small_request();
  asked[options::sizes] = {16, 8192, 4096};
  asked[options::threads] = 1 << 16;
  auto const results = run_on_host("exhaust", "toolkit", asked);
  ASSERT_THAT(results, SizeIs(3));
  EXPECT_THAT(results[0].skipped, HasSubstr("one pool a process"));
  EXPECT_EQ(results[1].skipped + results[2].skipped, "");
}

TEST(Scenarios, SayHowManyCallsFailedWhenThePoolIsTooSmall) {
  auto asked = small_request();
  asked[options::sizes] = {16384};
  auto const results = run_on_host("burst", "slab_bitmap", asked);
  EXPECT_GE(results.front().failures, 500u - 256u);
  EXPECT_TRUE(results.front().checked());
}

TEST(Scenarios, BurstHasABaselineForMallocAndOneForFree) {
  for (u64 const threads : {u64{1}, u64{500}, u64{5000}}) {
    auto asked = small_request();
    asked[options::threads] = threads;
    auto const baseline = baseline_on_host("burst", asked);
    ASSERT_THAT(baseline, SizeIs(2));
    EXPECT_EQ(baseline[0].operation, "malloc");
    EXPECT_EQ(baseline[1].operation, "free");
    for (auto const& row : baseline) {
      EXPECT_EQ(row.allocator, "null");
      EXPECT_EQ(row.fault, "");
      EXPECT_EQ(row.operations, threads);
      EXPECT_THAT(row.times_us, SizeIs(2));
    }
  }
}

TEST(Scenarios, WorkersMeasuresEverySizeWithEveryNumber) {
  auto asked = small_request();
  asked[options::sizes] = {16, 100};
  asked[options::workers] = {1, 33, 200};
  auto const results = run_on_host("workers", "slab_bitmap", asked);
  ASSERT_THAT(results, SizeIs(2 * 3 * 4));
  size_t row = 0;
  for (u64 const bytes : asked[options::sizes])
    for (u64 const workers : asked[options::workers])
      for (auto const* operation : {"malloc", "free", "direct_malloc", "direct_free"}) {
        auto const& made = results[row++];
        EXPECT_EQ(made.operation, operation);
        EXPECT_THAT(made.parameters, testing::IsSupersetOf({std::pair{std::string{"bytes"}, bytes},
                                                            std::pair{std::string{"workers"}, workers}}));
        EXPECT_THAT(made.figures, testing::ElementsAre(testing::Pair("cycles", testing::Gt(0))));
        EXPECT_EQ(made.operations, workers);
        EXPECT_EQ(made.failures, 0u);
      }
}

TEST(Scenarios, WorkersCountsCallsThatFindNoMemory) {
  auto asked = small_request();
  asked[options::sizes] = {u64{64} << 10};  // the pool has 64 such blocks
  asked[options::workers] = {100};
  auto const results = run_on_host("workers", "slab_bitmap", asked);
  ASSERT_THAT(results, SizeIs(4));
  EXPECT_GE(results[0].failures, 36u);
  EXPECT_EQ(results[0].fault, "");
  EXPECT_EQ(results[1].failures, 0u);
}

TEST(Scenarios, PolicyOverheadComparesWithTheCreationPolicyAlone) {
  auto asked = small_request();
  asked[options::sizes] = {64};
  asked[options::ranges] = {{16, 256}};
  auto const results = run_on_host("policy_overhead", "slab_bitmap", asked);
  ASSERT_THAT(results, SizeIs(8 + 2));
  constexpr char const* operations[] = {"direct_malloc", "direct_free", "malloc", "free"};
  for (size_t row = 0; row < 8; ++row) {
    auto const& made = results[row];
    EXPECT_EQ(made.operation, operations[row % 4]);
    EXPECT_THAT(made.parameters, testing::Contains(testing::Pair("most_bytes", row < 4 ? 64u : 256u)));
    if (row % 4 < 2) {
      EXPECT_THAT(made.figures, IsEmpty());
      continue;
    }
    EXPECT_THAT(made.figures,
                testing::ElementsAre(testing::Pair("direct_median_us", bench::median(results[row - 2].times_us)),
                                     testing::Pair("ratio", testing::AllOf(testing::Gt(0.1), testing::Lt(10)))));
  }
  EXPECT_EQ(results[8].operation, "direct_churn");
  EXPECT_EQ(results[9].operation, "churn");
  EXPECT_GT(results[8].operations, 0);
  EXPECT_EQ(results[8].operations, results[9].operations);
  EXPECT_THAT(results[9].figures,
              testing::ElementsAre(testing::Pair("direct_median_us", bench::median(results[8].times_us)),
                                   testing::Pair("ratio", testing::AllOf(testing::Gt(0.1), testing::Lt(10)))));
}

TEST(Scenarios, InitTimesACountOfSlotsFromTheHostAndByAWarp) {
  auto const operations_of = [](char const* allocator) {
    std::vector<std::string> operations;
    for (auto const& made : run_on_host("init", allocator, small_request())) {
      EXPECT_EQ(made.fault, "");
      EXPECT_THAT(made.times_us, SizeIs(2));
      operations.push_back(made.operation);
    }
    return operations;
  };
  EXPECT_THAT(operations_of("scatter"),
              testing::ElementsAre("make", "reset", "available_slots", "available_slots_warp"));
  EXPECT_THAT(operations_of("toolkit"), testing::ElementsAre("make")) << "it counts no slots";
}

/// Counts a slot too many for each part of its pool.
struct miscounting : mutant_of_slab_bitmap<miscounting> {
  slot_part count_slots(size_t bytes, slot_share share) const {
    auto part = slab_bitmap<>::count_slots(bytes, share);
    ++part.count;
    return part;
  }
};

TEST(Scenarios, InitFindsCountsThatDiffer) {
  expect_fault(bench::init(broken<miscounting>(), small_request()), "slots, a warp ");
}

TEST(Scenarios, SemaphoreMeasuresEveryWaitByEveryNumberOfThreads) {
  auto asked = small_request();
  asked[options::workers] = {1, 33, 600};
  asked[options::batch] = 7;
  asked[options::batch_ns] = 100;
  asked[options::thread_blocks] = {1, 32, 1024};  // the last one is larger than all there is
  auto const rows = baseline_on_host("semaphore", asked);
  ASSERT_THAT(rows, SizeIs(18));
  constexpr std::array operations{"wait",          "wait_converged",    "wait",
                                  "wait_for_some", "wait, each thread", "wait, each thread"};
  for (size_t i = 0; i < rows.size(); ++i) {
    u64 const threads = asked[options::workers][i / 6];
    EXPECT_EQ(rows[i].fault, "");
    EXPECT_EQ(rows[i].primitive, i % 6 % 4 ? "bulk_semaphore" : "counting_semaphore");
    EXPECT_EQ(rows[i].operation, operations[i % 6]);
    EXPECT_EQ(rows[i].operations, threads);
    EXPECT_THAT(rows[i].parameters, testing::Contains(testing::Pair("threads", threads)));
    EXPECT_THAT(rows[i].parameters, testing::Contains(testing::Pair("shapes", threads == 1 ? 1u : 2u)));
    // A leader that was served in part may make other lanes begin a batch early.
    u64 const needed = (threads + 6) / 7;
    auto const batches = static_cast<double>(needed);
    if (i % 6 == 3) {
      EXPECT_GE(rows[i].figures.front().second, batches);
    } else {
      EXPECT_EQ(rows[i].figures.front(), (std::pair<std::string, double>{"batches", batches}));
    }
    EXPECT_EQ(rows[i].figures.back().first, i % 6 ? "ratio" : "batches");
  }
}

TEST(Scenarios, CollectiveMutexMeasuresBothKindsOfWorkByEveryNumberOfThreads) {
  auto asked = small_request();
  asked[options::workers] = {1, 33, 300};
  asked[options::thread_blocks] = {1, 40};  // the last warp of a thread block is partial
  auto const rows = baseline_on_host("collective_mutex", asked);
  ASSERT_THAT(rows, SizeIs(3 * 4));
  for (size_t i = 0; i < rows.size(); ++i) {
    u64 const threads = asked[options::workers][i / 4];
    EXPECT_EQ(rows[i].fault, "");
    EXPECT_EQ(rows[i].primitive, i % 2 ? "collective_mutex" : "spin_mutex");
    EXPECT_EQ(rows[i].operation, i % 4 < 2 ? "counters" : "lines");
    EXPECT_EQ(rows[i].operations, threads);
    EXPECT_THAT(rows[i].parameters, testing::Contains(testing::Pair("threads", threads)));
    ASSERT_EQ(rows[i].figures.front().first, "sections");
    double const sections = rows[i].figures.front().second;
    if (i % 2) EXPECT_THAT(sections, AllOf(Ge(threads / 32.0), Le(threads)));
    else EXPECT_EQ(sections, threads) << "every lane alone";
    EXPECT_EQ(rows[i].figures.back().first, i % 2 ? "ratio" : "sections");
  }
}

TEST(Scenarios, AtomicMeasuresAdditionsToOneWordAndToManyByEveryNumberOfThreads) {
  auto asked = small_request();
  asked[options::workers] = {1, 33, 300};
  asked[options::thread_blocks] = {1, 40};  // the last warp of a thread block is partial
  auto const rows = baseline_on_host("atomic", asked);
  ASSERT_THAT(rows, SizeIs(3 * 3));
  char const* const primitives[] = {"each_lane", "each_warp", "own_word"};
  for (size_t i = 0; i < rows.size(); ++i) {
    u64 const threads = asked[options::workers][i / 3];
    EXPECT_EQ(rows[i].fault, "");
    EXPECT_EQ(rows[i].primitive, primitives[i % 3]);
    EXPECT_EQ(rows[i].operation, "fetch_add");
    EXPECT_EQ(rows[i].operations, 8 * threads);
    EXPECT_THAT(rows[i].times_us, SizeIs(asked.repeat));
    EXPECT_THAT(rows[i].parameters, testing::Contains(testing::Pair("threads", threads)));
    EXPECT_THAT(rows[i].parameters, testing::Contains(testing::Pair("additions", 8u)));
    ASSERT_THAT(rows[i].figures, SizeIs(i % 3 ? 5 : 4));
    EXPECT_DOUBLE_EQ(rows[i].figures[0].second, 1e3 * bench::median(rows[i].times_us) / rows[i].operations);
    EXPECT_EQ(rows[i].figures[1].first, "cycles_p50");
    EXPECT_EQ(rows[i].figures[2].first, "cycles_p99");
    EXPECT_EQ(rows[i].figures[3].first, "cycles_mean");
    EXPECT_GT(rows[i].figures[1].second, 0);
    EXPECT_GE(rows[i].figures[2].second, rows[i].figures[1].second);
    EXPECT_GT(rows[i].figures[3].second, 0);
    EXPECT_EQ(rows[i].figures.back().first, i % 3 ? "ratio" : "cycles_mean");
  }
}

TEST(Scenarios, InstructionLatencyMeasuresThreeChainsOfDependentSteps) {
  auto const rows = baseline_on_host("instruction_latency", small_request());
  ASSERT_THAT(rows, SizeIs(3));
  char const* const primitives[] = {"popcount", "nth_bit", "load"};
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].fault, "");
    EXPECT_EQ(rows[i].primitive, primitives[i]);
    EXPECT_EQ(rows[i].operations, bench::chained_steps);
    EXPECT_THAT(rows[i].figures, testing::ElementsAre(testing::Pair("cycles", Ge(0))));
  }
  EXPECT_THAT(rows[2].parameters, testing::Contains(testing::Pair("words", 1024u)));
}

/// Names a place that it does not load.
struct guessing_step {
  static constexpr char const* name = "guess";
  u32 operator()(u32 last) const { return last + 1; }
};

TEST(Scenarios, InstructionLatencyFindsAChainThatEndsElsewhere) {
  EXPECT_EQ(bench::chain_row(guessing_step{}, 5, 6, 2).fault, "a chain ends at 4101 in place of 6");
}

TEST(Scenarios, InstructionLatencyGoesThroughEveryWordOnce) {
  auto const next = bench::random_circle(1000, 7);
  std::vector<bool> seen(next.size());
  u64 at = 0;
  for (size_t steps = 0; steps < next.size(); ++steps, at = next[at]) {
    EXPECT_FALSE(seen[at]);
    seen[at] = true;
  }
  EXPECT_EQ(at, 0u);
}

TEST(Scenarios, RcuDelegationMeasuresThreeBarriersByThreadsAndReaders) {
  auto asked = small_request();
  asked[options::workers] = {1, 40, 300};
  asked[options::readers_per_writer] = {1, 5, 1000};
  asked[options::thread_blocks] = {10, 64};
  auto const rows = baseline_on_host("rcu_delegation", asked);
  ASSERT_THAT(rows, SizeIs(3 * 3 * 3));
  char const* const operations[] = {"barrier", "classical_barrier", "conditional_barrier"};
  for (size_t i = 0; i < rows.size(); ++i) {
    u64 const threads = asked[options::workers][i / 9], share = asked[options::readers_per_writer][i / 3 % 3];
    EXPECT_EQ(rows[i].fault, "");
    EXPECT_EQ(rows[i].operation, operations[i % 3]);
    EXPECT_THAT(rows[i].parameters, testing::Contains(testing::Pair("threads", threads)));
    EXPECT_THAT(rows[i].parameters, testing::Contains(testing::Pair("writers", std::max<u64>(threads / share, 1))));
    if (i % 3 != 2) {
      EXPECT_EQ(rows[i].figures.front(), (std::pair<std::string, double>{"delegated_share", 0.0}));
    }
    EXPECT_EQ(rows[i].figures.back().first, i % 3 ? "ratio" : "delegated_share");
  }
}

/// Gives every lane a unit and makes none.
struct generous_semaphore {
  static constexpr char const* name = "generous";
  static constexpr char const* operation = "wait";
  static constexpr bool makes_no_more = true;
  static void take_unit(u64&, u32, bench::batch_maker) {}
};
/// Makes a batch for every lane.
struct wasteful_semaphore {
  static constexpr char const* name = "wasteful";
  static constexpr char const* operation = "wait";
  static constexpr bool makes_no_more = true;
  static void take_unit(u64& word, u32 batch, bench::batch_maker maker) {
    maker.make();
    bulk_semaphore{word}.signal(batch - 1, 0);
  }
};
/// Loses the units that its makers keep for others.
struct losing_semaphore {
  static constexpr char const* name = "losing";
  static constexpr char const* operation = "wait";
  static constexpr bool makes_no_more = true;
  static void take_unit(u64& word, u32, bench::batch_maker maker) {
    if (atomic_ref<u64>{word}.fetch_add(1, order::relaxed) == 0) maker.make();
  }
};

TEST(Scenarios, SemaphoreFindsBrokenOnes) {
  auto asked = small_request();
  asked[options::workers] = {50};
  auto const fault_of = [](std::vector<bench::result> const& rows) { return rows.front().fault; };
  using sound = bench::by_bulk_semaphore;
  EXPECT_EQ(fault_of(bench::semaphore_of<generous_semaphore, sound>(asked)), "0 batches in place of 1");
  EXPECT_EQ(fault_of(bench::semaphore_of<wasteful_semaphore, sound>(asked)), "50 batches in place of 1");
  EXPECT_EQ(fault_of(bench::semaphore_of<losing_semaphore, sound>(asked)), "units were lost");
}

/// Lets every lane in, and makes each write a value that it read before a pause.
struct open_mutex {
  static constexpr char const* name = "open";
  template <class Work>
  static void do_work(bench::guarded_lines* lines) {
    u32& word = lines->words[0][simt::lane_id()];
    u32 const seen = atomic_ref<u32>{word}.load(order::relaxed);
    simt::pause(1000);
    atomic_ref<u32>{word}.store(seen + 1, order::relaxed);
  }
};
/// Does the work of one member for all of its group.
struct lazy_group {
  static constexpr char const* name = "lazy";
  template <class Work>
  static void do_work(bench::guarded_lines* lines) {
    collective_mutex const mutex{lines->mutex};
    auto const group = mutex.lock_converged();
    if (group.leads) Work::alone(lines);
    mutex.unlock(group.mask);
  }
};
/// Never unlocks the mutex.
struct kept_mutex {
  static constexpr char const* name = "kept";
  template <class Work>
  static void do_work(bench::guarded_lines* lines) {
    atomic_ref<u32>{lines->mutex}.store(1, order::relaxed);
    bench::raise_counters::alone(lines);
  }
};

TEST(Scenarios, CollectiveMutexFindsBrokenOnes) {
  auto asked = small_request();
  auto const fault_of = [](std::vector<bench::result> const& rows) { return rows.front().fault; };
  using sound = bench::by_collective_mutex;
  asked[options::workers] = {300};
  EXPECT_THAT(fault_of(bench::mutexes<open_mutex, sound>(asked)), HasSubstr("do not count the threads"));
  asked[options::workers] = {32};
  EXPECT_EQ(fault_of(bench::mutexes<lazy_group, sound>(asked)), "31 words do not count the threads that raised them");
  asked[options::workers] = {20};
  EXPECT_EQ(fault_of(bench::mutexes<kept_mutex, sound>(asked)), "the mutex is locked when all have left");
}

/// Adds one for all lanes, and gives each of them the number of a single lane.
struct adding_once : bench::by_each_lane {
  static constexpr char const* name = "once";
  static u32 add(u32 lanes, u32& word) {
    auto const group = group_of(lanes);
    u32 const old = group.leads ? atomic_ref<u32>{word}.fetch_add(1, order::relaxed) : 0;
    return broadcast(group, old);
  }
};
/// Adds for all lanes, and gives all of them the number of the first.
struct giving_one_number : bench::by_each_lane {
  static constexpr char const* name = "one_number";
  static u32 add(u32 lanes, u32& word) {
    return broadcast(group_of(lanes), aggregated_fetch_add(group_of(lanes), word));
  }
};

TEST(Scenarios, AtomicFindsBrokenOnes) {
  auto asked = small_request();
  auto const fault_of = [](std::vector<bench::result> const& rows) { return rows.front().fault; };
  asked[options::workers] = {40};
  EXPECT_EQ(fault_of(bench::atomics<adding_once>(asked)), "a word is 16 after 320 additions of 1");
  EXPECT_EQ(fault_of(bench::atomics<giving_one_number>(asked)), "two additions to a word were given one number");
  asked[options::workers] = {1};
  EXPECT_EQ(fault_of(bench::atomics<giving_one_number>(asked)), "") << "a lane alone cannot tell";
}

/// Reclaims everything twice.
struct repeating_barrier {
  static constexpr char const* name = "repeating";
  template <class Reclaim>
  static bool wait(srcu guard, Reclaim) {
    guard.barrier([](srcu_node& node) {
      bench::poison_element{}(node);
      bench::poison_element{}(node);
    });
    return true;
  }
};
/// Reclaims nothing.
struct forgetful_barrier {
  static constexpr char const* name = "forgetful";
  template <class Reclaim>
  static bool wait(srcu guard, Reclaim) {
    guard.barrier([](srcu_node&) {});
    return true;
  }
};

TEST(Scenarios, RcuDelegationFindsBrokenOnes) {
  auto asked = small_request();
  asked[options::workers] = {50};
  asked[options::readers_per_writer] = {2};
  auto const fault_of = [](std::vector<bench::result> const& rows) { return rows.front().fault; };
  using sound = bench::delegated_barrier;
  EXPECT_EQ(fault_of(bench::rcu_delegation<repeating_barrier, sound, sound>(asked)),
            "an element was reclaimed 2 times");
  EXPECT_EQ(fault_of(bench::rcu_delegation<forgetful_barrier, sound, sound>(asked)),
            "an element was reclaimed 0 times");
}

TEST(Scenarios, RcuDelegationNamesWhatIsWrongWithAList) {
  auto const sound = bench::random_list(3, 1);
  bench::tagged_list list{.state = {}, .late = 0, .elements = nullptr, .size = 3};
  auto done = sound;
  for (auto& each : done) each.reclaimed = 1;
  done[3].next = 3;
  constexpr auto waited = static_cast<u32>(bench::errand::waited), idle = static_cast<u32>(bench::errand::not_run),
                 nothing = static_cast<u32>(bench::errand::found_nothing);
  EXPECT_EQ(bench::fault_of(list, done, {waited, nothing, waited, waited}), "");
  EXPECT_EQ(bench::fault_of(list, done, {waited, idle, waited, waited}), "a thread did not finish");
  EXPECT_EQ(bench::fault_of(list, done, {waited, nothing, nothing, waited}), "2 elements removed of 3");
  done[3].next = 1;
  EXPECT_EQ(bench::fault_of(list, done, {waited, waited, waited}), "the list is not empty");
  list.state.running = 1;
  done[3].next = 3;
  EXPECT_EQ(bench::fault_of(list, done, {waited, waited, waited}), "SRCU is not at rest");
  list.late = 2;
  EXPECT_EQ(bench::fault_of(list, done, {waited, waited, waited}), "2 readers met an element that was reclaimed");
}

/// Counts what passes through it.
struct counting_distribution {
  static constexpr char const* name = "counting";
  static inline std::atomic<u64> calls{0};

  size_t collect(size_t bytes) const {
    ++calls;
    return bytes;
  }
  void* distribute(void* memory) const { return memory; }
  static void* release(void* memory) { return memory; }
};

TEST(Scenarios, PolicyOverheadGoesAroundThePoliciesForEveryOtherLaunch) {
  using counted = allocator<creation::slab_bitmap<>, counting_distribution, oom::return_null,
                            reserve_pool::device_memory, alignment::shrink<16>>;
  auto asked = small_request();
  asked[options::sizes] = {64};
  counting_distribution::calls = 0;
  auto const results = bench::policy_overhead(bench::test_subject<counted>{.name = "counted"}, asked);
  EXPECT_EQ(results.front().fault, "");
  u64 const timed = (1 + asked.repeat) * bench::policy_overhead_at<counted>::turns;
  u64 const burst_calls = (bench::warm_up_rounds + timed + 1) * asked[options::threads];
  // A round of churn makes at most this many calls of malloc; one round is checked, the others
  // timed.
  u64 const churn_calls = counting_distribution::calls - burst_calls;
  EXPECT_GT(churn_calls, (2 + asked.repeat) * asked[options::threads]);
  EXPECT_EQ(churn_calls % (2 + asked.repeat), 0u);
}

TEST(Scenarios, UnknownNamesAreUsageErrors) {
  auto const on = make_host_backend();
  EXPECT_THROW(bench::scenario_called("burst", *on).run("nobody", small_request()), usage_error);
  EXPECT_THROW(bench::scenario_called("nothing", *on).run("toolkit", small_request()), usage_error);
}

TEST(BrokenAllocators, AreCaughtWhenBlocksOverlap) {
  auto asked = small_request();
  expect_fault(bench::burst(broken<overlapping>(), asked), "blocks overlap another");
  expect_fault(bench::fill(broken<overlapping>(), asked), "blocks overlap another");
  asked[options::sizes] = {64};
  expect_fault(bench::exhaust(broken<overlapping>(), asked), "blocks overlap another");
  expect_fault(bench::utilisation(broken<overlapping>(), asked), "blocks overlap another");
  asked[options::sizes] = {};
  asked[options::ranges] = {{64, 64}};
  expect_fault(bench::churn(broken<overlapping>(), asked), "blocks overlap another");
  expect_fault(bench::policy_overhead(broken<overlapping>(), asked), "blocks overlap another");
  asked[options::workers] = {40};
  expect_fault(bench::workers(broken<overlapping>(), asked), "blocks overlap another");
}

TEST(BrokenAllocators, AreCaughtWhenBlocksAreMisaligned) {
  expect_fault(bench::burst(broken<misaligning>(), small_request()), "500 blocks are not aligned");
  expect_fault(bench::churn(broken<misaligning>(), small_request()), "blocks are not aligned");
  expect_fault(bench::workers(broken<misaligning>(), small_request()), "blocks are not aligned");
  expect_fault(bench::policy_overhead(broken<misaligning>(), small_request()), "500 blocks are not aligned");
}

TEST(BrokenAllocators, AreCaughtWhenTheyLoseBlocks) {
  expect_fault(bench::burst(broken<leaking>(), small_request()), "blocks lost");
  expect_fault(bench::churn(broken<leaking>(), small_request()), "blocks lost");
  expect_fault(bench::fill(broken<leaking>(), small_request()), "blocks lost");
  auto asked = small_request();
  asked[options::sizes] = {64};
  expect_fault(bench::exhaust(broken<leaking>(), asked), "blocks lost");
  expect_fault(bench::utilisation(broken<leaking>(), asked), "blocks lost");
  asked[options::sizes] = {};
  asked[options::workers] = {40};
  expect_fault(bench::workers(broken<leaking>(), asked), "blocks lost");
  expect_fault(bench::policy_overhead(broken<leaking>(), small_request()), "blocks lost");
}

}}  // namespace warpheap::tool
