#!/usr/bin/env python3
"""Prints how long g++ takes to compile a source that includes only warpheap/warpheap.hpp: the library's price to a user.

Fails only if it does not compile: times of a machine under load prove nothing.
"""

import sys
import tempfile

import compilers

with tempfile.NamedTemporaryFile("w", suffix=".cpp") as source:
    source.write("#include <warpheap/warpheap.hpp>\n")
    source.flush()
    times = []
    for _ in range(3):
        good, said, seconds = compilers.compile([*compilers.GXX, "-O2", "-c", "-o", "/dev/null", source.name])
        if not good:
            sys.exit(said)
        times.append(seconds)
print(f"g++ -O2 compiles #include <warpheap/warpheap.hpp> in {min(times):.2f} s (fastest of {len(times)})")
