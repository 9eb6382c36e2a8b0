#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `warpheap graph --pes N` and compares its graph with that of one heap.

The program is the first argument, and N the second. All processes may be on one GPU.
"""

import json
import os
import subprocess
import sys

GRAPH = {"--pool": "64MiB", "--scale": "11", "--edge-factor": "8", "--bfs": "first", "--seed": "5"}
SAME = ["vertices", "edges", "mallocs", "frees", "failures", "inserted", "erased", "live_bytes", "peak_bytes", "verified"]


def run(program, options, environment=None):
    """(exit status, standard output, standard error)."""
    words = [word for option in options.items() for word in option]
    done = subprocess.run([program, "graph", *words], capture_output=True, text=True, env={**os.environ, **(environment or {})})
    return done.returncode, done.stdout, done.stderr


def document(program, options):
    status, out, err = run(program, {**options, "--json": "-"})
    if status != 0:
        sys.exit(f"{options}: exit status {status}\n{err}")
    return json.loads(out)


def faults(wanted, made, pes):
    """What is wrong with the graph of `pes` processes."""
    for key in SAME:
        if made[key] != wanted[key]:
            yield f"{key}: {made[key]}, and {wanted[key]} in one heap"
    for key in ("source", "reached", "entries", "depth"):
        if made["bfs"][key] != wanted["bfs"][key]:
            yield f"bfs {key}: {made['bfs'][key]}, and {wanted['bfs'][key]} in one heap"
    members = made["members"]
    if made["pes"] != pes or len(members) != pes:
        yield f"{made['pes']} PEs and {len(members)} members instead of {pes}"
    for key, total in (("vertices", made["vertices"]), ("edges", made["edges"]), ("mallocs", made["mallocs"])):
        if sum(member[key] for member in members) != total:
            yield f"the members' {key} are not the graph's"
    if (sum(member["messages_to_others"] for member in members) > 0) != (pes > 1):
        yield "messages to other members: some of one member, or none of several"


def failures(program, pes):
    """What is wrong with errors: each is one line."""
    job_of_one = {"WARPHEAP_PE": "0 1 0 -1 -1"}
    tries = [
        (2, "no/such.mtx", {"--input": "no/such.mtx"}, None),
        (2, "do not fit", {"--pool": "100TiB"}, None),
        (2, "no allocator is called 'nobody'", {"--allocator": "nobody"}, None),
        (2, "processes are asked for, and the job has 1", {"--pes": str(pes + 1)}, job_of_one),
        (1, "entries were lost", {"--pool": "1MiB", "--scale": "16"}, None),
    ]
    for wanted, words, options, environment in tries:
        status, _, err = run(program, {"--pes": str(pes), **options}, environment)
        if status != wanted or words not in err or err.count("\n") != 1:
            yield f"{options}: exit status {status}, and said {err!r}"


def main():
    program, pes = sys.argv[1], int(sys.argv[2])
    job = {**GRAPH, "--pes": str(pes)}
    found = list(faults(document(program, {**GRAPH, "--backend": "cuda"}), document(program, job), pes))
    status, out, err = run(program, job)
    if status != 0 or err or out.count("Breadth-first search") != 1:
        found.append(f"exit status {status}; what people read is not said once:\n{out}{err}")
    found += failures(program, pes)
    for fault in found:
        print(fault)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
