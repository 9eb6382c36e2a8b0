// SPDX-License-Identifier: Apache-2.0
// Kernels that append, heaps that refuse, and what a buffer must hold afterwards.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "warpheap/container/append_buffer.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace warpheap::test {

/// Two words that belong together.
struct entry {
  u64 number;
  u64 check;

  WARPHEAP_HOST_DEVICE static entry of(u64 number) { return {number, ~number * 0x9e3779b97f4a7c15u}; }
  WARPHEAP_HOST_DEVICE bool is_right() const { return check == of(number).check; }
};

/// A heap that counts the calls of malloc, and refuses those with numbers in [from, until).
template <class Heap>
struct refusing_heap {
  Heap below;
  u32* calls;
  u32 from, until;

  WARPHEAP_DEVICE void* malloc(size_t bytes) const {
    u32 const number = atomic_ref<u32>{*calls}.fetch_add(1, order::relaxed);
    return from <= number && number < until ? nullptr : below.malloc(bytes);
  }
  WARPHEAP_DEVICE void free(void* memory) const { below.free(memory); }
};

/// A heap of 64 blocks of 1 KiB, of which the first that is free is handed out: soon again, too.
struct first_fit_heap {
  static constexpr u64 blocks = 64, block_bytes = 1024;

  u8* memory;
  u64* taken;  ///< a bit for each block

  WARPHEAP_DEVICE void* malloc(size_t) const {
    atomic_ref<u64> const bits{*taken};
    for (u64 seen = bits.load(order::relaxed); ~seen != 0; seen = bits.load(order::relaxed)) {
      u32 const first = lowest_bit(~seen);
      // acquire: the last owner's accesses; pairs with the release in free().
      if ((bits.fetch_or(u64{1} << first, order::acquire) >> first & 1) == 0) return memory + first * block_bytes;
    }
    return nullptr;
  }
  WARPHEAP_DEVICE void free(void* block) const {
    auto const at = static_cast<u64>(static_cast<u8*>(block) - memory) / block_bytes;
    atomic_ref<u64>{*taken}.fetch_and(~(u64{1} << at), order::release);
  }
};

/// Whether thread i appends: all but the last of each `out_of` do.
WARPHEAP_HOST_DEVICE inline bool appends(u64 i, u32 out_of) { return i % out_of != out_of - 1; }
inline constexpr u32 all = ~0u;

/// Kernel: thread i appends entry i to buffer i % `buffers`, and notes whether it could.
struct append_own_number {
  template <class Heap, class Buffer>
  WARPHEAP_DEVICE void operator()(Heap heap, Buffer* to, u32 buffers, u32 out_of, u8* served) const {
    u64 const me = global_thread_index();
    if (!appends(me, out_of)) return;
    served[me] = to[me % buffers].append(heap, entry::of(me));
  }
};

/// Kernel: reads each buffer by operator[] and by for_each(); writes per buffer what is wrong, and
/// the sum of numbers.
struct read_both_ways {
  template <class Buffer>
  WARPHEAP_DEVICE void operator()(Buffer const* buffers, u32 count, u32* wrong, u64* sums) const {
    u64 const me = global_thread_index(), threads = u64{simt::grid_dim()} * simt::block_dim();
    for (u32 b = 0; b < count; ++b) {
      u64 sum = 0, visited = 0, read = 0;
      buffers[b].for_each(me, threads, [&](entry const& each) {
        sum += each.number;
        ++visited;
        if (!each.is_right()) atomic_ref<u32>{wrong[b]}.fetch_add(1, order::relaxed);
      });
      for (u64 i = me; i < buffers[b].size(); i += threads, ++read) sum -= buffers[b][i].number;
      if (visited != read || sum != 0) atomic_ref<u32>{wrong[b]}.fetch_add(1, order::relaxed);
      for (u64 i = me; i < buffers[b].size(); i += threads)
        atomic_ref<u64>{sums[b]}.fetch_add(buffers[b][i].number, order::relaxed);
    }
  }
};

/// What is wrong with buffers after one launch of append_own_number on empty ones; empty if nothing
/// is. Each buffer has what its appends that were served wrote, each once, and counts the others.
template <class Buffer>
std::string fault_of_appended(device_buffer<Buffer> const& buffers, std::vector<u8> const& served, u32 out_of) {
  auto const count = static_cast<u32>(buffers.size());
  for (u32 b = 0; b < count; ++b) {
    std::vector<u64> expected, found;
    u64 appended = 0, sum = 0;
    for (u64 i = b; i < served.size(); i += count) {
      if (!appends(i, out_of)) continue;
      ++appended;
      if (served[i]) expected.push_back(i);
    }
    auto const name = "buffer " + std::to_string(b) + ": ";
    Buffer const copied = buffers[b];
    if (copied.size() + copied.dropped() != appended)
      return name + std::to_string(copied.size()) + " elements and " + std::to_string(copied.dropped()) +
             " dropped of " + std::to_string(appended);
    for (entry const& each : to_host(buffers.data() + b)) {
      if (!each.is_right()) return name + "a damaged element";
      found.push_back(each.number);
      sum += each.number;
    }
    std::sort(found.begin(), found.end());
    if (found != expected)
      return name + std::to_string(found.size()) + " elements, and " + std::to_string(expected.size()) +
             " appends that were served";
    device_buffer<u32> const wrong(1);
    device_buffer<u64> const sums(1);
    launch({2, 40}, read_both_ways{}, static_cast<Buffer const*>(buffers.data() + b), 1u, wrong.data(), sums.data());
    synchronize();
    if (wrong[0] != 0 || sums[0] != sum) return name + "kernels read something else";
  }
  return {};
}

/// Empty buffers, the threads that append to them, and what came of it.
template <class Buffer>
class appending {
 public:
  appending(u32 buffers, launch_shape shape, u32 out_of = all) : shape_{shape}, out_of_{out_of}, buffers_(buffers) {}

  Buffer* data() const { return buffers_.data(); }
  u32 size() const { return static_cast<u32>(buffers_.size()); }
  Buffer operator[](u32 i) const { return buffers_[i]; }

  /// Appends; the buffers were empty. Returns what is wrong.
  template <class Heap>
  std::string fault_of_round(Heap heap) {
    device_buffer<u8> const served(u64{shape_.blocks} * shape_.threads);
    launch(shape_, append_own_number{}, heap, buffers_.data(), size(), out_of_, served.data());
    synchronize();
    return fault_of_appended(buffers_, served.to_host(), out_of_);
  }

  void clear_all() const {
    clear(buffers_.data(), buffers_.size());
    synchronize();
  }
  template <class Heap>
  void destroy_all(Heap heap) const {
    destroy(heap, buffers_.data(), buffers_.size());
    synchronize();
  }

 private:
  launch_shape shape_;
  u32 out_of_;
  device_buffer<Buffer> buffers_;
};

/// Kernel: some lanes take, own and free blocks while the others append to a buffer, whose elements
/// they then own. So pages are made of memory that had other owners in this kernel.
struct append_to_used_memory {
  template <class Buffer>
  WARPHEAP_DEVICE void operator()(first_fit_heap heap, Buffer* to, u32 rounds) const {
    u64 const me = global_thread_index();
    for (u32 round = 0; round < rounds; ++round) {
      if (me % 3 == 0) {
        use_a_block(heap);
      } else if (auto* const added = to->append(heap)) {
        contents::acquire(added, sizeof *added);
        *added = entry::of(me);
        contents::release(added, sizeof *added);
      }
    }
  }

 private:
  WARPHEAP_DEVICE static void use_a_block(first_fit_heap const& heap) {
    void* const memory = heap.malloc(first_fit_heap::block_bytes);
    contents::acquire(memory, first_fit_heap::block_bytes);
    contents::release(memory, first_fit_heap::block_bytes);
    heap.free(memory);
  }
};

/// Runs it; whether all pages were freed at the end. `contents` throws if a lane gets an element
/// whose memory's last owner it knows nothing of.
template <class Buffer>
bool orders_owners() {
  device_buffer<u8> const memory(first_fit_heap::blocks * first_fit_heap::block_bytes);
  device_buffer<u64> const taken(1);
  device_buffer<Buffer> const one(1);
  first_fit_heap const heap{memory.data(), taken.data()};
  launch({3, 5}, append_to_used_memory{}, heap, one.data(), 4u);
  synchronize();
  bool const served = one[0].size() == 40;
  destroy(heap, one.data(), 1);
  synchronize();
  return served && taken[0] == 0;
}

}  // namespace warpheap::test
