"""Heaps inside kernels, for numba-cuda and for its fork numba_cuda_mlir, which share an interface.

A kernel sees a heap as a value of a type of its own, which carries the allocator, because each
allocator has functions of its own. Addresses are plain integers there: they can be compared with 0,
offset, and stored in arrays, with no operations of ours. All else is C++ that the packages link.
"""

import functools

from . import driver
from .allocators import type_of
from .compiler import compile
from .errors import MemoryArgumentError
from .heap import Heap

# An address is signed in Numba, where an unsigned number plus a signed one is a floating-point number.
_SOURCE = """#include <warpheap/warpheap.hpp>
#include <warpheap/heap/c_functions.hpp>
using size = unsigned long long;
using address = long long;
using heap_type = {type};
#define FUNCTION(result, name) extern "C" __device__ result {prefix}_##name
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
_POINTER_SOURCE = """extern "C" __device__ void* warpheap_numba_pointer(long long address) {
  return reinterpret_cast<void*>(address);
}
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


def array(memory, count, dtype):
    """In a kernel: an array of `count` elements of type `dtype` at the address `memory`."""
    raise TypeError("array() is for kernels")


def typed_support(module: str, cuda, extending, types, errors, model, carray, overload, overload_method, argument):
    """HeapType and prepare_args() for the module of this name, which serves the package whose modules these are.

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
                kinds[last](HeapType(allocator), *(kinds[letter] for letter in letters)),
                abi="c",
                link=link,
            )
            for method, (*letters, last) in _LETTERS.items()
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

            @overload_method(HeapType, method, inline="always")
            def of_one(heap, first):
                function = checked(method, heap, first)
                return lambda heap, first: function(heap, first)

        else:

            @overload_method(HeapType, method, inline="always")
            def of_two(heap, first, second):
                function = checked(method, heap, first, second)
                return lambda heap, first, second: function(heap, first, second)

    for method in _LETTERS:
        register(method)

    pointer = cuda.declare_device(
        "warpheap_numba_pointer",
        types.voidptr(types.int64),
        abi="c",
        link=Linked(_POINTER_SOURCE, name="warpheap_numba_pointer.ltoir"),
    )

    @overload(array, inline="always")
    def array_at(memory, count, dtype):
        for what, given in (("an address", memory), ("a count", count)):
            if not isinstance(given, types.Integer):
                raise errors.TypingError(f"array() takes {what}, an integer, and was given {given}")
        return lambda memory, count, dtype: carray(pointer(memory), (count,), dtype)

    def prepare_args(kernel_type, value, stream=None, retr=None):
        """What a kernel with `extensions` of this module is given for a heap. An error if it cannot use it."""
        if not isinstance(value, Heap):
            return kernel_type, value
        handle, device = value.handle, int(driver.call("cuCtxGetDevice"))
        if value.device != device:
            raise MemoryArgumentError(f"the heap is device {value.device}'s, and the kernel runs on device {device}")
        return argument(kernel_type), handle

    return HeapType, prepare_args
