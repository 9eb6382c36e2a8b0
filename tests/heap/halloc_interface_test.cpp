// SPDX-License-Identifier: Apache-2.0
// Halloc's own interface: one heap for the process, what its options mean, and what is refused.
#include "warpheap/heap/halloc_interface.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "halloc_interface_units.hpp"
#include "support/message_of.hpp"
#include "warpheap/heap/override.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace halloc_interface_test {

using namespace warpheap;
using test::message_of;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::NotNull;

constexpr launch_shape shape{3, 45};  // the last warp of a thread block is partial
constexpr u64 threads = 135;
constexpr size_t pool = size_t{16} << 20;

struct ask_all {
  WARPHEAP_DEVICE void operator()(void** blocks, size_t bytes) const {
    auto const me = global_thread_index();
    auto* const block = static_cast<u64*>(hamalloc(bytes));
    if (block) *block = me;
    blocks[me] = block;
  }
};

/// Counts blocks that do not hold their thread's number, and frees all.
struct look_and_free {
  WARPHEAP_DEVICE void operator()(void* const* blocks, u64* wrong) const {
    auto const me = global_thread_index();
    auto* const block = static_cast<u64*>(blocks[me]);
    if (block && *block != me) atomic_ref<u64>{*wrong}.fetch_add(1, order::relaxed);
    hafree(block);
  }
};

std::vector<void*> ask(device_buffer<void*> const& blocks, size_t bytes) {
  launch(shape, ask_all{}, blocks.data(), bytes);
  synchronize();
  return blocks.to_host();
}

u64 wrong_when_freed(device_buffer<void*> const& blocks) {
  device_buffer<u64> const wrong(1);
  launch(shape, look_and_free{}, blocks.data(), wrong.data());
  synchronize();
  return wrong[0];
}

template <class Error>
std::string message_of_init(halloc_opts_t const& options) {
  return message_of<Error>([&] {
    ha_init(options);
    ha_shutdown();
  });
}

/// Shuts the heap down even if a test fails.
class shut_down_at_end : public testing::Test {
 protected:
  void TearDown() override { ha_shutdown(); }
};
using HallocInterface = shut_down_at_end;

TEST_F(HallocInterface, ServesFromInitToShutdownAndAgain) {
  device_buffer<void*> const blocks(threads);
  for (int round = 0; round < 2; ++round) {
    EXPECT_THAT(ask(blocks, 64), Each(nullptr)) << "no heap yet, or no longer";
    EXPECT_EQ(wrong_when_freed(blocks), 0u);
    ha_init(pool);
    auto got = ask(blocks, 64);
    EXPECT_THAT(got, Each(NotNull()));
    EXPECT_EQ(ha_heap().statistics().live_blocks, threads);
    EXPECT_EQ(ha_heap().statistics().live_bytes, threads * 64);
    std::sort(got.begin(), got.end());
    EXPECT_EQ(std::unique(got.begin(), got.end()), got.end());
    EXPECT_EQ(wrong_when_freed(blocks), 0u);
    auto const after = ha_heap().statistics();
    EXPECT_EQ(after.live_blocks + after.double_frees + after.foreign_frees, 0u);
    EXPECT_THAT(ha_heap().check_invariants(), IsEmpty());
    ha_shutdown();
  }
}

TEST_F(HallocInterface, ServesSizesBeyondItsSlabs) {
  ha_init(pool);
  device_buffer<void*> const blocks(threads);
  EXPECT_THAT(ask(blocks, 20'000), Each(NotNull()));
  EXPECT_EQ(ha_heap().statistics().live_bytes, threads * 32'768);
  EXPECT_EQ(wrong_when_freed(blocks), 0u);
  EXPECT_EQ(ha_heap().statistics().live_blocks, 0u);
}

TEST_F(HallocInterface, IsOneForAllUnits) {
  ha_init(pool);
  device_buffer<void*> const blocks(threads);
  allocate_in_other_unit(shape, blocks.data(), 24);
  synchronize();
  EXPECT_THAT(blocks.to_host(), Each(NotNull()));
  EXPECT_EQ(ha_heap().statistics().live_blocks, threads);
  free_in_other_unit(shape, blocks.data());
  synchronize();
  EXPECT_EQ(ha_heap().statistics().live_blocks, 0u);

  ask(blocks, 24);
  free_in_other_unit(shape, blocks.data());
  synchronize();
  EXPECT_EQ(ha_heap().statistics().live_blocks, 0u);
  EXPECT_EQ(ha_heap().statistics().foreign_frees, 0u);
  ha_shutdown();
  allocate_in_other_unit(shape, blocks.data(), 24);
  synchronize();
  EXPECT_THAT(blocks.to_host(), Each(nullptr));
}

struct ask_both {
  WARPHEAP_DEVICE void operator()(void** blocks) const {
    blocks[0] = hamalloc(48);
    blocks[1] = device_heap.malloc(48);
  }
};

TEST_F(HallocInterface, IsApartFromDeviceMallocOfOurs) {
  ha_init(pool);
  override_heap const other{size_t{4} << 20};
  device_buffer<void*> const blocks(2);
  launch({1, 1}, ask_both{}, blocks.data());
  synchronize();
  EXPECT_THAT(blocks.to_host(), Each(NotNull()));
  EXPECT_EQ(ha_heap().statistics().live_blocks, 1u);
  EXPECT_EQ(other.heap().statistics().live_blocks, 1u);
}

TEST_F(HallocInterface, RefusesASecondHeapAndKeepsTheFirst) {
  ha_init(pool);
  EXPECT_THAT(message_of_init<std::logic_error>(pool), HasSubstr("ha_shutdown() was not called"));
  // message_of_init shuts down only where nothing was thrown.
  device_buffer<void*> const blocks(threads);
  EXPECT_THAT(ask(blocks, 16), Each(NotNull()));
}

TEST_F(HallocInterface, HasNothingToTellOrToTakeAwayWithoutAHeap) {
  ha_shutdown();
  EXPECT_THROW(ha_heap(), std::logic_error);
}

TEST_F(HallocInterface, TakesTheMemoryThatItIsTold) {
  halloc_opts_t options;
  EXPECT_EQ(options.memory, size_t{512} << 20);
  options.memory = 3 * pool;
  ha_init(options);
  EXPECT_GT(ha_heap().pool_bytes(), 2 * pool);
  EXPECT_LE(ha_heap().pool_bytes(), 3 * pool);
  ha_shutdown();
  EXPECT_THAT(message_of_init<std::invalid_argument>(1000), HasSubstr("1000 bytes: the least is"));
  EXPECT_THAT(message_of_init<std::exception>(size_t{1} << 60), testing::Not("nothing thrown"));
}

TEST_F(HallocInterface, HasDefaultsThatItWasCompiledFor) {
  halloc_opts_t const options{pool};
  EXPECT_DOUBLE_EQ(options.halloc_fraction, 1);
  EXPECT_DOUBLE_EQ(options.busy_fraction, 0.835);
  EXPECT_DOUBLE_EQ(options.roomy_fraction, 0.6);
  EXPECT_DOUBLE_EQ(options.sparse_fraction, 0.25);
  EXPECT_EQ(options.sb_sz_sh, 22);
}

TEST_F(HallocInterface, TakesAnyFractionOfASharedPool) {
  halloc_opts_t options{pool};
  options.halloc_fraction = 0.75;
  EXPECT_EQ(message_of_init<std::exception>(options), "nothing thrown");
  for (double const fraction : {0.0, -0.5, 1.01, std::nan("")}) {
    options.halloc_fraction = fraction;
    EXPECT_THAT(message_of_init<std::invalid_argument>(options), HasSubstr("halloc_fraction is")) << fraction;
  }
}

TEST_F(HallocInterface, RefusesWhatItWasNotCompiledForAndSaysWhatToWrite) {
  auto const said = [](auto member, auto value) {
    halloc_opts_t options{pool};
    options.*member = value;
    return message_of_init<std::invalid_argument>(options);
  };
  EXPECT_THAT(said(&halloc_opts_t::busy_fraction, 0.87),
              AllOf(HasSubstr("busy_fraction is 0.87"), HasSubstr("compiled for 0.835"),
                    HasSubstr(".replace_at = 870 in halloc_interface_config")));
  EXPECT_THAT(said(&halloc_opts_t::roomy_fraction, 0.5), HasSubstr(".busy_above = 500"));
  EXPECT_THAT(said(&halloc_opts_t::sparse_fraction, 0.05), HasSubstr(".sparse_up_to = 50"));
  EXPECT_THAT(said(&halloc_opts_t::sparse_fraction, -1.0), HasSubstr("fractions are 0 to 1"));
  EXPECT_THAT(said(&halloc_opts_t::sb_sz_sh, 20), HasSubstr(".slab_bytes = 1u << 20"));
  EXPECT_EQ(said(&halloc_opts_t::busy_fraction, 0.835), "nothing thrown");
}

TEST_F(HallocInterface, ComparesASplitPool) {
  EXPECT_NO_THROW(detail::expect_fraction("halloc_fraction", 0.75, "split_percent", 75, 100));
  EXPECT_THROW(detail::expect_fraction("halloc_fraction", 0.5, "split_percent", 75, 100), std::invalid_argument);
}

TEST_F(HallocInterface, RefusesUnitsThatWereCompiledForAnotherConfiguration) {
  {
    detail::bound_unit<detail::halloc_kind> const other{"other.cu", "another halloc", {nullptr, nullptr}};
    EXPECT_THAT(message_of_init<std::logic_error>(pool),
                HasSubstr("ha_init: other.cu was compiled for another allocator, another halloc"));
    EXPECT_THROW(ha_heap(), std::logic_error);
  }
  EXPECT_EQ(message_of_init<std::exception>(pool), "nothing thrown");
}

}  // namespace halloc_interface_test
