#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds and installs the archive for the architectures named, 90 if there is none, and uses it as a program does that has nothing
else of Warpheap.

  each cubin, and the PTX compiled, has all names, and no function of CUDA's own allocator
  override.N2: no function that the names call, directly or not, uses more than 32 registers
  two units of C++11 that are linked with libwarpheap_device.a share one malloc and one variable
  LTO-IR links to such a unit, where CUDA's libnvJitLink is
  libwarpheap_host.so shows the functions of warpheap.h and no other name, and refuses wrong arguments, and to work without a GPU
  examples/26_c_archive compiles with gcc -std=c99 and nvcc -std=c++11, and says what a variable in its environment lacks
"""

import contextlib
import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import check_override
import compilers
import cubins

CALLED = check_override.CALLED_BY_OTHERS | {"calloc", "realloc", "aligned_alloc", "malloc_usable_size"}
NAMES = CALLED | {f"warpheap_device_{name}" for name in ("malloc", "free", "calloc", "realloc", "aligned_alloc", "usable_size")}
BINDING = "warpheap_device_heap"
EXAMPLE = compilers.ROOT / "examples" / "26_c_archive"
ERRORS = compilers.ROOT / "tests" / "archive" / "errors.c"
USER = """__global__ void kernel_NUMBER(void** blocks) {
  blocks[0] = malloc(10);
  blocks[1] = new int[4];
  free(blocks[2]);
}
void launch_NUMBER(void** blocks) { kernel_NUMBER<<<1, 1>>>(blocks); }  // else the linker drops the kernel
"""


def run(*command, env=None, cwd=None):
    """What a command says. Raises compilers.Failed."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=env, cwd=cwd)
    if done.returncode:
        raise compilers.Failed(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


@contextlib.contextmanager
def installed(architectures):
    """The folder into which the archive was installed."""
    with tempfile.TemporaryDirectory() as directory:
        yield compilers.install_archive(pathlib.Path(directory), architectures)


def judge(cubin, names):
    """What is wrong with machine code that has these names of the archive."""
    bindings = [symbol for symbol in cubin.symbols if symbol["name"] == BINDING and symbol["section"] != 0]
    wrong = [] if len(bindings) == 1 else [f"has {len(bindings)} variables {BINDING}"]
    return wrong + check_override.cudas_own(cubin) + check_override.above_limit(cubin, names)


def ptx_as(prefix, arch, to):
    ptx, = (prefix / "lib" / "warpheap").glob("*.ptx")
    run("ptxas", f"-arch=sm_{arch}", "-c", ptx, "-o", to)
    return cubins.Cubin(to)


def linked_units(prefix, nvcc, arch, work):
    """Two units of C++11, linked with the archive by nvcc."""
    objects = []
    for number in ("1", "2"):
        source = work / f"unit{number}.cu"
        source.write_text(USER.replace("NUMBER", number))
        objects.append(work / f"unit{number}.o")
        run(nvcc, "-std=c++11", "-rdc=true", f"-arch=sm_{arch}", "-c", source, "-o", objects[-1])
    run(nvcc, f"-arch=sm_{arch}", "-dlink", "-cubin", *objects, f"-L{prefix}/lib", "-lwarpheap_device", "-o", work / "linked.cubin")
    return cubins.Cubin(work / "linked.cubin")


def lto_faults(prefix, nvcc, arch, work):
    """What is wrong with a unit of C++11 that libnvJitLink links with the archive's LTO-IR."""
    library = pathlib.Path(nvcc).resolve().parent.parent / "lib64" / "libnvJitLink.so"
    if not library.exists():
        return []
    run(nvcc, "-std=c++11", "-dc", "-dlto", "-ltoir", f"-arch=lto_{arch}", work / "unit1.cu", "-o", work / "unit1.ltoir")
    linker = ctypes.CDLL(str(library))
    handle, ltoir = ctypes.c_void_p(), 3  # NVJITLINK_INPUT_LTOIR
    options = (ctypes.c_char_p * 2)(f"-arch=sm_{arch}".encode(), b"-lto")
    status = linker.nvJitLinkCreate(ctypes.byref(handle), 2, options)
    for file in (work / "unit1.ltoir", prefix / "lib" / "warpheap" / f"device_lto_{arch}.ltoir"):
        status = status or linker.nvJitLinkAddFile(handle, ltoir, str(file).encode())
    status = status or linker.nvJitLinkComplete(handle)
    size = ctypes.c_size_t()
    status = status or linker.nvJitLinkGetLinkedCubinSize(handle, ctypes.byref(size))
    if status:
        return [f"sm_{arch}: libnvJitLink does not link the LTO-IR: status {status}"]
    image = ctypes.create_string_buffer(size.value)
    linker.nvJitLinkGetLinkedCubin(handle, image)
    linker.nvJitLinkDestroy(ctypes.byref(handle))
    (work / "lto.cubin").write_bytes(image.raw)
    return [f"sm_{arch} LTO: {fault}" for fault in judge(cubins.Cubin(work / "lto.cubin"), set())]


def host_faults(prefix):
    """Names that libwarpheap_host.so shows and the header does not have, and the other way round."""
    declared = set(re.findall(r"WARPHEAP_API [^;]*?\b(warpheap_\w+)\(", (prefix / "include" / "warpheap.h").read_text()))
    declared |= {"warpheap_enter_unit", "warpheap_leave_unit"}
    symbols = run("nm", "-D", "--defined-only", prefix / "lib" / "libwarpheap_host.so")
    shown = {line.split()[-1] for line in symbols.splitlines()}
    return [f"libwarpheap_host.so: {name} is in the library or in the header, and not in both" for name in sorted(declared ^ shown)]


def error_faults(prefix, work):
    """What tests/archive/errors.c finds wrong where no GPU is seen."""
    strict = ["-std=c99", "-Wall", "-Wextra", "-Werror"]
    run("gcc", *strict, f"-I{prefix}/include", ERRORS, f"-L{prefix}/lib", "-lwarpheap_host", "-o", work / "errors")
    hidden = {**os.environ, "LD_LIBRARY_PATH": f"{prefix}/lib", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([work / "errors"], env=hidden, capture_output=True, text=True)
    return [f"errors.c: status {done.returncode}\n{done.stdout}{done.stderr}"] if done.returncode else []


def example_faults(prefix, nvcc, arch, work):
    """What is wrong with the example, built and run from the installed files alone."""
    for file in EXAMPLE.iterdir():
        shutil.copy(file, work)
    run("gcc", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{prefix}/include", "-c", "main.c", cwd=work)
    run("g++", "-std=c++11", "-Wall", "-Wextra", "-Werror", f"-I{prefix}/include", "-x", "c++", "-fsyntax-only", "main.c", cwd=work)
    run(nvcc, "-std=c++11", "-rdc=true", f"-arch=sm_{arch}", "-c", "lists.cu", cwd=work)
    for host in ("-l:libwarpheap_host.a", "-lwarpheap_host"):
        run(nvcc, f"-arch=sm_{arch}", "lists.o", "main.o", f"-L{prefix}/lib", "-lwarpheap_device", host, "-o", "lists", cwd=work)
        environment = {**os.environ, "LD_LIBRARY_PATH": f"{prefix}/lib"}
        run(work / "lists", env=environment)
    done = subprocess.run([work / "lists"], env={**environment, "WARPHEAP_SIZE": "2X"}, capture_output=True, text=True)
    if done.returncode != 1 or "WARPHEAP_SIZE: '2X' is not a size" not in done.stderr:
        return [f"the example says nothing of a wrong variable: {done.returncode}, {done.stdout}{done.stderr}"]
    return []


def faults_of(nvcc, architectures):
    faults = []
    with installed(architectures) as prefix, tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        for arch in architectures:
            for what, cubin, names in [
                ("cubin", cubins.Cubin(prefix / "lib" / "warpheap" / f"device_sm_{arch}.cubin"), NAMES),
                ("PTX", ptx_as(prefix, arch, work / "ptx.cubin"), NAMES),
                ("linked", linked_units(prefix, nvcc, arch, work), check_override.CALLED_BY_OTHERS - {"__cuda_syscall_aligned_malloc"}),
            ]:
                faults += [f"sm_{arch} {what}: {fault}" for fault in judge(cubin, names)]
            faults += lto_faults(prefix, nvcc, arch, work)
        faults += host_faults(prefix) + error_faults(prefix, work) + example_faults(prefix, nvcc, architectures[-1], work)
    return faults


def negative_test(nvcc):
    """device.cu with faults: a function without its bound of registers, one that is missing, and no variable."""
    wrong = []
    for part, was, becomes, fault in [
        ("include/warpheap/platform/types.hpp", "__attribute__((local_maxnreg(32)))", "", "malloc uses "),
        ("archive/device.cu", "void* realloc(void* memory, std", "void* reallocate(void* memory, std", "lacks ['realloc'"),
        ("archive/device.cu", '__device__ warpheap::archive::binding warpheap_device_heap',
         '__device__ warpheap::archive::binding archive_heap', f"has 0 variables {BINDING}"),
    ]:
        texts = {name: (compilers.ROOT / name).read_text() for name in compilers.tracked("include/*") + compilers.tracked("archive/*")}
        if was not in texts[part]:
            raise ValueError(f"{part} has no {was}: inject another fault")
        texts[part] = texts[part].replace(was, becomes)
        if "reallocate" in becomes:
            texts[part] = texts[part].replace("return realloc(", "return reallocate(")
        if "archive_heap" in becomes:
            texts[part] = texts[part].replace("warpheap_device_heap", "archive_heap")
        with compilers.folder_of(texts) as folder:
            cubin = folder / "device.cubin"
            source = folder / "archive" / "device.cu"
            run(nvcc, "-std=c++20", f"-I{folder}/include", "-rdc=true", "-cubin", "-arch=sm_90", source, "-o", cubin)
            said = "\n".join(judge(cubins.Cubin(cubin), NAMES))
        wrong += [] if fault in said else [f"judged wrongly: not {fault}\n{said}"]
    return wrong


def main():
    parser = compilers.arguments(__doc__)
    parser.add_argument("architectures", nargs="*", help="like 75 or 90")
    options = parser.parse_args()
    nvcc = compilers.nvcc_or_skip("the archive")[0]
    os.environ["PATH"] += os.pathsep + str(pathlib.Path(nvcc).parent)
    architectures = options.architectures or ["90"]
    try:
        faults = negative_test(nvcc) if options.self_test else faults_of(nvcc, architectures)
    except compilers.Failed as failure:
        faults = [f"FAILED: {failure}"]
    none = "judged all planted faults rightly" if options.self_test else f"the archive for {', '.join(architectures)} serves C99 and C++11"
    print("\n".join(faults) or none)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
