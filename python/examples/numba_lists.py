# SPDX-License-Identifier: Apache-2.0
"""Vectors that grow and linked lists, one of each per thread, in a Numba kernel.

Each thread walks a Collatz sequence, whose length it does not know beforehand. It appends the numbers
to a vector that doubles as it fills, puts the odd ones into a list of nodes, and adds both up again.
"""

import argparse

import numpy
import warpheap
import warpheap.numba
from numba import cuda
from warpheap.numba import array

NEXT, VALUE, NODE_BYTES = 0, 1, 16


@cuda.jit(device=True)
def append(heap, vector, value):
    """Puts a number behind the last. `vector` is [address, count, capacity]. False: there is no memory for it."""
    if vector[1] == vector[2]:
        capacity = max(4, 2 * vector[2])
        larger = heap.realloc(vector[0], 8 * capacity)
        if larger == 0:
            return False
        vector[0], vector[2] = larger, capacity
    array(vector[0], vector[2], numpy.int64)[vector[1]] = value
    vector[1] += 1
    return True


@cuda.jit(device=True)
def push(heap, head, value):
    """A node before the list that begins at `head`: its address, or 0 if there is no memory for it."""
    node = heap.malloc(NODE_BYTES)
    if node != 0:
        fields = array(node, 2, numpy.int64)
        fields[NEXT], fields[VALUE] = head, value
    return node


@cuda.jit(extensions=[warpheap.numba])
def collatz(heap, steps, odd_sums, failed):
    i = cuda.grid(1)
    if i >= steps.size:
        return
    vector = cuda.local.array(3, numpy.int64)
    vector[0], vector[1], vector[2] = 0, 0, 0
    head, number = 0, i + 1
    while number != 1:
        if not append(heap, vector, number):
            cuda.atomic.add(failed, 0, 1)
            break
        if number % 2 != 0:
            node = push(heap, head, number)
            if node == 0:
                cuda.atomic.add(failed, 0, 1)
                break
            head = node
            number = 3 * number + 1
        else:
            number //= 2
    steps[i] = vector[1]
    odd_sums[i] = 0
    while head != 0:
        fields = array(head, 2, numpy.int64)
        odd_sums[i] += fields[VALUE]
        following = fields[NEXT]
        heap.free(head)
        head = following
    heap.free(vector[0])


def expected(number: int) -> tuple[int, int]:
    steps = odd = 0
    while number != 1:
        steps, odd = steps + 1, odd + (number if number % 2 else 0)
        number = 3 * number + 1 if number % 2 else number // 2
    return steps, odd


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1 << 16)
    threads = parser.parse_args().threads
    steps, odd_sums = (cuda.device_array(threads, numpy.int64) for _ in range(2))
    failed = cuda.to_device(numpy.zeros(1, numpy.int64))
    with warpheap.Heap(1 << 30) as heap:
        fresh = heap.available_slots(1024)
        collatz[(threads + 255) // 256, 256](heap, steps, odd_sums, failed)
        assert failed.copy_to_host()[0] == 0, "the heap has too little memory"
        assert heap.available_slots(1024) == fresh, "blocks were not freed"
    steps, odd_sums = steps.copy_to_host(), odd_sums.copy_to_host()
    for i in range(0, threads, max(1, threads // 1000)):
        assert (steps[i], odd_sums[i]) == expected(i + 1), i
    print(f"{threads} threads, {steps.sum()} numbers; the longest sequence begins at {steps.argmax() + 1}")


if __name__ == "__main__":
    main()
