// SPDX-License-Identifier: Apache-2.0
// The archive's pool grows, can zero memory before any block is made of it, and outlives its CUDA
// context: after a cudaDeviceReset() the thread that serves the heap still reads the words that
// kernels shared with it.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>

#include <warpheap/policy/reserve_pool/growing.hpp>

namespace warpheap::archive {

/// As backend::shared_words, in memory that is the process's and not the context's. Movable.
class lasting_words {
 public:
  lasting_words() = default;
  /// Throws std::bad_alloc, and cuda_error if CUDA cannot share the page.
  explicit lasting_words(size_t count) {
    size_t const whole = (count * sizeof(u64) + page - 1) / page * page;
    words_.reset(static_cast<u64*>(std::aligned_alloc(page, whole)));
    if (!words_) throw std::bad_alloc{};
    std::fill_n(words_.get(), whole / sizeof(u64), u64{0});
    backend::throw_on_error(cudaHostRegister(words_.get(), whole, cudaHostRegisterMapped | cudaHostRegisterPortable),
                            "cudaHostRegister");
    is_shared_.reset(words_.get());
  }

  /// Where kernels see them.
  u64* device() const {
    void* seen = nullptr;
    backend::throw_on_error(cudaHostGetDevicePointer(&seen, words_.get(), 0), "cudaHostGetDevicePointer");
    return static_cast<u64*>(seen);
  }
  /// acquire: pairs with a release of a kernel.
  u64 load(size_t i) const { return std::atomic_ref<u64>{words_[i]}.load(std::memory_order_acquire); }
  /// release: pairs with an acquire of a kernel.
  void store(size_t i, u64 value) const { std::atomic_ref<u64>{words_[i]}.store(value, std::memory_order_release); }

 private:
  static constexpr size_t page = 4096;

  struct free_page {
    void operator()(u64* words) const { std::free(words); }
  };
  struct share_no_more {
    void operator()(u64* words) const {
      if (cudaHostUnregister(words) != cudaSuccess) cudaGetLastError();  // the context is gone
    }
  };

  std::unique_ptr<u64[], free_page> words_;
  std::unique_ptr<u64, share_no_more> is_shared_;  ///< destroyed before the memory is freed
};

/// Writes zeros beside kernels that run. A memset is a kernel, for which there may be no room;
/// copies from the host need none. Movable.
class zero_writer {
 public:
  /// Throws out_of_memory.
  zero_writer() {
    void* memory = nullptr;
    backend::throw_on_error(cudaHostAlloc(&memory, bytes_at_once, cudaHostAllocPortable), "cudaHostAlloc");
    zeros_.reset(static_cast<u8*>(memory));
    std::fill_n(zeros_.get(), bytes_at_once, u8{0});
  }

  /// Waits until they are there.
  void write(u8* to, size_t bytes) const {
    for (size_t done = 0; done < bytes; done += bytes_at_once)
      backend::throw_on_error(cudaMemcpyAsync(to + done, zeros_.get(), (std::min)(bytes - done, bytes_at_once),
                                              cudaMemcpyHostToDevice, on_),
                              "cudaMemcpyAsync");
    backend::synchronize(on_);
  }

 private:
  static constexpr size_t bytes_at_once = size_t{4} << 20;

  struct free_pinned {
    void operator()(u8* memory) const {
      if (cudaFreeHost(memory) != cudaSuccess) cudaGetLastError();
    }
  };

  std::unique_ptr<u8, free_pinned> zeros_;
  backend::stream on_;
};

/// reserve_pool::growing with both.
class pool : public reserve_pool::growing {
 public:
  using words = lasting_words;
  static words share(size_t count) { return words{count}; }

  /// `zeroes`: whether memory is zero before blocks are made of it.
  pool(growth const& plan, bool zeroes) : growing{plan} {
    if (zeroes) zeros_ = std::make_unique<zero_writer>();
  }

  void* acquire(size_t bytes) {
    begin_ = static_cast<u8*>(growing::acquire(bytes));
    // The heap waits for the default stream before others use it.
    if (zeros_) backend::fill_bytes(begin_, 0, committed());
    return begin_;
  }

  void commit(size_t bytes) {
    size_t const before = committed();
    growing::commit(bytes);
    if (!zeros_) return;
    try {
      zeros_->write(begin_ + before, committed() - before);
    } catch (...) {
      growing::decommit(before);
      throw;
    }
  }

 private:
  u8* begin_ = nullptr;
  std::unique_ptr<zero_writer> zeros_;
};

}  // namespace warpheap::archive
