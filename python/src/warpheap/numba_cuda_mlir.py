# SPDX-License-Identifier: Apache-2.0
"""Heaps inside kernels of numba_cuda_mlir.

    @cuda.jit(extensions=[warpheap.numba_cuda_mlir])
    def kernel(heap, out):
        memory = heap.malloc(64)

numba_support.py says how. The module is itself the extension: the package calls prepare_args().
"""

import functools as _functools

from .heap_arguments import simulates as _simulates
from .missing import needed as _needed

if _simulates():
    raise ImportError(f"{__name__}: NUMBA_ENABLE_CUDASIM is set, which puts heaps into the host's memory, and numba_cuda_mlir has no simulator")
with _needed(__name__, "numba_cuda_mlir 0.6 or newer", "numba_cuda_mlir", "numba_cuda_mlir"):
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
    from numba_cuda_mlir.numba_cuda.np import numpy_support as _numpy_support

from . import numba_support as _support
from .heap import Heap as _Heap

__all__ = ["HeapType", "array", "prepare_args", "replace_malloc"]


# Inlined: what a function that is not inlined links, the package does not link with a kernel.
_overload_method = _functools.partial(_extending.overload_method, typing_registry=_extending.typing_registry, inline="always")


class _Model(_models.PrimitiveModel):
    def __init__(self, manager, kernel_type):
        super().__init__(manager, kernel_type, _models.IntegerType.get_signless(64))

    def as_argument(self, builder, value):
        """Of a heap around the kernel, the package hands over the object itself."""
        if not isinstance(value, _Heap):
            return value
        if builder.targetoptions.get("cache"):
            raise _support.not_cached("a heap around it")
        return _arith.constant(self.be_type, value.handle)


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
    address, count = (
        _convert(builder.load_var(argument), integer, signed=builder.get_numba_type(argument).signed) for argument in arguments[:2]
    )
    pointer = _llvm.inttoptr(_llvm.PointerType.get(), address)
    value = _llvm.UndefOp(_memref_descriptor_type(1)).result
    zero, one = _constant(0, integer), _constant(1, integer)
    for part, *place in ((pointer, 0), (pointer, 1), (zero, 2), (count, 3, 0), (one, 4, 0)):
        value = _llvm.insertvalue(container=value, value=part, position=_ir.DenseI64ArrayAttr.get(place))
    made = builder.get_mlir_type(builder.get_numba_type(target))
    builder.store_var(target, _builtin.unrealized_conversion_cast([made], [value]))


def _address_of(view):
    """In a kernel: the address of the view's first element."""
    raise TypeError("for kernels")


@_extending.type_callable(_address_of)
def _type_of_address(context):
    return lambda view: _types.int64


@_extending.lower_builtin(_address_of, _types.Array)
def _lower_address_of(builder, target, arguments, keywords):
    integer, kind = _models.IntegerType.get_signless(64), builder.get_numba_type(arguments[0])
    memref = _builtin.unrealized_conversion_cast([_memref_descriptor_type(kind.ndim)], [builder.load_var(arguments[0])])
    pointer, first = (
        _llvm.extractvalue(result, memref, _ir.DenseI64ArrayAttr.get([place]))
        for result, place in ((_llvm.PointerType.get(), 1), (integer, 2))
    )
    size = _constant(_numpy_support.as_dtype(kind.dtype).itemsize, integer)
    builder.store_var(target, _arith.addi(_llvm.ptrtoint(integer, pointer), _arith.muli(first, size)))


def _register_new(heap_type, function_of, type_of_array):
    @_overload_method(heap_type, "new")
    def new(heap, dtype, count):
        size = _numpy_support.as_dtype(type_of_array(dtype, count).dtype).itemsize
        function, integer = function_of(heap), _types.int64

        def make(heap, dtype, count):
            memory = function(heap, integer(count), size)
            return array(memory, integer(count) * integer(memory != 0), dtype)

        return make


HeapType, prepare_args, replace_malloc, _ = _support.typed_support(
    __name__,
    _cuda,
    _extending,
    _types,
    _errors,
    _Model,
    _overload_method,
    argument=lambda kernel_type: kernel_type,
    address_of=_address_of,
    register_new=_register_new,
)
