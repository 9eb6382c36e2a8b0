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
from numba.cuda.np.numpy_support import carray as _carray

from . import numba_support as _support
from .numba_support import array

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
    _carray,
    _extending.overload,
    _extending.overload_method,
    argument=lambda kernel_type: _types.uint64,
)


@_lower_constant(HeapType)
def _handle_of(context, builder, kernel_type, heap):
    return _ir.Constant(_ir.IntType(64), heap.handle)
