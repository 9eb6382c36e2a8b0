# SPDX-License-Identifier: Apache-2.0
"""Heaps inside kernels that numba-cuda compiles. numba_support.py says how."""

import functools as _functools
import inspect as _inspect

from llvmlite import ir as _ir
from numba import cuda as _cuda
from numba.cuda import extending as _extending
from numba.cuda import types as _types
from numba.cuda.codegen import CUDACodeLibrary as _CUDACodeLibrary
from numba.cuda.core import errors as _errors
from numba.cuda.core.imputils import lower_constant as _lower_constant
from numba.cuda.np import arrayobj as _arrayobj
from numba.cuda.typing import templates as _templates

from . import numba_support as _support
from .heap import Heap as _Heap

__all__ = ["HeapType", "array", "prepare_args", "replace_malloc"]


_NEW = _inspect.signature(lambda dtype, count: None)


class _Model(_extending.models.PrimitiveModel):
    def __init__(self, manager, kernel_type):
        super().__init__(manager, kernel_type, _ir.IntType(64))


def _view(context, builder, made, address, length):
    """An array of the type `made`."""
    element = context.get_data_type(made.dtype)
    size = context.get_constant(_types.intp, context.get_abi_sizeof(element))
    result = _arrayobj.make_array(made)(context, builder)
    data = builder.inttoptr(address, element.as_pointer())
    _arrayobj.populate_array(result, data=data, shape=[length], strides=[size], itemsize=size, meminfo=None)
    return result._getvalue()


# An intrinsic, and no overload: where Numba inlines a function, it removes stores to arrays that the
# kernel itself does not read again.
@_extending.intrinsic
def array(context, memory, count, dtype):
    """In a kernel: an array of `count` elements of type `dtype` at the address `memory`."""
    made = _support.array_type(_types, _errors, memory, count, dtype)

    def generate(context, builder, signature, arguments):
        address, length, _ = arguments
        return _view(context, builder, made, address, context.cast(builder, length, signature.args[1], _types.intp))

    return made(memory, count, dtype), generate


@_extending.intrinsic
def _address_of(context, view):
    def generate(context, builder, signature, arguments):
        data = _arrayobj.make_array(view)(context, builder, arguments[0]).data
        return builder.ptrtoint(data, _ir.IntType(64))

    return _types.int64(view), generate


def _register_new(heap_type, function_of, type_of_array):
    """No overload, which could return no array."""

    @_extending.infer_getattr
    class Methods(_templates.AttributeTemplate):
        key = heap_type

        @_templates.bound_function("warpheap.Heap.new")
        def resolve_new(self, heap, given, named):
            arguments = _NEW.bind(*given, **named).args
            return type_of_array(*arguments)(*arguments).replace(pysig=_NEW)

    @_extending.lower_builtin("warpheap.Heap.new", heap_type, _types.Any, _types.Any)
    def lower_new(context, builder, signature, arguments):
        (heap, _, length), function = arguments, function_of(signature.args[0])
        element = context.get_abi_sizeof(context.get_data_type(signature.return_type.dtype))
        length = context.cast(builder, length, signature.args[2], _types.intp)

        def take(heap, count, size):
            return function(heap, count, size)

        of_take = _types.int64(signature.args[0], _types.intp, _types.intp)
        address = context.compile_internal(builder, take, of_take, (heap, length, context.get_constant(_types.intp, element)))
        none = context.get_constant(_types.intp, 0)
        return _view(context, builder, signature.return_type, address, builder.select(builder.icmp_signed("==", address, none), none, length))


HeapType, prepare_args, replace_malloc, _Linked = _support.typed_support(
    __name__.replace("_device", ""),
    _cuda,
    _extending,
    _types,
    _errors,
    _Model,
    _extending.overload_method,
    argument=lambda kernel_type: _types.uint64,
    address_of=_address_of,
    register_new=_register_new,
)


@_lower_constant(HeapType)
def _handle_of(context, builder, kernel_type, heap):
    context.active_code_library.referenced_objects[id(heap)] = heap
    return _ir.Constant(_ir.IntType(64), heap.handle)


def _allow_our_files(reduce):
    """`reduce` for kernels that are linked with our code. Numba caches none with linked files, as they may change.

    The cached machine code has ours in it, and HeapType's key changes with it.
    """

    @_functools.wraps(reduce)
    def reduced(library):
        files = library._linking_files
        around = any(isinstance(each, _Heap) for each in library.referenced_objects.values())
        if around or any(hasattr(file, "heap") for file in files):
            raise _support.not_cached("a heap around it" if around else "replace_malloc()")
        library._linking_files = {file for file in files if not isinstance(file, _Linked)}
        try:
            return reduce(library)
        finally:
            library._linking_files = files

    return reduced


if hasattr(_CUDACodeLibrary, "_reduce_states"):  # otherwise kernels with heaps are not cached, as Numba says
    _CUDACodeLibrary._reduce_states = _allow_our_files(_CUDACodeLibrary._reduce_states)
