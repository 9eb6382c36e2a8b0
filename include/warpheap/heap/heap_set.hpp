// SPDX-License-Identifier: Apache-2.0
// One heap for each GPU of a host, whose blocks every GPU can read, write and free. Programs
// include this header by name.
//
//   warpheap::heap_set set{size_t{8} << 30};        // 8 GiB on each GPU
//   produce<<<grid, block>>>(set.ref(0), ...);      // with GPU 0 current
//   consume<<<grid, block>>>(set.ref(1), ...);      // with GPU 1 current: frees blocks of GPU 0
//   set.drain();                                    // or leave that to malloc
//
// Only its own GPU hands out a block. A free from another GPU is posted to the mailbox of the
// block's heap (structure/mailbox.hpp), which makes it later.
#pragma once

#if !defined(__CUDACC_RTC__)
#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "../platform/device_buffer.hpp"
#include "../structure/mailbox_snapshot.hpp"
#endif
#include "default_heap.hpp"
#include "heap_set_ref.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// A block's member is found by address alone, so the creation policy must know its pool.
template <class Allocator>
concept member_knows_its_pool = knows_its_pool<typename Allocator::creation_type>;

/// A mailbox passes addresses to the creation policy, so blocks must be as the creation policy made
/// them.
template <class Allocator>
concept member_hands_out_as_created = hands_out_as_created<typename Allocator::distribution_type>;

/// A refused call drains the mailbox, and does nothing else.
template <class Allocator>
concept member_returns_null = same_type<typename Allocator::oom_type, oom::return_null>;

/// Other GPUs access the memory of a member's pool, also by atomics.
template <class Allocator>
concept peers_reach_member =
#if defined(__CUDACC_RTC__)
    true;
#else
    requires {
  requires Allocator::reserve_pool_type::peers_reach_it;
};
#endif

/// The requirements of a heap set on an allocator.
template <class Allocator>
concept set_member = member_knows_its_pool<Allocator> && member_hands_out_as_created<Allocator> &&
    member_returns_null<Allocator> && peers_reach_member<Allocator>;

/// `Allocator` with a mailbox, for one member's GPU.
template <set_member Allocator>
struct member_allocator : allocator<typename Allocator::creation_type, typename Allocator::distribution_type,
                                    oom::drain_mailbox<static_cast<u32>(Allocator::traits.alignment)>,
                                    typename Allocator::reserve_pool_type, typename Allocator::alignment_type> {
  using allocator_type = allocator<typename Allocator::creation_type, typename Allocator::distribution_type,
                                   oom::drain_mailbox<static_cast<u32>(Allocator::traits.alignment)>,
                                   typename Allocator::reserve_pool_type, typename Allocator::alignment_type>;
  using allocator_type::allocator_type;
};

#if !defined(__CUDACC_RTC__)

namespace detail {

/// Kernel: makes the frees in the mailbox.
struct drain_member {
  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap) const {
    heap.oom().drain(simt::active_mask(), [=](void* memory) { heap.free(memory); });
  }

  /// A warp for each region, but no more than eight per multiprocessor.
  static launch_shape shape_for_regions(u32 regions) {
    return shape_for(u64{(std::min)(regions, 8 * backend::multiprocessors())} * warp_lanes, 128);
  }
};

}  // namespace detail

/// Owns the heaps. Movable. Must outlive every kernel that uses it, on any GPU.
template <set_member Allocator>
class basic_heap_set {
 public:
  /// A member as its own kernels hold it.
  using allocator_type = member_allocator<Allocator>;
  /// A member's heap.
  using heap_type = basic_heap<allocator_type>;
  /// What ref() returns.
  using ref_type = heap_set_ref<allocator_type>;

  /// A heap of `bytes_per_gpu` bytes on each GPU. Throws like the next constructor.
  explicit basic_heap_set(size_t bytes_per_gpu) : basic_heap_set{bytes_per_gpu, all_devices()} {}

  /// A heap of `bytes_per_gpu` bytes on each of these GPUs, which may name one twice. Peer access
  /// between them is enabled, and stays enabled. Throws std::invalid_argument for a device that
  /// does not exist, for no device, or for more than 16 members; cuda_error if one GPU cannot reach
  /// another; otherwise like basic_heap.
  basic_heap_set(size_t bytes_per_gpu, std::vector<int> const& devices) {
    check_devices(devices);
    for (int const one : devices)
      for (int const other : devices)
        if (one != other) backend::enable_peer_access(one, other);
    members_.reserve(devices.size());
    for (int const device : devices) members_.push_back(std::make_unique<member>(device, bytes_per_gpu));
    for (u32 i = 0; i < size(); ++i) members_[i]->write_table(table_for(i));
  }

  /// How many members there are.
  u32 size() const { return static_cast<u32>(members_.size()); }
  /// The device of member `i`.
  int device(u32 i) const { return at(i).device; }
  /// The heap of member `i`. Its reset() empties the mailbox too.
  heap_type& heap(u32 i) { return *at(i).heap; }
  /// As above.
  heap_type const& heap(u32 i) const { return *at(i).heap; }
  /// The reference for kernels on the GPU of member `i`.
  ref_type ref(u32 i) const { return {at(i).heap->ref(), at(i).table.data()}; }

  /// Makes the frees that other members have posted to member `i`, in order on stream `on` of its
  /// device, beside kernels that use the heap. Does not wait.
  void drain(u32 i, stream_view on = {}) const {
    backend::device_scope const current{device(i)};
    launch(on, detail::drain_member::shape_for_regions(at(i).mailbox.regions()), detail::drain_member{}, heap(i).ref());
  }
  /// Drains every member, in order on the default stream of its device. Does not wait.
  void drain() const {
    for (u32 i = 0; i < size(); ++i) drain(i);
  }

  /// Frees everything of member `i` at once, and discards pending frees, in order on stream `on` of
  /// its device. No other GPU may be freeing its blocks. Does not wait.
  void reset(u32 i, stream_view on = {}) {
    backend::device_scope const current{device(i)};
    heap(i).reset(on);
  }
  /// Resets every member, in order on the default stream of its device.
  void reset() {
    for (u32 i = 0; i < size(); ++i) reset(i);
  }

  /// Frees pending in the mailbox of member `i`. This and the functions below are for a set at
  /// rest.
  u64 pending(u32 i) const {
    backend::device_scope const current{device(i)};
    return mailbox_snapshot{at(i).mailbox}.pending();
  }

  /// Counts of one member. Blocks whose frees are pending are live; a second free of such a block
  /// is a double free.
  heap_statistics statistics(u32 i) const requires heap_type::takes_snapshots {
    backend::device_scope const current{device(i)};
    heap_statistics counted = heap(i).statistics();
    counted.metadata_bytes = heap(i).metadata_bytes();
    counted.double_frees += mailbox_snapshot{at(i).mailbox}.repeats();
    return counted;
  }
  /// The sums over all members.
  heap_statistics statistics() const requires heap_type::takes_snapshots {
    heap_statistics sums;
    for (u32 i = 0; i < size(); ++i) sums += statistics(i);
    return sums;
  }

  /// The violated invariants of heaps and mailboxes; none if all is well.
  invariant_report check_invariants() const requires heap_type::takes_snapshots {
    invariant_report report;
    for (u32 i = 0; i < size(); ++i) {
      backend::device_scope const current{device(i)};
      auto const note = [&](std::string const& line) { report.push_back("member " + std::to_string(i) + ": " + line); };
      for (auto const& line : heap(i).check_invariants()) note(line);
      for (auto const& line : mailbox_snapshot{at(i).mailbox}.check_invariants()) note(line);
    }
    return report;
  }

 private:
  using mailbox_type = typename allocator_type::oom_type::mailbox_type;
  using table_type = heap_set_table<mailbox_type>;

  /// One heap and its table, made and destroyed with their device current.
  struct member {
    member(int on, size_t bytes) : device{on} {
      backend::device_scope const current{device};
      heap.emplace(bytes);
      mailbox = heap->ref().oom().view();
    }
    member(member const&) = delete;
    member& operator=(member const&) = delete;
    ~member() {
      backend::device_scope const current{device};
      table = {};
      heap.reset();
    }

    void write_table(table_type const& contents) {
      backend::device_scope const current{device};
      table = device_buffer<table_type>(std::vector<table_type>{contents});
    }

    int device;
    std::optional<heap_type> heap;
    mailbox_type mailbox;  ///< a view
    device_buffer<table_type> table;
  };

  static std::vector<int> all_devices() {
    std::vector<int> devices(static_cast<size_t>(backend::device_count()));
    std::iota(devices.begin(), devices.end(), 0);
    return devices;
  }

  static void check_devices(std::vector<int> const& devices) {
    if (devices.empty()) throw std::invalid_argument{"heap set of no devices"};
    if (devices.size() > most_set_members)
      throw std::invalid_argument{"heap set of " + std::to_string(devices.size()) + " members: the most is " +
                                  std::to_string(most_set_members)};
    int const there = backend::device_count();
    for (int const device : devices)
      if (device < 0 || device >= there)
        throw std::invalid_argument{"heap set with device " + std::to_string(device) + ": there are " +
                                    std::to_string(there)};
  }

  table_type table_for(u32 self) const {
    table_type table{};
    table.members = size();
    table.self = self;
    for (u32 i = 0; i < size(); ++i) table.boxes[i] = members_[i]->mailbox;
    return table;
  }

  member const& at(u32 i) const { return *members_.at(i); }
  member& at(u32 i) { return *members_.at(i); }

  std::vector<std::unique_ptr<member>> members_;
};

#else

/// The owner exists on the host only; here it names the kernels' reference.
template <set_member Allocator>
struct basic_heap_set {
  using ref_type = heap_set_ref<member_allocator<Allocator>>;
};

#endif

/// slab_bitmap on each GPU.
using heap_set = basic_heap_set<default_allocator>;
static_assert(sizeof(heap_set::ref_type) == 32);

}}  // namespace warpheap::WARPHEAP_BACKEND
