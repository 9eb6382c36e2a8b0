#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds up results: `count_results.py FOLDER` reads every CTest JUnit file there and prints 'N passed, N failed, N skipped'.

A file NAME.passed, NAME.failed or NAME.skipped stands for one check that CTest does not run; its text says what. What failed
and what was skipped is listed first. Exit status 0 if something passed and nothing failed.
"""

import pathlib
import sys
import xml.etree.ElementTree

KIND_OF_STATUS = {"run": "passed", "fail": "failed", "notrun": "skipped", "disabled": "skipped"}


def results(folder):
    """{'passed': [names], 'failed': [names], 'skipped': [names]}"""
    found = {"passed": [], "failed": [], "skipped": []}
    for path in sorted(folder.iterdir()):
        if path.suffix == ".xml":
            for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
                found[KIND_OF_STATUS[case.get("status")]].append(f"{path.stem}: {case.get('name')}")
        elif path.suffix[1:] in found:
            found[path.suffix[1:]].append(path.read_text().strip())
    return found


def main():
    found = results(pathlib.Path(sys.argv[1]))
    for kind in ("skipped", "failed"):
        for name in found[kind]:
            print(f"{kind}: {name}")
    print(", ".join(f"{len(found[kind])} {kind}" for kind in ("passed", "failed", "skipped")))
    return 0 if found["passed"] and not found["failed"] else 1


if __name__ == "__main__":
    sys.exit(main())
