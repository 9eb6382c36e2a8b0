# SPDX-License-Identifier: Apache-2.0
"""Strings whose results are allocated by malloc in device functions of CUDA C++, called from a Numba kernel.

Nothing of the kernel or the functions names a heap of ours. Linked with replace_malloc(), malloc is
that of our heap. Without it (--cuda-heap) it is CUDA's, whose memory is 8 MB unless a program asks for
more before its first kernel, and most rows get no result.
"""

import argparse

import numpy
import warpheap
import warpheap.numba
from numba import cuda, types

SOURCE = """
typedef unsigned long long size;
__device__ size length(char const* text) { size n = 0; while (text[n]) ++n; return n; }

extern "C" __device__ long long string_upper(long long text) {
  char const* const from = (char const*)text;
  if (!from) return 0;
  size const n = length(from);
  char* const made = (char*)malloc(n + 1);
  if (made) for (size i = 0; i <= n; ++i) made[i] = from[i] >= 'a' && from[i] <= 'z' ? from[i] - 32 : from[i];
  return (long long)made;
}

extern "C" __device__ long long string_concat(long long left, long long right) {
  char const *const first = (char const*)left, *const second = (char const*)right;
  if (!first || !second) return 0;
  size const n = length(first), m = length(second);
  char* const made = (char*)malloc(n + m + 1);
  if (made) for (size i = 0; i <= n + m; ++i) made[i] = i < n ? first[i] : second[i - n];
  return (long long)made;
}

extern "C" __device__ int string_free(long long text) { free((void*)text); return 0; }
"""
ROW_BYTES = 128


def kernel_linked_with(*more):
    link = [cuda.CUSource(SOURCE, name="strings.cu"), *more]
    upper = cuda.declare_device("string_upper", types.int64(types.int64), abi="c", link=link)
    concat = cuda.declare_device("string_concat", types.int64(types.int64, types.int64), abi="c")
    free = cuda.declare_device("string_free", types.int32(types.int64), abi="c")

    @cuda.jit
    def kernel(texts, results):
        i = cuda.grid(1)
        if i < results.size:
            row = texts + i * ROW_BYTES
            large = upper(row)
            results[i] = concat(large, row)
            free(large)

    return kernel


@cuda.jit
def count(results, texts, found):
    """Counts the results that are there, and of these the wrong ones."""
    i = cuda.grid(1)
    if i >= results.size or results[i] == 0:
        return
    cuda.atomic.add(found, 0, 1)
    text = warpheap.numba.array(results[i], 2 * ROW_BYTES - 1, numpy.uint8)
    n = ROW_BYTES - 1
    for at in range(n):
        if text[at] != texts[i, at] - 32 or text[n + at] != texts[i, at]:
            cuda.atomic.add(found, 1, 1)
            break


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1 << 20)
    parser.add_argument("--cuda-heap", action="store_true", help="CUDA's malloc, as it is")
    options = parser.parse_args()
    letters = numpy.random.default_rng(1).integers(ord("a"), ord("z") + 1, (options.rows, ROW_BYTES), numpy.uint8)
    letters[:, -1] = 0
    texts, results = cuda.to_device(letters), cuda.to_device(numpy.zeros(options.rows, numpy.int64))
    found, blocks = cuda.to_device(numpy.zeros(2, numpy.int64)), (options.rows + 255) // 256
    with warpheap.Heap(1 << 30) as heap:
        kernel = kernel_linked_with(*([] if options.cuda_heap else warpheap.numba.replace_malloc(heap)))
        kernel[blocks, 256](texts.__cuda_array_interface__["data"][0], results)
        count[blocks, 256](results, texts, found)
        there, wrong = found.copy_to_host()
    print(f"{there} of {options.rows} rows have a result, {wrong} of them a wrong one")


if __name__ == "__main__":
    main()
