// SPDX-License-Identifier: Apache-2.0
// A module for the driver's functions: linked with the archive, or, with -DALONE, without a call of
// any allocator.
extern "C" __global__ void allocate(void** blocks, unsigned long long bytes) {
#ifdef ALONE
  blocks[threadIdx.x] = blocks + bytes;
#else
  blocks[threadIdx.x] = malloc(bytes);
#endif
}
