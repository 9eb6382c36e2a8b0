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
from numba_cuda_mlir._mlir.dialects import arith as _arith
from numba_cuda_mlir.numba_cuda.core import errors as _errors

from . import numba_support as _support
from .heap import Heap as _Heap
from .numba_support import array

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
    _cuda.carray,
    _functools.partial(_extending.overload, typing_registry=_extending.typing_registry),
    _functools.partial(_extending.overload_method, typing_registry=_extending.typing_registry),
    argument=lambda kernel_type: kernel_type,
)
