# SPDX-License-Identifier: Apache-2.0
"""Heaps inside kernels of numba_cuda_mlir.

    @cuda.jit(extensions=[warpheap.numba_cuda_mlir])
    def kernel(heap, out):
        memory = heap.malloc(64)

numba_support.py says how. The module is itself the extension: the package calls prepare_args().
"""

import functools as _functools

from numba_cuda_mlir import cuda as _cuda
from numba_cuda_mlir import extending as _extending
from numba_cuda_mlir import models as _models
from numba_cuda_mlir import types as _types
from numba_cuda_mlir._mlir import ir as _ir
from numba_cuda_mlir._mlir.dialects import arith as _arith
from numba_cuda_mlir._mlir.dialects import builtin as _builtin
from numba_cuda_mlir._mlir.dialects import llvm as _llvm
from numba_cuda_mlir.lowering_utilities import constant as _constant
from numba_cuda_mlir.lowering_utilities import convert as _convert
from numba_cuda_mlir.lowering_utilities import memref_descriptor_type as _memref_descriptor_type
from numba_cuda_mlir.numba_cuda.core import errors as _errors
from numba_cuda_mlir.numba_cuda.core import ir_utils as _ir_utils

from . import numba_support as _support
from .heap import Heap as _Heap

__all__ = ["HeapType", "array", "prepare_args", "replace_malloc"]


class _Model(_models.PrimitiveModel):
    def __init__(self, manager, kernel_type):
        super().__init__(manager, kernel_type, _models.IntegerType.get_signless(64))

    def as_argument(self, builder, value):
        """Of a heap around the kernel, the package hands over the object itself."""
        return _arith.constant(self.be_type, value.handle) if isinstance(value, _Heap) else value


HeapType, prepare_args, replace_malloc = _support.typed_support(
    __name__,
    _cuda,
    _extending,
    _types,
    _errors,
    _Model,
    # Inlined: what a function that is not inlined links, the package does not link with a kernel.
    _functools.partial(_extending.overload_method, typing_registry=_extending.typing_registry, inline="always"),
    argument=lambda kernel_type: kernel_type,
)


def array(memory, count, dtype):
    """In a kernel: an array of `count` elements of type `dtype` at the address `memory`."""
    raise TypeError("array() is for kernels")


# Where the package inlines a function, it removes stores to arrays that the kernel does not read
# again. A view of a block counts as an argument of the kernel, whose stores stay.
_ir_utils.alias_func_extensions["array", __name__] = lambda view, given, aliases, of_arguments: of_arguments.add(view)


@_extending.type_callable(array)
def _type_of_array(context):
    return lambda memory, count, dtype: _support.array_type(_types, _errors, memory, count, dtype)


@_extending.lower_builtin(array, _types.Integer, _types.Integer, _types.Any)
def _lower_array(builder, target, arguments, keywords):
    integer = _models.IntegerType.get_signless(64)
    address, count = (_convert(builder.load_var(argument), integer) for argument in arguments[:2])
    pointer = _llvm.inttoptr(_llvm.PointerType.get(), address)
    value = _llvm.UndefOp(_memref_descriptor_type(1)).result
    zero, one = _constant(0, integer), _constant(1, integer)
    for part, *place in ((pointer, 0), (pointer, 1), (zero, 2), (count, 3, 0), (one, 4, 0)):
        value = _llvm.insertvalue(container=value, value=part, position=_ir.DenseI64ArrayAttr.get(place))
    made = builder.get_mlir_type(builder.get_numba_type(target))
    builder.store_var(target, _builtin.unrealized_conversion_cast([made], [value]))
