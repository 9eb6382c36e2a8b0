# SPDX-License-Identifier: Apache-2.0
"""`python -m warpheap`, in processes of its own and with planted faults."""

import os
import subprocess
import sys

import pytest

import warpheap
from warpheap import __main__ as tool
from warpheap import driver


def run(code="import runpy; runpy.run_module('warpheap', run_name='__main__')", **variables):
    environment = {**os.environ, **variables}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)


def test_without_a_gpu_every_allocator_compiles(tmp_path):
    done = run(CUDA_VISIBLE_DEVICES="", WARPHEAP_CACHE_DIR=str(tmp_path / "new"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no GPU" in done.stdout and "(none yet)" in done.stdout and "cuda-bindings" in done.stdout
    for name in warpheap.allocators:
        assert f"{name}: OK, compiles" in done.stdout
    assert "slab_bitmap_growing: OK, compiles" in done.stdout
    results = len(list((tmp_path / "new").iterdir()))
    assert f"({results} results" in run(CUDA_VISIBLE_DEVICES="", WARPHEAP_CACHE_DIR=str(tmp_path / "new")).stdout


def test_without_nvrtc_it_fails_and_says_what_to_install():
    code = "import sys; sys.modules['cuda.bindings'] = None; import runpy; runpy.run_module('warpheap', run_name='__main__')"
    done = run(code)
    assert done.returncode == 1 and "warpheap[cu13]" in done.stderr


def test_an_allocator_that_does_not_compile_is_a_failure(monkeypatch, capsys):
    def refuse(arch, allocator):
        if allocator == "scatter":
            raise warpheap.CompileError("planted")

    monkeypatch.setattr(tool, "compile_functions", refuse)
    monkeypatch.setattr(tool, "compile", lambda *_: b"")
    monkeypatch.setattr(tool, "_devices", lambda: [])
    assert tool.main() == 1
    said = capsys.readouterr()
    assert "scatter: FAILED: planted" in said.out and f"1 of {len([*warpheap.allocators, *tool.WITH_LIMIT])} " in said.err and "halloc: OK" in said.out


@pytest.mark.gpu
def test_every_allocator_serves_a_kernel():
    done = run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "GPU 0: " in done.stdout and driver.architecture(0) in done.stdout
    for name in warpheap.allocators:
        assert f"{name}: OK, serves a kernel" in done.stdout
    assert "slab_bitmap_growing: OK, serves a kernel" in done.stdout


@pytest.mark.gpu
def test_a_heap_that_gives_nothing_is_caught(monkeypatch):
    served = "static_cast<unsigned*>(warpheap::ref_of<heap_type>(heap).malloc(64))"
    assert served in tool.SOURCE
    monkeypatch.setattr(tool, "SOURCE", tool.SOURCE.replace(served, "nullptr"))
    with warpheap.Heap(tool.POOL_BYTES) as heap, pytest.raises(warpheap.WarpheapError, match="4096 of 4096"):
        tool.serve_a_kernel(heap)
