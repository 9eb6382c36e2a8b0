# SPDX-License-Identifier: Apache-2.0
# What only Warpheap's own build needs: where binaries go, warnings, CUDA and sanitizers.

set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)

if(WARPHEAP_CUDA)
  # A GPU of this machine if it has one, else one architecture: a build for several takes as many times longer.
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
    execute_process(COMMAND nvidia-smi -L RESULT_VARIABLE no_gpu OUTPUT_QUIET ERROR_QUIET)
    if(no_gpu)
      set(CMAKE_CUDA_ARCHITECTURES 90-real)
    else()
      set(CMAKE_CUDA_ARCHITECTURES native)
    endif()
  endif()
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  enable_language(CUDA)
  find_package(CUDAToolkit 13.0 REQUIRED)
  # Binaries travel to a machine with a GPU, which need not have this compiler's libraries. Of those, and of CUDA's
  # runtime, each takes what it calls.
  add_link_options(-static-libstdc++ -static-libgcc -Wl,--gc-sections)
endif()

add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra>" "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>")

# Gives every test and example its assertions, and takes the time of -O2 off the compiler.
add_library(warpheap_checked INTERFACE)
target_compile_options(
  warpheap_checked INTERFACE -UNDEBUG "$<$<COMPILE_LANGUAGE:CXX>:-O1>" "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-O1>")
target_link_libraries(warpheap_checked INTERFACE warpheap::warpheap)

# Compiles the given sources as CUDA where WARPHEAP_CUDA is on. For the calling directory, as properties of sources are.
function(warpheap_compile_as_cuda)
  if(WARPHEAP_CUDA)
    set_source_files_properties(${ARGN} PROPERTIES LANGUAGE CUDA)
  endif()
endfunction()

# Drops from the list `name` the sources under a host/ folder where WARPHEAP_CUDA is on: the host build has them.
function(warpheap_drop_host_only name)
  if(WARPHEAP_CUDA)
    list(FILTER ${name} EXCLUDE REGEX "/host/")
    set(${name} "${${name}}" PARENT_SCOPE)
  endif()
endfunction()
