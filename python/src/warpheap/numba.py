"""The functions of a heap inside kernels of numba-cuda.

    device_heap = warpheap.numba.functions()

    @cuda.jit
    def kernel(heap, out):  # heap is a heap's handle, an integer
        memory = device_heap.malloc(heap, 64)
"""

import functools
import types

import numba.cuda as _cuda
from numba.cuda import types as _types
from numba.cuda.extending import intrinsic as _intrinsic

from . import driver as _driver
from .compiler import compile_functions as _compile_functions

_SIGNATURES = {
    "malloc": "voidptr(uint64, uint64)",
    "free": "int32(uint64, voidptr)",
    "calloc": "voidptr(uint64, uint64, uint64)",
    "realloc": "voidptr(uint64, voidptr, uint64)",
    "aligned_alloc": "voidptr(uint64, uint64, uint64)",
    "usable_size": "uint64(uint64, voidptr)",
}


def functions(allocator: str = "slab_bitmap", arch: str | None = None) -> types.ModuleType:
    """A module of functions for kernels: malloc, free, calloc, realloc, aligned_alloc and usable_size.

    Each takes a heap's handle first, of a heap of this allocator. `arch` is that of the current
    device if None. A size is an unsigned number of 64 bits: a negative one is too large for any
    heap, and gives a null pointer.
    """
    return _functions(allocator, arch or _driver.architecture())


@functools.cache
def _functions(allocator: str, arch: str) -> types.ModuleType:
    prefix = f"warpheap_{allocator}"
    link = _cuda.LTOIR(_compile_functions(arch, allocator, prefix), name=f"{prefix}.ltoir")
    module = types.ModuleType(prefix)
    for name, signature in _SIGNATURES.items():
        setattr(module, name, _cuda.declare_device(f"{prefix}_{name}", signature, abi="c", link=link))
    return module


@_intrinsic
def array(typing_context, memory, count, dtype):
    """In a kernel: an array of `count` elements of type `dtype` at the pointer `memory`."""
    if not (memory == _types.voidptr and isinstance(count, _types.Integer) and hasattr(dtype, "dtype")):
        return None
    array_type = _types.Array(dtype.dtype, 1, "C")

    def generate(context, builder, signature, arguments):
        made = context.make_array(array_type)(context, builder)
        item_bytes = context.get_constant(_types.intp, context.get_abi_sizeof(context.get_data_type(array_type.dtype)))
        extent = context.cast(builder, arguments[1], count, _types.intp)
        data = builder.bitcast(arguments[0], made.data.type)
        context.populate_array(made, data=data, shape=[extent], strides=[item_bytes], itemsize=item_bytes, meminfo=None)
        return made._getvalue()

    return array_type(memory, count, dtype), generate


@_intrinsic
def address(typing_context, memory):
    """In a kernel: the pointer `memory` as an integer, which is 0 for a null pointer."""
    if memory != _types.voidptr:
        return None

    def generate(context, builder, signature, arguments):
        return builder.ptrtoint(arguments[0], context.get_value_type(_types.uint64))

    return _types.uint64(memory), generate


@_intrinsic
def pointer(typing_context, number):
    """In a kernel: the pointer that address() gave as `number`."""
    if not isinstance(number, _types.Integer):
        return None

    def generate(context, builder, signature, arguments):
        number_64 = context.cast(builder, arguments[0], number, _types.uint64)
        return builder.inttoptr(number_64, context.get_value_type(_types.voidptr))

    return _types.voidptr(number), generate
