# SPDX-License-Identifier: Apache-2.0
# Runs a vcpkg port without vcpkg: the functions that it calls do here what vcpkg's do, for a port of one CMake project.
#
#   cmake -D PORT_DIR=… -D WORK=… -P vcpkg_stand_in.cmake
#
# PORT_DIR has portfile.cmake and what belongs to it. The package is left in WORK/package.

cmake_policy(VERSION 3.25)
set(PORT warpheap)
set(CURRENT_PACKAGES_DIR ${WORK}/package)

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(vcpkg_download_distfile out)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FILENAME;SHA512" "URLS")
  file(DOWNLOAD ${arg_URLS} ${WORK}/${arg_FILENAME} EXPECTED_HASH SHA512=${arg_SHA512} STATUS status)
  list(POP_FRONT status code)
  if(code)
    message(FATAL_ERROR "${arg_URLS}: ${status}")
  endif()
  set(${out} ${WORK}/${arg_FILENAME} PARENT_SCOPE)
endfunction()

function(vcpkg_extract_source_archive out)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "ARCHIVE" "")
  file(ARCHIVE_EXTRACT INPUT ${arg_ARCHIVE} DESTINATION ${WORK}/source)
  file(GLOB folder ${WORK}/source/*) # the archive's one folder
  set(${out} ${folder} PARENT_SCOPE)
endfunction()

function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS")
  run(${CMAKE_COMMAND} -G Ninja -S ${arg_SOURCE_PATH} -B ${WORK}/build -D CMAKE_BUILD_TYPE=Release
      -D CMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR} -D CMAKE_INSTALL_LIBDIR=lib ${arg_OPTIONS})
endfunction()

function(vcpkg_cmake_install)
  run(${CMAKE_COMMAND} --build ${WORK}/build --target install)
endfunction()

# The config moves to share/PORT, and looks for the prefix two folders up.
function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "CONFIG_PATH" "")
  set(to ${CURRENT_PACKAGES_DIR}/share/${PORT})
  file(MAKE_DIRECTORY ${CURRENT_PACKAGES_DIR}/share)
  file(RENAME ${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH} ${to})
  set(up "get_filename_component(_IMPORT_PREFIX \"\${_IMPORT_PREFIX}\" PATH)\n")
  file(READ ${to}/${PORT}-targets.cmake text)
  string(REPLACE "${up}${up}${up}" "${up}${up}" text "${text}")
  file(WRITE ${to}/${PORT}-targets.cmake "${text}")
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
  file(INSTALL ${arg_FILE_LIST} DESTINATION ${CURRENT_PACKAGES_DIR}/share/${PORT} RENAME copyright)
endfunction()

file(REMOVE_RECURSE ${WORK})
include(${PORT_DIR}/portfile.cmake)

# What vcpkg refuses in the package of headers.
foreach(missing include/warpheap/warpheap.hpp share/warpheap/copyright share/warpheap/usage)
  if(NOT EXISTS ${CURRENT_PACKAGES_DIR}/${missing})
    message(FATAL_ERROR "the package has no ${missing}")
  endif()
endforeach()
foreach(wrong lib debug bin)
  if(EXISTS ${CURRENT_PACKAGES_DIR}/${wrong})
    message(FATAL_ERROR "a package of headers has a folder ${wrong}")
  endif()
endforeach()
