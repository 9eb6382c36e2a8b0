# SPDX-License-Identifier: Apache-2.0
"""Heaps inside kernels of numba-cuda.

    @cuda.jit(extensions=[warpheap.numba])
    def kernel(heap, out):
        memory = heap.malloc(64)

numba_support.py says how. The module is itself the extension: Numba calls prepare_args().
"""

from llvmlite import ir as _ir
from numba import cuda as _cuda
from numba.cuda import extending as _extending
from numba.cuda import types as _types
from numba.cuda.core import errors as _errors
from numba.cuda.core.imputils import lower_constant as _lower_constant
from numba.cuda.np import arrayobj as _arrayobj

from . import numba_support as _support

__all__ = ["HeapType", "array", "prepare_args", "replace_malloc"]


class _Model(_extending.models.PrimitiveModel):
    def __init__(self, manager, kernel_type):
        super().__init__(manager, kernel_type, _ir.IntType(64))


HeapType, prepare_args, replace_malloc = _support.typed_support(
    __name__,
    _cuda,
    _extending,
    _types,
    _errors,
    _Model,
    _extending.overload_method,
    argument=lambda kernel_type: _types.uint64,
)


# An intrinsic, and no overload: where Numba inlines a function, it removes stores to arrays that the
# kernel itself does not read again.
@_extending.intrinsic
def array(context, memory, count, dtype):
    """In a kernel: an array of `count` elements of type `dtype` at the address `memory`."""
    made = _support.array_type(_types, _errors, memory, count, dtype)

    def generate(context, builder, signature, arguments):
        address, length, _ = arguments
        element = context.get_data_type(made.dtype)
        size = context.get_constant(_types.intp, context.get_abi_sizeof(element))
        length = context.cast(builder, length, signature.args[1], _types.intp)
        result = _arrayobj.make_array(made)(context, builder)
        data = builder.inttoptr(address, element.as_pointer())
        _arrayobj.populate_array(result, data=data, shape=[length], strides=[size], itemsize=size, meminfo=None)
        return result._getvalue()

    return made(memory, count, dtype), generate


@_lower_constant(HeapType)
def _handle_of(context, builder, kernel_type, heap):
    return _ir.Constant(_ir.IntType(64), heap.handle)
