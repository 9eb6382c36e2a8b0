# SPDX-License-Identifier: Apache-2.0
# Configures and builds one consumer from nothing, as a user would, and runs it:
#
#   cmake -D SOURCE=… -D BUILD=… -D WORK=… -D KIND=… -P consume.cmake
#
# SOURCE is Warpheap's source, BUILD a build of it to install from, WORK a folder to work in. KIND is
# find_package, cuda, cuda_alone or tool. CUDA consumers are compiled and not run;
# `tool` installs everything, and looks for what belongs to the tool.

cmake_policy(VERSION 3.25)

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT RESULT_VARIABLE status)
  if(status)
    message(FATAL_ERROR "${KIND}: failed")
  endif()
endfunction()

if(KIND MATCHES "^cuda")
  set(NVCC $ENV{CUDACXX})
  find_program(NVCC nvcc PATHS /usr/local/cuda/bin)
  if(NOT NVCC)
    message("SKIP: no nvcc, so no CUDA consumer was compiled")
    return()
  endif()
endif()

file(REMOVE_RECURSE ${WORK})
if(KIND STREQUAL "tool")
  run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
  run(${WORK}/prefix/bin/warpheap --version)
  foreach(file share/bash-completion/completions/warpheap share/zsh/site-functions/_warpheap
               share/fish/vendor_completions.d/warpheap.fish share/man/man1/warpheap.1)
    file(READ ${WORK}/prefix/${file} contents)
    if(NOT contents MATCHES "warpheap" OR NOT contents MATCHES "drop.*self.*loops")
      message(FATAL_ERROR "tool: ${file} does not tell of an option")
    endif()
  endforeach()
  foreach(file include/warpheap/warpheap.hpp share/doc/warpheap/LICENSE include/warpheap/LICENSE)
    if(NOT EXISTS ${WORK}/prefix/${file})
      message(FATAL_ERROR "tool: ${file} was not installed")
    endif()
  endforeach()
  if(NOT EXISTS ${WORK}/prefix/share/warpheap/report/__main__.py)
    message(FATAL_ERROR "tool: the script that makes pages of results was not installed")
  endif()
  run(${WORK}/prefix/bin/warpheap report ${SOURCE}/bench/results/h200-burst.json --output ${WORK}/report.html)
  return()
endif()
set(arguments -G Ninja -D CMAKE_BUILD_TYPE=Release)
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix --component Development)
foreach(file share/doc/warpheap/LICENSE include/warpheap/LICENSE)
  if(NOT EXISTS ${WORK}/prefix/${file})
    message(FATAL_ERROR "${KIND}: ${file} was not installed")
  endif()
endforeach()
list(APPEND arguments -D CMAKE_PREFIX_PATH=${WORK}/prefix)
if(KIND MATCHES "^cuda")
  list(APPEND arguments -D CMAKE_CUDA_COMPILER=${NVCC} -D CMAKE_CUDA_ARCHITECTURES=90)
endif()
if(KIND STREQUAL "cuda_alone") # `cuda` has seen to it that the optimised program compiles
  list(APPEND arguments -D CMAKE_CUDA_FLAGS=--Ofast-compile=max)
endif()

run(${CMAKE_COMMAND} -S ${SOURCE}/tests/package/${KIND} -B ${WORK}/build ${arguments})
run(${CMAKE_COMMAND} --build ${WORK}/build)
if(NOT KIND MATCHES "^cuda")
  run(${WORK}/build/consumer)
endif()
if(KIND STREQUAL "cuda")
  run(${WORK}/build/on_host)
  file(STRINGS ${WORK}/build/compile_commands.json lines REGEX "nvcc.*([Bb]oost|BOOST)")
  if(lines)
    message(FATAL_ERROR "cuda: nvcc is given what Boost asks of C++: ${lines}")
  endif()
endif()
