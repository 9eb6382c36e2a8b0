#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the proofs of archive/proofs that need nothing but compilers, with an installed archive: each links device code of another
compiler or language, and finds that malloc is the archive's. What a proof skips is told; without nvcc all are. And
archive_heap.py, which other proofs need a GPU for, has the structures of warpheap.h."""

import os
import re
import subprocess
import sys
import tempfile

import check_archive
import compilers

PROOFS = compilers.ROOT / "archive" / "proofs"
OF_COMPILERS = ["clang_cuda.sh", "cxx.sh", "julia.sh", "openmp.sh"]
ARCH = "90"


def run(prefix, proof):
    """(succeeded, what was said) of one proof."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "WARPHEAP_ARCHIVE": str(prefix), "PROOF_FOLDER": folder, "ARCH": ARCH}
        done = subprocess.run([PROOFS / proof], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.returncode == 0, done.stdout


def faults_of(prefix, proofs):
    faults = []
    for proof in proofs:
        good, said = run(prefix, proof)
        for line in said.splitlines():
            if line.startswith("SKIP"):
                print(f"{proof}: {line}")
        faults += [] if good else [f"{proof}: FAILED\n{said}"]
    return faults


def structure_faults(header):
    """Structures of Python that are not those of the header."""
    sys.path.insert(0, str(PROOFS))
    import archive_heap

    faults = []
    for name, structure in (("settings", archive_heap.Settings), ("statistics", archive_heap.Statistics)):
        body, = re.findall(rf"typedef struct warpheap_{name} {{(.*?)}} warpheap_{name};", header, re.DOTALL)
        members = re.findall(r"(\w+);", re.sub(r"/\*.*?\*/", "", body, flags=re.DOTALL))
        ours = [field for field, _ in structure._fields_]
        faults += [] if members == ours else [f"archive_heap.py: {structure.__name__} has {ours}, and warpheap.h has {members}"]
    interface, = re.findall(r"#define WARPHEAP_INTERFACE (\d+)", header)
    return faults + ([] if int(interface) == archive_heap.INTERFACE else [f"archive_heap.py is of another interface than {interface}"])


def negative_test(prefix):
    """An archive whose device code is another program's, and headers that have changed."""
    with compilers.folder_of({"other.cu": "__device__ int other() { return 1; }\n"}) as folder:
        library = prefix / "lib" / "libwarpheap_device.a"
        library.unlink()
        check_archive.run("nvcc", "-rdc=true", f"-arch=sm_{ARCH}", "-c", folder / "other.cu", "-o", folder / "other.o")
        check_archive.run("ar", "rcs", library, folder / "other.o")
        wrong = [] if faults_of(prefix, ["cxx.sh"]) else ["cxx.sh takes an archive without malloc"]
    header = (prefix / "include" / "warpheap.h").read_text()
    planted = [header.replace("int report;", "int reports;"), header.replace("WARPHEAP_INTERFACE 1", "WARPHEAP_INTERFACE 0")]
    return wrong + [f"judged wrongly: {text}" for text in planted if not structure_faults(text)]


def main():
    options = compilers.arguments(__doc__).parse_args()
    nvcc = compilers.nvcc_or_skip("the archive with other compilers")[0]
    os.environ["PATH"] += os.pathsep + os.path.dirname(nvcc)
    with check_archive.installed([ARCH]) as prefix:
        header = (prefix / "include" / "warpheap.h").read_text()
        faults = negative_test(prefix) if options.self_test else faults_of(prefix, OF_COMPILERS) + structure_faults(header)
    none = "judged all planted faults rightly" if options.self_test else "malloc of other compilers' device code is the archive's"
    print("\n".join(faults) or none)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
