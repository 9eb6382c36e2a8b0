# SPDX-License-Identifier: Apache-2.0
"""What is understood as memory, and what is refused. That device memory is accepted, and whose, is tested with heaps."""

import contextlib
import ctypes

import numpy
import pytest

import warpheap
from warpheap import driver, memory

ADDRESS = 1 << 40
CUDA, PINNED, HOST, MANAGED, ROCM = 2, 3, 1, 13, 10
keep = []  # what capsules point to


def tensor(shape=(64,), strides=None, kind=CUDA, bits=8, lanes=1, byte_offset=0):
    def array(numbers):
        keep.append((ctypes.c_int64 * len(numbers))(*numbers))
        return keep[-1]

    return memory._Tensor(ADDRESS, kind, 0, len(shape), 1, bits, lanes, array(shape), strides and array(strides), byte_offset)


def capsule(structure, name):
    keep.append((structure, ctypes.create_string_buffer(name)))
    new = ctypes.PYFUNCTYPE(ctypes.py_object, *[ctypes.c_void_p] * 3)(("PyCapsule_New", ctypes.pythonapi))
    return new(ctypes.addressof(structure), ctypes.addressof(keep[-1][1]), None)


def old(**form):
    return capsule(tensor(**form), b"dltensor")


def versioned(major=1, flags=0, **form):
    return capsule(memory._VersionedTensor(major, 1, None, None, flags, tensor(**form)), b"dltensor_versioned")


class Array:
    def __init__(self, **interface):
        self.__cuda_array_interface__ = {"data": (ADDRESS, False), "shape": (64,), "typestr": "|u1", "version": 3} | interface


class Exporter:
    """Of DLPack; `knows_versions` as since 1.0."""

    def __init__(self, kind=CUDA, knows_versions=True, error=None):
        self.kind, self.knows_versions, self.error, self.asked = kind, knows_versions, error, []

    def __dlpack_device__(self):
        return self.kind, 0

    def __dlpack__(self, **how):
        self.asked.append(how)
        if self.error:
            raise self.error
        if "max_version" in how:
            if not self.knows_versions:
                raise TypeError("__dlpack__() got an unexpected keyword argument 'max_version'")
            return versioned()
        return old()


def test_arrays_of_cuda_are_understood():
    assert memory.lent(Array())[:2] == (ADDRESS, 64)
    assert memory.lent(Array(shape=(4, 8), typestr="<f4", strides=(32, 4)))[:2] == (ADDRESS, 128)
    assert memory.lent(Array(shape=(1, 8), typestr="<f8", strides=(5, 8))).nbytes == 64
    assert memory.lent(Array(shape=())).nbytes == 1
    assert memory.lent(Array(shape=(0, 4), strides=(1, 1))).nbytes == 0
    assert memory.lent(Array(stream=7)).stream == 7


@pytest.mark.parametrize(
    ("interface", "words"),
    [
        ({"data": (ADDRESS, True)}, "read-only"),
        ({"shape": (4, 8), "strides": (64, 1)}, r"contiguous: shape \(4, 8\), strides \(64, 1\)"),
        ({"strides": (-1,)}, "contiguous"),
        ({"mask": object()}, "mask"),
        ({"typestr": "u"}, "malformed"),
        ({"typestr": None}, "malformed"),
        ({"data": None}, "malformed"),
        ({"data": ("x", False)}, "malformed"),
        ({"shape": (4.5,)}, "malformed"),
        ({"shape": None}, "malformed"),
        ({"strides": "x"}, "malformed"),
        ({"stream": "x"}, "malformed"),
        ({"stream": -1}, "malformed"),
        ({"shape": (-64,)}, r"the shape \(-64,\)"),
        ({"shape": (-8, -8)}, r"the shape \(-8, -8\)"),
        ({"shape": (64,), "strides": (8, 1)}, r"the shape \(64,\) and the strides \(8, 1\)"),
        ({"shape": (8, 8), "strides": (1,)}, "the strides"),
        ({"typestr": "|u-1"}, "elements of -1 bytes"),
        ({"typestr": "|V0"}, "elements of 0 bytes"),
        ({"data": (-1, False)}, "Array has 64 bytes at -0x1"),
        ({"data": ((1 << 64) - 63, False)}, "which can be no memory"),
        ({"shape": (1 << 32, 1 << 32)}, "which can be no memory"),
    ],
)
def test_other_arrays_are_refused(interface, words):
    with pytest.raises(warpheap.MemoryArgumentError, match=words):
        memory.lent(Array(**interface))


def test_buffers_have_an_address_and_a_size():
    for name in ("ptr", "handle"):
        buffer = type("Buffer", (), {name: ADDRESS, "size": 64})()
        assert memory.lent(buffer) == (ADDRESS, 64, buffer, None)


def test_buffers_that_can_be_no_memory_are_refused():
    for address, size in ((-1, 64), (ADDRESS, -64), (1 << 64, 1), ("x", 64), ([], 64)):
        buffer = type("Buffer", (), {"ptr": address, "size": size})()
        with pytest.raises(warpheap.MemoryArgumentError, match="Buffer (has|does not lend)"):
            memory.lent(buffer)


def test_capsules_are_read_and_kept():
    for make in (old, versioned):
        given = make(shape=(4, 8), strides=(8, 1), bits=16, lanes=2, byte_offset=12)
        assert memory.lent(given)[:2] == (ADDRESS + 12, 128)
        assert memory.lent(given).owner == (given, given)
        assert memory.lent(make(kind=MANAGED)).nbytes == 64
        assert memory.lent(make(shape=())).nbytes == 1


@pytest.mark.parametrize("make", [old, versioned])
@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"kind": HOST}, "on the host"),
        ({"kind": PINNED}, "on the host"),
        ({"kind": ROCM}, "kind 10"),
        ({"shape": (4, 8), "strides": (16, 1)}, "contiguous"),
        ({"bits": 4}, "4 bits"),
        ({"bits": 0}, "elements of 0 bytes"),
        ({"shape": (-64,)}, r"the shape \(-64,\)"),
        ({"byte_offset": (1 << 64) - 1}, "which can be no memory"),
    ],
)
def test_other_capsules_are_refused(make, form, words):
    with pytest.raises(warpheap.MemoryArgumentError, match=words):
        memory.lent(make(**form))


@pytest.mark.parametrize("dimensions", [-1, 65, 1 << 30])
def test_capsules_of_a_shape_that_is_none_are_refused(dimensions):
    given = tensor()
    given.dimensions = dimensions
    with pytest.raises(warpheap.MemoryArgumentError, match=f"{dimensions} dimensions"):
        memory.lent(capsule(given, b"dltensor"))
    given.dimensions, given.shape = 1, None
    with pytest.raises(warpheap.MemoryArgumentError, match="1 dimensions"):
        memory.lent(capsule(given, b"dltensor"))


def test_capsules_without_a_tensor_of_ours_are_refused():
    for name in (b"used_dltensor", b"used_dltensor_versioned", b"other"):
        with pytest.raises(warpheap.MemoryArgumentError, match=name.decode()):
            memory.lent(capsule(tensor(), name))
    with pytest.raises(warpheap.MemoryArgumentError, match="read-only"):
        memory.lent(versioned(flags=1))
    with pytest.raises(warpheap.MemoryArgumentError, match="DLPack 2.1"):
        memory.lent(versioned(major=2))


def test_exporters_are_asked_for_a_capsule():
    exporter = Exporter()
    given = memory.lent(exporter, stream=5)
    assert given[:2] == (ADDRESS, 64) and given.owner[0] is exporter
    assert exporter.asked == [{"stream": 5, "max_version": (1, 0)}]
    exporter = Exporter(knows_versions=False)
    assert memory.lent(exporter).nbytes == 64
    assert exporter.asked[-1] == {"stream": 1}
    with pytest.raises(warpheap.MemoryArgumentError, match="on the host"):
        memory.lent(Exporter(HOST))
    with pytest.raises(warpheap.MemoryArgumentError, match="Exporter does not lend its memory: use tensor.detach()"):
        memory.lent(Exporter(error=BufferError("use tensor.detach()")))


def test_an_owner_that_refuses_is_quoted():
    class Tensor:
        @property
        def __cuda_array_interface__(self):
            raise RuntimeError("use var.detach()")

    with pytest.raises(warpheap.MemoryArgumentError, match="Tensor does not lend its memory: use var.detach()"):
        memory.lent(Tensor())


def test_memory_of_the_host_is_refused_by_name():
    with pytest.raises(warpheap.MemoryArgumentError, match="on the host"):
        warpheap.Heap(None, memory=numpy.zeros(1 << 21, numpy.uint8))
    for nothing in (b"bytes", 4096, "4096", object()):
        with pytest.raises(TypeError, match=type(nothing).__name__):
            warpheap.Heap(None, memory=nothing)


@pytest.fixture
def device_memory(monkeypatch):
    """What the driver answers of the memory: its type and its device. An exception is raised instead."""
    bindings = pytest.importorskip("cuda.bindings.driver")
    said = {"MEMORY_TYPE": int(bindings.CUmemorytype.CU_MEMORYTYPE_DEVICE), "DEVICE_ORDINAL": 0}

    def call(name, attribute, address):
        answer = said[attribute.name.removeprefix("CU_POINTER_ATTRIBUTE_")]
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(driver, "load", lambda: bindings)
    monkeypatch.setattr(driver, "current", lambda device: contextlib.nullcontext())
    monkeypatch.setattr(driver, "call", call)
    return said


def test_device_memory_is_accepted_whole_or_in_part(device_memory):
    given = memory.LentMemory(ADDRESS, 64, None)
    assert memory.checked(given, None, 0) == given
    assert memory.checked(given, 48, 0) == given._replace(nbytes=48)


def test_too_little_memory_is_refused(device_memory):
    with pytest.raises(warpheap.HeapSizeError, match="65 bytes of memory that has 64"):
        memory.checked(memory.LentMemory(ADDRESS, 64, None), 65, 0)
    with pytest.raises(warpheap.HeapSizeError, match="0 bytes of memory that has 0"):
        memory.checked(memory.LentMemory(ADDRESS, 0, None), None, 0)


@pytest.mark.parametrize(
    ("what", "answer", "words"),
    [
        ("DEVICE_ORDINAL", 1, "the memory is device 1's, and the heap would be device 0's"),
        ("MEMORY_TYPE", 1, "no device memory"),
        ("MEMORY_TYPE", warpheap.CudaError("planted"), r"no memory that CUDA knows \(planted\)"),
    ],
)
def test_memory_that_is_not_the_devices_is_refused(device_memory, what, answer, words):
    device_memory[what] = answer
    with pytest.raises(warpheap.MemoryArgumentError, match=words):
        memory.checked(memory.LentMemory(ADDRESS, 64, None), None, 0)
