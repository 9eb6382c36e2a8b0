// What Warpheap needs of the compiler, said in one line before anything that an older one would
// trip over. types.hpp includes it first, so every header does. An #error alone would be followed
// by a page about `concept`; compilers stop at an #include of a file that is not there.
#pragma once

// CUDA's version, 1208 for 12.8, where this is compiled as CUDA. Clang knows that of the toolkit it
// found.
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
#endif
