#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
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
    numbers, suffix = release.numbers_and_suffix(compilers.ROOT)
    names = ["README.md", "docs/guide/build.md", "CHANGELOG.md", "include/warpheap/version.hpp"]
    names += [f"tests/package/{kind}/CMakeLists.txt" for kind in ("find_package", "cuda")]
    minor = numbers.rpartition(".")[0]

    def tree(name, path, right, planted):
        root = home / name.replace("/", "_")
        for each in [*names, *compilers.tracked("packaging/*")]:
            (root / each).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(compilers.ROOT / each, root / each)
        unreleased = (root / "CHANGELOG.md").read_text().partition("## [Unreleased]")
        released = unreleased[2][unreleased[2].index("\n## [") :].replace(f"\n## [{numbers}] - 2", "\n## [0.0.0] - 2")
        (root / "CHANGELOG.md").write_text(f"## [Unreleased]\n\n## [{numbers}] - 2026-01-01\n{released}")
        version = root / "include/warpheap/version.hpp"
        version.write_text(version.read_text().replace(f'SUFFIX "{suffix}"', 'SUFFIX ""'))
        (root / path).write_text((root / path).read_text().replace(right, planted, 1))
        return root

    wrong = [
        ("README.md", f"find_package(warpheap {minor}", "find_package(warpheap 9.9"),
        ("CHANGELOG.md", f"## [{numbers}] - ", "## [9.9.9] - "),
        ("CHANGELOG.md", "## [Unreleased]", "## [Unreleased]\n\n- A change."),
        ("tests/package/cuda/CMakeLists.txt", f"warpheap {minor}", "warpheap 9.9"),
        ("packaging/conan/conandata.yml", "@VERSION@", numbers),
        ("include/warpheap/version.hpp", 'SUFFIX ""', 'SUFFIX ".dev0"'),
    ]
    missed = [f"{number}: {each[0]}" for number, each in enumerate(wrong) if not release.disagreements(tree(f"wrong {number}", *each), True)]
    said = release.disagreements(tree("a release", "README.md", "", ""), True)
    of_next = tree("the next", "CHANGELOG.md", f"## [{numbers}] - ", "## [0.0.1] - ")
    version = of_next / "include/warpheap/version.hpp"
    version.write_text(version.read_text().replace('SUFFIX ""', 'SUFFIX ".dev0"'))
    return missed + said + release.disagreements(of_next, False)


def self_test(home, validator):
    missed = planted_versions(home)
    if validator:
        wrong = json.loads(release.sbom.document("1.2.3", "0" * 64, 0))
        wrong["relationships"][0]["relatedSpdxElement"] = "SPDXRef-nothing"
        (home / "wrong.spdx.json").write_text(json.dumps(wrong))
        missed += [] if document_faults(validator, home / "wrong.spdx.json") else ["a document that describes nothing"]
    print(f"missed: {missed}" if missed else "caught the injected faults")
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
