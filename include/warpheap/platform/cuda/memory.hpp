// SPDX-License-Identifier: Apache-2.0
// Device memory as host code sees it: streams, copies, and an owning array. Errors become
// exceptions with the call named.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "../errors.hpp"
#include "../types.hpp"

namespace warpheap::cuda_backend {

/// Throws cuda_error (out_of_memory for cudaErrorMemoryAllocation) unless `status` is success.
/// `call` names the call.
inline void throw_on_error(cudaError_t status, char const* call) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clears an error that does not stick, so that it is reported once
  auto const message = std::string{call} + ": " + cudaGetErrorString(status);
  if (status == cudaErrorMemoryAllocation) throw out_of_memory{message};
  throw cuda_error{status, message};
}

/// A CUDA stream that another object owns; the default stream if default-constructed.
using stream_view = cudaStream_t;

/// Waits for all work of `on`; throws cuda_error if any of it failed.
inline void synchronize(stream_view on) { throw_on_error(cudaStreamSynchronize(on), "cudaStreamSynchronize"); }

/// Waits for all work of the device; throws cuda_error if any of it failed.
inline void synchronize() { throw_on_error(cudaDeviceSynchronize(), "cudaDeviceSynchronize"); }

/// An owned stream that does not synchronize with the default one.
class stream {
 public:
  /// A new one.
  stream() { throw_on_error(cudaStreamCreateWithFlags(&handle_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags"); }
  /// One whose thread blocks start before those of other streams that wait for room.
  static stream urgent() {
    int least = 0, greatest = 0;
    throw_on_error(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
    stream made{nullptr};
    throw_on_error(cudaStreamCreateWithPriority(&made.handle_, cudaStreamNonBlocking, greatest),
                   "cudaStreamCreateWithPriority");
    return made;
  }
  /// One for a host thread beside others. On a GPU that is an urgent one; host/memory.hpp has more.
  static stream apart() { return urgent(); }
  stream(stream&& other) noexcept : handle_{std::exchange(other.handle_, nullptr)} {}
  stream& operator=(stream&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~stream() {
    if (handle_) cudaStreamDestroy(handle_);
  }

  /// What launch() and CUDA take.
  operator stream_view() const noexcept { return handle_; }

 private:
  explicit stream(cudaStream_t handle) : handle_{handle} {}

  cudaStream_t handle_ = nullptr;
};

/// Raw device memory, aligned to 256 bytes. Throws out_of_memory with the bytes asked for and those
/// free.
inline void* allocate_bytes(size_t bytes) {
  void* memory = nullptr;
  auto const status = cudaMalloc(&memory, bytes);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    size_t free = 0, total = 0;
    throw_on_error(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    throw out_of_memory{"cudaMalloc of " + std::to_string(bytes) + " bytes failed: the device has " +
                        std::to_string(free) + " free of " + std::to_string(total)};
  }
  throw_on_error(status, "cudaMalloc");
  return memory;
}

/// Gives `memory` back. Says nothing when the runtime is already unloading.
inline void deallocate_bytes(void* memory) noexcept {
  if (memory && cudaFree(memory) != cudaSuccess) cudaGetLastError();
}

/// Sets `bytes` bytes at `memory` to `value`, in order on stream `on`; does not wait.
inline void fill_bytes(void* memory, u8 value, size_t bytes, stream_view on = {}) {
  throw_on_error(cudaMemsetAsync(memory, value, bytes, on), "cudaMemsetAsync");
}

/// Copies between any two of host and device memory, after all earlier work of the default stream;
/// waits until the bytes are there for every stream. cudaMemcpy alone returns while bytes from
/// pageable memory are still on their way.
inline void copy_bytes(void* to, void const* from, size_t bytes) {
  throw_on_error(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "cudaMemcpy");
  throw_on_error(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
}

/// Copies `rows` rows of `bytes` bytes to the host, one after the other, as copy_bytes() does. The
/// first begins at `from`, and each next one `pitch` bytes further.
inline void copy_rows(void* to, void const* from, size_t bytes, size_t pitch, size_t rows) {
  throw_on_error(cudaMemcpy2D(to, bytes, from, pitch, bytes, rows, cudaMemcpyDefault), "cudaMemcpy2D");
  throw_on_error(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
}

/// The device that this thread's calls go to.
inline int current_device() {
  int device = 0;
  throw_on_error(cudaGetDevice(&device), "cudaGetDevice");
  return device;
}

/// The current device by its name and its place on the bus, which tells two of a name apart.
inline std::string device_name() {
  cudaDeviceProp has{};
  throw_on_error(cudaGetDeviceProperties(&has, current_device()), "cudaGetDeviceProperties");
  char place[16] = {};
  throw_on_error(cudaDeviceGetPCIBusId(place, sizeof place, current_device()), "cudaDeviceGetPCIBusId");
  return std::string{has.name} + " " + place;
}

/// From now on this thread's calls neither fail nor spoil a capture where another thread captures a
/// graph.
inline void stay_out_of_captures() {
  auto mode = cudaStreamCaptureModeRelaxed;
  throw_on_error(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
}

/// Selects another device for this thread's calls, as long as the object lives. If that fails, the
/// next call reports it.
class device_scope {
 public:
  explicit device_scope(int device) noexcept {
    if (cudaGetDevice(&before_) != cudaSuccess || cudaSetDevice(device) != cudaSuccess) cudaGetLastError();
  }
  device_scope(device_scope const&) = delete;
  device_scope& operator=(device_scope const&) = delete;
  ~device_scope() {
    if (cudaSetDevice(before_) != cudaSuccess) cudaGetLastError();
  }

 private:
  int before_ = 0;
};

/// Devices of this host that programs may use.
inline int device_count() {
  int count = 0;
  throw_on_error(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  return count;
}

/// A device's number and name, for messages.
inline std::string describe_device(int device) {
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, device) != cudaSuccess) cudaGetLastError();
  return std::to_string(device) + " (" + properties.name + ")";
}

/// Lets kernels on device `from` access memory of device `to`, also by atomics, from now on. Throws
/// cuda_error, with the two devices named, if they cannot.
inline void enable_peer_access(int from, int to) {
  auto const refuse = [=](cudaError_t status, std::string const& why) {
    throw cuda_error{status, "device " + describe_device(from) + " has no peer access to device " +
                                 describe_device(to) + ": " + why};
  };
  int reaches = 0, has_atomics = 0;
  throw_on_error(cudaDeviceCanAccessPeer(&reaches, from, to), "cudaDeviceCanAccessPeer");
  if (!reaches) refuse(cudaErrorPeerAccessUnsupported, cudaGetErrorString(cudaErrorPeerAccessUnsupported));
  throw_on_error(cudaDeviceGetP2PAttribute(&has_atomics, cudaDevP2PAttrNativeAtomicSupported, from, to),
                 "cudaDeviceGetP2PAttribute");
  if (!has_atomics) refuse(cudaErrorPeerAccessUnsupported, "the link between them has no atomics");
  device_scope const current{from};
  auto const status = cudaDeviceEnablePeerAccess(to, 0);
  if (status != cudaSuccess) cudaGetLastError();
  if (status != cudaSuccess && status != cudaErrorPeerAccessAlreadyEnabled) refuse(status, cudaGetErrorString(status));
}

#if defined(__CUDACC__)
/// Sets a __device__ or __constant__ variable of the current device, for the kernels that are
/// launched from now on. A __managed__ variable is assigned instead.
template <class T>
void set_device_variable(T& variable, T const& value) {
  static_assert(__is_trivially_copyable(T), "set_device_variable copies bits");
  throw_on_error(cudaMemcpyToSymbol(variable, &value, sizeof value), "cudaMemcpyToSymbol");
}
#endif

/// Words that the host and running kernels share: pinned memory of the host, zeroed. Movable.
class shared_words {
 public:
  shared_words() = default;
  /// Throws out_of_memory.
  explicit shared_words(size_t count) {
    void* memory = nullptr;
    throw_on_error(cudaHostAlloc(&memory, count * sizeof(u64), cudaHostAllocMapped | cudaHostAllocPortable),
                   "cudaHostAlloc");
    words_ = static_cast<u64*>(memory);
    for (size_t i = 0; i < count; ++i) words_[i] = 0;
  }
  shared_words(shared_words&& other) noexcept : words_{std::exchange(other.words_, nullptr)} {}
  shared_words& operator=(shared_words&& other) noexcept {
    std::swap(words_, other.words_);
    return *this;
  }
  ~shared_words() {
    if (words_ && cudaFreeHost(words_) != cudaSuccess) cudaGetLastError();
  }

  /// Where kernels see them. Devices of today have one address for both sides.
  u64* device() const {
    void* seen = nullptr;
    throw_on_error(cudaHostGetDevicePointer(&seen, words_, 0), "cudaHostGetDevicePointer");
    return static_cast<u64*>(seen);
  }

  /// acquire: pairs with a release of a kernel.
  u64 load(size_t i) const { return std::atomic_ref<u64>{words_[i]}.load(std::memory_order_acquire); }
  /// release: pairs with an acquire of a kernel.
  void store(size_t i, u64 value) const { std::atomic_ref<u64>{words_[i]}.store(value, std::memory_order_release); }

 private:
  u64* words_ = nullptr;
};

/// Multiprocessors of the current device.
inline u32 multiprocessors() {
  int count = 0;
  throw_on_error(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, current_device()),
                 "cudaDeviceGetAttribute");
  return static_cast<u32>(count);
}

}  // namespace warpheap::cuda_backend
