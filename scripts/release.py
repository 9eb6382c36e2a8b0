#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the files of a release, in build/release:

  warpheap-VERSION.tar.gz, .sha256   the commit's files; the same commit gives the same bytes
  warpheap.hpp                       the headers as one file
  warpheap-VERSION.spdx.json         what the release is made of (scripts/sbom.py)
  recipes/                           packaging/ with version, addresses and hashes filled in
  notes.md                           the changelog of this version, and how CMake fetches it
  warpheap-archive-VERSION-PLATFORM.tar.gz, .sha256
                                     the device archive, built for this machine's platform: needs nvcc, CMake and Ninja
  python/                            sdist and wheel, and a wheel with the device archive: needs Python's build and hatchling

Where what one of the last two needs is missing, a line says SKIP; if the part was asked for, that is an error.

Then it tags the commit with the notes, unless it is tagged. It refuses when the tree has changes, when the version is that of no
release or is the tag of another commit, when CITATION.cff has no address of the repository, or when pages disagree. --draft does not:
it archives the working tree as it is, with addresses of files, and tags nothing.
"""

import argparse
import hashlib
import importlib.util
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile

import amalgamate
import compilers
import sbom

ROOT = compilers.ROOT
# Pages and projects that ask for a version.
ASKING = ("docs/guide/build.md", "tests/package/find_package/CMakeLists.txt", "tests/package/cuda/CMakeLists.txt")
CITATION = "CITATION.cff"
NAMING = ("README.md", "SECURITY.md")  # they tell where the repository is
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


def repository(root=ROOT):
    """The address of the repository, or None before it has one."""
    found = re.search(r"^repository-code: *(\S+)(?: +#.*)?$", (root / CITATION).read_text(), re.MULTILINE)
    return found and found[1]


def address_faults(root):
    """What a release needs of the repository's address."""
    address = repository(root)
    if not address:
        return [f"{CITATION} has no repository-code: recipes, the Python package and the site need the address of the repository"]
    if not re.fullmatch(r"https://[^\s\"']+[^\s\"'/]", address) or address.endswith(".git"):
        return [f"{CITATION} has the repository-code {address}, which is no address like https://example.org/warpheap"]
    return [f"{name} does not name {address}, which is the repository in {CITATION}" for name in NAMING if not re.search(rf"{re.escape(address)}(?![\w-])", (root / name).read_text())]


def changes_in(root, name):
    """A part of the changelog, such as "Unreleased" or "1.2.3", without its heading; empty if there is none."""
    found = re.search(rf"^## \[{re.escape(name)}\][^\n]*\n(.*?)(?=^## \[|\Z)", (root / "CHANGELOG.md").read_text(), re.MULTILINE | re.DOTALL)
    return found[1].strip() if found else ""


def disagreements(root, final):
    """What does not go with the version; a final release has no suffix, and its changelog is cut, too."""
    numbers, suffix = numbers_and_suffix(root)
    minor = numbers.rpartition(".")[0]
    found = []
    for name in ASKING:
        found += [f"{name} asks for {asked}" for asked in re.findall(r"find_package\(warpheap ([\d.]+)", (root / name).read_text()) if asked != minor]
    for path in (root / "packaging").rglob("*.*"):
        if path.is_file() and path.name != "README.md" and numbers in path.read_text():  # which has versions of tools
            found.append(f"{path.relative_to(root)} has {numbers} in place of @VERSION@")
    headings = re.findall(r"^## \[(\d+\.\d+\.\d+)\] - (\S+)$", (root / "CHANGELOG.md").read_text(), re.MULTILINE)
    latest, date = headings[0] if headings else ("0.0.0", "no date")
    before, now = ([int(number) for number in each.split(".")] for each in (latest, numbers))
    if before >= now if suffix else before != now:
        found.append(f"the latest version in CHANGELOG.md is {latest}")
    if re.findall(r"^(?:version|date-released): (\S+)$", (root / CITATION).read_text(), re.MULTILINE) != [latest, date]:
        found.append(f"{CITATION} has another version or date than {latest} of {date}, the latest in CHANGELOG.md")
    if final and changes_in(root, "Unreleased"):
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
    return compressed(git("archive", "--format=tar", f"--prefix=warpheap-{version}/", commit))


def compressed(tar):
    return subprocess.run(["gzip", "-n", "-9"], input=tar, check=True, capture_output=True).stdout


def packed_folder(folder, top, seconds):
    """A folder and the licence below `top/`, as .tar.gz. It depends on names, links, contents and `seconds` alone."""
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*")} | {"LICENSE": ROOT / "LICENSE"}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, path in sorted(files.items()):
            entry = tar.gettarinfo(path, f"{top}/{name}")
            entry.mode = 0o644 if entry.isreg() else 0o755
            entry.uid, entry.gid, entry.uname, entry.gname, entry.mtime = 0, 0, "root", "root", seconds
            tar.addfile(entry, io.BytesIO(path.read_bytes()) if entry.isreg() else None)
    return compressed(packed.getvalue())


def write_hashed(path, content):
    """Writes a file, and its hash beside it. Returns the hash."""
    path.write_bytes(content)
    sha256 = hashlib.sha256(content).hexdigest()
    path.with_name(path.name + ".sha256").write_text(f"{sha256}  {path.name}\n")
    return sha256


def fill_in(folder, words):
    """packaging/ below `folder`, with each @WORD@ replaced."""
    for name in compilers.tracked("packaging/*"):
        text = (ROOT / name).read_text()
        for word, value in words.items():
            text = text.replace(f"@{word}@", value)
        target = folder / pathlib.Path(name).relative_to("packaging")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


def notes(version, address, listing):
    """What is new in a version, or in a draft of one, with links to the files of its tag; and the listing for CMake."""
    changes = changes_in(ROOT, version) or changes_in(ROOT, "Unreleased")
    linked = re.sub(r"\]\((?!\w+://|#)", f"]({address}/blob/v{version}/", changes)
    return f"Warpheap {version}\n\n{linked}\n\n### From CMake\n\n```cmake\n{listing}```\n"


def make(folder, commit, address=None, archive_url=None, device_archive=None):
    """All files of a release but for the Python package, in a folder. Without the repository's address, they name the folder's files.
    `device_archive` is where one was installed. Returns the archive's path."""
    folder.mkdir(parents=True, exist_ok=True)
    version = version_of()
    packed = folder / f"warpheap-{version}.tar.gz"
    sha256 = write_hashed(packed, archive(commit, version))
    (folder / "warpheap.hpp").write_text(amalgamate.single_header())
    seconds = seconds_of(commit)
    built = None
    if device_archive:
        top = f"warpheap-archive-{version}-{sysconfig.get_platform()}"
        name = f"{top}.tar.gz"
        built = name, write_hashed(folder / name, packed_folder(device_archive, top, seconds))
    (folder / f"warpheap-{version}.spdx.json").write_text(sbom.document(version, sha256, seconds, built))
    published = f"{address}/releases/download/v{version}/{packed.name}" if address else packed.as_uri()
    words = {
        "VERSION": version,
        "NUMBERS": numbers_and_suffix(ROOT)[0],  # vcpkg knows no suffix
        "ARCHIVE_URL": archive_url or published,
        "REPOSITORY": address or folder.as_uri(),
        "SHA256": sha256,
        "SHA512": hashlib.sha512(packed.read_bytes()).hexdigest(),
    }
    fill_in(folder / "recipes", words)
    listing = (folder / "recipes" / "cmake" / "fetch_content.cmake").read_text()
    (folder / "notes.md").write_text(notes(version, words["REPOSITORY"], listing))
    return packed


def seconds_of(commit):
    """When it was made, in Unix time."""
    return int(git("log", "-1", "--format=%ct", commit))


def make_python(python, folder, commit, device_archive=None):
    """An sdist, and the wheel that is built from it, in a new folder, made by a Python that has build and hatchling; a second wheel has
    the device archive, if given."""
    build = [python, "-m", "build", "--no-isolation", "--outdir", folder, ROOT / "python"]
    variables = {"SOURCE_DATE_EPOCH": str(seconds_of(commit))}
    compilers.succeed(*build, WARPHEAP_ARCHIVE_FOLDER="", **variables)
    if device_archive:
        compilers.succeed(*build, "--wheel", WARPHEAP_ARCHIVE_FOLDER=str(device_archive), **variables)


def is_made(what, asked, missing):
    """Whether a part of the release is made: `asked` is None for where it is possible. Raises compilers.Failed if it was asked for and
    something is missing."""
    if asked is False or not missing:
        return asked is not False
    lacks = f"no {' and no '.join(missing)}, so no {what}"
    if asked:
        raise compilers.Failed(lacks)
    print(f"SKIP: {lacks}")
    return False


def make_parts(options, commit):
    """All files of a release, in build/release. Returns the archive's path."""
    programs = {"nvcc": compilers.find_nvcc(), "cmake": shutil.which("cmake"), "ninja": shutil.which("ninja")}
    has_archive = is_made("device archive", options.device_archive, [name for name, found in programs.items() if not found])
    modules = [name for name in ("build", "hatchling") if not importlib.util.find_spec(name)]
    has_python = is_made("Python package", options.python, [f"Python module {name}" for name in modules])
    folder = ROOT / "build" / "release"
    with tempfile.TemporaryDirectory() as work:
        device_archive = compilers.install_archive(pathlib.Path(work)) if has_archive else None
        shutil.rmtree(folder, ignore_errors=True)  # files of a former release
        packed = make(folder, commit, None if options.draft else repository(), options.archive_url, device_archive)
        if has_python:
            make_python(sys.executable, folder / "python", commit, device_archive)
    return packed


def tagged_commit(tag):
    """The commit of a tag; empty if there is none."""
    return git("for-each-ref", "--format=%(if)%(*objectname)%(then)%(*objectname)%(else)%(objectname)%(end)", f"refs/tags/{tag}").decode().strip()


def final_faults(tag, commit):
    """What keeps a commit from being a release with this tag."""
    found = disagreements(ROOT, final=True) + address_faults(ROOT)
    if git("status", "--porcelain"):
        found.append("the tree has changes that are not committed")
    if tagged_commit(tag) not in ("", commit):
        found.append(f"the tag {tag} is of another commit")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draft", action="store_true", help="archive the working tree, with its changes")
    parser.add_argument("--archive-url", help="where the archive will be, if it is no download of the release at the repository's host")
    parser.add_argument("--device-archive", action=argparse.BooleanOptionalAction, help="build the device archive, or do not")
    parser.add_argument("--python", action=argparse.BooleanOptionalAction, help="make the Python package, or do not")
    options = parser.parse_args()
    commit = draft_commit() if options.draft else git("rev-parse", "HEAD").decode().strip()
    tag = f"v{version_of()}"
    faults = disagreements(ROOT, final=False) if options.draft else final_faults(tag, commit)
    if faults:
        print("\n".join(faults), file=sys.stderr)
        return 1
    try:
        packed = make_parts(options, commit)
        if not options.draft and not tagged_commit(tag):
            compilers.succeed("git", "-C", ROOT, "tag", "--annotate", "--cleanup=whitespace", "-F", packed.with_name("notes.md"), tag, commit)
    except compilers.Failed as failure:
        print(failure, file=sys.stderr)
        return 1
    for path in sorted(packed.parent.glob("*.sha256")):
        print(path.read_text().strip())
    return 0


if __name__ == "__main__":
    sys.exit(main())
