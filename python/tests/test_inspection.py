# SPDX-License-Identifier: Apache-2.0
"""Statistics, checks and live blocks. That the C++ code sees the truth is tested in C++; here it is what reaches Python."""

import ctypes
import os
import re
import stat
import subprocess
import sys

import pytest

import warpheap
from warpheap import cache, compiler, inspection
from warpheap.allocators import WITH_LIMIT
from warpheap.setup_kernels import Record


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("WARPHEAP_CACHE_DIR", str(tmp_path / "cache"))
    inspection.library.cache_clear()
    yield tmp_path
    inspection.library.cache_clear()


def same_layout(structure, name, members=None):
    """C++ that compiles if the type `name` has the size of a ctypes structure, and its members in the same order.

    Older NVRTCs know no offsetof. Members that C++ initialises by name must come in the order of their declaration.
    """
    members = members or ", ".join(f".{field} = {{}}" for field, _ in structure._fields_)
    return f"static_assert(sizeof({name}) == {ctypes.sizeof(structure)});\nconstexpr {name} of_{structure.__name__}{{{members}}};\n"


def test_the_record_of_set_up_is_that_of_the_headers():
    names = [f".{field} = {{}}" for field, _ in Record._fields_]
    members = f".steps = {{{', '.join(names[:5])}}}, {', '.join(names[5:])}"
    fill = dict(Record._fields_)["fill_of"]._type_
    source = "#include <warpheap/warpheap.hpp>\n#include <warpheap/heap/kernel_setup.hpp>\n"
    source += same_layout(Record, "warpheap::heap_record", members) + same_layout(fill, "warpheap::cuda_backend::setup::fill")
    warpheap.compile(source, "sm_80", "ptx")
    for wrong in (source.replace("== 488", "== 496"), source.replace(".refused = {}, .fills = {}", ".fills = {}, .refused = {}")):
        assert wrong != source
        with pytest.raises(warpheap.CompileError):
            warpheap.compile(wrong, "sm_80", "ptx")


def test_requests_and_statistics_are_those_of_the_headers():
    fields = [(name, ctypes.c_uint64) for name in warpheap.HeapStatistics._fields]
    counts = type("counts", (ctypes.Structure,), {"_fields_": fields})
    source = "#include <warpheap/heap/c_inspection.hpp>\n#include <warpheap/policy/creation/report.hpp>\n"
    source += same_layout(inspection.InspectedHeap, "warpheap::inspected_heap")
    source += same_layout(counts, "warpheap::heap_statistics")

    def compiles(source):
        command = ["c++", "-std=c++20", "-fsyntax-only", f"-I{compiler.get_include()}", "-x", "c++", "-"]
        return subprocess.run(command, input=source, text=True, capture_output=True).returncode == 0

    assert compiles(source)
    assert not compiles(source.replace("== 40", "== 48"))
    assert not compiles(source.replace(".slabs = {}, .free_slabs = {}", ".free_slabs = {}, .slabs = {}"))


@pytest.mark.parametrize("allocator", [*warpheap.allocators, *WITH_LIMIT])
def test_every_allocator_has_a_library(allocator):
    for what in ("statistics", "check", "live"):
        assert getattr(inspection.library(allocator), f"warpheap_{what}")


def zeros(to, begin, nbytes, pitch, rows):
    ctypes.memset(to, 0, nbytes * rows)


@pytest.mark.parametrize("what", ["statistics", "check", "live"])
def test_a_reference_that_is_no_heaps_is_an_error(what):
    asked = []

    def read(to, begin, nbytes, pitch, rows):
        asked.append((begin, rows))
        zeros(to, begin, nbytes, pitch, rows)

    with pytest.raises(warpheap.DamagedHeapError, match="overwritten"):
        inspection.inspect("slab_bitmap", what, 4096, 1 << 20, 1 << 10, read)
    assert asked == [(4096 - 64, 1)]  # the stamp alone: no more is read of what is no heap


def test_errors_of_reading_are_raised():
    def fail(*_):
        raise warpheap.CudaError("planted")

    with pytest.raises(warpheap.CudaError, match="planted"):
        inspection.inspect("slab_bitmap", "check", 4096, 1 << 20, 1 << 10, fail)


def test_a_library_is_kept_and_one_that_is_broken_made_again(own_cache, monkeypatch):
    inspection.library("slab_bitmap")
    (kept,) = (own_cache / "cache").iterdir()
    made = kept.stat().st_mtime_ns
    inspection.library.cache_clear()
    inspection.library("slab_bitmap")
    assert kept.stat().st_mtime_ns == made
    whole = kept.read_bytes()
    kept.write_bytes(b"planted")
    inspection.library.cache_clear()
    assert inspection.library("slab_bitmap").warpheap_check and kept.read_bytes()[:40] == whole[:40]
    cache.keep(kept.name, b"of another C library")
    inspection.library.cache_clear()
    assert inspection.library("slab_bitmap").warpheap_check and kept.read_bytes()[:40] == whole[:40]


def test_code_that_another_user_planted_is_not_loaded(own_cache, monkeypatch):
    """In a folder that all may write, under the name of the library, with an entry's right head."""
    compiled, mark = own_cache / "planted.so", own_cache / "ran"
    source = f'#include <cstdio>\n__attribute__((constructor)) void run() {{ fclose(fopen("{mark}", "w")); }}\n'
    subprocess.run(["c++", "-shared", "-fPIC", "-x", "c++", "-", "-o", str(compiled)], input=source, text=True, check=True)
    inspection.library("slab_bitmap")
    (kept,) = (own_cache / "cache").iterdir()
    kept.parent.chmod(0o1777)
    cache.keep(kept.name, compiled.read_bytes())
    others = 54321
    if os.getuid() == 0:
        os.chown(kept, others, others)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: others)
    inspection.library.cache_clear()
    assert inspection.library("slab_bitmap").warpheap_check and not mark.exists()
    subprocess.run([sys.executable, "-c", f"import ctypes; ctypes.CDLL({str(compiled)!r})"], check=True)
    assert mark.exists(), "it would have run"


def test_a_cache_that_cannot_be_written_is_none(own_cache, monkeypatch):
    monkeypatch.setenv("WARPHEAP_CACHE_DIR", "/dev/null/cache")
    assert inspection.library("slab_bitmap").warpheap_check


def test_without_a_compiler_the_error_says_what_is_needed(own_cache, monkeypatch):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(own_cache))
    with pytest.raises(warpheap.NoHostCompilerError, match=re.escape("no c++, g++ or clang++")):
        inspection.library("slab_bitmap")
    monkeypatch.setenv("CXX", "'c++")
    with pytest.raises(warpheap.NoHostCompilerError, match="No closing quotation"):
        inspection.library("slab_bitmap")
    monkeypatch.setenv("CXX", "/nowhere/c++")
    with pytest.raises(warpheap.NoHostCompilerError, match="/nowhere/c.*C.*20"):
        inspection.library("slab_bitmap")


def test_a_compiler_without_cxx20_is_an_error_with_its_words(own_cache, monkeypatch):
    old = own_cache / "old"
    old.write_text("#!/bin/sh\ncase $1 in -std=*) echo unrecognized option $1 >&2; exit 1;; *) echo 4.8;; esac\n")
    old.chmod(old.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("CXX", f"{old}")
    with pytest.raises(warpheap.NoHostCompilerError, match="(?s)C.*20.*unrecognized option -std"):
        inspection.library("slab_bitmap")


def test_cxx_may_have_options(own_cache, monkeypatch):
    monkeypatch.setenv("CXX", "c++ -O0")
    assert inspection.library("rw").warpheap_live
    assert len(os.listdir(own_cache / "cache")) == 1


@pytest.mark.parametrize("option", ["-I{}", "-include {}/version.h", "-isystem {}"])
def test_a_library_with_files_of_others_is_not_kept(own_cache, monkeypatch, option):
    (own_cache / "version.h").touch()
    monkeypatch.setenv("CXX", f"c++ -O0 {option.format(own_cache)}")
    assert inspection.library("rw").warpheap_live and not (own_cache / "cache").exists()


def test_a_compiler_behind_a_launcher_is_known_by_its_own_version(own_cache, monkeypatch):
    launcher = own_cache / "launcher"
    launcher.write_text('#!/bin/sh\ncase $1 in -*) echo "of the launcher";; *) exec "$@";; esac\n')
    launcher.chmod(launcher.stat().st_mode | stat.S_IXUSR)
    assert inspection._version_of([str(launcher), "c++"]) == inspection._version_of(["c++"])
