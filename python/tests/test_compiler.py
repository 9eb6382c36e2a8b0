# SPDX-License-Identifier: Apache-2.0
import os
import re
import subprocess
import sys

import pytest

import warpheap
from warpheap import cache, compiler
from warpheap.allocators import WITH_LIMIT
from warpheap.setup_kernels import setup_source


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("WARPHEAP_CACHE_DIR", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", [*warpheap.allocators, *WITH_LIMIT])
def test_functions_of_every_allocator_compile(name):
    ptx = warpheap.compile_functions("sm_80", name, prefix="other", format="ptx").decode()
    for function in ("malloc", "free", "calloc", "realloc", "aligned_alloc", "usable_size"):
        assert f"other_{function}" in ptx


@pytest.mark.parametrize("name", [*warpheap.allocators, *WITH_LIMIT])
def test_every_allocator_is_placed_by_a_kernel(name):
    kernels = warpheap.compile(setup_source(name), "sm_80", "ptx", ["-rdc=false"]).decode()
    for kernel in ("plan", "place", "initialize", "count"):
        assert f".entry warpheap_{kernel}" in kernels
    for kernel in ("extend", "note_added", "find_used_end", "decommit", "shrink"):
        assert (f".entry warpheap_{kernel}" in kernels) == (name in WITH_LIMIT)


def test_refused_calls_post_requests_where_the_pool_grows():
    """To the host: the store is for the whole system."""
    posts = {name: b"st.relaxed.sys" in warpheap.compile_functions("sm_80", name, format="ptx") for name in ("slab_bitmap", *WITH_LIMIT)}
    assert posts == {"slab_bitmap": False, "slab_bitmap_growing": True}


def test_the_functions_are_linked_by_the_names_of_the_c_interface():
    both = "#include <warpheap/allocator/scatter.hpp>\n#include <warpheap/heap/c_interface.hpp>\nWARPHEAP_C_FUNCTIONS(second, warpheap::scatter_allocator)\n"
    ptx = warpheap.compile(both, "sm_80", "ptx")
    assert b"warpheap_malloc" in ptx and b"second_malloc" in ptx


def test_a_result_is_read_from_the_cache(own_cache):
    first = warpheap.compile_functions("sm_80")
    (kept,) = own_cache.iterdir()
    cache.keep(kept.name, b"planted")
    assert first and warpheap.compile_functions("sm_80") == b"planted"
    assert warpheap.compile_functions("sm_90") != b"planted"
    kept.write_bytes(b"")
    assert warpheap.compile_functions("sm_80") == first, "and not what is left of a file"


def test_the_key_has_the_full_version_of_nvrtc(own_cache, monkeypatch):
    assert re.search(r"Build ID: .*\n.*V\d+\.\d+\.\d+", compiler._full_version())
    warpheap.compile("", "sm_80", "ptx")
    monkeypatch.setattr(compiler, "_full_version", lambda: "of another patch")
    warpheap.compile("", "sm_80", "ptx")
    assert len(os.listdir(own_cache)) == 2


MINE = "__global__ void k(int* out) { *out = VALUE; }\n"


@pytest.mark.parametrize(
    ("begin", "options"),
    [
        ('#include "mine.h"\n', ["-I{}"]),
        ('#include "mine.h"\n', ["--include-path={}"]),
        ('#include "mine.h"\n', ["-I", "{}"]),
        ('#include "{}/mine.h"\n', []),
        ('#inc\\\nlude "{}/mine.h"\n', []),
        ('#define FILE "{}/mine.h"\n%:include FILE\n', []),
        ("#include <warpheap/../mine.h>\n", ["-I{}"]),
        ("#include <warpheap/mine.hpp>\n", ["-I{}"]),
        ("", ["-include={}/mine.h"]),
        ("", ["--pre-include={}/mine.h"]),
        ("#include <warpheap/version.hpp>\n", ["-I{}"]),
        ('#include "mine.h"\n', []),
    ],
)
def test_a_result_with_files_of_others_is_not_kept(own_cache, tmp_path_factory, monkeypatch, begin, options):
    """Theirs may change, and NVRTC does not say which files it has read."""
    folder = tmp_path_factory.mktemp("mine")
    monkeypatch.chdir(folder)
    (folder / "warpheap").mkdir()
    for value in (1111, 2222):
        for name in ("mine.h", "warpheap/version.hpp", "warpheap/mine.hpp"):
            (folder / name).write_text(f"#define VALUE {value}\n")
        made = warpheap.compile(begin.format(folder) + MINE, "sm_80", "ptx", [word.format(folder) for word in options])
        assert str(value).encode() in made
    assert os.listdir(own_cache) == []


def test_a_result_of_the_headers_alone_is_kept(own_cache):
    source = "#include <warpheap/warpheap.hpp>\n  #  include <warpheap/heap/c_functions.hpp>\n" + MINE
    for options in (["-DVALUE=3"], ["-DVALUE=4", "-lineinfo", "--std=c++20", "-rdc=true"]):
        before = len(os.listdir(own_cache))
        for _ in range(2):
            warpheap.compile(source, "sm_80", "ptx", options)
        assert len(os.listdir(own_cache)) == before + 1


def test_a_cache_that_cannot_be_written_is_none(monkeypatch):
    monkeypatch.setenv("WARPHEAP_CACHE_DIR", "/dev/null/cache")
    assert warpheap.compile_functions("sm_80")


def test_errors_name_what_was_asked():
    with pytest.raises(warpheap.UnknownAllocatorError, match="'nosuch'.*slab_bitmap"):
        warpheap.compile_functions("sm_80", "nosuch")
    with pytest.raises(ValueError, match="'2x'"):
        warpheap.compile_functions("sm_80", prefix="2x")
    with pytest.raises(ValueError, match="'80'"):
        warpheap.compile("", "80")
    with pytest.raises(ValueError, match="'elf'"):
        warpheap.compile("", "sm_80", "elf")
    with pytest.raises(warpheap.CompileError, match="nosuch"):
        warpheap.compile("__device__ nosuch x;", "sm_80")
    with pytest.raises(warpheap.CompilerTooOldError, match="11.8 .* 12.0"):
        compiler.check_version((11, 8))


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (("int a;\0int b;", "sm_80"), ValueError, "source has a NUL at 6"),
        (("\ud800", "sm_80"), ValueError, r"source has a character at 0 .* '\\ud800'"),
        ((5, "sm_80"), TypeError, "source is 5, and must be a string"),
        ((b"", "sm_80"), TypeError, "source is b'', and must be a string"),
        (("", 5), ValueError, "5 is no architecture"),
        (("", "sm_\u0669\u0660"), ValueError, "is no architecture"),
        (("", "sm_80", []), ValueError, r"no format is called \[\]"),
        (("", "sm_80", "ptx", "-DX"), TypeError, "options is '-DX', and must be a sequence of strings"),
        (("", "sm_80", "ptx", [5]), TypeError, "option is 5, and must be a string"),
        (("", "sm_80", "ptx", ["-DA\0-DB"]), ValueError, "option has a NUL at 3"),
        (("", "sm_999", "ptx"), warpheap.CompileError, "sm_999|gpu-architecture"),
    ],
)
def test_what_can_be_no_argument_is_refused_in_a_sentence(arguments, error, words):
    with pytest.raises(error, match=words):
        warpheap.compile(*arguments)


def test_prefixes_that_are_no_names_are_refused():
    for prefix in ("2x", "", "a b", "a\n", "\u00e9", 5, None):
        with pytest.raises(ValueError, match="cannot begin the name of a C function"):
            warpheap.compile_functions("sm_80", prefix=prefix)


def test_a_log_may_have_any_bytes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("latin")
    (folder / "latin.h").write_bytes(b"#error caf\xe9\n")
    with pytest.raises(warpheap.CompileError, match="caf"):
        warpheap.compile('#include "latin.h"\n', "sm_80", "ptx", [f"-I{folder}"])


def test_importing_loads_nothing_else():
    heavy = "('cuda', 'numba', 'cupy', 'torch', 'numpy')"
    code = f"import sys, warpheap; sys.exit(any(name in sys.modules for name in {heavy}))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_without_bindings_the_error_says_what_to_install(tmp_path):
    code = "import sys; sys.modules['cuda.bindings'] = None; import warpheap; warpheap.compile_functions('sm_80')"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr
    assert "NoCompilerError" in said and "warpheap[cu13]" in said


@pytest.mark.parametrize(
    ("said", "error", "words"),
    [
        (RuntimeError("planted"), warpheap.NoCompilerError, r"cannot be loaded \(planted\): install warpheap\[cu13\]"),
        ((7, 0, 0), warpheap.NoCompilerError, r"error 7\): install warpheap\[cu13\]"),
        ((0, 11, 8), warpheap.CompilerTooOldError, "NVRTC 11.8 is too old: Warpheap needs 12.0 or newer"),
    ],
)
def test_an_nvrtc_that_cannot_be_used_is_an_error(monkeypatch, said, error, words):
    def version():
        if isinstance(said, Exception):
            raise said
        return said

    monkeypatch.setattr("cuda.bindings.nvrtc.nvrtcVersion", version)
    compiler._nvrtc.cache_clear()
    for use in (compiler.nvrtc_version, lambda: warpheap.compile_functions("sm_80")):
        with pytest.raises(error, match=words):
            use()
