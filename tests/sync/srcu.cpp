// SRCU between real lanes: nothing is reclaimed under a reader, every retired node is reclaimed once, and a barrier that is
// delegated leaves nothing behind.
#include <gtest/gtest.h>

#include <vector>
#include <warpheap/platform/device_buffer.hpp>
#include <warpheap/sync/srcu.hpp>
#include <warpheap/util/random.hpp>

#include "support/schedules.hpp"

namespace {

using namespace warpheap;
using test::for_each_schedule;

/// A record behind a pointer that writers replace. `content` is what readers look at.
struct record {
  srcu_node node;
  u32 content;
  u32 reclaimed;  // times
};
constexpr u32 alive = 0x600d;
constexpr u32 dead = 0xdead;

struct tally {
  u32 read;       // sections
  u32 late;       // looks at a record that had been reclaimed
  u32 retired;    // records
  u32 reclaimed;  // by callbacks
  u32 delegated;  // barriers that somebody else ran
  u32 kept;       // own records that a full barrier's caller found not reclaimed
};

WARPHEAP_DEVICE void count(u32& total, u32 more = 1) { atomic_ref<u32>{total}.fetch_add(more, order::relaxed); }

/// What callbacks do: the record is another's from here on.
struct reclaim_record {
  tally* total;

  WARPHEAP_DEVICE void operator()(srcu_node& node) const {
    auto& each = reinterpret_cast<record&>(node);
    // relaxed throughout: SRCU orders them.
    atomic_ref<u32>{each.content}.store(dead, order::relaxed);
    atomic_ref<u32>{each.reclaimed}.fetch_add(1, order::relaxed);
    node.next = nullptr;
    count(total->reclaimed);
  }
};

/// What everybody shares: `places` pointers to records, and records to put there.
struct arena {
  srcu_state state;
  u64 places[2];  // index of the record there
  u32 made;       // records handed out
};

enum class use { conditional, full, mixed };

/// Every lane reads, and now and then replaces a record: one in `readers_a_writer` times.
template <class Srcu>
struct read_and_replace {
  WARPHEAP_DEVICE void operator()(arena* shared, record* records, u32 rounds, u32 readers_a_writer, use how,
                                  tally* total) const {
    Srcu const guard{shared->state};
    random_sequence random{global_thread_index()};
    for (u32 round = 0; round < rounds; ++round) {
      atomic_ref<u64> const place{shared->places[random.below(2)]};
      if (random.below(readers_a_writer + 1) == 0) replace(guard, shared, place, records, how, random, total);
      else read(guard, place, records, total);
    }
  }

 private:
  WARPHEAP_DEVICE static void read(Srcu const& guard, atomic_ref<u64> place, record* records, tally* total) {
    auto const section = guard.read_lock();
    // acquire: the record's contents; pairs with the exchange in replace().
    auto& found = records[place.load(order::acquire)];
    atomic_ref<u32> const content{found.content};
    for (u32 look = 0; look < 3; ++look) {
      if (content.load(order::relaxed) != alive) count(total->late);
      simt::pause(30);
    }
    guard.read_unlock(section);
    count(total->read);
  }

  WARPHEAP_DEVICE static void replace(Srcu const& guard, arena* shared, atomic_ref<u64> place, record* records, use how,
                                      random_sequence& random, tally* total) {
    u64 const fresh = atomic_ref<u32>{shared->made}.fetch_add(1, order::relaxed);
    atomic_ref<u32>{records[fresh].content}.store(alive, order::relaxed);
    // release: the new record's contents. acquire: the old one's, for the writer.
    auto& old = records[place.exchange(fresh, order::acq_rel)];
    count(total->retired);
    guard.retire(old.node);
    bool const full = how == use::full || (how == use::mixed && random.below(3) == 0);
    if (!full) {
      if (!guard.conditional_barrier(reclaim_record{total})) count(total->delegated);
      return;
    }
    guard.barrier(reclaim_record{total});
    if (atomic_ref<u32>{old.reclaimed}.load(order::relaxed) != 1) count(total->kept);
  }
};

template <class Srcu>
bool is_sound(launch_shape shape, u32 rounds, u32 readers_a_writer, use how, tally& sum) {
  u32 const lanes = shape.blocks * shape.threads;
  device_buffer<arena> shared(std::vector<arena>{{.state = {}, .places = {0, 1}, .made = 2}});
  record fresh{};
  fresh.content = alive;
  device_buffer<record> records(std::vector<record>(lanes * rounds + 2, fresh));
  device_buffer<tally> total(1);
  launch(shape, read_and_replace<Srcu>{}, shared.data(), records.data(), rounds, readers_a_writer, how, total.data());
  synchronize();
  auto const done = total[0];
  auto const end = shared[0];
  bool sound = srcu_word::check_at_rest(end.state) && done.late == 0 && done.kept == 0 &&
               done.reclaimed == done.retired && done.read + done.retired == lanes * rounds &&
               end.made == done.retired + 2;
  auto const all = records.to_host();
  for (u32 i = 0; i < all.size(); ++i) {
    bool const retired = i < end.made && end.places[0] != i && end.places[1] != i;
    sound = sound && all[i].reclaimed == (retired ? 1 : 0);
  }
  sum.read += done.read;
  sum.retired += done.retired;
  sum.delegated += done.delegated;
  return sound;
}

constexpr launch_shape shapes[] = {{1, 1}, {1, 31}, {2, 33}, {4, 7}};

TEST(Srcu, ReclaimsEachRetiredRecordOnceAndNoneUnderAReader) {
  for (auto const how : {use::conditional, use::full, use::mixed}) {
    for (auto const shape : shapes) {
      tally sum{};
      for_each_schedule(
          40, [&] { EXPECT_TRUE(is_sound<srcu>(shape, 4, 2, how, sum)) << shape.blocks << " x " << shape.threads; });
      EXPECT_GT(sum.read, 0u);
      EXPECT_GT(sum.retired, 0u);
      EXPECT_EQ(sum.delegated > 0, how != use::full && shape.threads > 1);
    }
  }
}

}  // namespace
