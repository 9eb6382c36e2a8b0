# SPDX-License-Identifier: Apache-2.0
"""PyTorch: what is passed to load_inline, that nvcc takes it, and a pool inside a tensor."""

import os
import shutil
import subprocess
import sys
import types

import pytest

import warpheap
import warpheap.torch
from warpheap.allocators import HEADERS, WITH_LIMIT, type_of

MIB = 1 << 20

CUDA_SOURCE = """
#include <warpheap/warpheap.hpp>
#include <warpheap/heap/c_functions.hpp>
__global__ void count(unsigned long long handle, unsigned long long* served) {
  auto const heap = warpheap::ref_of<warpheap::default_allocator>(handle);
  void* const memory = heap.malloc(64);
  if (memory) atomicAdd(served, 1ull);
  heap.free(memory);
}
"""
CALL = """
int64_t served(int64_t handle, torch::Tensor count_of) {
  count<<<16, 256>>>(handle, reinterpret_cast<unsigned long long*>(count_of.data_ptr<int64_t>()));
  return count_of.item<int64_t>();
}
"""


@pytest.fixture
def nvcc():
    default = "/usr/local/cuda/bin/nvcc"
    found = os.environ.get("CUDACXX") or shutil.which("nvcc") or (default if os.access(default, os.X_OK) else None)
    return found or pytest.skip("there is no nvcc")


def test_arguments_are_added_to_those_of_the_caller():
    made = warpheap.torch.arguments(extra_include_paths=["mine"], extra_cuda_cflags=["-O3"], verbose=True)
    assert made["extra_include_paths"] == ["mine", warpheap.get_include()] and made["verbose"]
    first, standard, digest = made["extra_cuda_cflags"]
    assert (first, standard) == ("-O3", "-std=c++20") and warpheap.headers_digest()[:16] in digest
    for own in ("-std=c++23", "--std=c++23"):
        assert "-std=c++20" not in warpheap.torch.arguments(extra_cuda_cflags=[own])["extra_cuda_cflags"]


def test_load_inline_passes_everything_on(monkeypatch):
    said = {}
    extension = types.ModuleType("torch.utils.cpp_extension")
    extension.load_inline = lambda *words, **more: said.update(words=words, more=more) or "built"
    utils = types.ModuleType("torch.utils")
    utils.cpp_extension = extension
    for name, module in (("torch", types.ModuleType("torch")), ("torch.utils", utils), (extension.__name__, extension)):
        monkeypatch.setitem(sys.modules, name, module)
    assert warpheap.torch.load_inline("name", "cpp", "cuda", functions=["served"]) == "built"
    assert said["words"] == ("name", "cpp", "cuda")
    assert said["more"] == warpheap.torch.arguments(functions=["served"])


@pytest.mark.parametrize("allocator", ["slab_bitmap", *WITH_LIMIT])
def test_nvcc_takes_the_arguments(nvcc, tmp_path, allocator):
    source = tmp_path / "kernel.cu"
    source.write_text(HEADERS + CUDA_SOURCE.replace("warpheap::default_allocator", type_of(allocator)))
    made = warpheap.torch.arguments()
    flags = [*made["extra_cuda_cflags"], *(f"-I{folder}" for folder in made["extra_include_paths"])]
    done = subprocess.run([nvcc, "-ptx", "-arch=sm_80", *flags, "-o", "-", source], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "count" in done.stdout


@pytest.mark.gpu
def test_load_inline_builds_a_kernel_that_allocates(nvcc):
    torch = pytest.importorskip("torch")
    declared = "int64_t served(int64_t handle, torch::Tensor count_of);"
    module = warpheap.torch.load_inline("warpheap_test", declared, CUDA_SOURCE + CALL, functions=["served"])
    with warpheap.Heap(None, memory=torch.empty(64 * MIB, dtype=torch.uint8, device="cuda")) as heap:
        fresh = heap.available_slots(64)
        assert module.served(heap.handle, torch.zeros(1, dtype=torch.int64, device="cuda")) == 4096
        assert heap.available_slots(64) == fresh


@pytest.mark.gpu
def test_a_pool_lies_in_a_tensor_which_the_heap_keeps():
    torch = pytest.importorskip("torch")
    from warpheap.__main__ import serve_a_kernel

    stream = torch.cuda.Stream()
    tensor = torch.empty(256 * MIB, dtype=torch.uint8, device="cuda")
    begin, end, taken = tensor.data_ptr(), tensor.data_ptr() + tensor.nbytes, torch.cuda.memory_allocated()
    heap = warpheap.Heap(None, memory=tensor, stream=stream)
    del tensor
    assert begin < heap.handle < end and torch.cuda.memory_allocated() == taken
    serve_a_kernel(heap)
    heap.close()
    assert torch.cuda.memory_allocated() < taken


@pytest.mark.gpu
def test_tensors_that_cannot_be_pools_are_refused():
    torch = pytest.importorskip("torch")
    with pytest.raises(warpheap.HeapSizeError, match="1000"):
        warpheap.Heap(None, memory=torch.empty(1000, dtype=torch.uint8, device="cuda"))
    with pytest.raises(warpheap.MemoryArgumentError, match="contiguous"):
        warpheap.Heap(None, memory=torch.empty((4096, 4096), dtype=torch.uint8, device="cuda")[:, ::2])
    with pytest.raises(Exception, match="(?i)cuda"):  # PyTorch's own: a tensor in host memory has no such interface
        warpheap.Heap(None, memory=torch.empty(64 * MIB, dtype=torch.uint8))
