// SPDX-License-Identifier: Apache-2.0
// One heap under test and the launches that a check makes on it. Lists of holdings live on the host
// between launches.
#pragma once

#include <algorithm>

#include "growth.hpp"
#include "kernels.hpp"
#include "scenario.hpp"
#include "verdict.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace conformance {

/// The entries that were served.
inline holdings served(holdings list) {
  std::erase_if(list, [](holding const& entry) { return entry.address == 0; });
  return list;
}

/// The last `count` entries of a list, which it loses.
inline holdings split_off(holdings& list, u64 count) {
  auto const first = list.end() - static_cast<i64>(count);
  holdings last{first, list.end()};
  list.erase(first, list.end());
  return last;
}

/// A heap of the scenario's size and a grid of its shape. Every member function waits for the grid.
template <class Allocator>
class harness {
 public:
  static constexpr allocator_traits traits = Allocator::traits;
  static constexpr bool limited = traits.largest_bytes != ~size_t{0};

  explicit harness(scenario const& with)
      : parts_{std::make_unique<parts>(with.pool_bytes)}, with_{with}, room_bytes_{with.pool_bytes} {}

  /// In a small scenario, a heap in which one block leaves only a few slabs: they run out, come
  /// back and change their class after few steps. Where blocks are limited, so that none is that
  /// large, as many blocks as leave two a lane, next to each other; where the pool lies in two
  /// pieces, as many as leave the end of one and the start of the other. This ballast stays, and
  /// quiet() does not count it.
  static harness cramped(scenario const& with) {
    harness made{with};
    if constexpr (limited && traits.exact_out_of_memory) {
      // The room is in one piece: blocks between its parts would keep other sizes out.
      auto blocks = made.fill(traits.largest_bytes);
      std::sort(blocks.begin(), blocks.end(), [](auto const& a, auto const& b) { return a.address < b.address; });
      u64 const left = std::min<u64>(blocks.size(), 2 * with.lanes() + 16);
      made.free(split_off(blocks, left));
      made.room_bytes_ = left * traits.largest_bytes;
      made.ballast_ = blocks.size();
    } else if (with.small && traits.whole_pool) {
      made.room_bytes_ = 160 * 1024;
      made.ballast_ = served(made.ask(same(1, with.pool_bytes - made.room_bytes_))).size();
    } else if (with.small && traits.exact_out_of_memory) {
      auto pieces = made.fill(with.pool_bytes / 32);
      std::sort(pieces.begin(), pieces.end(), [](auto const& a, auto const& b) { return a.address < b.address; });
      auto const middle = pieces.begin() + static_cast<i64>(pieces.size() / 2);
      made.free({middle - 4, middle + 2});
      made.room_bytes_ = 6 * with.pool_bytes / 32;
      made.ballast_ = pieces.size() - 6;
    }
    return made;
  }

  /// Commits all of the pool, also if kernels would make it grow. For checks of counts, which
  /// are of what has memory, and of how large blocks lie, which is another way in a pool that grew.
  void commit_all_memory() {
    if constexpr (waits_for_memory<Allocator>) heap().grow(with_.pool_bytes);
  }

  /// `bytes`, or the most that the allocator serves if that is less.
  static constexpr u64 capped(u64 bytes) { return std::min<u64>(bytes, traits.largest_bytes); }

  /// How many blocks of `bytes` an empty heap of this size holds. An allocator of limited blocks,
  /// which may be much larger than the request, is asked.
  u64 room_for(u64 bytes) const {
    if constexpr (limited && traits.exact_out_of_memory) return heap().available_slots(bytes);
    else return with_.pool_bytes / bytes;
  }

  basic_heap<Allocator>& heap() const { return parts_->heap; }
  Allocator ref() const { return heap().ref(); }
  u64 pool_bytes() const { return with_.pool_bytes; }
  u64 room_bytes() const { return room_bytes_; }
  u64 lanes() const { return with_.lanes(); }
  scenario const& with() const { return with_; }

  /// Puts a kernel on a stream. What it needs of a heap that grows comes before finish() returns.
  template <class Kernel, class... Arguments>
  void start(stream_view on, launch_shape shape, Kernel kernel, Arguments... arguments) {
    parts_->runner.start(on, shape, kernel, arguments...);
  }
  void finish() { parts_->runner.finish(); }

  /// Runs `kernel(arguments...)` in every thread of `shape`, or of the scenario's.
  template <class Kernel, class... Arguments>
  void run_as(launch_shape shape, Kernel kernel, Arguments... arguments) {
    start({}, shape, kernel, arguments...);
    finish();
  }
  template <class Kernel, class... Arguments>
  void run(Kernel kernel, Arguments... arguments) {
    run_as(with_.shape, kernel, arguments...);
  }

  /// Runs a kernel over a list, which comes back as the kernel leaves it.
  template <class Kernel, class... Arguments>
  holdings transform(Kernel kernel, holdings const& list, Arguments... arguments) {
    device_buffer<holding> const device{list};
    run(kernel, heap().ref(), device.data(), static_cast<u64>(list.size()), arguments...);
    return device.to_host();
  }

  /// Asks for every entry at once.
  holdings ask(holdings const& requests) { return transform(allocate_each{}, requests); }

  /// Frees every entry, by another thread than the one that asked for it.
  void free(holdings const& list) {
    if (!list.empty()) transform(free_each{}, list, static_cast<u64>(list.size() / 3));
  }

  /// What all threads together got for sizes in [least, most] before the first refusal of each.
  holdings fill(u64 least, u64 most) {
    u64 const capacity = room_for(limited ? least : std::max<u64>(least, traits.alignment)) + with_.lanes();
    device_buffer<holding> const list(capacity);
    device_buffer<u64> const served(1);
    run(fill_until_null{}, heap().ref(), least, most, with_.seed, list.data(), capacity, served.data());
    holdings blocks(std::min<u64>(served[0], capacity));
    backend::copy_bytes(blocks.data(), list.data(), blocks.size() * sizeof(holding));
    overfilled_ = overfilled_ || served[0] > capacity;
    return blocks;
  }
  holdings fill(u64 bytes) { return fill(bytes, bytes); }

  /// Whether some fill got more blocks than the pool has room for.
  bool overfilled() const { return overfilled_; }

  /// Writes every block full of a pattern of its own.
  void write(holdings const& list, u64 salt = 0) {
    device_buffer<holding> const device{list};
    run(write_each{}, device.data(), static_cast<u64>(list.size()), salt, stripes(list));
  }

  /// Blocks, or parts of large ones, that do not hold what write() left there.
  u64 damaged(holdings const& list, u64 salt = 0) {
    device_buffer<holding> const device{list};
    device_buffer<u64> const count(1);
    run(verify_each{}, device.data(), static_cast<u64>(list.size()), salt, stripes(list), count.data());
    return count[0];
  }

  /// The heap's answers about every entry's address.
  std::vector<answer> query(holdings const& list) {
    device_buffer<holding> const device{list};
    device_buffer<answer> const answers(list.size());
    run(query_each{}, heap().ref(), device.data(), static_cast<u64>(list.size()), answers.data());
    return answers.to_host();
  }

  /// The quiet heap has no live block and violates no invariant, as far as it can tell.
  verdict empty() { return quiet(0); }

  /// The quiet heap has `live` live blocks and violates no invariant, as far as it can tell.
  verdict quiet(u64 live) {
    verdict found = sound();
    if constexpr (requires { heap().statistics(); })
      found.equal("live blocks", heap().statistics().live_blocks, live + ballast_);
    return found;
  }

  /// The quiet heap violates no invariant, as far as it can tell, however many blocks are live.
  verdict sound() {
    verdict found;
    found.holds("fills got no more than the pool holds", !overfilled_);
    if constexpr (requires { heap().check_invariants(); })
      for (auto const& violated : heap().check_invariants()) found.add("invariant: ", violated);
    return found;
  }

 private:
  /// Threads that share one block's pattern, so that blocks of many megabytes are not one thread's
  /// work.
  static u64 stripes(holdings const& list) {
    u64 largest = 0;
    for (auto const& block : list) largest = std::max(largest, block.bytes);
    return std::clamp<u64>(largest / 4096, 1, 4096);
  }

  /// Stay where they are.
  struct parts {
    explicit parts(size_t bytes) : heap{heap_of<Allocator>(bytes)} {}
    basic_heap<Allocator> heap;
    kernel_runner<Allocator> runner{heap};
  };

  std::unique_ptr<parts> parts_;
  scenario with_;
  u64 room_bytes_;
  u64 ballast_ = 0;  ///< blocks
  bool overfilled_ = false;
};

/// Every block starts where the traits say, and no two have a byte in common.
inline verdict apart_and_aligned(holdings blocks, allocator_traits const& traits) {
  verdict found;
  std::sort(blocks.begin(), blocks.end(), [](auto const& a, auto const& b) { return a.address < b.address; });
  for (size_t i = 0; i < blocks.size() && found.ok(); ++i) {
    auto const& block = blocks[i];
    bool const aligns_itself = is_power_of_two(block.bytes) && block.bytes <= traits.self_aligned_up_to;
    u64 const divisor = std::min<u64>(block.bytes & (0 - block.bytes), traits.multiples_aligned_up_to);
    u64 const alignment = std::max<u64>({traits.alignment, aligns_itself ? block.bytes : 1, divisor});
    if (block.address % alignment) found.add(block.bytes, " bytes at ", block.address, ", not aligned to ", alignment);
    if (i && blocks[i - 1].address + blocks[i - 1].bytes > block.address)
      found.add(blocks[i - 1].bytes, " bytes at ", blocks[i - 1].address, " reach into the block at ", block.address);
  }
  return found;
}

/// Checks that these are all the live blocks, and apart; frees them, which leaves the heap empty.
template <class Allocator>
verdict accounts_for(harness<Allocator>& bench, holdings const& blocks) {
  auto found = apart_and_aligned(blocks, bench.traits);
  found.include(bench.quiet(blocks.size()));
  bench.free(blocks);
  found.include(bench.empty());
  return found;
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::conformance
