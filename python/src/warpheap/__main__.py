"""`python -m warpheap`: what was found, and whether the functions of every allocator compile."""

import sys
import time

import warpheap

from . import compiler


def main() -> int:
    print(f"warpheap {warpheap.__version__}, headers in {warpheap.get_include()}")
    print(f"cache: {compiler.cache_folder()}")
    try:
        print("NVRTC", ".".join(map(str, compiler.nvrtc_version())))
        for name in warpheap.allocators:
            began = time.perf_counter()
            size = len(warpheap.compile_functions("sm_90", name))
            print(f"{name}: {size} bytes of LTO-IR for sm_90 in {time.perf_counter() - began:.2f} s")
    except warpheap.WarpheapError as problem:
        print(f"warpheap: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
