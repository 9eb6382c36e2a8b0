#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts what a warp executes for a call of the default allocator, and writes it as JSON. Needs a GPU, nvcc and ncu.

Kernels of 2^20 threads make one call a thread and nothing else. The first burst of a heap opens slabs; the last of seven
finds them. Per size: warp instructions over warps, of the first malloc, the last malloc and the last free.
"""

import argparse
import csv
import datetime
import io
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = ROOT / "bench" / "warp_instructions.cu"
SIZES = [16, 64, 256, 1024, 4096]
WARPS = (1 << 20) / 32
METRIC = "smsp__inst_executed.sum"


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"{command[0]} fails:\n{result.stdout}{result.stderr}")
    return result.stdout


def counted(text):
    """[(kernel, instructions of a warp)] in the order of the launches, from what ncu printed as CSV."""
    rows = csv.DictReader(io.StringIO(text[text.index('"ID"'):]))
    return [(row["Kernel Name"].split("(")[0], float(row["Metric Value"].replace(",", "")) / WARPS) for row in rows]


def by_size(launches, sizes):
    each = len(launches) // len(sizes)
    rows = []
    for i, size in enumerate(sizes):
        mine = launches[i * each : (i + 1) * each]
        mallocs = [value for kernel, value in mine if kernel == "one_malloc"]
        frees = [value for kernel, value in mine if kernel == "one_free"]
        rows.append({
            "bytes": size, "first_malloc": round(mallocs[0]), "malloc": round(mallocs[-1]), "free": round(frees[-1])
        })
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=pathlib.Path, help="the file of JSON")
    parser.add_argument("--commit", default="", help="what the sources are (default: git's)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        program = str(pathlib.Path(directory) / "counted")
        run("nvcc", "-std=c++20", "-O3", "-DNDEBUG", "-arch=native", "-I", str(ROOT / "include"), "-o", program, str(SOURCE))
        said = run("ncu", "--metrics", METRIC, "--csv", "--cache-control", "none", "--clock-control", "none", program,
                   *map(str, SIZES))
    name, driver = run("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").splitlines()[0].split(", ")
    cuda = run("nvcc", "--version").split("release ")[1].split(",")[0]
    commit = options.commit or run("git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD").strip()
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    options.output.write_text(json.dumps({
        "schema": 1,
        "machine": {"device": name, "driver": driver, "cuda": cuda, "commit": commit, "time": now},
        "what": "Instructions that a warp executes for one call a thread, kernels of 2^20 threads (scripts/count_instructions.py).",
        "instructions": by_size(counted(said), SIZES),
    }, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
