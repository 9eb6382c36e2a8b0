#!/usr/bin/env python3
"""Checks what scripts/release.py makes.

  the same files give the same archive, byte for byte; the places that tell of the version agree
  the bill of materials is valid SPDX, as spdx-tools from PyPI sees it
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import compilers
import release

VALIDATOR = "spdx-tools==0.8.*"


def archive_faults(home):
    first, second = (release.make(home / str(number), release.draft_commit()).read_bytes() for number in range(2))
    return [] if first == second else ["two archives of the same files differ"]


def installed_validator(home):
    """The program that judges SPDX documents, or None."""
    subprocess.run([sys.executable, "-m", "venv", home / "venv"], check=True)
    pip = [home / "venv/bin/python", "-m", "pip", "install", "-q", "--no-compile", VALIDATOR]
    return None if subprocess.run(pip, capture_output=True).returncode else home / "venv" / "bin" / "pyspdxtools"


def document_faults(validator, document):
    good, said, _ = compilers.compile([str(validator), "--infile", str(document)])
    return [] if good else [f"{document.name}: {said[-2000:]}"]


def planted_versions(home):
    """The tree's copies that tell of versions, each with one place wrong; the names of those that pass."""
    version, names = release.version_of(), ["README.md", "docs/guide/build.md", "CHANGELOG.md", "include/warpheap/version.hpp"]
    names += [f"tests/package/{kind}/CMakeLists.txt" for kind in ("find_package", "cuda")]
    minor = version.rpartition(".")[0]
    wrong = {
        "README.md": (f"find_package(warpheap {minor}", "find_package(warpheap 9.9"),
        "CHANGELOG.md": (f"## [{version}] - ", "## [9.9.9] - "),
        "tests/package/cuda/CMakeLists.txt": (f"warpheap {minor}", "warpheap 9.9"),
        "packaging/conan/conandata.yml": ("@VERSION@", version),
        "an unreleased change": ("## [Unreleased]", "## [Unreleased]\n\n- A change."),
    }
    missed = []
    for name, (right, planted) in wrong.items():
        root = home / name.replace("/", "_")
        for each in [*names, *compilers.tracked("packaging/*")]:
            (root / each).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(compilers.ROOT / each, root / each)
        path = root / (name if "/" in name or "." in name else "CHANGELOG.md")
        path.write_text(path.read_text().replace(right, planted))
        missed += [] if release.disagreements(root, final=name == "an unreleased change") else [name]
    return missed


def self_test(home, validator):
    missed = planted_versions(home)
    if validator:
        wrong = json.loads(release.sbom.document("1.2.3", "0" * 64, 0))
        wrong["relationships"][0]["relatedSpdxElement"] = "SPDXRef-nothing"
        (home / "wrong.spdx.json").write_text(json.dumps(wrong))
        missed += [] if document_faults(validator, home / "wrong.spdx.json") else ["a document that describes nothing"]
    print(f"missed: {missed}" if missed else "caught the planted faults")
    return 1 if missed else 0


def main():
    options = compilers.arguments(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as directory:
        home = pathlib.Path(directory)
        validator = installed_validator(home)
        if options.self_test:
            return self_test(home, validator)
        found = release.disagreements(compilers.ROOT, final=False) + archive_faults(home)
        if validator:
            found += document_faults(validator, next((home / "0").glob("*.spdx.json")))
    print("\n".join(found) or "a release of this tree is reproducible, and its versions agree")
    if not validator:
        print(f"SKIP: pip cannot fetch {VALIDATOR}, so the bill of materials was not judged")
    return 1 if found else 0 if validator else compilers.SKIPPED


if __name__ == "__main__":
    sys.exit(main())
