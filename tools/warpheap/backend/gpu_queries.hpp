// SPDX-License-Identifier: Apache-2.0
// What a backend on GPUs tells of them and of their software.
#pragma once

#include <cuda_runtime_api.h>

#include "backend.hpp"
#include "warpheap/platform/simt.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND {

inline std::vector<device> gpus() {
  int count = 0;
  cuda_backend::throw_on_error(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  std::vector<device> made;
  made.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties;
    cuda_backend::throw_on_error(cudaGetDeviceProperties(&properties, i), "cudaGetDeviceProperties");
    made.push_back({properties.name, properties.totalGlobalMem, static_cast<u32>(properties.multiProcessorCount),
                    std::to_string(properties.major) + "." + std::to_string(properties.minor)});
  }
  return made;
}

/// Of the current one, in bytes.
inline u64 free_gpu_memory() {
  size_t free = 0, total = 0;
  cuda_backend::throw_on_error(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return free;
}

inline std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

inline std::string cuda_driver_version() {
  int version = 0;
  cuda_backend::throw_on_error(cudaDriverGetVersion(&version), "cudaDriverGetVersion");
  return version_text(version);
}

inline std::string cuda_runtime_version() {
  int version = 0;
  cuda_backend::throw_on_error(cudaRuntimeGetVersion(&version), "cudaRuntimeGetVersion");
  return version_text(version);
}

}}  // namespace warpheap::tool::WARPHEAP_BACKEND
