# SPDX-License-Identifier: Apache-2.0
"""The caller's memory: where it is, in the words of whichever package it comes from.

  __cuda_array_interface__   arrays of CuPy and Numba, tensors of PyTorch, RMM's DeviceBuffer
  ptr or handle, and size    other buffers, such as cuda.core's
  __dlpack__, or a capsule   anything else
"""

import ctypes
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from . import driver
from .errors import CudaError, HeapSizeError, MemoryArgumentError

_HOST, _CUDA, _PINNED, _MANAGED = 1, 2, 3, 13  # kinds of devices in DLPack
_READ_ONLY = 1
_MOST_DIMENSIONS = 64  # of NumPy's arrays, and more than any other package's
_api = ctypes.pythonapi
_capsule_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", _api))
_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))


class LentMemory(NamedTuple):
    """Memory of the caller, and what must stay alive as long as it is used."""

    address: int
    nbytes: int
    owner: object
    stream: int | None = None  #: where the owner's work on the memory may still be running


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_kind", ctypes.c_int32),
        ("device", ctypes.c_int32),
        ("dimensions", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _VersionedTensor(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


def lent(memory: Any, stream: int = 0) -> LentMemory:
    """What `memory` describes. Work of the owner is done, or comes before what is put on the stream."""
    interface = _asked(memory, lambda: getattr(memory, "__cuda_array_interface__", None))
    if interface is not None:
        return _of_array(memory, interface)
    size = getattr(memory, "size", None)
    for name in ("ptr", "handle"):
        if isinstance(size, int) and (address := getattr(memory, name, None)) is not None:
            return _lent(_asked(memory, lambda: int(address)), size, memory)
    if hasattr(memory, "__dlpack__"):
        return _of_capsule(_capsule_of(memory, stream), memory)
    if type(memory).__name__ == "PyCapsule":
        return _of_capsule(memory, memory)
    raise TypeError(f"{type(memory).__name__} has no __cuda_array_interface__, no __dlpack__, and no ptr and size")


def _lent(address: int, nbytes: int, memory: object, owner: object = None, stream: int | None = None) -> LentMemory:
    if not 0 <= address <= address + nbytes <= 1 << 64:
        raise MemoryArgumentError(f"{type(memory).__name__} has {nbytes} bytes at {address:#x}, which can be no memory")
    return LentMemory(address, nbytes, owner or memory, stream)


def checked(given: LentMemory, nbytes: int | None, device: int) -> LentMemory:
    """The first `nbytes` bytes of it, or all, if they are the device's."""
    if given.nbytes == 0 or (nbytes is not None and nbytes > given.nbytes):
        raise HeapSizeError(f"heap in {given.nbytes if nbytes is None else nbytes} bytes of memory that has {given.nbytes}")
    attributes = driver.load().CUpointer_attribute
    try:
        with driver.current(device):
            kind = int(driver.call("cuPointerGetAttribute", attributes.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, given.address))
            where = driver.call("cuPointerGetAttribute", attributes.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, given.address)
    except CudaError as problem:
        raise MemoryArgumentError(f"{given.address:#x} is no memory that CUDA knows ({problem})") from problem
    if kind != int(driver.load().CUmemorytype.CU_MEMORYTYPE_DEVICE):
        raise MemoryArgumentError(f"{given.address:#x} is no device memory")
    if where != device:
        raise MemoryArgumentError(f"the memory is device {where}'s, and the heap would be device {device}'s")
    return given if nbytes is None else given._replace(nbytes=nbytes)


def _asked(memory: object, question: Callable[[], Any]) -> Any:
    """What the memory's owner answers. PyTorch refuses tensors that require grad in words of its own."""
    try:
        return question()
    except Exception as problem:
        raise MemoryArgumentError(f"{type(memory).__name__} does not lend its memory: {problem}") from problem


def _of_array(memory: object, interface: Any) -> LentMemory:
    try:
        (address, read_only), item = interface["data"], int(interface["typestr"][2:])
        address, stream, strides = int(address or 0), interface.get("stream"), interface.get("strides")
        shape = [operator.index(size) for size in interface["shape"]]
        strides = None if strides is None else [operator.index(stride) for stride in strides]
        stream = None if stream is None else driver.stream_number(stream)
    except (AttributeError, KeyError, TypeError, ValueError) as problem:
        raise MemoryArgumentError(f"{type(memory).__name__}.__cuda_array_interface__ is malformed: {problem!r}") from problem
    if read_only:
        raise MemoryArgumentError("the memory is read-only")
    if interface.get("mask") is not None:
        raise MemoryArgumentError("the memory is a masked array's")
    return _lent(address, _extent(shape, strides, item), memory, stream=stream)


def _capsule_of(memory: Any, stream: int) -> Any:
    _check_kind(_asked(memory, lambda: int(memory.__dlpack_device__()[0])))
    stream = stream or 1  # 1 is the default stream in DLPack
    try:
        return memory.__dlpack__(stream=stream, max_version=(1, 0))
    except TypeError:  # written before DLPack 1.0
        return _asked(memory, lambda: memory.__dlpack__(stream=stream))
    except Exception as problem:
        raise MemoryArgumentError(f"{type(memory).__name__} does not lend its memory: {problem}") from problem


def _of_capsule(capsule: object, memory: object) -> LentMemory:
    """The capsule is read and kept, and not consumed: its destructor gives the tensor back."""
    name = _capsule_name(capsule)
    if name == b"dltensor":
        tensor = _Tensor.from_address(_capsule_pointer(capsule, name))
    elif name == b"dltensor_versioned":
        versioned = _VersionedTensor.from_address(_capsule_pointer(capsule, name))
        if versioned.major != 1:
            raise MemoryArgumentError(f"the capsule is of DLPack {versioned.major}.{versioned.minor}, and 1 is known")
        if versioned.flags & _READ_ONLY:
            raise MemoryArgumentError("the memory is read-only")
        tensor = versioned.tensor
    else:
        raise MemoryArgumentError(f"the capsule is called {name!r}: it holds no tensor, or one that another package took")
    _check_kind(tensor.device_kind)
    item_bits = tensor.bits * tensor.lanes
    if item_bits % 8:
        raise MemoryArgumentError(f"the memory has elements of {item_bits} bits")
    if not 0 <= tensor.dimensions <= _MOST_DIMENSIONS or (tensor.dimensions and not tensor.shape):
        raise MemoryArgumentError(f"the memory has {tensor.dimensions} dimensions, and no shape of this many")
    shape = tensor.shape[: tensor.dimensions]
    strides = [stride * item_bits // 8 for stride in tensor.strides[: tensor.dimensions]] if tensor.strides else None
    nbytes = _extent(shape, strides, item_bits // 8)
    return _lent((tensor.data or 0) + tensor.byte_offset, nbytes, memory, (memory, capsule))


def _check_kind(kind: int) -> None:
    if kind not in (_CUDA, _MANAGED):
        where = "on the host" if kind in (_HOST, _PINNED) else f"of device kind {kind} in DLPack"
        raise MemoryArgumentError(f"the memory is {where}, and no CUDA device's")


def _extent(shape: Sequence[int], strides: Sequence[int] | None, item: int) -> int:
    """Bytes of an array without gaps; `strides` is in bytes, or None."""
    if item <= 0 or any(size < 0 for size in shape) or (strides is not None and len(strides) != len(shape)):
        of = "" if strides is None else f" and the strides {tuple(strides)}"
        raise MemoryArgumentError(f"the memory has the shape {tuple(shape)}{of}, of elements of {item} bytes")
    nbytes, contiguous = item, True
    for index in reversed(range(len(shape))):
        contiguous &= strides is None or shape[index] == 1 or strides[index] == nbytes
        nbytes *= shape[index]
    if nbytes and not contiguous:
        raise MemoryArgumentError(f"the memory is not contiguous: shape {tuple(shape)}, strides {tuple(strides or ())}")
    return nbytes
