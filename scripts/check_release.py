#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what scripts/release.py makes.

  the same files give the same archive, byte for byte; the places that tell of the version agree
  the device archive, built for one architecture where nvcc is, is packed whole and without a difference of its own
  the bill of materials is valid SPDX, as spdx-tools from PyPI sees it, and has the hashes of both
  a part that was asked for, and cannot be made, is an error, and otherwise a line that says SKIP
"""

import contextlib
import hashlib
import io
import json
import os
import pathlib
import shutil
import tarfile
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


def device_archive_in(home):
    """Where nvcc is, a device archive; otherwise files with the names of one."""
    if compilers.find_nvcc():
        return compilers.install_archive(home / "built", ["90"])
    print("SKIP: no nvcc, so the device archive is of empty files")
    (home / "built" / "lib").mkdir(parents=True)
    (home / "built" / "lib" / "libwarpheap_host.so.1").touch()
    (home / "built" / "lib" / "libwarpheap_host.so").symlink_to("libwarpheap_host.so.1")
    return home / "built"


def contents(folder):
    """{name: where a link leads, or the bytes of a file}"""
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_symlink() or path.is_file()}
    return {name: os.readlink(path) if path.is_symlink() else path.read_bytes() for name, path in files.items()}


def packing_faults(folder, built, home):
    """What is wrong with the device archive in the folder of a release."""
    packed, = folder.glob("warpheap-archive-*.tar.gz")
    top = packed.name.removesuffix(".tar.gz")
    with tarfile.open(packed) as tar:
        names = tar.getnames()
        tar.extractall(home / "unpacked")
    wrong = [] if names == sorted(names) else [f"{packed.name} is not sorted"]
    if contents(home / "unpacked" / top) != contents(built) | {"LICENSE": (compilers.ROOT / "LICENSE").read_bytes()}:
        wrong.append(f"{packed.name} has other files than were built")
    return wrong


def hash_faults(folder):
    """Files whose hash is not that beside them, or not in the bill of materials."""
    document, = folder.glob("*.spdx.json")
    packages = json.loads(document.read_text())["packages"]
    listed = {each["packageFileName"]: each["checksums"][0]["checksumValue"] for each in packages if "packageFileName" in each}
    wrong = []
    for path in sorted(folder.glob("*.tar.gz")):
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        if path.with_name(path.name + ".sha256").read_text() != f"{sha256}  {path.name}\n":
            wrong.append(f"{path.name}.sha256 has another hash")
        if listed.get(path.name) != sha256:
            wrong.append(f"the bill of materials has another hash of {path.name}")
    return wrong


def part_faults():
    """What is_made says wrongly."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        answers = [release.is_made("part", asked, missing) for asked, missing in ((None, []), (True, []), (None, ["x"]), (False, []), (False, ["x"]))]
    wrong = [] if answers == [True, True, False, False, False] else [f"a part is made: {answers}"]
    wrong += [] if said.getvalue() == "SKIP: no x, so no part\n" else [f"a part that lacks something says {said.getvalue()!r}"]
    with contextlib.suppress(compilers.Failed):
        release.is_made("part", True, ["x"])
        wrong.append("a part that was asked for, and cannot be made, is no error")
    return wrong


def check():
    with tempfile.TemporaryDirectory() as directory:
        home = pathlib.Path(directory)
        found = release.disagreements(compilers.ROOT, final=False) + part_faults()
        built = device_archive_in(home)
        copy = shutil.copytree(built, home / "copy", symlinks=True, copy_function=shutil.copyfile)  # with other times
        folders = [home / "0", home / "1"]
        for folder, archive in zip(folders, (built, copy)):
            release.make(folder, release.draft_commit(), device_archive=archive)
        for one, other in zip(*(sorted(folder.glob("*.tar.gz")) for folder in folders), strict=True):
            found += [] if one.read_bytes() == other.read_bytes() else [f"two files {one.name} of the same files differ"]
        found += packing_faults(folders[0], built, home) + hash_faults(folders[0])
        found += [] if found else document_faults(home, next(folders[0].glob("*.spdx.json")))
    return found, "a release of this tree is reproducible, and its versions agree"


def missed_in_files():
    """Faults that are not seen in a release whose device archive lacks a file, or whose files have other hashes."""
    with compilers.folder_of({"built/lib/one": "1"}) as home:
        folder, built = home / "0", home / "built"
        release.make(folder, release.draft_commit(), device_archive=built)
        missed = packing_faults(folder, built, home) + hash_faults(folder)
        (built / "lib" / "two").touch()
        missed += [] if packing_faults(folder, built, home) else ["missed: a file that is not packed"]
        for path in folder.glob("*.tar.gz"):
            path.write_bytes(path.read_bytes() + b"0")
        said = hash_faults(folder)
        return missed if len(said) == 4 else [*missed, f"of four wrong hashes, these were seen: {said}"]


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
        ("docs/guide/build.md", f"find_package(warpheap {minor}", "find_package(warpheap 9.9"),
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
    faults += said(True) + said(False, (CHANGELOG, f"## [{numbers}] - ", "## [0.0.1] - "), (VERSION, *in_work)) + missed_in_files()
    document = json.loads(release.sbom.document("1.2.3", "0" * 64, 0))
    document["relationships"][0]["relatedSpdxElement"] = "SPDXRef-nothing"
    with compilers.folder_of({"wrong.spdx.json": json.dumps(document)}) as home:
        return faults or ([] if document_faults(home, home / "wrong.spdx.json") else ["missed: a document that describes nothing"])


if __name__ == "__main__":
    compilers.run(__doc__, check, negative_test)
