# SPDX-License-Identifier: Apache-2.0
# Makes a target a program over NVSHMEM, whose folder is WARPHEAP_NVSHMEM.

function(warpheap_use_nvshmem target)
  set_target_properties(${target} PROPERTIES CUDA_SEPARABLE_COMPILATION ON BUILD_RPATH ${WARPHEAP_NVSHMEM}/lib)
  target_include_directories(${target} SYSTEM PRIVATE ${WARPHEAP_NVSHMEM}/include)
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:-diag-suppress=3012,3013>")
  target_link_libraries(${target} PRIVATE CUDA::cuda_driver ${WARPHEAP_NVSHMEM}/lib/libnvshmem_device.a
                                          ${WARPHEAP_NVSHMEM}/lib/libnvshmem_host.so.3)
endfunction()
