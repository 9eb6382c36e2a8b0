# SPDX-License-Identifier: Apache-2.0
"""Heaps inside kernels, for numba-cuda and for its fork numba_cuda_mlir, which share an interface.

A kernel sees a heap as a value of a type of its own, which carries the allocator, because each
allocator has functions of its own. Addresses are plain integers there: they can be compared with 0,
offset, and stored in arrays, with no operations of ours. All else is C++ that the packages link.
"""

import functools
import hashlib
import pathlib
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

from . import driver
from .allocators import HEADERS, type_of
from .compiler import compile, headers_digest
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
static_assert(heap_type::traits.alignment >= 8);  // as much as elements of arrays need
FUNCTION(address, new)(size heap, size count, size bytes) {{
  return bytes && count > ~size{{}} / bytes ? 0 : number(at(heap).malloc(count * bytes));
}}
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
_NEW = {"new": "ssa"}  # which has a type for its first size in kernels
_MEANINGS = {"s": "a size", "a": "an address"}


@functools.cache
def _code_digest() -> str:
    """Of all that machine code with ours in it depends on: the headers, and this package."""
    made = hashlib.sha256(headers_digest().encode())
    for path in sorted(pathlib.Path(__file__).parent.glob("*.py")):
        made.update(path.read_bytes())
    return made.hexdigest()


def array_type(types: Any, errors: Any, memory: Any, count: Any, dtype: Any) -> Any:
    """The type of array() with arguments of these types."""
    if not isinstance(memory, types.Integer):
        raise errors.TypingError(f"array() takes an address, an integer, and was given {memory}")
    return _view_type("array()", types, errors, count, dtype)


def _view_type(function: str, types: Any, errors: Any, count: Any, dtype: Any) -> Any:
    if not isinstance(count, types.Integer):
        raise errors.TypingError(f"{function} takes a count, an integer, and was given {count}")
    if not isinstance(dtype, (types.NumberClass, types.DType)):
        raise errors.TypingError(f"{function} takes a type such as numpy.int64, and was given {dtype}")
    return types.Array(dtype.dtype, 1, "C")


def not_cached(what: str) -> pickle.PicklingError:
    """The error of a kernel whose machine code is of use to this process alone."""
    return pickle.PicklingError(f"a kernel with {what} cannot be cached, because it has the heap's address: leave out cache=True")


class Support(NamedTuple):
    """What a package's module is made of."""

    HeapType: Any
    prepare_args: Callable[..., Any]
    replace_malloc: Callable[[Heap], list[Any]]
    Linked: Any  #: LTO-IR of ours


def typed_support(
    module: str,
    cuda: Any,
    extending: Any,
    types: Any,
    errors: Any,
    model: Any,
    overload_method: Any,
    argument: Callable[[Any], Any],
    address_of: Any,
    register_new: Callable[..., None],
) -> Support:
    """The support for the module of this name, which serves the package whose modules these are.

    model         the data model of HeapType, a number of 64 bits
    argument      the type of the number that prepare_args() gives for a heap, from HeapType's
    address_of    a function of kernels: the address of an array's first element
    register_new  makes the method new(), from HeapType, the function that gives its memory, of the type of
                  a heap, and one that gives its array's type, of those of its arguments
    """
    integer = types.int64  # narrower ones keep their sign
    kinds = {"s": types.uint64, "a": types.int64, "i": types.int32}

    class Linked(cuda.LTOIR):  # type: ignore[misc]  # a class of a package without types
        """LTO-IR that is compiled when it is linked with a kernel, for the current device."""

        @property
        def data(self) -> bytes:
            return compile(self._data, driver.architecture())

    class HeapType(types.Type):  # type: ignore[misc]
        """The type of the heaps of an allocator."""

        def __init__(self, allocator: str = "slab_bitmap"):
            type_of(allocator)
            self.allocator = allocator
            # A cached kernel is found by its types, and is no longer right once our code is other code.
            self.code = _code_digest()
            super().__init__(f"Heap({allocator})")

        @property
        def key(self) -> tuple[str, str]:
            return self.allocator, self.code

    HeapType.__module__, HeapType.__qualname__ = module, "HeapType"
    extending.register_model(HeapType)(model)

    @functools.cache
    def functions(allocator: str) -> dict[str, Any]:
        prefix = f"warpheap_numba_{allocator}"
        link = Linked(_SOURCE.format(type=type_of(allocator), prefix=prefix), name=f"{prefix}.ltoir")
        return {
            method: cuda.declare_device(
                f"{prefix}_{method}",
                kinds[letters[-1]](HeapType(allocator), *(kinds[letter] for letter in letters[:-1])),
                abi="c",
                link=link,
            )
            for method, letters in (_LETTERS | _NEW).items()
        }

    @extending.typeof_impl.register(Heap)  # type: ignore[untyped-decorator]
    def type_of_heap(heap: Heap, context: Any) -> Any:
        heap.handle  # an error if the heap is closed
        functions(heap.allocator)  # a package may want them declared before it begins to compile
        return HeapType(heap.allocator)

    def checked(method: str, heap: Any, *arguments: Any) -> Any:
        """The function, once its arguments are seen to be integers."""
        for letter, given in zip(_LETTERS[method], arguments):
            if not isinstance(given, types.Integer):
                raise errors.TypingError(f"{method}() of a heap takes {_MEANINGS[letter]}, an integer, and was given {given}")
        return functions(heap.allocator)[method]

    def register(method: str) -> None:
        if len(_LETTERS[method]) == 2:

            @overload_method(HeapType, method)
            def of_one(heap, first):  # type: ignore[no-untyped-def]  # as what it returns
                if method == "free" and isinstance(first, types.Array):
                    free = functions(heap.allocator)["free"]
                    return lambda heap, first: free(heap, address_of(first))
                function = checked(method, heap, first)
                return lambda heap, first: function(heap, integer(first))

        else:

            @overload_method(HeapType, method)
            def of_two(heap, first, second):  # type: ignore[no-untyped-def]
                function = checked(method, heap, first, second)
                return lambda heap, first, second: function(heap, integer(first), integer(second))

    for method in _LETTERS:
        register(method)

    register_new(
        HeapType,
        lambda heap: functions(heap.allocator)["new"],
        lambda dtype, count: _view_type("new() of a heap", types, errors, count, dtype),
    )

    def prepare_args(kernel_type: Any, value: Any, stream: Any = None, retr: Any = None) -> tuple[Any, Any]:
        """What a kernel with `extensions` of this module is given for a heap. An error if it cannot use it."""
        if not isinstance(value, Heap):
            return kernel_type, value
        handle, device = value.handle, int(driver.call("cuCtxGetDevice"))
        if value.device != device:
            raise MemoryArgumentError(f"the heap is device {value.device}'s, and the kernel runs on device {device}")
        return argument(kernel_type), handle

    def replace_malloc(heap: Heap) -> list[Any]:
        """For a kernel's `link`: its malloc and free, and those of all that is linked with it, are then the heap's.

        That includes the package's own runtime, which serves NumPy's arrays in kernels. The kernel
        keeps the heap from being collected, and must not run once the heap is closed.
        """
        if not isinstance(heap, Heap):
            raise TypeError(f"replace_malloc() takes a warpheap.Heap, and was given {heap!r}")
        handle = cuda.PTXSource(_HANDLE_SOURCE.format(handle=heap.handle).encode(), name="warpheap_numba_heap.ptx")
        handle.heap = heap
        return [Linked(_MALLOC_SOURCE.format(type=type_of(heap.allocator)), name="warpheap_numba_malloc.ltoir"), handle]

    return Support(HeapType, prepare_args, replace_malloc, Linked)
