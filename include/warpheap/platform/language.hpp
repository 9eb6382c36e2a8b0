// SPDX-License-Identifier: Apache-2.0
// What Warpheap needs of the compiler, checked before any code that an older one cannot parse, so
// that the error is one line. types.hpp includes this file first, so every header does. After an
// #error alone a compiler would go on to print a page about `concept`; it stops at an #include of a
// file that does not exist.
#pragma once

// CUDA's version, 1208 for 12.8, where this is compiled as CUDA. Under Clang it is the version of
// the toolkit that Clang found.
#if defined(__CUDACC_VER_MAJOR__)
#define WARPHEAP_CUDA_VERSION (__CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__)
#elif defined(__CUDACC__) && defined(CUDA_VERSION)
#define WARPHEAP_CUDA_VERSION (CUDA_VERSION / 1000 * 100 + CUDA_VERSION % 1000 / 10)
#endif

#if defined(WARPHEAP_CUDA_VERSION) && WARPHEAP_CUDA_VERSION < 1200
#error Warpheap needs CUDA 12.0 or newer
#include <compilation_stops_here>
#elif __cplusplus < 202002L
#error Warpheap needs C++20: compile with -std=c++20 (g++ 12 or newer, CUDA 12.0 or newer)
#include <compilation_stops_here>
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 750
#error Warpheap needs a GPU of compute capability 7.5 or newer: compile with -arch=native or -arch=sm_75
#include <compilation_stops_here>
#elif !defined(__CUDACC_RTC__) && !defined(__CUDA_ARCH__) && !defined(__cpp_exceptions)
#error Warpheap needs C++ exceptions on the host: compile without -fno-exceptions
#include <compilation_stops_here>
#endif
