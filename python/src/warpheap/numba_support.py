# SPDX-License-Identifier: Apache-2.0
"""Heaps inside kernels, for numba-cuda and for its fork numba_cuda_mlir, which share an interface.

A kernel sees a heap as a value of a type of its own, which carries the allocator, because each
allocator has functions of its own. Addresses are plain integers there: they can be compared with 0,
offset, and stored in arrays, with no operations of ours. All else is C++ that the packages link.
"""

import functools

from . import driver
from .allocators import HEADERS, type_of
from .compiler import compile
from .errors import MemoryArgumentError
from .heap import Heap

# An address is signed in Numba, where an unsigned number plus a signed one is a floating-point number.
_SOURCE = HEADERS + """#include <warpheap/heap/c_functions.hpp>
using size = unsigned long long;
using address = long long;
using heap_type = {type};
#define FUNCTION(result, name) extern "C" WARPHEAP_DEVICE result {prefix}_##name
namespace {{
__device__ heap_type at(size heap) {{ return warpheap::ref_of<heap_type>(heap); }}
__device__ void* pointer(address memory) {{ return reinterpret_cast<void*>(memory); }}
__device__ address number(void* memory) {{ return reinterpret_cast<address>(memory); }}
}}
FUNCTION(address, malloc)(size heap, size bytes) {{ return number(at(heap).malloc(bytes)); }}
FUNCTION(int, free)(size heap, address memory) {{ at(heap).free(pointer(memory)); return 0; }}
FUNCTION(address, calloc)(size heap, size count, size bytes) {{ return number(at(heap).calloc(count, bytes)); }}
FUNCTION(address, realloc)(size heap, address memory, size bytes) {{
  return number(warpheap::detail::reallocated(at(heap), pointer(memory), bytes));
}}
FUNCTION(address, aligned_alloc)(size heap, size alignment, size bytes) {{
  return number(warpheap::detail::allocated_at(at(heap), alignment, bytes));
}}
FUNCTION(size, usable_size)(size heap, address memory) {{
  return warpheap::detail::size_at(at(heap), pointer(memory));
}}
"""
# WARPHEAP_DEVICE matters: heap/override_names.hpp says which registers a function called malloc may use.
_MALLOC_SOURCE = HEADERS + """#include <warpheap/heap/c_functions.hpp>
extern "C" {{
extern __constant__ unsigned long long warpheap_numba_heap;
WARPHEAP_DEVICE void* malloc(size_t bytes) {{ return warpheap::ref_of<{type}>(warpheap_numba_heap).malloc(bytes); }}
WARPHEAP_DEVICE void free(void* memory) {{ warpheap::ref_of<{type}>(warpheap_numba_heap).free(memory); }}
WARPHEAP_DEVICE void* __cuda_syscall_aligned_malloc(size_t bytes, size_t alignment) {{
  return warpheap::detail::allocated_at(warpheap::ref_of<{type}>(warpheap_numba_heap), alignment, bytes);
}}
}}
"""
_HANDLE_SOURCE = """.version 7.0
.target sm_50
.address_size 64
.visible .const .align 8 .u64 warpheap_numba_heap = {handle};
"""
_LETTERS = {  # of the C functions, after the heap: s is a size, a is an address, i another integer; the result is last
    "malloc": "sa",
    "free": "ai",
    "calloc": "ssa",
    "realloc": "asa",
    "aligned_alloc": "ssa",
    "usable_size": "as",
}
_MEANINGS = {"s": "a size", "a": "an address"}


def array_type(types, errors, memory, count, dtype):
    """The type of array() with arguments of these types."""
    for what, given in (("an address", memory), ("a count", count)):
        if not isinstance(given, types.Integer):
            raise errors.TypingError(f"array() takes {what}, an integer, and was given {given}")
    element = getattr(dtype, "dtype", None)
    if element is None:
        raise errors.TypingError(f"array() takes a type such as numpy.int64, and was given {dtype}")
    return types.Array(element, 1, "C")


def typed_support(module: str, cuda, extending, types, errors, model, overload_method, argument):
    """HeapType, prepare_args() and replace_malloc() for the module of this name, which serves the package whose modules these are.

    model     the data model of HeapType, a number of 64 bits
    argument  the type of the number that prepare_args() gives for a heap, from HeapType's
    """
    kinds = {"s": types.uint64, "a": types.int64, "i": types.int32}

    class Linked(cuda.LTOIR):
        """LTO-IR that is compiled when it is linked with a kernel, for the current device."""

        @property
        def data(self):
            return compile(self._data, driver.architecture())

    class HeapType(types.Type):
        """The type of the heaps of an allocator."""

        def __init__(self, allocator: str = "slab_bitmap"):
            type_of(allocator)
            self.allocator = allocator
            super().__init__(f"Heap({allocator})")

    HeapType.__module__, HeapType.__qualname__ = module, "HeapType"
    extending.register_model(HeapType)(model)

    @functools.cache
    def functions(allocator: str) -> dict:
        prefix = f"warpheap_numba_{allocator}"
        link = Linked(_SOURCE.format(type=type_of(allocator), prefix=prefix), name=f"{prefix}.ltoir")
        return {
            method: cuda.declare_device(
                f"{prefix}_{method}",
                kinds[letters[-1]](HeapType(allocator), *(kinds[letter] for letter in letters[:-1])),
                abi="c",
                link=link,
            )
            for method, letters in _LETTERS.items()
        }

    @extending.typeof_impl.register(Heap)
    def type_of_heap(heap, context):
        heap.handle  # an error if the heap is closed
        functions(heap.allocator)  # a package may want them declared before it begins to compile
        return HeapType(heap.allocator)

    def checked(method: str, heap, *arguments):
        """The function, once its arguments are seen to be integers."""
        for letter, given in zip(_LETTERS[method], arguments):
            if not isinstance(given, types.Integer):
                raise errors.TypingError(f"{method}() of a heap takes {_MEANINGS[letter]}, an integer, and was given {given}")
        return functions(heap.allocator)[method]

    def register(method: str) -> None:
        if len(_LETTERS[method]) == 2:

            @overload_method(HeapType, method)
            def of_one(heap, first):
                function = checked(method, heap, first)
                return lambda heap, first: function(heap, first)

        else:

            @overload_method(HeapType, method)
            def of_two(heap, first, second):
                function = checked(method, heap, first, second)
                return lambda heap, first, second: function(heap, first, second)

    for method in _LETTERS:
        register(method)

    def prepare_args(kernel_type, value, stream=None, retr=None):
        """What a kernel with `extensions` of this module is given for a heap. An error if it cannot use it."""
        if not isinstance(value, Heap):
            return kernel_type, value
        handle, device = value.handle, int(driver.call("cuCtxGetDevice"))
        if value.device != device:
            raise MemoryArgumentError(f"the heap is device {value.device}'s, and the kernel runs on device {device}")
        return argument(kernel_type), handle

    def replace_malloc(heap: Heap) -> list:
        """For a kernel's `link`: its malloc and free, and those of all that is linked with it, are then the heap's.

        That includes the package's own runtime, which serves NumPy's arrays in kernels. The kernel
        keeps the heap from being collected, and must not run once the heap is closed.
        """
        if not isinstance(heap, Heap):
            raise TypeError(f"replace_malloc() takes a warpheap.Heap, and was given {heap!r}")
        handle = cuda.PTXSource(_HANDLE_SOURCE.format(handle=heap.handle).encode(), name="warpheap_numba_heap.ptx")
        handle.heap = heap
        return [Linked(_MALLOC_SOURCE.format(type=type_of(heap.allocator)), name="warpheap_numba_malloc.ltoir"), handle]

    return HeapType, prepare_args, replace_malloc
