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

# Compiles sources of a target together: those whose paths below ROOT begin with one of the given FAMILIES, each a regular
# expression. They are templates over the same heaps, which a compiler then makes once a family: half of its work. Names in them
# must differ. WARPHEAP_UNITY off compiles each source alone, which is quicker while one of them changes. A build always compiles
# CUDA sources alone; scripts/compile_device_code.py takes their families from the files that are written here.
option(WARPHEAP_UNITY "Compile sources that share templates together" ON)
function(warpheap_compile_together target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "ROOT" "SOURCES;FAMILIES")
  if(NOT WARPHEAP_UNITY)
    return()
  endif()
  foreach(source IN LISTS arg_SOURCES)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${arg_ROOT} OUTPUT_VARIABLE below)
    get_source_file_property(language ${source} LANGUAGE)
    foreach(family IN LISTS arg_FAMILIES)
      if(below MATCHES "^(${family})")
        string(MAKE_C_IDENTIFIER "${family}" name)
        if(language STREQUAL "CUDA")
          string(APPEND cuda_family_${name} "#include \"${source}\"\n")
        else()
          set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${name})
        endif()
      endif()
    endforeach()
  endforeach()
  foreach(family IN LISTS arg_FAMILIES)
    string(MAKE_C_IDENTIFIER "${family}" name)
    if(cuda_family_${name})
      file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.dir/Unity/unity_${name}_cu.cu
           CONTENT "${cuda_family_${name}}" @ONLY)
    endif()
  endforeach()
  set_target_properties(
    ${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP UNITY_BUILD_CODE_BEFORE_INCLUDE
                                                               "// NOLINTNEXTLINE(bugprone-suspicious-include)")
endfunction()
