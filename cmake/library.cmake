# SPDX-License-Identifier: Apache-2.0
# The target warpheap::warpheap, and how it is installed.

set(Boost_USE_STATIC_LIBS ${PROJECT_IS_TOP_LEVEL}) # so that our own binaries run where Boost is not installed
find_package(Threads REQUIRED)
find_package(Boost 1.74 CONFIG QUIET GLOBAL COMPONENTS context) # fibers of the host backend; CUDA code needs none
if(NOT TARGET Boost::context AND (WARPHEAP_TESTS OR WARPHEAP_TOOL OR WARPHEAP_EXAMPLES OR WARPHEAP_BENCH))
  message(FATAL_ERROR "The host backend needs Boost.Context (Debian: libboost-context-dev)")
endif()

file(GLOB_RECURSE warpheap_headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} include/warpheap/*.hpp
     include/warpheap/*.cuh)

add_library(warpheap INTERFACE)
add_library(warpheap::warpheap ALIAS warpheap)
target_sources(
  warpheap
  INTERFACE FILE_SET HEADERS
            BASE_DIRS ${PROJECT_SOURCE_DIR}/include
            FILES ${warpheap_headers})
target_compile_features(warpheap INTERFACE cxx_std_20)
# The same for nvcc, by its flag: CMake 3.25 does not know that nvcc has C++20. Gives way to a later standard.
set(later_standard $<VERSION_GREATER:$<TARGET_PROPERTY:CUDA_STANDARD>,20>)
target_compile_options(warpheap INTERFACE $<$<AND:$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>,$<NOT:${later_standard}>>:-std=c++20>)
# A lane's large frame touches each of its pages, so that none reaches beyond the guard of its stack.
target_compile_options(
  warpheap INTERFACE $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU,Clang>,$<PLATFORM_ID:Linux>>:-fstack-clash-protection>)
# Those that the project has: one in CUDA alone has neither, and needs none. C++ alone is compiled with what Boost asks for.
foreach(property INCLUDE_DIRECTORIES COMPILE_DEFINITIONS)
  set(of_boost $<$<TARGET_EXISTS:Boost::context>:$<TARGET_PROPERTY:Boost::context,INTERFACE_${property}>>)
  set_property(TARGET warpheap APPEND PROPERTY INTERFACE_${property} $<$<COMPILE_LANGUAGE:CXX>:${of_boost}>)
endforeach()
target_link_libraries(warpheap INTERFACE $<LINK_ONLY:$<TARGET_NAME_IF_EXISTS:Boost::context>>
                                         $<TARGET_NAME_IF_EXISTS:Threads::Threads>)

include(CMakePackageConfigHelpers)
set(warpheap_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/warpheap)
install(TARGETS warpheap EXPORT warpheap FILE_SET HEADERS COMPONENT Development)
install(
  EXPORT warpheap
  NAMESPACE warpheap::
  FILE warpheap-targets.cmake
  DESTINATION ${warpheap_package_dir}
  COMPONENT Development)
configure_package_config_file(cmake/warpheap-config.cmake.in warpheap-config.cmake
                              INSTALL_DESTINATION ${warpheap_package_dir})
write_basic_package_version_file(warpheap-config-version.cmake COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
foreach(place ${CMAKE_INSTALL_DATADIR}/doc/warpheap ${CMAKE_INSTALL_INCLUDEDIR}/warpheap)
  install(FILES LICENSE DESTINATION ${place} COMPONENT Development)
endforeach()
install(
  FILES ${CMAKE_CURRENT_BINARY_DIR}/warpheap-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/warpheap-config-version.cmake
  DESTINATION ${warpheap_package_dir}
  COMPONENT Development)
