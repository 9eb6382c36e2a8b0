"""Compiles the headers with the NVRTC that the program uses anyway, and keeps the results on disk.

The wheel holds no machine code: LTO-IR of a newer NVRTC is refused by an older linker. The key of a
result has a hash of the headers, NVRTC's version, the options and the source.
"""

import functools
import hashlib
import os
import pathlib
import re
import tempfile
from collections.abc import Sequence

from .allocators import HEADERS, type_of
from .errors import CompileError, CompilerTooOldError, NoCompilerError

OLDEST_NVRTC = (12, 0)
_FORMATS = {"ltoir": ("-dlto", "nvrtcGetLTOIR"), "ptx": (None, "nvrtcGetPTX"), "cubin": (None, "nvrtcGetCUBIN")}


def get_include() -> str:
    """The folder for an include path: `#include <warpheap/warpheap.hpp>` is found there."""
    return str(pathlib.Path(__file__).parent / "include")


def cache_folder() -> pathlib.Path:
    """Where results are kept: WARPHEAP_CACHE_DIR, else warpheap/ in the user's cache."""
    if named := os.environ.get("WARPHEAP_CACHE_DIR"):
        return pathlib.Path(named)
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "warpheap"


@functools.cache
def headers_digest() -> str:
    """Changes whenever a header does: for the keys of other caches, which do not see headers."""
    folder, digest = pathlib.Path(get_include()), hashlib.sha256()
    for path in sorted(folder.rglob("*.hpp")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


@functools.cache
def _nvrtc():
    remedy = "install warpheap[cu13] or warpheap[cu12], whichever fits the driver"
    try:
        from cuda.bindings import nvrtc

        status, major, minor = nvrtc.nvrtcVersion()
    except Exception as problem:  # the loader has errors of its own, of several kinds
        raise NoCompilerError(f"NVRTC cannot be loaded ({problem}): {remedy}") from problem
    if int(status):
        raise NoCompilerError(f"NVRTC does not say its version (error {int(status)}): {remedy}")
    check_version((major, minor))
    return nvrtc, (major, minor)


def check_version(version: tuple[int, int]) -> None:
    """Raises CompilerTooOldError for an NVRTC that the headers cannot be compiled with."""
    if version < OLDEST_NVRTC:
        found, needed = (".".join(map(str, pair)) for pair in (version, OLDEST_NVRTC))
        raise CompilerTooOldError(f"NVRTC {found} is too old: Warpheap needs {needed} or newer")


def nvrtc_version() -> tuple[int, int]:
    """Major and minor version of the NVRTC that is used."""
    return _nvrtc()[1]


def compile(source: str, arch: str, format: str = "ltoir", options: Sequence[str] = ()) -> bytes:
    """CUDA C++ that may include <warpheap/warpheap.hpp>, compiled for `arch`, such as "sm_90".

    `format` is "ltoir", "ptx" or "cubin". A result that is on disk is read from there.
    """
    if format not in _FORMATS:
        raise ValueError(f"no format is called {format!r}; there are: {', '.join(_FORMATS)}")
    if not re.fullmatch(r"sm_\d+[af]?", arch):
        raise ValueError(f"{arch!r} is no architecture such as 'sm_90'")
    flag, getter = _FORMATS[format]
    linked = not any(word.startswith("-rdc=") for word in options)
    words = ["--std=c++20", *(["-rdc=true"] if linked else []), f"-arch={arch}", *([flag] if flag else []), *options]
    nvrtc, version = _nvrtc()
    key = hashlib.sha256("\0".join([headers_digest(), str(version), *words, format, source]).encode()).hexdigest()
    kept = cache_folder() / f"{key}.{format}"
    try:
        return kept.read_bytes()
    except OSError:
        pass
    result = _compile(nvrtc, source, [*words, f"-I{get_include()}"], getter)
    _keep(kept, result)
    return result


def compile_functions(arch: str, allocator: str = "slab_bitmap", prefix: str = "warpheap", format: str = "ltoir") -> bytes:
    """The C functions of an allocator, called `prefix`_malloc, `prefix`_free and so on, to be linked with kernels."""
    if not re.fullmatch(r"[A-Za-z_]\w*", prefix):
        raise ValueError(f"{prefix!r} cannot begin the name of a C function")
    source = (
        f"{HEADERS}#include <warpheap/heap/c_functions.hpp>\nWARPHEAP_C_FUNCTIONS({prefix}, {type_of(allocator)})\n"
    )
    return compile(source, arch, format)


def _compile(nvrtc, source: str, options: list[str], getter: str) -> bytes:
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"warpheap.cu", 0, [], [])
    try:
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [word.encode() for word in options])
        if int(status):
            raise CompileError(_read(nvrtc, program, "nvrtcGetProgramLog").rstrip(b"\0 \n").decode() or str(status))
        return _read(nvrtc, program, getter)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _read(nvrtc, program, getter: str) -> bytes:
    status, size = getattr(nvrtc, getter + "Size")(program)
    if int(status):
        raise CompileError(f"{getter}Size: {status}")
    buffer = b" " * size
    (status,) = getattr(nvrtc, getter)(program, buffer)
    if int(status):
        raise CompileError(f"{getter}: {status}")
    return buffer


def _keep(path: pathlib.Path, result: bytes) -> None:
    """Writes under another name first, so that no reader sees half of it. A cache that cannot be written is none."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(result)
        os.replace(file.name, path)
    except OSError:
        pass
