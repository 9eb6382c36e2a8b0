#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints how long g++ takes to compile a source that includes only warpheap/warpheap.hpp: the library's price to a user.

Of processor time, which a busy machine changes less than the clock's. Fails only if it does not compile.
"""

import resource
import sys
import tempfile

import compilers


def processor_seconds():
    """Of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


with tempfile.NamedTemporaryFile("w", suffix=".cpp") as source:
    source.write("#include <warpheap/warpheap.hpp>\n")
    source.flush()
    times = []
    for _ in range(3):
        began = processor_seconds()
        good, said, _ = compilers.compile([*compilers.GXX, "-O2", "-c", "-o", "/dev/null", source.name])
        if not good:
            sys.exit(said)
        times.append(processor_seconds() - began)
print(f"g++ -O2 compiles #include <warpheap/warpheap.hpp> in {min(times):.2f} s of processor time (fastest of {len(times)})")
