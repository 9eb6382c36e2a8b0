// SPDX-License-Identifier: Apache-2.0
// churn: threads that allocate and free for a long time. In every round a thread picks one of its
// four places at random, frees the block there if there is one, and else asks for a block of a
// random size. Bursts end before slabs empty and fill again; here they do all the time. Sizes: the
// first of `ranges`; threads: `threads`; rounds: `rounds`.
//
// The timed kernel touches no block. The same rounds run once more with every block stamped when it
// comes and looked at when it goes.
#pragma once

#include "measure/blocks.hpp"
#include "measure/measure.hpp"
#include "scenario.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

/// What one thread did.
struct churn_tally {
  u32 calls = 0;     ///< blocks taken and blocks freed
  u32 failures = 0;  ///< calls that returned nullptr
  u32 misaligned = 0;
  u32 damaged = 0;
};

/// What a thread holds in one of its places.
struct churn_place {
  void* block = nullptr;
  u64 call = 0;
};

/// Four places, chosen by selection. An array with a computed index would lie on the stack, and the
/// fences of an allocator would wait for the stores there.
class churn_places {
 public:
  static constexpr u32 size = 4;

  WARPHEAP_DEVICE churn_place get(u32 place) const {
    churn_place const low = place & 1 ? second_ : first_;
    churn_place const high = place & 1 ? fourth_ : third_;
    return place & 2 ? high : low;
  }
  WARPHEAP_DEVICE void set(u32 place, churn_place held) {
    first_ = place == 0 ? held : first_;
    second_ = place == 1 ? held : second_;
    third_ = place == 2 ? held : third_;
    fourth_ = place == 3 ? held : fourth_;
  }

 private:
  churn_place first_, second_, third_, fourth_;
};

/// Kernel: `rounds` rounds in every thread, then all places are emptied.
template <bool Checked>
struct churn_rounds {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, size_draw draw, u32 rounds, churn_tally* tallies, u64 threads) const {
    u64 const thread = global_thread_index();
    if (thread >= threads) return;
    random_sequence random{draw.seed + thread};
    churn_places places;
    churn_tally tally;
    for (u32 round = 0; round < rounds; ++round) {
      u32 const chosen = random.below(churn_places::size);
      churn_place const held = places.get(chosen);
      places.set(chosen,
                 held.block ? empty(heap, draw, held, tally) : fill(heap, draw, thread * rounds + round, tally));
    }
    for (u32 place = 0; place < churn_places::size; ++place)
      if (churn_place const held = places.get(place); held.block) empty(heap, draw, held, tally);
    tallies[thread] = tally;
  }

 private:
  template <class Heap>
  WARPHEAP_DEVICE static churn_place empty(Heap heap, size_draw draw, churn_place held, churn_tally& tally) {
    if constexpr (Checked) tally.damaged += !holds_stamp<Heap>(held.block, draw.of(held.call), held.call);
    heap.free(held.block);
    ++tally.calls;
    return {};
  }

  template <class Heap>
  WARPHEAP_DEVICE static churn_place fill(Heap heap, size_draw draw, u64 call, churn_tally& tally) {
    void* const block = heap.malloc(draw.of(call));
    ++(block ? tally.calls : tally.failures);
    if constexpr (Checked)
      if (block) {
        tally.misaligned += !is_aligned<Heap>(block, draw.of(call));
        stamp<Heap>(block, draw.of(call), call);
      }
    return {block, call};
  }
};

/// The sum over all threads, as a result's numbers.
struct churn_total {
  double calls = 0;
  findings found;
};

inline churn_total total_of(device_buffer<churn_tally> const& tallies) {
  churn_total total;
  for (auto const& tally : tallies.to_host()) {
    total.calls += tally.calls;
    total.found.failures += tally.failures;
    total.found.misaligned += tally.misaligned;
    total.found.damaged += tally.damaged;
  }
  return total;
}

template <class Allocator>
std::vector<result> churn(test_subject<Allocator> const& subject, request const& asked) {
  auto const range = asked.get(options::ranges, {{16, 512}}).front();
  size_draw const draw{range.least, static_cast<u32>(range.most - range.least + 1), asked.seed};
  u64 const threads = default_for_backend(asked[options::threads], u64{1} << 18, u64{1} << 12);
  basic_heap<Allocator> heap{asked.pool_bytes};
  device_buffer<churn_tally> tallies(threads);
  stopwatch watch;

  result made{.scenario = "churn", .allocator = subject.name, .operation = "malloc+free"};
  made.parameters = {{"least_bytes", range.least},
                     {"most_bytes", range.most},
                     {"threads", threads},
                     {"rounds", asked[options::rounds]},
                     {"pool_bytes", asked.pool_bytes}};
  if (std::vector<result> rows; skip(rows, made, unsupported_reason(subject, range.most))) return rows;
  launch(shape_for(threads), churn_rounds<true>{}, heap.ref(), draw, asked[options::rounds], tallies.data(), threads);
  synchronize();
  made.fault = total_of(tallies).found.fault();
  for (u32 round = 0; round <= asked.repeat && made.fault.empty(); ++round) {
    if (!asked.proceed("churn, " + subject.name, round, asked.repeat + 1)) return {};
    auto const time = watch.microseconds([&] {
      launch(shape_for(threads), churn_rounds<false>{}, heap.ref(), draw, asked[options::rounds], tallies.data(),
             threads);
    });
    if (round > 0) made.times_us.push_back(time);
  }
  auto const total = total_of(tallies);
  made.operations = total.calls;
  made.failures = total.found.failures;
  if (made.fault.empty()) made.fault = fault_of_emptied(heap);
  return {made};
}

inline scenario about_churn() {
  return {
      .name = "churn",
      .text = "rounds of malloc and free, up to four blocks a thread; sizes from the first of --ranges",
      .rank = 30,
      .uses = {{options::ranges, "the first"}, {options::threads, "262144"}, {options::rounds}},
  };
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
