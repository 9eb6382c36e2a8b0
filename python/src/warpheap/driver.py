"""The part of CUDA's driver API that a heap needs."""

import contextlib
import functools

from .errors import CudaError, NoDeviceError, OutOfMemoryError


@functools.cache
def load():
    """The bindings' module, with the driver initialised."""
    try:
        from cuda.bindings import driver
    except Exception as problem:
        raise NoDeviceError(f"cuda.bindings cannot be loaded ({problem}): install warpheap[cu13] or [cu12]") from problem
    try:
        (status,) = driver.cuInit(0)
    except Exception as problem:  # the loader of the driver's library has errors of its own
        raise NoDeviceError(f"no CUDA driver can be loaded: {problem}") from problem
    if int(status):
        raise NoDeviceError(f"the CUDA driver does not start: {status.name}")
    return driver


def call(name: str, *arguments):
    """What the function answers beside its status; an error if the status is one."""
    driver = load()
    status, *answer = getattr(driver, name)(*arguments)
    if status == driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
        raise OutOfMemoryError(f"{name}{arguments}: the device lacks the memory")
    if int(status):
        raise CudaError(f"{name}: {status.name}")
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


@functools.cache
def primary_context(device: int):
    """The context that CUDA's runtime, Numba, CuPy and PyTorch use. It is never released."""
    return call("cuDevicePrimaryCtxRetain", call("cuDeviceGet", device))


@contextlib.contextmanager
def current(device: int):
    """Makes the device's primary context the thread's, for as long as the block runs."""
    call("cuCtxPushCurrent", primary_context(device))
    try:
        yield
    finally:
        call("cuCtxPopCurrent")


def attribute(device: int, name: str) -> int:
    """An attribute of the device, such as "MULTIPROCESSOR_COUNT"."""
    attributes = load().CUdevice_attribute
    return call("cuDeviceGetAttribute", getattr(attributes, f"CU_DEVICE_ATTRIBUTE_{name}"), device)


def architecture(device: int | None = None) -> str:
    """Such as "sm_90"."""
    device = device_number(device)
    major, minor = (attribute(device, f"COMPUTE_CAPABILITY_{part}") for part in ("MAJOR", "MINOR"))
    return f"sm_{major}{minor}"


def stream_number(stream) -> int:
    """A stream as a number: an integer, or an object of cuda.core, CuPy, Numba or PyTorch."""
    if stream is None or isinstance(stream, int):
        return stream or 0
    if hasattr(stream, "__cuda_stream__"):
        protocol = stream.__cuda_stream__
        return int((protocol() if callable(protocol) else protocol)[1])
    for name in ("cuda_stream", "ptr", "handle"):
        if (found := getattr(stream, name, None)) is not None:
            return int(getattr(found, "value", found) or 0)
    raise TypeError(f"{stream!r} is no stream")
