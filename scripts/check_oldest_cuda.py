#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles every device function with NVRTC of the oldest CUDA that Warpheap works with, and sees the one before refused.

NVRTC is the part of an old CUDA that PyPI has: the same front end and ptxas as nvcc's, without the driver and the host's
side. Nothing is optimised, which takes a tenth of the time; ptxas still reads every instruction.
"""

import ctypes
import pathlib
import sys
import tempfile

import compilers

OLDEST, TOO_OLD = "nvidia-cuda-nvrtc-cu12==12.0.76", "nvidia-cuda-nvrtc-cu11==11.8.89"
ARCHITECTURES = ["sm_75", "sm_90"]  # the oldest and the newest that it has
SOURCE = compilers.ROOT / "tests" / "compile" / "public_api.cu"


def text_of(library, program, getter):
    """A text that NVRTC has of a program, by the name of the function that gets it."""
    size = ctypes.c_size_t()
    getattr(library, getter + "Size")(program, ctypes.byref(size))
    said = ctypes.create_string_buffer(size.value + 1)
    getattr(library, getter)(program, said)
    return said.value.decode().strip()


def compile_with(library, text, options, getter="nvrtcGetProgramLog"):
    """Returns (succeeded, what `getter` gets); of a failure what NVRTC said."""
    program = ctypes.c_void_p()
    if library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"source.cu", 0, None, None) != 0:
        return False, "NVRTC made no program"
    words = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    good = library.nvrtcCompileProgram(program, len(options), words) == 0
    said = text_of(library, program, getter if good else "nvrtcGetProgramLog")
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return good, said


def compile_everywhere(library, text):
    """Whether `text` compiles for each architecture. Prints what happened."""
    good = True
    for architecture in ARCHITECTURES:
        options = [f"--gpu-architecture={architecture}", "--std=c++20", "--device-debug"]
        done, said = compile_with(library, text, [*options, f"--include-path={compilers.ROOT}/include"])
        print(f"{OLDEST} {architecture} {'compiled' if done else 'FAILED'}" + ("" if done else f"\n{said[:4000]}"))
        good = good and done
    return good


def refuses(name, library, options, remedy):
    """Whether the one line that NVRTC says of the public interface is the remedy."""
    good, said = compile_with(library, SOURCE.read_text(), [*options, f"--include-path={compilers.ROOT}/include"])
    right = not good and remedy in said.splitlines()[0] and "1 catastrophic error" in said
    print(f"{name} " + ("is refused in one line" if right else f"is not refused as it should be:\n{said[:4000]}"))
    return right


def self_test(oldest):
    """What only a newer front end knows, and what only a newer ptxas does, must fail; a kernel must not."""
    kernel = "__global__ void kernel(unsigned* out, float in) {{ {} }}\n"
    planted = {
        "*out = __builtin_bit_cast(unsigned, in);": False,
        'asm volatile("fence.release.gpu;" ::: "memory");': False,
        "*out = __float_as_uint(in);": True,
    }
    wrong = [body for body, good in planted.items() if compile_everywhere(oldest, kernel.format(body)) != good]
    print(f"judged wrongly: {wrong}" if wrong else "judged all planted kernels rightly")
    return 1 if wrong else 0


def main():
    options = compilers.arguments(__doc__).parse_args()
    wanted = [OLDEST] if options.self_test else [OLDEST, TOO_OLD]
    with tempfile.TemporaryDirectory() as directory:
        libraries = []
        for package in wanted:
            folder = pathlib.Path(directory) / package
            compilers.fetch_or_skip([package], folder)
            # builtins first: NVRTC finds them by name once they are loaded
            for part in sorted((folder / "nvidia" / "cuda_nvrtc" / "lib").glob("libnvrtc*.so*")):
                loaded = ctypes.CDLL(str(part))
            libraries.append(loaded)
        if options.self_test:
            return self_test(libraries[0])
        oldest, too_old = libraries
        judged = [
            compile_everywhere(oldest, SOURCE.read_text()),
            refuses("CUDA 11.8", too_old, ["--gpu-architecture=compute_75"], "Warpheap needs CUDA 12.0 or newer"),
            refuses("CUDA 12.0's own architecture", oldest, ["--std=c++20"], "compile with -arch=native or -arch=sm_75"),
        ]
        return 0 if all(judged) else 1


if __name__ == "__main__":
    sys.exit(main())
