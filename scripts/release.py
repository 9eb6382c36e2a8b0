#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the files of a release, in build/release:

  warpheap-VERSION.tar.gz, .sha256   the commit's files; the same commit gives the same bytes
  warpheap.hpp                       the headers as one file
  warpheap-VERSION.spdx.json         what the release is made of (scripts/sbom.py)
  recipes/                           packaging/ with version, addresses and hashes filled in

It refuses when the tree has changes, when the version is that of no release, or when the places that tell of it disagree. --draft
does not: it archives the working tree as it is.
"""

import argparse
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import amalgamate
import compilers
import sbom

ROOT = compilers.ROOT
# Pages and projects that ask for a version.
ASKING = ("README.md", "docs/guide/build.md", "tests/package/find_package/CMakeLists.txt", "tests/package/cuda/CMakeLists.txt")
DRAFT_DATE = "2000-01-01T00:00:00Z"


def git(*words, **variables):
    command = ["git", "-C", str(ROOT), *words]
    return subprocess.run(command, env={**os.environ, **variables}, check=True, capture_output=True).stdout


def numbers_and_suffix(root):
    """As version.hpp has them: "1.2.3", and what follows before the release."""
    text = (root / "include/warpheap/version.hpp").read_text()
    numbers = re.findall(r"#define WARPHEAP_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", text)
    return ".".join(numbers), re.search(r'#define WARPHEAP_VERSION_SUFFIX "(.*)"', text)[1]


def version_of(root=ROOT):
    return "".join(numbers_and_suffix(root))


def disagreements(root, final):
    """What does not go with the version; a final release has no suffix, and its changelog is cut, too."""
    numbers, suffix = numbers_and_suffix(root)
    minor = numbers.rpartition(".")[0]
    found = []
    for name in ASKING:
        found += [f"{name} asks for {asked}" for asked in re.findall(r"find_package\(warpheap ([\d.]+)", (root / name).read_text()) if asked != minor]
    for path in (root / "packaging").rglob("*.*"):
        if path.is_file() and numbers in path.read_text():
            found.append(f"{path.relative_to(root)} has {numbers} in place of @VERSION@")
    unreleased, _, released = (root / "CHANGELOG.md").read_text().partition("## [Unreleased]")[2].partition("\n## [")
    latest = re.match(r"(\d+)\.(\d+)\.(\d+)\] - ", released)
    before, now = [int(number) for number in latest.groups()] if latest else [], [int(number) for number in numbers.split(".")]
    if not latest or (before >= now if suffix else before != now):
        found.append(f"the latest version in CHANGELOG.md is {released.partition(']')[0] or 'none'}")
    if final and unreleased.strip():
        found.append("CHANGELOG.md has unreleased changes")
    if final and suffix:
        found.append(f"version.hpp has the suffix {suffix}")
    return [f"{fault}; the version is {numbers}{suffix}" for fault in found]


def draft_commit():
    """A commit of the working tree, on no branch; the same files give the same commit."""
    with tempfile.TemporaryDirectory() as directory:
        index = {"GIT_INDEX_FILE": f"{directory}/index"}
        git("read-tree", "HEAD", **index)
        git("add", "--all", **index)
        tree = git("write-tree", **index).decode().strip()
    words = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in
             {"NAME": "draft", "EMAIL": "draft@localhost", "DATE": DRAFT_DATE}.items()}  # fmt: skip
    return git("commit-tree", tree, "-m", "draft", **words).decode().strip()


def archive(commit, version):
    """By hand: git archive --prefix=warpheap-VERSION/ COMMIT | gzip -n -9"""
    files = git("archive", "--format=tar", f"--prefix=warpheap-{version}/", commit)
    return subprocess.run(["gzip", "-n", "-9"], input=files, check=True, capture_output=True).stdout


def fill_in(folder, words):
    """packaging/ below `folder`, with each @WORD@ replaced."""
    for name in compilers.tracked("packaging/*"):
        text = (ROOT / name).read_text()
        for word, value in words.items():
            text = text.replace(f"@{word}@", value)
        target = folder / pathlib.Path(name).relative_to("packaging")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


def make(folder, commit, archive_url=None, homepage=None):
    """All files of a release, in a folder; without addresses, those of the folder. Returns the archive's path."""
    folder.mkdir(parents=True, exist_ok=True)
    version = version_of()
    packed = folder / f"warpheap-{version}.tar.gz"
    packed.write_bytes(archive(commit, version))
    sha256 = hashlib.sha256(packed.read_bytes()).hexdigest()
    packed.with_name(packed.name + ".sha256").write_text(f"{sha256}  {packed.name}\n")
    (folder / "warpheap.hpp").write_text(amalgamate.single_header())
    seconds = int(git("log", "-1", "--format=%ct", commit))
    (folder / f"warpheap-{version}.spdx.json").write_text(sbom.document(version, sha256, seconds))
    words = {
        "VERSION": version,
        "ARCHIVE_URL": archive_url or packed.as_uri(),
        "HOMEPAGE": homepage or folder.as_uri(),
        "SHA256": sha256,
        "SHA512": hashlib.sha512(packed.read_bytes()).hexdigest(),
    }
    fill_in(folder / "recipes", words)
    return packed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draft", action="store_true", help="archive the working tree, with its changes")
    parser.add_argument("--archive-url", help="where the archive will be, for the recipes")
    parser.add_argument("--homepage", help="the project's site, for the recipes")
    options = parser.parse_args()
    faults = disagreements(ROOT, final=not options.draft)
    if not options.draft and git("status", "--porcelain"):
        faults.append("the tree has changes that are not committed")
    if faults:
        print("\n".join(faults), file=sys.stderr)
        return 1
    commit = draft_commit() if options.draft else git("rev-parse", "HEAD").decode().strip()
    packed = make(ROOT / "build" / "release", commit, options.archive_url, options.homepage)
    print(f"{packed}\n{packed.with_name(packed.name + '.sha256').read_text().strip()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
