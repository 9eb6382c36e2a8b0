# SPDX-License-Identifier: Apache-2.0
"""The part of CUDA's driver API that a heap needs."""

import contextlib
import functools
import os
from collections.abc import Iterator
from typing import Any

from .errors import CudaError, NoDeviceError, OutOfMemoryError, VersionMismatchError

_process: int | None = None  # that initialised the driver


@functools.cache
def load() -> Any:
    """The bindings' module, with the driver initialised."""
    try:
        from cuda.bindings import driver
    except Exception as problem:
        raise NoDeviceError(f"cuda.bindings cannot be loaded ({problem}): install warpheap[cu13] or [cu12]") from problem
    try:
        (status,) = driver.cuInit(0)
    except Exception as problem:  # the loader of the driver's library has errors of its own
        raise NoDeviceError(f"no CUDA driver can be loaded: {problem}") from problem
    if status == driver.CUresult.CUDA_ERROR_NO_DEVICE:
        raise NoDeviceError("the CUDA driver finds no GPU")
    if int(status):
        raise NoDeviceError(f"the CUDA driver does not start: {status.name}")
    global _process
    _process = os.getpid()
    return driver


def call(name: str, *arguments: Any) -> Any:
    """What the function answers beside its status; an error if the status is one."""
    driver = load()
    status, *answer = getattr(driver, name)(*arguments)
    if status == driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
        raise OutOfMemoryError(f"{name}{arguments}: the device lacks the memory")
    if int(status):
        forked = "" if _process == os.getpid() else ", in a child of the process that began to use CUDA: spawn it, do not fork"
        raise CudaError(f"{name}: {status.name}{forked}")
    return answer[0] if len(answer) == 1 else answer


def device_number(device: int | None) -> int:
    """`device`, or the one of the calling thread's context, or 0."""
    count = call("cuDeviceGetCount")
    if count == 0:
        raise NoDeviceError("the CUDA driver finds no GPU")
    if device is None:
        device = int(call("cuCtxGetDevice")) if int(call("cuCtxGetCurrent")) else 0
    if not 0 <= device < count:
        raise NoDeviceError(f"no GPU has number {device}: there are {count}")
    return device


def version() -> tuple[int, int]:
    """Major and minor version of the newest CUDA that the driver knows."""
    number = call("cuDriverGetVersion")
    return number // 1000, number % 1000 // 10


def check_compiler(nvrtc: tuple[int, int], known: tuple[int, int]) -> None:
    """Raises VersionMismatchError if a driver that knows CUDA `known` does not load what NVRTC compiles."""
    if nvrtc[0] > known[0]:
        made, knows = (".".join(map(str, pair)) for pair in (nvrtc, known))
        remedy = f"install warpheap[cu{known[0]}] or a newer driver" if known[0] >= 12 else "install a newer driver"
        raise VersionMismatchError(f"NVRTC is {made}, and the driver knows CUDA {knows} at most: {remedy}")


@functools.cache
def primary_context(device: int) -> Any:
    """The context that CUDA's runtime, Numba, CuPy and PyTorch use. It is never released."""
    return call("cuDevicePrimaryCtxRetain", call("cuDeviceGet", device))


@contextlib.contextmanager
def current(device: int) -> Iterator[None]:
    """Makes the device's primary context the thread's, for as long as the block runs."""
    call("cuCtxPushCurrent", primary_context(device))
    try:
        yield
    finally:
        call("cuCtxPopCurrent")


def context_number() -> int:
    """The number of the thread's context, which no other context ever has."""
    return int(call("cuCtxGetId", call("cuCtxGetCurrent")))


def copy_rows(to: int, begin: int, nbytes: int, pitch: int, rows: int, stream: int) -> None:
    """Copies rows of `nbytes` bytes, whose begins are `pitch` bytes apart, to the host. Waits for the stream."""
    if rows == 1:
        call("cuMemcpyDtoHAsync", to, begin, nbytes, stream)
    else:
        kinds, copy = load().CUmemorytype, load().CUDA_MEMCPY2D()
        copy.srcMemoryType, copy.srcDevice, copy.srcPitch = kinds.CU_MEMORYTYPE_DEVICE, begin, pitch
        copy.dstMemoryType, copy.dstHost, copy.dstPitch = kinds.CU_MEMORYTYPE_HOST, to, nbytes
        copy.WidthInBytes, copy.Height = nbytes, rows
        call("cuMemcpy2DAsync", copy, stream)
    call("cuStreamSynchronize", stream)


def attribute(device: int, name: str) -> int:
    """An attribute of the device, such as "MULTIPROCESSOR_COUNT"."""
    attributes = load().CUdevice_attribute
    return int(call("cuDeviceGetAttribute", getattr(attributes, f"CU_DEVICE_ATTRIBUTE_{name}"), device))


def architecture(device: int | None = None) -> str:
    """Such as "sm_90"."""
    device = device_number(device)
    major, minor = (attribute(device, f"COMPUTE_CAPABILITY_{part}") for part in ("MAJOR", "MINOR"))
    return f"sm_{major}{minor}"


def stream_number(stream: object) -> int:
    """A stream as a number: an integer, or an object of cuda.core, CuPy, Numba or PyTorch."""
    try:
        number = _number_of(stream)
    except (TypeError, ValueError, IndexError):
        number = None
    if number is None:
        raise TypeError(f"{stream!r} is no stream")
    if not 0 <= number < 1 << 64:
        raise ValueError(f"{stream!r} is no stream: its number is {number}")
    return number


def _number_of(stream: Any) -> int | None:
    if stream is None or isinstance(stream, int):
        return stream or 0
    if hasattr(stream, "__cuda_stream__"):
        protocol = stream.__cuda_stream__
        return int((protocol() if callable(protocol) else protocol)[1])
    for name in ("cuda_stream", "ptr", "handle"):
        if (found := getattr(stream, name, None)) is not None:
            return int(getattr(found, "value", found) or 0)
    return None
