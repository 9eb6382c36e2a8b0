#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what scripts/release.py makes.

  the same files give the same archive, byte for byte; the places that tell of the version agree
  the device archive, built for one architecture where nvcc is, is packed whole and without a difference of its own
  the bill of materials is valid SPDX, as spdx-tools from PyPI sees it, and has the hashes of both
  a part that was asked for, and cannot be made, is an error, and otherwise a line that says SKIP
  a copy of this tree with the address of a repository is released: tag, notes, recipes and Python package name it
  CITATION.cff is as cffconvert from PyPI wants it
"""

import contextlib
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import zipfile

import compilers
import release

CHANGELOG, VERSION = "CHANGELOG.md", "include/warpheap/version.hpp"
ADDRESS, DATE = "https://example.org/project/warpheap", "2026-01-01"
PYPI = ("spdx-tools==0.8.*", "cffconvert==2.*", "build", "hatchling")


def as_released(files):
    """The texts that tell of the version or of the repository, as a release at ADDRESS has them."""
    numbers, suffix = release.numbers_and_suffix(compilers.ROOT)
    citation = files[release.CITATION]
    for name, value in {"version": numbers, "date-released": DATE, "(?:# )?repository-code": f"{ADDRESS}  # as YAML may have it"}.items():
        citation = re.sub(rf"^{name}: .*$", f"{name.removeprefix('(?:# )?')}: {value}", citation, flags=re.MULTILINE)
    changed = {
        CHANGELOG: f"# Changelog\n\n## [Unreleased]\n\n## [{numbers}] - {DATE}\n\n- [A change](README.md).\n\n## [0.0.1] - 2025-01-01\n\n- Another.\n",
        VERSION: files[VERSION].replace(f'SUFFIX "{suffix}"', 'SUFFIX ""'),
        release.CITATION: citation,
        **{name: f"{files[name]}\nThe repository is {ADDRESS}.\n" for name in release.NAMING},
    }
    return {**files, **changed}


def failure_of(*command):
    """What a command says, if it fails."""
    try:
        compilers.succeed(*command)
    except compilers.Failed as failure:
        return [str(failure)]
    return []


def document_faults(python, document):
    return failure_of(python.with_name("pyspdxtools"), "--infile", document)


def citation_faults(python, citation):
    return failure_of(python.with_name("cffconvert"), "--validate", "--infile", citation)


def texts_of_release():
    """{name: text} of the files that tell of the version or of the repository."""
    names = compilers.tracked(*release.ASKING, *release.NAMING, CHANGELOG, VERSION, release.CITATION, "packaging/*")
    return {name: (compilers.ROOT / name).read_text() for name in names}


def copy_of_tree(clone):
    """A repository of the working tree's files, as a release has them. Returns a function that runs git in it."""
    def git(*words):
        return compilers.succeed("git", "-C", clone, *words)

    clone.mkdir()
    tar = release.git("archive", "--format=tar", release.draft_commit())
    subprocess.run(["tar", "x", "-C", str(clone)], input=tar, check=True)
    for name, text in as_released(texts_of_release()).items():
        (clone / name).write_text(text)
    git("init", "--quiet")
    git("config", "user.name", "check")
    git("config", "user.email", "check@localhost")
    git("add", "--all")
    git("commit", "--quiet", "-m", "Release")
    return git


def release_faults(python, clone):
    """What is wrong with a release of a copy of this tree: of its tag, and of the places that name the repository."""
    git = copy_of_tree(clone)
    tag = f"v{release.numbers_and_suffix(clone)[0]}"
    command = [python, clone / "scripts" / "release.py", "--no-device-archive"]
    (clone / "new").touch()
    wrong = [] if "not committed" in "".join(failure_of(*command)) else ["a tree with changes is released"]
    (clone / "new").unlink()
    git("tag", tag, git("commit-tree", "HEAD^{tree}", "-m", "Another").strip())
    wrong += [] if "of another commit" in "".join(failure_of(*command)) else ["another commit's tag is taken for that of the release"]
    git("tag", "--delete", tag)
    found = wrong + failure_of(*command, "--python")
    return found or naming_faults(clone / "build" / "release", tag, git) + failure_of(*command, "--no-python")  # it is tagged now


def naming_faults(folder, tag, git):
    """What a release's tag, notes, recipes and Python package lack of what they should tell."""
    archive = f"{ADDRESS}/releases/download/{tag}/warpheap-{tag[1:]}.tar.gz"
    told = git("for-each-ref", "--format=%(objecttype)%(contents)", f"refs/tags/{tag}")
    wrong = [] if git("describe", "--exact-match", "HEAD").strip() == tag and told.startswith("tag") else [f"{tag} is not HEAD's own tag"]
    notes = (folder / "notes.md").read_text()
    sha256 = hashlib.sha256((folder / f"warpheap-{tag[1:]}.tar.gz").read_bytes()).hexdigest()
    for what in (f"[A change]({ADDRESS}/blob/{tag}/README.md)", f'URL "{archive}"', sha256):
        wrong += [f"{place} lacks {what}" for place, text in (("the tag", told), ("notes.md", notes)) if what not in text]
    wrong += ["the notes tell of another version"] if "Another" in notes else []
    with_archive = ("cmake/fetch_content.cmake", "conan/all/conandata.yml", "conda-forge/recipe.yaml", "spack/package.py", "vcpkg/portfile.cmake")
    with_address = ("conan/all/conanfile.py", "conda-forge/recipe.yaml", "spack/package.py", "vcpkg/vcpkg.json")
    for address, names in ((archive, with_archive), (ADDRESS, with_address)):
        wrong += [f"{name} lacks {address}" for name in names if f'"{address}"' not in (folder / "recipes" / name).read_text()]
    wheel, = folder.glob("python/*.whl")
    with zipfile.ZipFile(wheel) as packed:
        metadata = packed.read(f"warpheap-{tag[1:]}.dist-info/METADATA").decode()
    return wrong if f"\nProject-URL: Repository, {ADDRESS}\n" in metadata else [*wrong, f"{wheel.name} does not name the repository"]


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
        if not found:
            python = compilers.venv_or_skip(home, *PYPI)
            found += document_faults(python, next(folders[0].glob("*.spdx.json")))
            found += citation_faults(python, compilers.ROOT / release.CITATION) + release_faults(python, home / "clone")
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
    """Of the files that tell of versions or the repository, as a release has them, copies with one place wrong; a document of nothing."""
    numbers, _ = release.numbers_and_suffix(compilers.ROOT)
    minor = numbers.rpartition(".")[0]
    files = as_released(texts_of_release())
    in_work = ('SUFFIX ""', 'SUFFIX ".dev0"')
    wrong = [
        ("docs/guide/build.md", f"find_package(warpheap {minor}", "find_package(warpheap 9.9"),
        (CHANGELOG, f"## [{numbers}] - ", "## [9.9.9] - "),
        (CHANGELOG, "## [Unreleased]", "## [Unreleased]\n\n- A change."),
        ("tests/package/cuda/CMakeLists.txt", f"warpheap {minor}", "warpheap 9.9"),
        ("packaging/conan/all/conandata.yml", "@VERSION@", numbers),
        (release.CITATION, f"version: {numbers}", "version: 9.9.9"),
        (release.CITATION, f"date-released: {DATE}", "date-released: 2026-01-02"),
        (release.CITATION, "repository-code: ", "# repository-code: "),
        (release.CITATION, f"repository-code: {ADDRESS}", f"repository-code: {ADDRESS}/"),
        (release.CITATION, "repository-code: https", "repository-code: git"),
        (release.CITATION, f"repository-code: {ADDRESS}", f"repository-code: {ADDRESS}.git"),
        *((name, f"The repository is {ADDRESS}", f"The repository is {ADDRESS}-too") for name in release.NAMING),
        (VERSION, *in_work),
    ]

    def said(final, *changes):
        changed = {path: files[path].replace(right, planted, 1) for path, right, planted in changes}
        with compilers.folder_of({**files, **changed}) as root:
            return release.disagreements(root, final) + (release.address_faults(root) if final else [])

    faults = [f"missed: {each}" for each in wrong if not said(True, each)]
    earlier = ((CHANGELOG, f"## [{numbers}] - ", "## [0.0.1] - "), (release.CITATION, f"version: {numbers}", "version: 0.0.1"))
    faults += said(True) + said(False, *earlier, (VERSION, *in_work)) + missed_in_files()
    document = json.loads(release.sbom.document("1.2.3", "0" * 64, 0))
    document["relationships"][0]["relatedSpdxElement"] = "SPDXRef-nothing"
    citation = files[release.CITATION].replace("title:", "name:")
    with compilers.folder_of({"wrong.spdx.json": json.dumps(document), "wrong.cff": citation}) as home:
        python = compilers.venv_or_skip(home, *PYPI)
        faults += [] if document_faults(python, home / "wrong.spdx.json") else ["missed: a document that describes nothing"]
        faults += [] if citation_faults(python, home / "wrong.cff") else ["missed: a citation without a title"]
    return faults


if __name__ == "__main__":
    compilers.run(__doc__, check, negative_test)
