// Every scenario gives sound results for every allocator, and none for one that is broken.
#include <gmock/gmock.h>

#include <vector>

#include "backend/backend.hpp"
#include "bench/burst.hpp"
#include "bench/churn.hpp"
#include "bench/fill.hpp"
#include "warpheap/warpheap.hpp"

namespace warpheap::tool {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

bench::request small_request() {
  bench::request asked;
  asked.pool_bytes = u64{4} << 20;
  asked.repeat = 2;
  asked.threads = 500;  // the last warp is partial
  asked.rounds = 16;
  return asked;
}

TEST(Scenarios, AreSoundForEveryAllocator) {
  auto const on = make_host_backend();
  for (auto const& scenario : on->scenarios())
    for (auto const& allocator : on->allocators()) {
      auto const results = on->bench(scenario, allocator.name, small_request());
      EXPECT_THAT(results, Not(IsEmpty()));
      for (auto const& made : results) {
        EXPECT_THAT(made.fault, IsEmpty()) << scenario << " " << allocator.name << " " << made.operation;
        EXPECT_THAT(made.times_us, SizeIs(2)) << scenario << " " << allocator.name << " " << made.operation;
        EXPECT_GT(made.operations, 0) << scenario << " " << allocator.name << " " << made.operation;
      }
    }
}

TEST(Scenarios, FillTellsHowMuchOfThePoolWasUsedAndThatItServesAgain) {
  auto asked = small_request();
  asked.sizes = {64};
  auto const results = make_host_backend()->bench("fill", "slab_bitmap", asked);
  ASSERT_THAT(results, SizeIs(3));
  EXPECT_THAT(results[0].figures, testing::Contains(testing::Pair("utilisation", testing::Gt(0.97))));
  EXPECT_THAT(results[0].figures, testing::Contains(testing::Pair("utilisation", testing::Le(1.0))));
  EXPECT_EQ(results[1].failures, 500u);
  EXPECT_THAT(results[2].figures, testing::Contains(testing::Pair("served_again", 1.0)));
}

TEST(Scenarios, SayHowManyCallsFailedWhenThePoolIsTooSmall) {
  auto asked = small_request();
  asked.sizes = {16384};
  auto const results = make_host_backend()->bench("burst", "slab_bitmap", asked);
  EXPECT_GE(results.front().failures, 500u - 256u);
  EXPECT_TRUE(results.front().checked());
}

TEST(Scenarios, UnknownNamesAreUsageErrors) {
  auto const on = make_host_backend();
  EXPECT_THROW(on->bench("burst", "nobody", small_request()), usage_error);
  EXPECT_THROW(on->bench("nothing", "toolkit", small_request()), usage_error);
}

/// Gives neighbouring threads blocks of which the last 16 bytes of one are the first of the other.
class overlapping : public creation::toolkit {
 public:
  void* create(size_t bytes) const { return memory().data() + global_thread_index() * (bytes - 16); }
  void destroy(void*) const {}
  static overlapping place(void*, size_t) { return {}; }

 private:
  struct alignas(16) unit {
    u8 bytes[16];
  };
  struct units : std::vector<unit> {
    using std::vector<unit>::vector;
    u8* data() { return std::vector<unit>::data()->bytes; }
  };
  static units& memory() {
    static units all(u64{1} << 20);
    return all;
  }
};

/// Gives blocks at multiples of 8 and not of 16.
class misaligning : public creation::toolkit {
 public:
  void* create(size_t bytes) const { return static_cast<u8*>(toolkit::create(bytes + 8)) + 8; }
  void destroy(void* block) const { toolkit::destroy(static_cast<u8*>(block) - 8); }
  static misaligning place(void*, size_t) { return {}; }
};

/// Forgets what its seventh thread frees.
class leaking : public creation::slab_bitmap<> {
 public:
  leaking() = default;
  void destroy(void* block) const {
    if (global_thread_index() != 7) slab_bitmap<>::destroy(block);
  }
  static leaking place(void* memory, size_t bytes) { return leaking{slab_bitmap<>::place(memory, bytes)}; }

 private:
  explicit leaking(slab_bitmap<> sound) : slab_bitmap<>{sound} {}
};

/// The toolkit's has no pool.
template <class Creation>
using pool_for = std::conditional_t<std::is_base_of_v<creation::toolkit, Creation>, reserve_pool::toolkit_limit,
                                    reserve_pool::device_memory>;

template <class Creation>
bench::contender<allocator<Creation, distribution::none, oom::return_null, pool_for<Creation>, alignment::shrink<16>>>
broken() {
  return {"broken", false};
}

void expect_fault(std::vector<bench::result> const& results, char const* fault) {
  ASSERT_THAT(results, Not(IsEmpty()));
  for (auto const& made : results) {
    EXPECT_FALSE(made.checked()) << made.scenario << " " << made.operation;
    EXPECT_THAT(made.fault, HasSubstr(fault)) << made.scenario << " " << made.operation;
  }
}

TEST(BrokenAllocators, AreCaughtWhenBlocksOverlap) {
  auto asked = small_request();
  expect_fault(bench::burst(broken<overlapping>(), asked), "blocks overlap another");
  expect_fault(bench::fill(broken<overlapping>(), asked), "blocks overlap another");
  asked.ranges = {{64, 64}};
  expect_fault(bench::churn(broken<overlapping>(), asked), "blocks overlap another");
}

TEST(BrokenAllocators, AreCaughtWhenBlocksAreMisaligned) {
  expect_fault(bench::burst(broken<misaligning>(), small_request()), "500 blocks are not aligned");
  expect_fault(bench::churn(broken<misaligning>(), small_request()), "blocks are not aligned");
}

TEST(BrokenAllocators, AreCaughtWhenTheyLoseBlocks) {
  expect_fault(bench::burst(broken<leaking>(), small_request()), "blocks lost");
  expect_fault(bench::churn(broken<leaking>(), small_request()), "blocks lost");
  expect_fault(bench::fill(broken<leaking>(), small_request()), "blocks lost");
}

}  // namespace
}  // namespace warpheap::tool
