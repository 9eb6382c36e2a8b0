# Configures and builds one consumer from nothing, as a user would, and runs it:
#
#   cmake -D SOURCE=… -D BUILD=… -D WORK=… -D KIND=find_package|fetch_content|cuda -P consume.cmake
#
# SOURCE is Warpheap's source, BUILD a build of it to install from, WORK a folder to work in. The CUDA consumer is compiled
# and not run.

cmake_policy(VERSION 3.25)

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT RESULT_VARIABLE status)
  if(status)
    message(FATAL_ERROR "${KIND}: failed")
  endif()
endfunction()

if(KIND STREQUAL "cuda")
  set(NVCC $ENV{CUDACXX})
  find_program(NVCC nvcc PATHS /usr/local/cuda/bin)
  if(NOT NVCC)
    message("SKIP: no nvcc, so no CUDA consumer was compiled")
    return()
  endif()
endif()

file(REMOVE_RECURSE ${WORK})
set(arguments -G Ninja -D CMAKE_BUILD_TYPE=Release)
if(KIND STREQUAL "fetch_content")
  list(APPEND arguments -D WARPHEAP_SOURCE_DIR=${SOURCE})
else()
  run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix --component Development)
  list(APPEND arguments -D CMAKE_PREFIX_PATH=${WORK}/prefix)
endif()
if(KIND STREQUAL "cuda")
  list(APPEND arguments -D CMAKE_CUDA_COMPILER=${NVCC} -D CMAKE_CUDA_ARCHITECTURES=90)
endif()

run(${CMAKE_COMMAND} -S ${SOURCE}/tests/package/${KIND} -B ${WORK}/build ${arguments})
run(${CMAKE_COMMAND} --build ${WORK}/build)
if(NOT KIND STREQUAL "cuda")
  run(${WORK}/build/consumer)
endif()
