import subprocess
import sys

import pytest

import warpheap
from warpheap import compiler
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
    for kernel in ("extend", "find_used_end", "withdraw", "shrink"):
        assert (f".entry warpheap_{kernel}" in kernels) == (name in WITH_LIMIT)


def test_refused_calls_post_requests_where_the_pool_grows():
    """To the host: the store is for the whole system."""
    posts = {name: b"st.relaxed.sys" in warpheap.compile_functions("sm_80", name, format="ptx") for name in ("slab_bitmap", *WITH_LIMIT)}
    assert posts == {"slab_bitmap": False, "slab_bitmap_growing": True}


def test_the_functions_are_linked_by_the_names_of_the_c_interface():
    both = "#include <warpheap/heap/c_interface.hpp>\nWARPHEAP_C_FUNCTIONS(second, warpheap::scatter_allocator)\n"
    ptx = warpheap.compile(both, "sm_80", "ptx")
    assert b"warpheap_malloc" in ptx and b"second_malloc" in ptx


def test_a_result_is_read_from_the_cache(own_cache):
    first = warpheap.compile_functions("sm_80")
    (kept,) = own_cache.iterdir()
    kept.write_bytes(b"planted")
    assert first and warpheap.compile_functions("sm_80") == b"planted"
    assert warpheap.compile_functions("sm_90") != b"planted"


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
