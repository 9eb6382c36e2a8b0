// SPDX-License-Identifier: Apache-2.0
// What lanes do to a heap in an exploration: short programs of malloc and free, recorded in a
// call_history and checked.
#pragma once

#include <array>
#include <optional>

#include "call_history.hpp"
#include "exploration.hpp"

namespace warpheap::explore {

/// One call. A block that was handed over is freed by the lane that takes it, if it is there by
/// then; what is left is freed at the end.
struct heap_call {
  enum class action : u8 { none, allocate, release, hand_over, take_and_release };

  action what = action::none;
  u32 place = 0;  ///< of the lane's own blocks, or of the blocks handed over
  u64 bytes = 0;
};

/// What one lane calls.
struct lane_program {
  static constexpr u32 most_calls = 8;
  static constexpr u32 places = 4;

  std::array<heap_call, most_calls> calls{};
  u32 count = 0;

  lane_program& allocate(u64 bytes, u32 place = 0) { return add({heap_call::action::allocate, place, bytes}); }
  lane_program& release(u32 place = 0) { return add({heap_call::action::release, place, 0}); }
  lane_program& hand_over(u32 place = 0) { return add({heap_call::action::hand_over, place, 0}); }
  lane_program& take_and_release(u32 place = 0) { return add({heap_call::action::take_and_release, place, 0}); }

 private:
  lane_program& add(heap_call made) {
    calls[count++] = made;
    return *this;
  }
};

/// Programs of all lanes of a grid.
struct heap_program {
  launch_shape shape{1, 1};
  std::vector<lane_program> lanes;
  /// Where all lanes ask for one size: places for it that are free when they begin; else all are.
  std::optional<u32> left_free = std::nullopt;

  /// Programs drawn by `seed`, of up to `calls` calls for some of `sizes`, of which the seed draws
  /// how many there are: few of them meet more often. By seed all lanes run one program, as those
  /// of a warp often do, or each its own; and they begin on an empty heap, or on one nearly full.
  static heap_program drawn(launch_shape shape, std::vector<u64> sizes, u32 calls, u64 seed) {
    heap_program made{shape, std::vector<lane_program>(u64{shape.blocks} * shape.threads)};
    random_sequence random{seed};
    bool const are_alike = random.below(4) == 0;
    for (size_t i = sizes.size(); i > 1; --i) std::swap(sizes[i - 1], sizes[random.below(static_cast<u32>(i))]);
    sizes.resize(1 + random.below(static_cast<u32>(sizes.size())));
    for (auto& lane : made.lanes) {
      if (are_alike && &lane != &made.lanes.front()) {
        lane = made.lanes.front();
        continue;
      }
      u32 const count = 1 + random.below(calls);
      while (lane.count < count) {
        u32 const place = random.below(2);
        switch (random.below(8)) {
          case 0: lane.hand_over(place); break;
          case 1: lane.take_and_release(place); break;
          case 2:
          case 3: lane.release(place); break;
          default: lane.allocate(sizes[random.below(static_cast<u32>(sizes.size()))], place);
        }
      }
    }
    if (random.below(2) == 0) made.left_free = 1 + random.below(static_cast<u32>(made.lanes.size()));
    return made;
  }
};

/// Kernel: each lane runs its program, and then frees what it holds.
struct run_lane_program {
  template <class Creation>
  void operator()(Creation heap, lane_program const* programs, call_history* history, u64* mail) const {
    u64 const me = global_thread_index();
    lane_program const& program = programs[me];
    std::array<u64, lane_program::places> held{};
    for (u32 i = 0; i < program.count; ++i) {
      auto const& call = program.calls[i];
      u64& block = held[call.place];
      switch (call.what) {
        case heap_call::action::none: break;
        case heap_call::action::allocate:
          release(heap, history, block, me);
          block = allocate(heap, history, call.bytes, me);
          break;
        case heap_call::action::release: release(heap, history, block, me); break;
        case heap_call::action::hand_over:
          block = atomic_ref<u64>{mail[call.place]}.exchange(block, order::acq_rel);
          break;
        case heap_call::action::take_and_release: {
          u64 taken = atomic_ref<u64>{mail[call.place]}.exchange(0, order::acq_rel);
          release(heap, history, taken, me);
        }
      }
    }
    for (u64& block : held) release(heap, history, block, me);
  }

  template <class Creation>
  static u64 allocate(Creation heap, call_history* history, u64 bytes, u64 me) {
    u64 const call = history->begin_malloc(me, bytes);
    void* const block = heap.create(bytes);
    u64 const address = reinterpret_cast<u64>(block);
    u64 const usable = block ? heap.usable_size(block) : 0;
    history->end_malloc(call, address, usable);
    contents::acquire(block, usable);
    return address;
  }

  template <class Creation>
  static void release(Creation heap, call_history* history, u64& block, u64) {
    if (block == 0) return;
    u64 const call = history->begin_free(block);
    contents::release(reinterpret_cast<void*>(block), heap.usable_size(reinterpret_cast<void*>(block)));
    heap.destroy(reinterpret_cast<void*>(block));
    history->end_free(call);
    block = 0;
  }
};

/// Kernel: one lane takes `count` blocks, and writes nothing there.
struct take_blocks {
  template <class Creation>
  void operator()(Creation heap, u64 bytes, u64 count, call_history* history, u64* blocks) const {
    for (u64 i = 0; i < count; ++i) {
      u64 const call = history->begin_malloc(0, bytes);
      void* const block = heap.create(bytes);
      blocks[i] = reinterpret_cast<u64>(block);
      history->end_malloc(call, blocks[i], block ? heap.usable_size(block) : 0);
    }
  }
};

/// Kernel: one lane frees them.
struct give_blocks_back {
  template <class Creation>
  void operator()(Creation heap, u64 count, call_history* history, u64 const* blocks) const {
    for (u64 i = 0; i < count; ++i) {
      u64 const call = history->begin_free(blocks[i]);
      heap.destroy(reinterpret_cast<void*>(blocks[i]));
      history->end_free(call);
    }
  }
};

/// Kernel: one lane counts the slots of each size.
struct count_slots_of_sizes {
  static constexpr u64 sizes[] = {16, 256, 4096, 16384};
  using counts = std::array<u64, std::size(sizes)>;

  template <class Creation>
  void operator()(Creation heap, counts* found) const {
    for (size_t i = 0; i < std::size(sizes); ++i) (*found)[i] = heap.available_slots(sizes[i]);
  }
};

/// Kernel: one lane counts the slots of one size.
struct count_slots {
  template <class Creation>
  void operator()(Creation heap, u64 bytes, u64* found) const {
    *found = heap.available_slots(bytes);
  }
};

/// A heap program on heaps of one creation policy, as a body for explore(): a string that says what
/// is wrong. `Divide` gives the regions of a heap's pool.
template <class Creation, class Divide>
class heap_exploration {
 public:
  /// `before` runs first, in one way alone. Its lanes may keep what they get only by handing it
  /// over.
  heap_exploration(u64 pool_bytes, heap_program program, Divide divide, heap_program before = {})
      : pool_bytes_{pool_bytes}, program_{std::move(program)}, before_{std::move(before)}, divide_{divide} {}

  std::string operator()() {
    device_buffer<u8> const memory(Creation::required_bytes(pool_bytes_) + 256);
    device_buffer<u64> const mail(lane_program::places);
    auto const heap = Creation::place(memory.data(), pool_bytes_);
    if (!start_) start_.emplace(started(heap, memory, mail));
    backend::copy_bytes(memory.data(), start_->memory.data(), start_->memory.size());
    backend::copy_bytes(mail.data(), start_->mail.data(), start_->mail.size() * sizeof(u64));
    call_history history = start_->history;
    run(heap, program_, history, mail.data());
    heap_program rest{{1, 1}, {lane_program{}}};  // what was handed over and not taken
    for (u32 i = 0; i < lane_program::places; ++i) rest.lanes[0].take_and_release(i);
    run(heap, rest, history, mail.data());
    give_back(heap, history);
    return history.faults(promised(heap)) + faults_at_rest(heap);
  }

 private:
  /// A heap on which `before` has run. Executions have the same addresses, so each starts from a
  /// copy of these bytes.
  struct start {
    count_slots_of_sizes::counts slot_counts;  ///< of the unused heap
    u64 places;                                ///< of it, for the one size asked for; 0: several
    std::vector<u64> kept;                     ///< blocks that were taken before the lanes begin
    call_history history;
    std::vector<u8> memory;
    std::vector<u64> mail;
  };

  /// Pools of more places than this are not filled: each execution checks every block's history.
  static constexpr u64 most_kept = 128;

  start started(Creation heap, device_buffer<u8> const& memory, device_buffer<u64> const& mail) const {
    unexplored const setup;
    heap.initialize({});
    synchronize();
    start made{count(heap), 0, {}, {reinterpret_cast<u64>(memory.data()), memory.size(), Creation::traits.alignment},
               {},          {}};
    if (u64 const bytes = only_size()) {
      made.places = count(heap, bytes);
      if (auto const left = program_.left_free; left && *left < made.places && made.places <= most_kept)
        made.kept = taken(heap, made.places - *left, bytes, made.history);
    }
    if (!before_.lanes.empty()) run(heap, before_, made.history, mail.data());
    made.memory = memory.to_host();
    made.mail = mail.to_host();
    return made;
  }

  static void run(Creation heap, heap_program const& program, call_history& history, u64* mail) {
    device_buffer<lane_program> const lanes{program.lanes};
    launch(program.shape, run_lane_program{}, heap, static_cast<lane_program const*>(lanes.data()), &history, mail);
    synchronize();
  }

  static std::vector<u64> taken(Creation heap, u64 count, u64 bytes, call_history& history) {
    device_buffer<u64> const blocks(count);
    launch({1, 1}, take_blocks{}, heap, bytes, count, &history, blocks.data());
    return blocks.to_host();
  }

  void give_back(Creation heap, call_history& history) const {
    if (start_->kept.empty()) return;
    unexplored const cleanup;
    device_buffer<u64> const blocks{start_->kept};
    launch({1, 1}, give_blocks_back{}, heap, u64{start_->kept.size()}, &history,
           static_cast<u64 const*>(blocks.data()));
    synchronize();
  }

  static count_slots_of_sizes::counts count(Creation heap) {
    device_buffer<count_slots_of_sizes::counts> const found(1);
    launch({1, 1}, count_slots_of_sizes{}, heap, found.data());
    return found[0];
  }
  static u64 count(Creation heap, u64 bytes) {
    device_buffer<u64> const found(1);
    launch({1, 1}, count_slots{}, heap, bytes, found.data());
    return found[0];
  }

  /// The size that all lanes ask for; 0 if there are several.
  u64 only_size() const {
    u64 size = 0;
    for (auto const* program : {&program_, &before_})
      for (auto const& lane : program->lanes)
        for (auto const& call : lane.calls) {
          if (call.what != heap_call::action::allocate) continue;
          if (size != 0 && call.bytes != size) return 0;
          size = call.bytes;
        }
    return size;
  }

  /// What nullptr means, as far as it is known. With weak memory a lane need not have seen that
  /// another one freed a block before.
  regions promised(Creation heap) const {
    if (host::current_execution().weak_memory) return {};
    auto divided = divide_(heap);
    if (Creation::traits.exact_out_of_memory) divided.places = start_->places;
    return divided;
  }

  /// All blocks were freed.
  std::string faults_at_rest(Creation heap) const {
    using host::detail::format_message;
    unexplored const inspection;
    std::string wrong;
    auto const snapshot = heap.snapshot();
    for (auto const& violated : snapshot.check_invariants()) wrong += violated + "\n";
    auto const counts = snapshot.statistics();
    if (counts.live_blocks != 0) wrong += format_message({counts.live_blocks, " blocks are left\n"});
    u64 const ignored = counts.double_frees + counts.foreign_frees;
    if (ignored != 0) wrong += format_message({ignored, " right frees were ignored\n"});
    auto const found = count(heap);
    for (size_t i = 0; i < found.size(); ++i)
      if (found[i] != start_->slot_counts[i])
        wrong += format_message({found[i], " slots of ", count_slots_of_sizes::sizes[i], " bytes where ",
                                 start_->slot_counts[i], " were\n"});
    return wrong;
  }

  u64 pool_bytes_;
  heap_program program_, before_;
  Divide divide_;
  std::optional<start> start_;
};

}  // namespace warpheap::explore
