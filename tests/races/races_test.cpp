// SPDX-License-Identifier: Apache-2.0
// Races of plain accesses in deterministic mode: which orders prevent a report, and what it says.
#include <gmock/gmock.h>

#include <cstring>

#include "support/message_of.hpp"
#include "warpheap/platform/assert.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/platform/shared_memory.hpp"
#include "warpheap/warpheap.hpp"

namespace races_test {

using namespace warpheap;
using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

constexpr char const* no_fault = "nothing thrown";

/// The first line of what the first of `seeds` runs throws that fails.
template <class Body>
std::string first_failure(Body body, u64 seeds = 50, bool weak_memory = true) {
  for (u64 seed = 1; seed <= seeds; ++seed) {
    host::scoped_execution const use{
        {.mode = host::execution_mode::deterministic, .seed = seed, .weak_memory = weak_memory}};
    auto const message = test::message_of<host::schedule_error>(body);
    if (message != no_fault) return message.substr(0, message.find('\n'));
  }
  return no_fault;
}

template <class Kernel>
std::string first_race(launch_shape shape, Kernel kernel, bool weak_memory = true) {
  return first_failure(
      [&] {
        device_buffer<u64> const memory(64);
        launch(shape, kernel, memory.data());
      },
      50, weak_memory);
}

/// One thread block sends the other a value through plain memory.
template <order Give, order Take>
struct send_value {
  static constexpr int line_of_write = __LINE__ + 4, line_of_read = __LINE__ + 8;
  void operator()(u64* memory) const {
    atomic_ref<u64> const flag{memory[0]};
    if (simt::block_index() == 0) {
      memory[1] = 7;
      flag.store(1, Give);
    } else {
      while (flag.load(Take) == 0) simt::pause(1);
      memory[2] = memory[1] + 1;
    }
  }
};

TEST(Races, AreToldWithBothLanesBothPlacesAndTheMissingOrder) {
  using no_release = send_value<order::relaxed, order::acquire>;
  auto const line = [](int number) { return "races_test.cpp:" + std::to_string(number); };
  auto const expected = [&](std::string const& missing) {
    return MatchesRegex("data race: thread block 1 thread 0 reads 8 bytes of buffer [0-9]+ \\+ 0x8 at " +
                        line(no_release::line_of_read) +
                        " .*after thread block 0 thread 0 wrote them at step [0-9]+ at " +
                        line(no_release::line_of_write) +
                        ".*, and no order passes from thread block 0 thread 0 to thread block 1 thread 0: " + missing);
  };
  EXPECT_THAT(first_race({2, 1}, no_release{}), expected("thread block 0 thread 0 has released nothing since"));
  EXPECT_THAT(first_race({2, 1}, send_value<order::release, order::relaxed>{}),
              expected("thread block 0 thread 0 released next at step [0-9]+, and thread block 1 thread 0 has acquired "
                       "nothing of that"));
}

struct send_by_volatile {
  void operator()(u64* memory) const {
    u64 volatile* const flag = memory;
    if (simt::block_index() == 0) {
      memory[1] = 7;
      full_fence();
      *flag = 1;
    } else {
      while (*flag == 0) {
      }
      full_fence();
      memory[2] = memory[1] + 1;
    }
  }
};

struct poll_for_nothing {
  void operator()(u64* memory) const {
    u64 volatile* const flag = memory;
    while (*flag == 0) {
    }
  }
};

struct poll_plain_memory {
  void operator()(u64* memory) const {
    if (simt::block_index() == 0) return static_cast<void>(memory[0] = 1);
    while (__builtin_launder(memory)[0] == 0) __asm__ volatile("" ::: "memory");
  }
};

TEST(Races, VolatileAccessesAreRelaxedAndLetOthersRun) {
  EXPECT_EQ(first_race({2, 1}, send_by_volatile{}), no_fault);
  EXPECT_THAT(first_race({2, 40}, poll_for_nothing{}), StartsWith("hang: "));
}

TEST(Races, PollingPlainMemoryIsOne) {
  EXPECT_THAT(first_race({2, 1}, poll_plain_memory{}), StartsWith("data race: "));
}

struct send_by_fences {
  void operator()(u64* memory) const {
    atomic_ref<u64> const flag{memory[0]};
    if (simt::block_index() == 0) {
      memory[1] = 7;
      release_fence();
      flag.store(1, order::fenced);
    } else {
      while (flag.load(order::relaxed) == 0) simt::pause(1);
      full_fence();
      memory[2] = memory[1];
    }
  }
};

/// Each lane writes its word, and reads its neighbour's after `Meet`.
template <void (*Meet)()>
struct read_neighbour {
  void operator()(u64* memory) const {
    u32 const me = simt::thread_index();
    memory[me] = me;
    Meet();
    memory[32 + me] = memory[(me + 1) % simt::block_dim()];
  }
};
inline void meet_warp() { simt::sync_warp(full_mask); }
inline void meet_block() { simt::sync_block(); }
inline void vote() { simt::ballot(full_mask, true); }

// host.D2
TEST(Races, AreNoneWhereAnOrderPasses) {
  EXPECT_EQ(first_race({2, 1}, send_value<order::release, order::acquire>{}), no_fault);
  EXPECT_EQ(first_race({2, 1}, send_by_fences{}), no_fault);
  EXPECT_EQ(first_race({1, 32}, read_neighbour<meet_warp>{}), no_fault);
  EXPECT_EQ(first_race({1, 32}, read_neighbour<meet_block>{}), no_fault);
  // A vote orders no memory.
  EXPECT_THAT(first_race({1, 32}, read_neighbour<vote>{}), StartsWith("data race"));
}

struct add_to_own_word {
  void operator()(u64* memory) const {
    memory[simt::thread_index()] += memory[40];
    memory[simt::thread_index()] += 1;
  }
};

TEST(Races, AreNoneBetweenKernelsNorWithTheHost) {
  auto const body = [] {
    device_buffer<u64> memory(64);
    memory.data()[40] = 1;
    launch({1, 32}, add_to_own_word{}, memory.data());
    memory.data()[40] = 2;
    stream const on;
    for (int i = 0; i < 2; ++i) launch(on, {1, 32}, add_to_own_word{}, memory.data());
    synchronize(on);
    EXPECT_EQ(memory[31], 8u);
  };
  EXPECT_EQ(first_failure(body), no_fault);
}

TEST(Races, AreToldBetweenStreams) {
  auto const body = [] {
    device_buffer<u64> memory(64);
    stream const left, right;
    launch(left, {1, 1}, add_to_own_word{}, memory.data());
    launch(right, {1, 1}, add_to_own_word{}, memory.data());
    synchronize();
  };
  EXPECT_THAT(first_failure(body), StartsWith("data race"));
}

enum class act { plain_read, plain_write, atomic_read, atomic_write };

/// Two thread blocks, without any order, do one act each.
struct do_both {
  act acts[2];
  void operator()(u64* memory) const {
    u64* const plain = memory;
    switch (acts[simt::block_index()]) {
      case act::plain_read: memory[8 + simt::block_index()] = *plain; break;
      case act::plain_write: *plain = 1; break;
      case act::atomic_read: atomic_ref<u64>{*memory}.load(order::acquire); break;
      case act::atomic_write: atomic_ref<u64>{*memory}.fetch_add(1, order::acq_rel);
    }
  }
};

// host.D1
TEST(Races, AreOfTwoAccessesThatConflict) {
  constexpr act all[] = {act::plain_read, act::plain_write, act::atomic_read, act::atomic_write};
  for (act const left : all) {
    for (act const right : all) {
      bool const writes = left == act::plain_write || right == act::plain_write || left == act::atomic_write ||
                          right == act::atomic_write;
      bool const atomics = left >= act::atomic_read && right >= act::atomic_read;
      auto const message = first_race({2, 1}, do_both{{left, right}});
      if (writes && !atomics) EXPECT_THAT(message, StartsWith("data race"));
      else EXPECT_EQ(message, no_fault);
    }
  }
}

struct [[gnu::packed]] odd {
  u8 first;
  u64 rest;
};
struct large {
  u8 bytes[40];
};

/// Two lanes write objects of type `T` that are `Distance` bytes apart.
template <class T, u32 Distance>
struct write_apart {
  void operator()(u64* memory) const {
    auto* const place = reinterpret_cast<u8*>(memory) + Distance * simt::thread_index();
    *reinterpret_cast<T*>(place) = 1;
  }
};
template <u32 Distance>
struct copy_apart {
  void operator()(u64* memory) const {
    auto* const place = reinterpret_cast<u8*>(memory) + Distance * simt::thread_index();
    *reinterpret_cast<large*>(place) = large{{static_cast<u8>(place[200])}};
  }
};
template <u32 Distance>
struct write_packed {
  void operator()(u64* memory) const {
    reinterpret_cast<odd*>(reinterpret_cast<u8*>(memory) + Distance * simt::thread_index())->rest = 3;
  }
};

TEST(Races, AreOfTheBytesThatAreShared) {
  auto const race = StartsWith("data race");
  EXPECT_EQ(first_race({1, 8}, write_apart<u8, 1>{}), no_fault);
  EXPECT_EQ(first_race({1, 8}, write_apart<unsigned short, 2>{}), no_fault);
  EXPECT_EQ(first_race({1, 8}, write_apart<u32, 4>{}), no_fault);
  EXPECT_THAT(first_race({1, 2}, write_apart<u32, 2>{}), AllOf(race, HasSubstr(" 2 bytes of ")));
  EXPECT_EQ(first_race({1, 2}, copy_apart<40>{}), no_fault);
  EXPECT_THAT(first_race({1, 2}, copy_apart<39>{}), AllOf(race, HasSubstr(" 1 bytes of ")));
  EXPECT_EQ(first_race({1, 2}, write_packed<9>{}), no_fault);
  EXPECT_THAT(first_race({1, 2}, write_packed<7>{}), race);
}

/// Lane 0 publishes a word, the others but the last read it by acquire, the last without.
struct many_readers {
  void operator()(u64* memory) const {
    u32 const me = simt::thread_index();
    atomic_ref<u64> const flag{memory[0]}, done{memory[2]};
    if (me == 0) {
      memory[1] = 7;
      flag.store(1, order::release);
      return;
    }
    if (me + 1 < simt::block_dim()) {
      while (flag.load(order::acquire) == 0) simt::pause(1);
      memory[8 + me] = memory[1];
      done.fetch_add(1, order::relaxed);
      return;
    }
    while (done.load(order::relaxed) + 2 < simt::block_dim()) simt::pause(1);
    memory[8 + me] = memory[1];
  }
};

// host.D3
TEST(Races, AreToldAfterManyReadersThatWereOrdered) {
  EXPECT_THAT(first_race({1, 32}, many_readers{}),
              AllOf(StartsWith("data race: thread block 0 thread 31 reads"), HasSubstr("thread 0 wrote them")));
}

/// Accesses that the compiler neither joins nor leaves out.
template <class T>
void read_at(u64* memory, u32 byte) {
  T const found = *reinterpret_cast<T*>(reinterpret_cast<u8*>(memory) + byte);
  __asm__ volatile("" : : "r"(found) : "memory");
}
template <class T>
void write_at(u64* memory, u32 byte) {
  *reinterpret_cast<T*>(reinterpret_cast<u8*>(memory) + byte) = 1;
  __asm__ volatile("" : : : "memory");
}
void add_to(u64* word, order how) { atomic_ref<u64>{*word}.fetch_add(1, how); }
void wait_for(u64* word, u64 value, order how) {
  while (atomic_ref<u64>{*word}.load(how) < value) simt::pause(1);
}

/// Thread block 0 does `First`, and then thread block 1 `Then`, with no order between them.
template <auto First, auto Then>
struct do_in_turn {
  void operator()(u64* memory) const {
    if (simt::block_index() == 0) {
      First(memory + 8);
      return add_to(memory, order::relaxed);
    }
    wait_for(memory, 1, order::relaxed);
    Then(memory + 8);
  }
};
template <auto First, auto Then>
std::string race_in_turn() {
  return first_race({2, 1}, do_in_turn<First, Then>{});
}
constexpr auto read_word = [](u64* memory) { read_at<u64>(memory, 0); };
constexpr auto write_word = [](u64* memory) { write_at<u64>(memory, 0); };

// host.D3: an access that repeats the last one of its word is not noted again.
TEST(Races, AreOfAWriteAfterAReadInTheSameEpoch) {
  constexpr auto read_and_write = [](u64* memory) {
    read_word(memory);
    write_word(memory);
    read_word(memory);
  };
  EXPECT_THAT((race_in_turn<read_and_write, read_word>()), AllOf(StartsWith("data race"), HasSubstr("wrote them")));
  EXPECT_THAT((race_in_turn<read_and_write, write_word>()), AllOf(StartsWith("data race"), HasSubstr("wrote them")));
  EXPECT_EQ((race_in_turn<read_word, read_word>()), no_fault);
}

TEST(Races, AreOfAPlainAccessAfterAnAtomicOneInTheSameEpoch) {
  constexpr auto add = [](u64* memory) { add_to(memory, order::relaxed); };
  constexpr auto add_and_read = [](u64* memory) {
    add_to(memory, order::relaxed);
    read_word(memory);
  };
  EXPECT_THAT((race_in_turn<add_and_read, add>()), AllOf(StartsWith("data race"), HasSubstr(" read them")));
  EXPECT_EQ((race_in_turn<add, add>()), no_fault);
}

TEST(Races, AreOfMoreBytesThanTheLastAccessHad) {
  constexpr auto write_half_and_word = [](u64* memory) {
    write_at<u32>(memory, 0);
    write_word(memory);
  };
  constexpr auto write_word_and_half = [](u64* memory) {
    write_word(memory);
    write_at<u32>(memory, 0);
  };
  constexpr auto write_across_words = [](u64* memory) {
    write_word(memory);
    write_at<u64>(memory, 4);
  };
  constexpr auto write_two_words = [](u64* memory) {
    write_word(memory);
    write_at<unsigned __int128>(memory, 0);
  };
  constexpr auto write_range = [](u64* memory) {
    write_word(memory);
    *reinterpret_cast<large*>(memory) = *reinterpret_cast<large const*>(memory + 8);
  };
  constexpr auto read_last_byte_of_word = [](u64* memory) { read_at<u8>(memory, 7); };
  constexpr auto read_next_word = [](u64* memory) { read_at<u32>(memory, 8); };
  constexpr auto read_fifth_word = [](u64* memory) { read_at<u8>(memory, 39); };
  auto const race = StartsWith("data race");
  EXPECT_THAT((race_in_turn<write_half_and_word, read_last_byte_of_word>()), race);
  EXPECT_THAT((race_in_turn<write_word_and_half, read_last_byte_of_word>()), race);
  EXPECT_THAT((race_in_turn<write_across_words, read_next_word>()), race);
  EXPECT_THAT((race_in_turn<write_two_words, read_next_word>()), race);
  EXPECT_THAT((race_in_turn<write_range, read_fifth_word>()), race);
  EXPECT_EQ((race_in_turn<write_word_and_half, read_next_word>()), no_fault);
}

/// Thread block 0 hands its first write on by `order`, and not the second one.
template <order Give>
struct write_before_and_after_release {
  static constexpr int line_of_second = __LINE__ + 5;
  void operator()(u64* memory) const {
    if (simt::block_index() == 0) {
      write_word(memory + 8);
      add_to(memory, Give);
      memory[8] = 2;
      return add_to(memory + 1, order::relaxed);
    }
    wait_for(memory + 1, 1, order::relaxed);
    wait_for(memory, 1, order::acquire);
    read_word(memory + 8);
  }
};

/// The second write is behind the barrier, and so is the read.
template <void (*Meet)()>
struct write_before_and_after_barrier {
  void operator()(u64* memory) const {
    bool const is_writer = simt::thread_index() == 0;
    if (is_writer) write_word(memory + 8);
    Meet();
    if (is_writer) write_word(memory + 8);
    if (is_writer) return add_to(memory, order::relaxed);
    wait_for(memory, 1, order::relaxed);
    read_word(memory + 8);
  }
};

struct read_before_and_after_write {
  void operator()(u64* memory) const {
    if (simt::block_index() == 0) {
      read_word(memory + 8);
      add_to(memory, order::release);
      wait_for(memory + 1, 1, order::relaxed);
      return read_word(memory + 8);
    }
    wait_for(memory, 1, order::acquire);
    write_word(memory + 8);
    add_to(memory + 1, order::relaxed);
  }
};

/// A thread block's release, and what another one adds to it, reach a third one.
template <order Add>
struct send_through_addition {
  void operator()(u64* memory) const {
    if (simt::block_index() == 0) write_word(memory + 8);
    if (simt::block_index() == 0) return add_to(memory, order::release);
    wait_for(memory, simt::block_index(), simt::block_index() == 1 ? order::relaxed : order::acquire);
    if (simt::block_index() == 1) return add_to(memory, Add);
    read_word(memory + 8);
  }
};

// host.D2
TEST(Races, AreOfAnAccessInALaterEpochOfTheSameLane) {
  auto const second = ":" + std::to_string(write_before_and_after_release<order::release>::line_of_second);
  EXPECT_THAT(first_race({2, 1}, write_before_and_after_release<order::release>{}),
              AllOf(StartsWith("data race: thread block 1 thread 0 reads"), HasSubstr(second)));
  EXPECT_THAT(first_race({2, 1}, write_before_and_after_release<order::acq_rel>{}),
              AllOf(StartsWith("data race: thread block 1 thread 0 reads"), HasSubstr(second)));
  EXPECT_THAT(first_race({2, 1}, read_before_and_after_write{}),
              AllOf(StartsWith("data race: thread block 0 thread 0 reads"), HasSubstr("wrote them")));
  EXPECT_THAT(first_race({1, 2}, write_before_and_after_barrier<meet_warp>{}), StartsWith("data race"));
  EXPECT_THAT(first_race({1, 2}, write_before_and_after_barrier<meet_block>{}), StartsWith("data race"));
  EXPECT_EQ(first_race({3, 1}, send_through_addition<order::relaxed>{}), no_fault);
  EXPECT_EQ(first_race({3, 1}, send_through_addition<order::release>{}), no_fault);
  EXPECT_EQ(first_race({3, 1}, send_through_addition<order::acq_rel>{}), no_fault);
}

/// Thread block 0 writes words of two pages that the checker's cache keeps in one place.
struct write_two_pages {
  void operator()(u64* memory, u64 far) const {
    if (simt::block_index() == 0) {
      write_word(memory + 8);
      write_word(memory + 8 + far);
      return add_to(memory, order::relaxed);
    }
    wait_for(memory, 1, order::relaxed);
    read_word(memory + 8 + far);
  }
};

TEST(Races, AreOfEachPageThatHasOnePlaceOfTheCache) {
  constexpr u64 far = 4 << 20;
  auto const body = [&] {
    device_buffer<u64> const memory(far / 8 + 16);
    launch({2, 1}, write_two_pages{}, memory.data(), far / 8);
  };
  EXPECT_THAT(first_failure(body), AllOf(StartsWith("data race"), HasSubstr(" + 0x400040 at ")));
}

/// A place for thread blocks keeps its shared memory, and the lanes of the next thread block there
/// begin anew.
struct write_shared_words {
  void operator()() const {
    WARPHEAP_SHARED(words, u64[32]);
    u32 const me = simt::thread_index();
    words[me] = me;
    simt::sync_warp(full_mask);
    words[me ^ 1] += 1;
  }
};

TEST(Races, AreNoneBetweenThreadBlocksThatHaveOnePlace) {
  EXPECT_EQ(first_failure([] { launch({50, 32}, write_shared_words{}); }, 10), no_fault);
}

struct write_for_long {
  void operator()(u64* memory) const {
    for (u32 i = 0; i < 20'000; ++i) write_word(memory);
  }
};

/// Others run after 65,536 plain accesses of a run, not of the runs before it.
TEST(Races, AreFoundAtTheSameStepWhateverRanBefore) {
  device_buffer<u64> const memory(1);
  u64 steps[5] = {};
  for (u64& each : steps) {
    EXPECT_EQ(first_failure([&] { launch({1, 1}, write_for_long{}, memory.data()); }, 1), no_fault);
    each = host::last_run().steps;
  }
  EXPECT_THAT(steps, testing::Each(steps[0]));
}

TEST(Races, AreNotSeenWithoutWeakMemoryNorInParallelMode) {
  EXPECT_EQ(first_race({2, 1}, do_both{{act::plain_write, act::plain_write}}, false), no_fault);
  device_buffer<u64> const memory(64);
  launch({2, 1}, do_both{{act::plain_write, act::plain_write}}, memory.data());
}

struct node {
  u32 value;
  node* next;
};
struct locked_stack {
  u32 lock;
  node* head;
};

/// Each lane pushes a node under a lock, and pops one and frees it.
template <order Take, order Give>
struct push_and_pop {
  static void lock(u32& word) {
    for (u32 expected = 0; !atomic_ref<u32>{word}.compare_exchange(expected, 1, Take, order::relaxed); expected = 0)
      simt::pause(20);
  }
  static void unlock(u32& word) { atomic_ref<u32>{word}.store(0, Give); }

  void operator()(heap_ref heap, locked_stack* stack, u64* sum) const {
    auto* const made = static_cast<node*>(heap.malloc(sizeof(node)));
    made->value = global_thread_index();
    lock(stack->lock);
    made->next = stack->head;
    stack->head = made;
    unlock(stack->lock);
    lock(stack->lock);
    node* const top = stack->head;
    stack->head = top->next;
    unlock(stack->lock);
    atomic_ref<u64>{*sum}.fetch_add(top->value, order::relaxed);
    heap.free(top);
  }
};

template <order Take, order Give>
std::string race_of_stack(u64 seeds) {
  return first_failure(
      [] {
        heap memory{2ull << 20};
        device_buffer<locked_stack> const stack(1);
        device_buffer<u64> sum(1);
        launch({2, 40}, push_and_pop<Take, Give>{}, memory.ref(), stack.data(), sum.data());
        EXPECT_EQ(sum[0], 80u * 79 / 2);
      },
      seeds);
}

TEST(Races, OfALockWithoutAcquireOrReleaseAreFound) {
  EXPECT_EQ((race_of_stack<order::acquire, order::release>(200)), no_fault);
  EXPECT_THAT((race_of_stack<order::relaxed, order::release>(3)),
              AllOf(StartsWith("data race"), HasSubstr("has acquired nothing of that")));
  EXPECT_THAT((race_of_stack<order::acquire, order::relaxed>(3)), StartsWith("data race"));
}

/// Each lane fills blocks, leaves them where another lane finds them, and reads and frees those
/// that it finds.
template <order Swap>
struct churn {
  static constexpr u32 places = 24;
  void operator()(heap_ref heap, u64* mail, u64 seed) const {
    u64 random = (seed << 16) + global_thread_index();
    auto const below = [&](u64 end) {
      random = random * 6364136223846793005 + 1442695040888963407;
      return static_cast<u32>((random >> 33) % end);
    };
    for (u32 round = 0; round < 8; ++round) {
      u32 const words = 1 + below(below(8) == 0 ? 2000 : 16);
      auto* const block = static_cast<u32*>(heap.malloc(words * sizeof(u32)));
      for (u32 i = 0; block && i < words; ++i) block[i] = words;
      u64 const found = atomic_ref<u64>{mail[below(places)]}.exchange(reinterpret_cast<u64>(block), Swap);
      auto* const other = reinterpret_cast<u32*>(found);
      for (u32 i = 0; other && i < other[0]; ++i) WARPHEAP_ASSERT(other[i] == other[0], "contents are intact");
      heap.free(other);
    }
  }
};

template <order Swap>
std::string race_of_heap(u64 seeds) {
  return first_failure(
      [] {
        heap memory{1ull << 20};
        device_buffer<u64> const mail(churn<Swap>::places);
        launch({2, 40}, churn<Swap>{}, memory.ref(), mail.data(), host::current_execution().seed);
      },
      seeds);
}

TEST(Races, AreNoneInTheDefaultHeap) {
  EXPECT_EQ(race_of_heap<order::acq_rel>(100), no_fault);
  EXPECT_THAT(race_of_heap<order::relaxed>(3), StartsWith("data race"));
}

/// Neighbours exchange numbers through shared memory, declared or dynamic, and many thread blocks
/// have one place after the other.
struct exchange_in_block {
  void operator()(bool synchronizes) const {
    WARPHEAP_SHARED(declared, u32[64]);
    auto const dynamic = dynamic_shared<u32>();
    u32 const thread = simt::thread_index();
    declared[thread] = dynamic[thread] = thread;
    if (synchronizes) simt::sync_block();
    dynamic[64 + thread] = declared[63 - thread] + dynamic[63 - thread];
  }
};

TEST(Races, InSharedMemoryAreTold) {
  auto const first = [](bool synchronizes) {
    return first_failure(
        [&] { launch({.blocks = 100, .threads = 64, .shared_bytes = 512}, exchange_in_block{}, synchronizes); });
  };
  EXPECT_EQ(first(true), no_fault);
  EXPECT_THAT(first(false), AllOf(StartsWith("data race: thread block "), HasSubstr(" bytes of shared memory + ")));
}

}  // namespace races_test
