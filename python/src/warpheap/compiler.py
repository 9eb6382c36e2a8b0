# SPDX-License-Identifier: Apache-2.0
"""Compiles the headers with the NVRTC that the program uses anyway, and keeps the results on disk.

The wheel holds no machine code: LTO-IR of a newer NVRTC is refused by an older linker. The key of a
result has a hash of the headers, NVRTC's full version, the options and the source. NVRTC does not say
which files it has read, so a result is kept only if these can be no others than the headers.
"""

import functools
import hashlib
import pathlib
import re
from collections.abc import Sequence
from typing import Any

from . import cache
from .allocators import HEADERS, type_of
from .errors import CompileError, CompilerTooOldError, NoCompilerError

OLDEST_NVRTC = (12, 0)
# Options that name no file, and the directives that name the package's headers.
_READS_NO_FILE = re.compile(
    r"--?(?:[DU]\w.*|std=.*|rdc=.*|(?:lineinfo|use_fast_math|default-device|G)|(?:ftz|fmad|maxrregcount)=.*)", re.DOTALL
)
_OF_HEADERS = re.compile(r"^[ \t]*#[ \t]*include[ \t]*<warpheap/[\w/]+\.hpp>", re.MULTILINE)
_FORMATS = {"ltoir": ("-dlto", "nvrtcGetLTOIR"), "ptx": (None, "nvrtcGetPTX"), "cubin": (None, "nvrtcGetCUBIN")}


def get_include() -> str:
    """The folder for an include path: `#include <warpheap/warpheap.hpp>` is found there."""
    return str(pathlib.Path(__file__).parent / "include")


@functools.cache
def headers_digest() -> str:
    """Changes whenever a header does: for the keys of other caches, which do not see headers."""
    folder, digest = pathlib.Path(get_include()), hashlib.sha256()
    for path in sorted(folder.rglob("*.hpp")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


@functools.cache
def _nvrtc() -> tuple[Any, tuple[int, int]]:
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


@functools.cache
def _full_version() -> str:
    """The version with its patch and build, which NVRTC says in PTX alone."""
    ptx = _compile(_nvrtc()[0], "", [], "nvrtcGetPTX")
    return ptx.partition(b"\n.version")[0].decode()


def compile(source: str, arch: str, format: str = "ltoir", options: Sequence[str] = ()) -> bytes:
    """CUDA C++ that may include <warpheap/warpheap.hpp>, compiled for `arch`, such as "sm_90".

    `format` is "ltoir", "ptx" or "cubin". A result that is on disk is read from there. Results of sources
    that include other files, and of options that may name some, such as -I, are not kept.
    """
    _check_text(source, "source")
    if not isinstance(format, str) or format not in _FORMATS:
        raise ValueError(f"no format is called {format!r}; there are: {', '.join(_FORMATS)}")
    if not isinstance(arch, str) or not re.fullmatch(r"sm_\d+[af]?", arch, re.ASCII):
        raise ValueError(f"{arch!r} is no architecture such as 'sm_90'")
    if isinstance(options, str):
        raise TypeError(f"options is {options!r}, and must be a sequence of strings")
    for word in options:
        _check_text(word, "option")
    flag, getter = _FORMATS[format]
    linked = not any(word.startswith("-rdc=") for word in options)
    words = ["--std=c++20", *(["-rdc=true"] if linked else []), f"-arch={arch}", *([flag] if flag else []), *options]
    nvrtc, _ = _nvrtc()
    key = hashlib.sha256("\0".join([headers_digest(), _full_version(), *words, format, source]).encode()).hexdigest()
    kept = f"{key}.{format}" if _reads_headers_alone(source, options) else None
    if kept and (result := cache.read(kept)) is not None:
        return result
    result = _compile(nvrtc, source, [*words, f"-I{get_include()}"], getter)
    if kept:
        cache.keep(kept, result)
    return result


def _check_text(text: object, what: str) -> None:
    if not isinstance(text, str):
        raise TypeError(f"{what} is {text!r}, and must be a string")
    if "\0" in text:
        raise ValueError(f"{what} has a NUL at {text.index(chr(0))}, at which the compiler would stop reading")
    try:
        text.encode()
    except UnicodeEncodeError as problem:
        raise ValueError(f"{what} has a character at {problem.start} that is none of Unicode: {text[problem.start]!r}") from None


def _reads_headers_alone(source: str, options: Sequence[str]) -> bool:
    """False if NVRTC may read another file than the package's headers."""
    rest = _OF_HEADERS.sub("", re.sub(r"\\[ \t]*\r?\n", "", source))
    return not re.search("include|embed|import", rest) and all(map(_READS_NO_FILE.fullmatch, options))


def compile_functions(arch: str, allocator: str = "slab_bitmap", prefix: str = "warpheap", format: str = "ltoir") -> bytes:
    """The C functions of an allocator, called `prefix`_malloc, `prefix`_free and so on, to be linked with kernels."""
    if not isinstance(prefix, str) or not re.fullmatch(r"[A-Za-z_]\w*", prefix, re.ASCII):
        raise ValueError(f"{prefix!r} cannot begin the name of a C function")
    source = (
        f"{HEADERS}#include <warpheap/heap/c_functions.hpp>\nWARPHEAP_C_FUNCTIONS({prefix}, {type_of(allocator)})\n"
    )
    return compile(source, arch, format)


def _compile(nvrtc: Any, source: str, options: list[str], getter: str) -> bytes:
    status, program = nvrtc.nvrtcCreateProgram(source.encode(), b"warpheap.cu", 0, [], [])
    if int(status):
        raise CompileError(f"nvrtcCreateProgram: {status}")
    try:
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [word.encode() for word in options])
        if int(status):
            log = _read(nvrtc, program, "nvrtcGetProgramLog").rstrip(b"\0 \n")
            raise CompileError(log.decode(errors="replace") or str(status))
        return _read(nvrtc, program, getter)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _read(nvrtc: Any, program: Any, getter: str) -> bytes:
    status, size = getattr(nvrtc, getter + "Size")(program)
    if int(status):
        raise CompileError(f"{getter}Size: {status}")
    buffer = bytes(int(size))
    (status,) = getattr(nvrtc, getter)(program, buffer)
    if int(status):
        raise CompileError(f"{getter}: {status}")
    return buffer
