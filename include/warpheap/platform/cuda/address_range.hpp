// Addresses of a GPU without memory, by the driver's virtual memory management. The driver's
// functions are found through the runtime, so that a program links the runtime alone.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <string>
#include <utility>
#include <vector>

#include "memory.hpp"

namespace warpheap::cuda {
namespace detail {

/// The driver's function of this name. Throws cuda_error if the driver has none.
template <class Function>
Function driver_function(char const* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
#if CUDART_VERSION >= 12050
  check(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result), name);
#else
  check(cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result), name);
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

  /// As cuda::check(), for a status of the driver.
  void check(CUresult status, std::string const& call) const {
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
  check(cudaFree(nullptr), "cudaFree");  // the device's context exists from now on
  int const device = current_device();
  int supported = 0;
  constexpr auto manages = static_cast<cudaDeviceAttr>(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
  check(cudaDeviceGetAttribute(&supported, manages, device), "cudaDeviceGetAttribute");
  if (!supported)
    throw cuda_error{cudaErrorNotSupported,
                     "device " + std::to_string(device) + " has no virtual memory management: its heaps cannot grow"};
  CUmemAllocationProp memory{};
  memory.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  memory.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  memory.location.id = device;
  return memory;
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
    driver.check(driver.granularity(&bytes, &memory, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
                 "cuMemGetAllocationGranularity");
    return bytes;
  }

  address_range() = default;
  /// Reserves addresses. Throws out_of_memory if the device has not that many.
  explicit address_range(size_t bytes) : memory_{detail::memory_of_device()}, bytes_{bytes} {
    auto const& driver = detail::virtual_memory::instance();
    if (driver.reserve(&begin_, bytes, alignment, 0, 0) != CUDA_SUCCESS)
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
    for (auto const& part : parts_) driver.unmap(begin_ + part.offset, part.bytes);
    driver.free(begin_, bytes_);
    cudaGetLastError();
  }

  u8* begin() const { return reinterpret_cast<u8*>(begin_); }
  size_t bytes() const { return bytes_; }

  /// Maps memory of `bytes` bytes, a part, at `offset`. Throws out_of_memory, and maps nothing
  /// then.
  void map(size_t offset, size_t bytes) {
    auto const& driver = detail::virtual_memory::instance();
    parts_.reserve(parts_.size() + 1);
    CUmemGenericAllocationHandle handle = 0;
    driver.check(driver.create(&handle, bytes, &memory_, 0), "cuMemCreate of " + std::to_string(bytes) + " bytes");
    CUresult const mapped = driver.map(begin_ + offset, bytes, 0, handle, 0);
    driver.release(handle);  // the mapping keeps the memory
    driver.check(mapped, "cuMemMap");
    CUmemAccessDesc const access{memory_.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUresult const accessible = driver.set_access(begin_ + offset, bytes, &access, 1);
    if (accessible != CUDA_SUCCESS) driver.unmap(begin_ + offset, bytes);
    driver.check(accessible, "cuMemSetAccess");
    parts_.push_back({offset, bytes});
  }

  /// Gives back the memory of the part at `offset`, which is `bytes` bytes large. No kernel may use
  /// it.
  void unmap(size_t offset, size_t bytes) {
    auto const& driver = detail::virtual_memory::instance();
    driver.check(driver.unmap(begin_ + offset, bytes), "cuMemUnmap");
    std::erase_if(parts_, [&](part const& each) { return each.offset == offset; });
  }

 private:
  struct part {
    size_t offset, bytes;
  };

  void swap(address_range& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(begin_, other.begin_);
    std::swap(bytes_, other.bytes_);
    std::swap(parts_, other.parts_);
  }

  CUmemAllocationProp memory_{};
  CUdeviceptr begin_ = 0;
  size_t bytes_ = 0;
  std::vector<part> parts_;
};

}  // namespace warpheap::cuda
