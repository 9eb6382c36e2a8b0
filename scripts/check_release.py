#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what scripts/release.py makes.

  the same files give the same archive, byte for byte; the places that tell of the version agree
  the bill of materials is valid SPDX, as spdx-tools from PyPI sees it
"""

import json
import pathlib
import tempfile

import compilers
import release

CHANGELOG, VERSION = "CHANGELOG.md", "include/warpheap/version.hpp"


def document_faults(home, document):
    try:
        compilers.succeed(compilers.venv_or_skip(home, "spdx-tools==0.8.*").with_name("pyspdxtools"), "--infile", document)
    except compilers.Failed as failure:
        return [str(failure)]
    return []


def check():
    with tempfile.TemporaryDirectory() as directory:
        home = pathlib.Path(directory)
        found = release.disagreements(compilers.ROOT, final=False)
        first, second = (release.make(home / str(number), release.draft_commit()).read_bytes() for number in range(2))
        found += [] if first == second else ["two archives of the same files differ"]
        found += [] if found else document_faults(home, next((home / "0").glob("*.spdx.json")))
    return found, "a release of this tree is reproducible, and its versions agree"


def negative_test():
    """Of the files that tell of versions, as a release would have them, copies with one place wrong; and a document of nothing."""
    numbers, suffix = release.numbers_and_suffix(compilers.ROOT)
    minor = numbers.rpartition(".")[0]
    files = {name: (compilers.ROOT / name).read_text() for name in compilers.tracked(*release.ASKING, CHANGELOG, VERSION, "packaging/*")}
    released = files[CHANGELOG].partition("\n## [")[2].partition("\n## [")[2].replace(f"{numbers}] - 2", "0.0.0] - 2", 1)
    files[CHANGELOG] = f"## [Unreleased]\n\n## [{numbers}] - 2026-01-01\n\n## [{released}"
    files[VERSION] = files[VERSION].replace(f'SUFFIX "{suffix}"', 'SUFFIX ""')
    in_work = ('SUFFIX ""', 'SUFFIX ".dev0"')
    wrong = [
        ("README.md", f"find_package(warpheap {minor}", "find_package(warpheap 9.9"),
        (CHANGELOG, f"## [{numbers}] - ", "## [9.9.9] - "),
        (CHANGELOG, "## [Unreleased]", "## [Unreleased]\n\n- A change."),
        ("tests/package/cuda/CMakeLists.txt", f"warpheap {minor}", "warpheap 9.9"),
        ("packaging/conan/conandata.yml", "@VERSION@", numbers),
        (VERSION, *in_work),
    ]

    def said(final, *changes):
        changed = {path: files[path].replace(right, planted, 1) for path, right, planted in changes}
        with compilers.folder_of({**files, **changed}) as root:
            return release.disagreements(root, final)

    faults = [f"missed: {each}" for each in wrong if not said(True, each)]
    faults += said(True) + said(False, (CHANGELOG, f"## [{numbers}] - ", "## [0.0.1] - "), (VERSION, *in_work))
    document = json.loads(release.sbom.document("1.2.3", "0" * 64, 0))
    document["relationships"][0]["relatedSpdxElement"] = "SPDXRef-nothing"
    with compilers.folder_of({"wrong.spdx.json": json.dumps(document)}) as home:
        return faults or ([] if document_faults(home, home / "wrong.spdx.json") else ["missed: a document that describes nothing"])


if __name__ == "__main__":
    compilers.run(__doc__, check, negative_test)
