// SPDX-License-Identifier: Apache-2.0
// Addresses of a GPU without memory, by the driver's virtual memory management. The driver's
// functions are found through the runtime, so that a program links the runtime alone.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <string>
#include <utility>
#include <vector>

#include "memory.hpp"

namespace warpheap::cuda_backend {
namespace detail {

/// The driver's function of this name. Throws cuda_error if the driver has none.
template <class Function>
Function driver_function(char const* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
#if CUDART_VERSION >= 12050
  throw_on_error(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result), name);
#else
  throw_on_error(cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result), name);
#endif
  if (result != cudaDriverEntryPointSuccess) throw cuda_error{cudaErrorNotSupported, std::string{name} + ": not there"};
  return reinterpret_cast<Function>(found);
}

/// What the driver has for virtual memory.
struct virtual_memory {
  decltype(&cuMemGetAllocationGranularity) granularity = at("cuMemGetAllocationGranularity");
  decltype(&cuMemAddressReserve) reserve = at("cuMemAddressReserve");
  decltype(&cuMemAddressFree) free = at("cuMemAddressFree");
  decltype(&cuMemCreate) create = at("cuMemCreate");
  decltype(&cuMemRelease) release = at("cuMemRelease");
  decltype(&cuMemMap) map = at("cuMemMap");
  decltype(&cuMemUnmap) unmap = at("cuMemUnmap");
  decltype(&cuMemSetAccess) set_access = at("cuMemSetAccess");
  decltype(&cuGetErrorString) error_string = at("cuGetErrorString");

  static virtual_memory const& instance() {
    static virtual_memory const found;
    return found;
  }

  /// As cuda_backend::check(), for a status of the driver.
  void throw_on_error(CUresult status, std::string const& call) const {
    if (status == CUDA_SUCCESS) return;
    char const* text = nullptr;
    error_string(status, &text);
    std::string const message = call + ": " + (text ? text : "unknown error");
    if (status == CUDA_ERROR_OUT_OF_MEMORY) throw out_of_memory{message};
    throw cuda_error{static_cast<int>(status), message};
  }

 private:
  struct name_of_function {
    char const* name;
    template <class Function>
    operator Function() const {
      return driver_function<Function>(name);
    }
  };
  static name_of_function at(char const* name) { return {name}; }
};

/// Memory of the current device, as cuMemCreate() takes it.
inline CUmemAllocationProp memory_of_device() {
  throw_on_error(cudaFree(nullptr), "cudaFree");  // the device's context exists from now on
  int const device = current_device();
  int supported = 0;
  constexpr auto manages = static_cast<cudaDeviceAttr>(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
  throw_on_error(cudaDeviceGetAttribute(&supported, manages, device), "cudaDeviceGetAttribute");
  if (!supported)
    throw cuda_error{cudaErrorNotSupported,
                     "device " + std::to_string(device) + " has no virtual memory management: its heaps cannot grow"};
  CUmemAllocationProp memory{};
  memory.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  memory.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  memory.location.id = device;
  return memory;
}

/// Access by the memory's own device and, with `peers`, by every other one that can have it.
inline std::vector<CUmemAccessDesc> access_to(CUmemLocation owner, bool peers) {
  int devices = 0;
  if (peers) throw_on_error(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
  std::vector<CUmemAccessDesc> access{{owner, CU_MEM_ACCESS_FLAGS_PROT_READWRITE}};
  access.reserve(1 + static_cast<size_t>(devices));
  for (int other = 0; other < devices; ++other) {
    int can_have_it = 0;
    if (other != owner.id)
      throw_on_error(cudaDeviceCanAccessPeer(&can_have_it, other, owner.id), "cudaDeviceCanAccessPeer");
    if (!can_have_it) continue;
    access.push_back(access.front());
    access.back().location.id = other;
  }
  return access;
}

}  // namespace detail

/// Owns `bytes()` addresses of the device that is current when it is made, and the memory that was
/// mapped there. Movable.
class address_range {
 public:
  /// Where the addresses start is a multiple of this.
  static constexpr size_t alignment = size_t{1} << 21;

  /// What offsets and sizes of parts are multiples of.
  static size_t granularity() {
    auto const memory = detail::memory_of_device();
    auto const& driver = detail::virtual_memory::instance();
    size_t bytes = 0;
    driver.throw_on_error(driver.granularity(&bytes, &memory, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
                          "cuMemGetAllocationGranularity");
    return bytes;
  }

  address_range() = default;
  /// Reserves addresses, from `wanted` on if those are free; it is a multiple of `alignment`. With
  /// `peers`, kernels of other devices may use the memory too. Throws out_of_memory if the device
  /// has not that many addresses.
  explicit address_range(size_t bytes, bool peers = false, void* wanted = nullptr)
      : memory_{detail::memory_of_device()},
        access_{detail::access_to(memory_.location, peers)},
        bytes_{bytes},
        reserved_bytes_{wanted && bytes < least_wanted ? least_wanted : bytes} {
    auto const& driver = detail::virtual_memory::instance();
    if (driver.reserve(&begin_, reserved_bytes_, alignment, reinterpret_cast<CUdeviceptr>(wanted), 0) != CUDA_SUCCESS)
      throw out_of_memory{"the device has not " + std::to_string(bytes) + " addresses"};
  }
  address_range(address_range&& other) noexcept { swap(other); }
  address_range& operator=(address_range&& other) noexcept {
    swap(other);
    return *this;
  }
  /// Says nothing when the runtime is already unloading.
  ~address_range() {
    if (!begin_) return;
    auto const& driver = detail::virtual_memory::instance();
    device_scope const on{memory_.location.id};
    cudaDeviceSynchronize();
    for (auto const& each : parts_) remove(each);
    driver.free(begin_, reserved_bytes_);
    cudaGetLastError();
  }

  u8* begin() const { return reinterpret_cast<u8*>(begin_); }
  size_t bytes() const { return bytes_; }

  /// Maps memory of `bytes` bytes at `offset`, in parts of `part_bytes`, of which the last may be
  /// smaller. Throws out_of_memory, and maps nothing then.
  void map(size_t offset, size_t bytes, size_t part_bytes) {
    size_t const before = parts_.size();
    try {
      for (size_t done = 0; done < bytes; done += parts_.back().bytes)
        add_part(offset + done, bytes - done < part_bytes ? bytes - done : part_bytes);
      auto const& driver = detail::virtual_memory::instance();
      driver.throw_on_error(driver.set_access(begin_ + offset, bytes, access_.data(), access_.size()),
                            "cuMemSetAccess");
    } catch (...) {
      for (; parts_.size() > before; parts_.pop_back()) remove(parts_.back());
      throw;
    }
  }

  /// Gives back the memory of the `bytes` bytes at `offset`, which are whole parts. No kernel may
  /// use it.
  void unmap(size_t offset, size_t bytes) {
    auto const goes = [&](part const& each) { return each.offset >= offset && each.offset < offset + bytes; };
    for (auto const& each : parts_)
      if (goes(each)) detail::virtual_memory::instance().throw_on_error(remove(each), "cuMemUnmap");
    std::erase_if(parts_, goes);
  }

 private:
  /// The driver gives fewer addresses than these elsewhere, whatever is wanted.
  static constexpr size_t least_wanted = size_t{1} << 25;

  struct part {
    size_t offset, bytes;
  };

  void add_part(size_t offset, size_t bytes) {
    auto const& driver = detail::virtual_memory::instance();
    parts_.reserve(parts_.size() + 1);
    CUmemGenericAllocationHandle handle = 0;
    driver.throw_on_error(driver.create(&handle, bytes, &memory_, 0),
                          "cuMemCreate of " + std::to_string(bytes) + " bytes");
    CUresult const mapped = driver.map(begin_ + offset, bytes, 0, handle, 0);
    driver.release(handle);  // the mapping keeps the memory
    driver.throw_on_error(mapped, "cuMemMap");
    parts_.push_back({offset, bytes});
  }

  CUresult remove(part const& each) const {
    return detail::virtual_memory::instance().unmap(begin_ + each.offset, each.bytes);
  }

  void swap(address_range& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(access_, other.access_);
    std::swap(begin_, other.begin_);
    std::swap(bytes_, other.bytes_);
    std::swap(reserved_bytes_, other.reserved_bytes_);
    std::swap(parts_, other.parts_);
  }

  CUmemAllocationProp memory_{};
  std::vector<CUmemAccessDesc> access_;
  CUdeviceptr begin_ = 0;
  size_t bytes_ = 0, reserved_bytes_ = 0;
  std::vector<part> parts_;
};

}  // namespace warpheap::cuda_backend
