// SPDX-License-Identifier: Apache-2.0
// One heap in each process of an NVSHMEM job, on one machine or many. Only its own PE hands out a
// block; every PE may read, write and free it by its name, a remote_ptr. Programs include this
// header by name.
//
//   nvshmem_init();
//   warpheap::symmetric_heap heap{size_t{8} << 30};    // 8 GiB on each PE
//   produce<<<grid, block>>>(heap.ref(), names);       // names[i] = heap.remote(heap.malloc(64))
//   nvshmem_barrier_all();
//   consume<<<grid, block>>>(heap.ref(), names);       // heap.get(...), heap.free(name)
//
// A free from another PE is posted to the mailbox of the block's heap (structure/mailbox.hpp). Pool
// and mailbox are symmetric memory, so the words of another PE's mailbox are at the same addresses
// as ours, and NVSHMEM's atomics reach them.
#pragma once

#include <stdexcept>
#include <string>

#include "../heap/heap_set.hpp"
#include "../heap/remote_ptr.hpp"
#include "../platform/device_buffer.hpp"
#include "reserve_pool.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// In the memory of this PE's GPU.
template <class Mailbox>
struct symmetric_table {
  u32 pe;       ///< of this PE
  u32 pes;      ///< how many there are
  Mailbox own;  ///< of every other PE, too, by addresses of symmetric memory
};

/// The reference of this PE's heap, by value: trivially copyable, valid as long as the heap lives.
/// Any thread, converged or not.
template <class Allocator>
class symmetric_heap_ref : public typed_calls<symmetric_heap_ref<Allocator>> {
  using mailbox_type = typename Allocator::oom_type::mailbox_type;
  using table_type = symmetric_table<mailbox_type>;

 public:
  /// What the heap of each PE promises.
  static constexpr allocator_traits traits = Allocator::traits;

  /// A null reference, which must not be called.
  symmetric_heap_ref() = default;
  /// Made by heaps.
  WARPHEAP_HOST_DEVICE symmetric_heap_ref(Allocator local, table_type const* table) : local_{local}, table_{table} {}

  /// At least `bytes` bytes on this PE; nullptr for 0 bytes, or if there is no memory.
  WARPHEAP_DEVICE void* malloc(size_t bytes) const { return local_.malloc(bytes); }
  /// `count` objects of `size` bytes on this PE, zeroed; nullptr if the product overflows or there
  /// is no memory.
  WARPHEAP_DEVICE void* calloc(size_t count, size_t size) const { return local_.calloc(count, size); }

  /// Frees a block of this PE.
  WARPHEAP_DEVICE void free(void* memory) const { local_.free(memory); }

  /// Frees a block of any PE. A block of another PE is free once that PE drains its mailbox: by the
  /// heap's drain(), or when a call there finds no memory. A null name does nothing. A name that no
  /// block can have is counted here as a foreign free, and ignored.
  WARPHEAP_DEVICE void free(remote_ptr block) const {
    if (!block) return;
    bool const may_exist = is_valid(block, 1), is_ours = may_exist && block.pe() == table_->pe;
    if (may_exist && !is_ours && post(block)) return;
    local_.free(is_ours ? own_address(block) : no_block());
  }

  /// The name of `memory`, which lies in this PE's pool; the null name for any other address.
  WARPHEAP_DEVICE remote_ptr remote(void const* memory) const {
    if (!table_->own.contains(memory)) return {};
    return {table_->pe, static_cast<u64>(static_cast<u8 const*>(memory) - pool())};
  }

  /// The address at which this GPU can load and store the block; nullptr if it cannot, or if no
  /// block can have that name. NVLink and PCIe reach other GPUs of the machine.
  WARPHEAP_DEVICE void* pointer(remote_ptr block) const {
    if (!is_valid(block, 1)) return nullptr;
    return nvshmem_ptr(own_address(block), static_cast<int>(block.pe()));
  }

  /// Copies `bytes` bytes from the block `from` to `to`, which is memory of this PE. Returns false,
  /// and copies nothing, if they are not in a pool of the job. One thread alone.
  WARPHEAP_DEVICE bool get(void* to, remote_ptr from, size_t bytes) const {
    if (!is_valid(from, bytes)) return false;
    nvshmem_getmem(to, own_address(from), bytes, static_cast<int>(from.pe()));
    return true;
  }
  /// The other direction. The bytes have arrived after nvshmem_quiet(), and before a free() by this
  /// thread.
  WARPHEAP_DEVICE bool put(remote_ptr to, void const* from, size_t bytes) const {
    if (!is_valid(to, bytes)) return false;
    nvshmem_putmem(own_address(to), from, bytes, static_cast<int>(to.pe()));
    return true;
  }

  /// Which PE this is.
  WARPHEAP_DEVICE u32 pe() const { return table_->pe; }
  /// How many there are.
  WARPHEAP_DEVICE u32 pes() const { return table_->pes; }

  /// This PE's heap alone: for realloc(), usable_size() and so on.
  WARPHEAP_HOST_DEVICE Allocator const& local() const { return local_; }

 private:
  /// Returns false if no block can be there.
  WARPHEAP_DEVICE bool post(remote_ptr block) const {
    nvshmem_fence();  // this thread's puts come before the post
    return table_->own.post(own_address(block), nvshmem_access{static_cast<int>(block.pe())});
  }
  /// An address that every heap counts as foreign.
  WARPHEAP_DEVICE static void* no_block() { return reinterpret_cast<void*>(u64{16}); }

  WARPHEAP_DEVICE u8* pool() const { return static_cast<u8*>(table_->own.address(0, 0)); }
  /// The corresponding address on this PE.
  WARPHEAP_DEVICE u8* own_address(remote_ptr block) const { return pool() + block.offset(); }
  /// Whether `bytes` bytes from there are in a pool of the job.
  WARPHEAP_DEVICE bool is_valid(remote_ptr block, size_t bytes) const {
    u64 const pool_bytes = table_->own.pool_bytes();
    return block && block.pe() < table_->pes && bytes <= pool_bytes && block.offset() <= pool_bytes - bytes;
  }

  Allocator local_;
  table_type const* table_ = nullptr;
};

/// Owns the heap of this PE. All PEs construct and destroy their heaps together, in the same order.
/// Must outlive every kernel that uses it, on any PE, but not NVSHMEM.
template <set_member Allocator>
class basic_symmetric_heap {
 public:
  /// The reference that the PE's own kernels hold.
  using allocator_type = member_allocator<Allocator>;
  /// The upstream heap.
  using heap_type = basic_heap<allocator_type>;
  /// What ref() returns.
  using ref_type = symmetric_heap_ref<allocator_type>;

  /// A heap of `bytes` bytes on each PE. Returns on no PE before all can take posts. Throws
  /// std::invalid_argument, on every PE, if they request different sizes or are too many;
  /// std::logic_error before nvshmem_init(); otherwise like basic_heap.
  explicit basic_symmetric_heap(size_t bytes) : heap_{bytes}, box_{heap_.ref().oom().view()} {
    check_layout();
    table_type const table{static_cast<u32>(nvshmem_my_pe()), static_cast<u32>(nvshmem_n_pes()), box_};
    table_ = device_buffer<table_type>(std::vector<table_type>{table});
    nvshmem_barrier_all();
  }

  /// The reference for kernels of this PE.
  ref_type ref() const { return {heap_.ref(), table_.data()}; }
  /// The upstream heap. Its reset() empties the mailbox too; no other PE may free blocks then.
  heap_type& heap() { return heap_; }
  /// As above.
  heap_type const& heap() const { return heap_; }

  /// Which PE this is.
  u32 pe() const { return static_cast<u32>(nvshmem_my_pe()); }
  /// How many there are.
  u32 pes() const { return static_cast<u32>(nvshmem_n_pes()); }

  /// Makes the frees that other PEs have posted to this one, in order on stream `on`, beside
  /// kernels that use the heap. Does not wait.
  void drain(stream_view on = {}) const {
    launch(on, detail::drain_member::shape_for_regions(box_.regions()), detail::drain_member{}, heap_.ref());
  }

  /// Frees pending in this PE's mailbox. This and the functions below are for a job at rest.
  u64 pending() const { return mailbox_snapshot{box_}.pending(); }

  /// Counts of this PE. Blocks whose frees are pending are live; a second free of such a block is a
  /// double free.
  heap_statistics statistics() const requires heap_type::takes_snapshots {
    heap_statistics counted = heap_.statistics();
    counted.double_frees += mailbox_snapshot{box_}.repeats();
    return counted;
  }

  /// The violated invariants of this PE's heap and mailbox; none if all is well.
  invariant_report check_invariants() const requires heap_type::takes_snapshots {
    invariant_report report = heap_.check_invariants();
    for (auto const& line : mailbox_snapshot{box_}.check_invariants()) report.push_back(line);
    return report;
  }

 private:
  using mailbox_type = typename allocator_type::oom_type::mailbox_type;
  using table_type = symmetric_table<mailbox_type>;

  /// All PEs. Names of blocks must be large enough, and mean the same place everywhere.
  void check_layout() const {
    if (pes() > remote_ptr::most_pes || box_.pool_bytes() > remote_ptr::most_bytes)
      throw std::invalid_argument{"symmetric heap of " + std::to_string(box_.pool_bytes()) + " bytes on " +
                                  std::to_string(pes()) + " PEs: the most are " +
                                  std::to_string(remote_ptr::most_bytes) + " on " +
                                  std::to_string(remote_ptr::most_pes)};
    auto const* const begin = static_cast<u8 const*>(heap_.memory().front().begin);
    u64 const offset = static_cast<u64>(static_cast<u8 const*>(box_.address(0, 0)) - begin);
    for (u64 const other : gather_from_pes(offset))
      if (other != offset) throw std::runtime_error{"symmetric heap: the pools lie at different offsets"};
  }

  heap_type heap_;
  mailbox_type box_;  ///< a view
  device_buffer<table_type> table_;
};

/// The default allocator of a symmetric heap.
struct symmetric_allocator : allocator<creation::slab_bitmap<>, distribution::none, oom::return_null,
                                       reserve_pool::nvshmem, alignment::shrink<16>> {};

/// slab_bitmap on each PE.
using symmetric_heap = basic_symmetric_heap<symmetric_allocator>;

}}  // namespace warpheap::WARPHEAP_BACKEND
