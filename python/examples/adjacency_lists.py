# SPDX-License-Identifier: Apache-2.0
# %% [markdown]
# # Adjacency lists of a graph, built by Numba kernels
#
# The edges of a random graph arrive in no order, and nobody knows how many each vertex has. A thread for each edge
# allocates a node and pushes it onto its vertex's list. Then a thread for each vertex moves its list into an array
# that grows by realloc, and frees the nodes. NumPy builds the same lists from a sort, and both must agree.
#
# Run it as a program (`--help`), or cell by cell in an editor that knows `# %%`.

# %%
import argparse
import sys

parser = argparse.ArgumentParser(description="Builds the adjacency lists of a random graph on a GPU, and plots their lengths.")
parser.add_argument("--scale", type=int, default=20, help="the graph has 2**SCALE vertices, 1 to 24 (%(default)s)")
parser.add_argument("--edges", type=int, default=16, help="edges for each vertex, on average, 1 to 64 (%(default)s)")
parser.add_argument("--seed", type=int, default=1, help="of the random graph (%(default)s)")
parser.add_argument("--plot", default="degrees.png", help="file for the plot (%(default)s)")
arguments = parser.parse_args([] if "ipykernel" in sys.modules else None)
if not (1 <= arguments.scale <= 24 and 1 <= arguments.edges <= 64):
    parser.error(f"--scale {arguments.scale} must be in 1 to 24, and --edges {arguments.edges} in 1 to 64")

import numpy  # noqa: E402

import warpheap  # noqa: E402

# %% [markdown]
# An R-MAT graph (Chakrabarti and others, 2004): each edge chooses a quarter of the adjacency matrix, `SCALE` times.

# %%
vertices, edges = 1 << arguments.scale, arguments.edges << arguments.scale
generator = numpy.random.default_rng(arguments.seed)
sources, targets = numpy.zeros(edges, numpy.int32), numpy.zeros(edges, numpy.int32)
for _ in range(arguments.scale):
    quarter = generator.choice(4, edges, p=[0.57, 0.19, 0.19, 0.05]).astype(numpy.int32)
    sources, targets = 2 * sources + quarter // 2, 2 * targets + quarter % 2

# %% [markdown]
# A node takes 16 bytes, and an array up to twice its edges, so 64 bytes for each edge and each vertex are ample.

# %%
try:
    heap = warpheap.Heap(max(64 << 20, 64 * (edges + vertices)))
except (warpheap.NoDeviceError, warpheap.OutOfMemoryError, warpheap.NoCompilerError) as problem:
    sys.exit(f"adjacency_lists: {problem}")

from numba import cuda  # noqa: E402

import warpheap.numba  # noqa: E402
from warpheap.numba import array  # noqa: E402


@cuda.jit(extensions=[warpheap.numba])
def insert(heap, sources, targets, heads, refused):
    """Pushes a node for each edge: word 0 is the target, word 1 the next node's address."""
    edge = cuda.grid(1)
    if edge >= sources.size:
        return
    memory = heap.malloc(16)
    if memory == 0:
        cuda.atomic.add(refused, 0, 1)
        return
    node = array(memory, 2, numpy.int64)
    node[0] = targets[edge]
    node[1] = cuda.atomic.exch(heads, sources[edge], memory)


@cuda.jit(extensions=[warpheap.numba])
def gather(heap, heads, lists, degrees, refused):
    """Moves each vertex's nodes into an array of 32-bit numbers that doubles when it is full."""
    vertex = cuda.grid(1)
    if vertex >= heads.size:
        return
    capacity, degree = 4, 0
    memory = heap.malloc(4 * capacity)
    following = heads[vertex]
    while following != 0 and memory != 0:
        if degree == capacity:
            larger = heap.realloc(memory, 8 * capacity)
            if larger == 0:
                break
            memory, capacity = larger, 2 * capacity
        node = array(following, 2, numpy.int64)
        array(memory, capacity, numpy.int32)[degree] = node[0]
        degree += 1
        passed, following = following, node[1]
        heap.free(passed)
    if following != 0 or memory == 0:
        cuda.atomic.add(refused, 0, 1)
    lists[vertex], degrees[vertex] = memory, degree


@cuda.jit(extensions=[warpheap.numba])
def copy_out(heap, lists, degrees, offsets, out):
    """Copies each list to its place in `out`, and frees it."""
    vertex = cuda.grid(1)
    if vertex >= lists.size:
        return
    neighbours = array(lists[vertex], degrees[vertex], numpy.int32)
    for index in range(degrees[vertex]):
        out[offsets[vertex] + index] = neighbours[index]
    heap.free(lists[vertex])


# %%
fresh = heap.available_slots(16)
refused = cuda.to_device(numpy.zeros(1, numpy.uint32))
heads = cuda.to_device(numpy.zeros(vertices, numpy.int64))
lists, degrees = cuda.device_array(vertices, numpy.int64), cuda.device_array(vertices, numpy.int32)
insert.forall(edges)(heap, cuda.to_device(sources), cuda.to_device(targets), heads, refused)
gather.forall(vertices)(heap, heads, lists, degrees, refused)
degree = degrees.copy_to_host()
if refused.copy_to_host()[0]:
    sys.exit(f"adjacency_lists: the heap of {heap.nbytes} bytes is too small for {edges} edges")
used = fresh - heap.available_slots(16)

offsets = numpy.concatenate([[0], numpy.cumsum(degree[:-1], dtype=numpy.int64)])
out = cuda.device_array(edges, numpy.int32)
copy_out.forall(vertices)(heap, lists, degrees, cuda.to_device(offsets), out)
found = out.copy_to_host()

# %% [markdown]
# The check: the same edges, list by list in order of their targets; and every block came back.

# %%
right_degree = numpy.bincount(sources, minlength=vertices)
right = targets[numpy.lexsort((targets, sources))]
ordered = found[numpy.lexsort((found, numpy.repeat(numpy.arange(vertices), degree)))]
if not (numpy.array_equal(degree, right_degree) and numpy.array_equal(ordered, right)):
    sys.exit("adjacency_lists: the lists differ from NumPy's")
if heap.available_slots(16) != fresh:
    sys.exit(f"adjacency_lists: {fresh - heap.available_slots(16)} blocks of 16 bytes did not come back")
heap.close()
print(f"{vertices} vertices, {edges} edges, the longest list has {degree.max()}; {16 * used / (1 << 20):.1f} MiB held them")

# %%
import matplotlib  # noqa: E402

if "ipykernel" not in sys.modules:
    matplotlib.use("agg")
from matplotlib import pyplot  # noqa: E402

lengths, counts = numpy.unique(degree, return_counts=True)
figure, axes = pyplot.subplots(figsize=(6, 4))
axes.loglog(lengths[lengths > 0], counts[lengths > 0], ".")
axes.set(xlabel="length of a list", ylabel="vertices", title=f"R-MAT, 2^{arguments.scale} vertices")
figure.tight_layout()
figure.savefig(arguments.plot, dpi=150)
print(f"plotted to {arguments.plot}")
