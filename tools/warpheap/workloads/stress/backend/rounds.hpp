// SPDX-License-Identifier: Apache-2.0
// The rounds of `stress` on one heap. A round draws a distribution of sizes, the share of slots
// that turn over, and the shape of its kernels. They run on several streams at once, two on each;
// on the host backend streams run side by side as well. When a round's kernels have ended, the heap
// is at rest: every block's contents and place are checked, and the heap's own counts and
// invariants. One round in eight then frees all, and one in four fills the heap to the last block,
// twice. A pool that grows is trimmed before each of these checks.
#pragma once

#include <bit>
#include <chrono>
#include <exception>

#include "measure/large_blocks.hpp"
#include "measure/ledger.hpp"
#include "measure/one_call.hpp"
#include "pool.hpp"
#include "turn_over.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND {

template <class Allocator>
class stress_run {
  static allocator_traits const& traits() { return Allocator::traits; }
  static constexpr bool has_statistics = requires(basic_heap<Allocator> const heap) { heap.statistics(); };
  static constexpr bool has_invariants = requires(basic_heap<Allocator> const heap) { heap.check_invariants(); };
  static constexpr bool counts_slots = requires(basic_heap<Allocator> const heap) { heap.available_slots(16); };
  static bool is_exact() { return counts_slots && traits().exact_out_of_memory; }
  static bool detects_misuse() { return has_statistics && traits().detects_misuse; }

 public:
  stress_run(basic_heap<Allocator>& heap, std::string const& name, stress_request const& asked)
      : heap_{heap}, pool_{heap}, asked_{asked}, draw_{asked.seed}, streams_(asked.streams) {
    threads_ = bench::default_for_backend(asked.threads, u64{1} << 16, u64{1} << 8);
    slots_log2_ = static_cast<u32>(std::bit_width(2 * threads_ - 1));
    slots_ = device_buffer<stress_slot>(u64{1} << slots_log2_);
    row_.allocator = name;
    row_.left_out = left_out();
    pool_.with_all_memory([&] {
      for (u64 const bytes : {u64{16}, largest() / 64, largest()})
        if (u64 const least = std::max<u64>(bytes, 16); is_exact() && least <= largest())
          capacities_.emplace_back(least, available(least));
    });
  }

  /// Rounds until `asked` ends them or one of them fails.
  stress_row run() {
    auto const start = std::chrono::steady_clock::now();
    bool goes_on = true;
    do {
      row_.fault = guarded([&] { round(); });
      ++row_.rounds;
      row_.seconds = std::chrono::duration<double>{std::chrono::steady_clock::now() - start}.count();
      goes_on = asked_.proceed(row_) && row_.rounds < asked_.rounds && row_.seconds < asked_.seconds;
    } while (goes_on && row_.fault.empty());
    if (row_.fault.empty()) row_.fault = guarded([&] { empty(); });
    return row_;
  }

 private:
  /// Parts of the run that the allocator has nothing for.
  static std::vector<std::string> left_out() {
    std::vector<std::string> parts;
    if constexpr (!turn_over::has_aligned_alloc<Allocator>) parts.emplace_back("aligned_alloc");
    if constexpr (!turn_over::has_malloc_warp<Allocator>) parts.emplace_back("malloc_warp");
    if constexpr (!requires(Allocator heap, void* block) { heap.realloc(block, size_t{1}); })
      parts.emplace_back("realloc without the old size");
    if constexpr (!requires(Allocator heap, void* block) { heap.usable_size(block); })
      parts.emplace_back("usable_size");
    if constexpr (!has_statistics) parts.emplace_back("live blocks");
    if constexpr (!has_invariants) parts.emplace_back("invariants");
    if (!is_exact()) parts.emplace_back("exact slots");
    if (!detects_misuse()) parts.emplace_back("misuse");
    if (traits().largest_bytes != ~size_t{0})
      parts.push_back("blocks over " + std::to_string(traits().largest_bytes) + " bytes");
    return parts;
  }

  /// What `part` of a round found, as the line that is reported; empty if nothing.
  template <class Part>
  std::string guarded(Part part) {
    std::string error;
    try {
      part();
    } catch (std::exception const& thrown) {
      row_.faults.ended_by_error = 1;
      error = std::string{": "} + thrown.what();
    }
    row_.growth = pool_.growth();
    if (row_.faults.total() == 0) return {};
    std::string line = "round " + std::to_string(row_.rounds) + ", seed " + std::to_string(asked_.seed) + ":";
    for (auto const& [name, kind] : stress_faults::kinds)
      if (row_.faults.*kind) line += " " + std::string{name} + " " + std::to_string(row_.faults.*kind);
    return line + error + detail_;
  }

  void round() {
    auto drawn = draw_round();
    play(drawn);
    check_at_rest();
    if (sound() && draw_.below(8) == 0) empty();
    if (sound() && draw_.below(4) == 0) fill_twice();
  }

  bool sound() const { return row_.faults.total() == 0; }
  u64 slots() const { return u64{1} << slots_log2_; }
  bool misuses() const { return asked_.misuse && detects_misuse(); }

  /// The largest size that is asked for: some MiB, and a sixteenth of a small pool.
  u64 largest() const {
    return std::min<u64>({traits().largest_bytes, std::bit_floor(asked_.pool_bytes / 16), u64{4} << 20});
  }

  /// One size; the sizes of small blocks; those of large ones.
  bench::log_uniform_draw draw_sizes() {
    u64 const small = std::min<u64>(4096, largest());
    u32 const kind = draw_.below(4);
    auto const all = bench::log_uniform_draw::from({16, small});
    if (kind == 0) {
      u64 const bytes = all.of(draw_.next());
      return bench::log_uniform_draw::from({bytes, bytes});
    }
    if (kind < 3) return all;
    return bench::log_uniform_draw::from({small < largest() ? small : small / 4, largest()});
  }

  stress_round draw_round() {
    constexpr u64 all = u64{1} << 32;
    stress_round drawn{.slots_log2 = slots_log2_, .sizes = draw_sizes(), .misuse = misuses()};
    drawn.seed = mix(asked_.seed + row_.rounds);
    u64 const share = all >> draw_.below(4);
    // Of a pool that is asked for twice over, calls are refused while others free.
    u64 const demand = asked_.pool_bytes / 4 << draw_.below(4);
    double const most = static_cast<double>(demand) / drawn.sizes.mean() / static_cast<double>(slots());
    drawn.acting = most < 1 ? std::min(share, static_cast<u64>(most * static_cast<double>(all))) : share;
    return drawn;
  }

  stress_memory memory() const {
    return {slots_.data(), mailboxes_.data(), mailboxes_.size(), counts_.data(), faults_.data(), site_.data()};
  }

  /// The round's kernels, two on each stream, and then what is left in the mailboxes.
  void play(stress_round const& drawn) {
    constexpr u32 thread_blocks[] = {32, 64, 256, 1024};
    u32 const threads = thread_blocks[draw_.below(4)];
    u64 const streams = streams_.size(), part = slots() / streams;
    for (u32 pass = 0; pass < 2; ++pass)
      for (u64 i = 0; i < streams; ++i) {
        u64 const count = i + 1 == streams ? slots() - i * part : part;
        launch(streams_[i], shape_for(std::max<u64>(threads_ / streams, 1), threads), turn_over{}, heap_.ref(), drawn,
               memory(), i * part, count, pass * (count / 2 + 1), pass);
      }
    synchronize();
    note_refused(counts_[0].refused + at_rest_.refused);
    free_listed(mailboxes_);
    auto const left = mailboxes_.to_host();
    at_rest_.handed_over +=
        static_cast<u64>(std::count_if(left.begin(), left.end(), [](u64 each) { return each != 0; }));
    mailboxes_ = device_buffer<u64>(mailboxes_.size());
  }

  /// `refused` calls were refused since the run began.
  void note_refused(u64 refused) {
    row_.faults.refused_too_soon += pool_.refused_too_soon(refused - refused_);
    refused_ = refused;
  }

  /// Each address of a list is freed, by one thread.
  void free_listed(device_buffer<u64> const& addresses) {
    launch(shape_for(addresses.size()), bench::free_once{}, heap_.ref(),
           reinterpret_cast<void* const*>(addresses.data()), addresses.size());
    synchronize();
  }

  void check_at_rest() {
    pool_.trim();
    launch(shape_for(slots()), inspect_slots{}, memory(), slots());
    synchronize();
    note_kernels();
    if (!sound()) return;
    std::vector<bench::asked_block> held;
    for (auto const& each : slots_.to_host())
      if (each.address) held.push_back({reinterpret_cast<void*>(each.address), each.bytes});
    row_.faults.overlapping += bench::overlapping_among(held);
    check_heap(held.size());
  }

  /// The heap's own counts, when slots have `held` blocks and there are no others.
  void check_heap(u64 held) {
    if constexpr (has_statistics) {
      auto const now = heap_.statistics();
      if (now.live_blocks != held) {
        row_.faults.lost_blocks += 1;
        detail_ += "; " + std::to_string(now.live_blocks) + " blocks live, and " + std::to_string(held) + " held";
      }
      u64 const counted = now.double_frees + now.foreign_frees;
      u64 const expected = row_.counts.misuses;
      if ((detects_misuse() || expected == 0) && counted != expected) {
        row_.faults.miscounted_frees += 1;
        detail_ +=
            "; " + std::to_string(counted) + " frees counted as misuse, and " + std::to_string(expected) + " made";
      }
    }
    if constexpr (has_invariants) {
      auto const violated = heap_.check_invariants();
      row_.faults.broken_invariants += violated.size();
      if (!violated.empty()) detail_ += "; " + violated.front();
    }
  }

  /// Takes over what the kernels have counted.
  void note_kernels() {
    row_.counts = counts_[0];
    row_.counts.add(at_rest_);
    auto const found = faults_[0];
    for (auto const& [name, kind] : stress_faults::kinds) row_.faults.*kind += found.*kind;
    if (auto const site = site_[0]; site.found)
      detail_ += "; first in slot " + std::to_string(site.slot) + ": " + std::to_string(site.bytes) +
                 " bytes at address " + std::to_string(site.address);
  }

  /// All slots give up their blocks. The heap must then be as it was at the start.
  void empty() {
    stress_round drawn{.slots_log2 = slots_log2_, .empties = true};
    drawn.seed = mix(~asked_.seed + row_.rounds);
    if (misuses()) misuse_at_rest();
    play(drawn);
    check_at_rest();
    pool_.with_all_memory([&] {
      for (auto const& [bytes, slots] : capacities_) compare_slots("of an empty heap", bytes, slots, available(bytes));
    });
  }

  /// At rest a double free is certain: a block is freed by two threads at once, and then again. So
  /// is what is no block of the heap. Every second slot is emptied that way.
  void misuse_at_rest() {
    auto held = slots_.to_host();
    std::vector<u64> list, again;
    for (size_t i = 0; i < held.size(); i += 2) {
      if (!held[i].address) continue;
      list.insert(list.end(), {held[i].address, held[i].address});
      again.push_back(held[i].address);
      held[i].address = 0;
    }
    at_rest_.frees += again.size();
    again.insert(again.end(), {1, 4096, reinterpret_cast<u64>(slots_.data()), heap_.handle(), ~u64{0} - 15});
    free_listed(device_buffer<u64>{list});
    free_listed(device_buffer<u64>{again});
    at_rest_.misuses += list.size() / 2 + again.size();
    slots_ = device_buffer<stress_slot>{held};
  }

  u64 available([[maybe_unused]] u64 bytes) const {
    if constexpr (counts_slots) return heap_.available_slots(bytes);
    else return 0;
  }

  /// There should be `expected` slots of a size, and there are `found`.
  void compare_slots(char const* what, u64 bytes, u64 expected, u64 found) {
    if (expected == found) return;
    row_.faults.refused_with_room += expected > found ? expected - found : 0;
    row_.faults.miscounted_slots += expected < found ? found - expected : 0;
    detail_ += std::string{"; slots "} + what + ", " + std::to_string(bytes) + " bytes: " + std::to_string(found) +
               " in place of " + std::to_string(expected);
  }

  /// Every thread asks for one size until it gets nullptr, beside what the slots hold, all these
  /// blocks are freed, and the same again.
  void fill_twice() {
    u64 const least =
        std::max<u64>(16, bench::default_for_backend(0, asked_.pool_bytes >> 22, asked_.pool_bytes >> 13));
    auto const sizes = bench::log_uniform_draw::from({std::min(least, largest()), largest()});
    u64 const bytes = sizes.of(draw_.next());
    u64 room = available(bytes);
    bool const was_empty = held_blocks() == 0;
    bench::ledger<Allocator> filling{heap_, {bytes}, asked_.pool_bytes, threads_};
    for (u32 time = 0; time < 2 && sound(); ++time) {
      auto const filled = filling.take_until_all_null();
      at_rest_.mallocs += filled.blocks + filled.failures;
      at_rest_.refused += filled.failures;
      note_refused(refused_ + filled.failures);
      // What a pool has not grown to yet is not counted.
      bool const grew = stress_pool<Allocator>::grows && time == 0;
      // A block of several slabs or pages may come to lie where two would have fitted: no heap
      // promises the most that it can hold.
      if (is_exact() && !grew) compare_slots("that a fill got", bytes, std::min(room, filled.blocks), filled.blocks);
      if (is_exact()) compare_slots("of a full heap", bytes, available(bytes), 0);
      if (was_empty && filled.blocks == 0) row_.faults.refused_with_room += 1;
      auto const found = filling.examine();
      row_.faults.damaged += found.damaged;
      row_.faults.misaligned += found.misaligned;
      if (!sound()) return;
      at_rest_.verified_bytes += filled.blocks * bytes;
      at_rest_.frees += filling.give_back_every(1).blocks;
      if (grew) room = available(bytes);
      if (is_exact()) compare_slots("after a fill", bytes, room, available(bytes));
    }
    ++row_.fills;
    check_at_rest();
  }

  u64 held_blocks() const {
    auto const held = slots_.to_host();
    return static_cast<u64>(
        std::count_if(held.begin(), held.end(), [](auto const& each) { return each.address != 0; }));
  }

  basic_heap<Allocator>& heap_;
  stress_pool<Allocator> pool_;
  stress_request const& asked_;
  random_sequence draw_;
  std::vector<stream> streams_;
  u64 threads_ = 0;
  u32 slots_log2_ = 0;
  device_buffer<stress_slot> slots_;
  device_buffer<u64> mailboxes_{512};
  device_buffer<stress_counts> counts_{1};
  device_buffer<stress_faults> faults_{1};
  device_buffer<stress_site> site_{1};
  u64 refused_ = 0;                              ///< calls, as far as noted
  stress_counts at_rest_;                        ///< of calls that turn_over did not make
  std::vector<std::pair<u64, u64>> capacities_;  ///< bytes, and slots of them when the heap was new
  std::string detail_;
  stress_row row_;
};

}}  // namespace warpheap::tool::WARPHEAP_BACKEND
