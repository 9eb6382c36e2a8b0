#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints a bill of materials as SPDX 2.3 JSON: Warpheap, and what each of its parts takes from others.

Nothing of another project is in the release. Versions are those of this machine's Debian packages and of nvcc, where they are.
"""

import datetime
import json
import re
import subprocess

import compilers

# Name, Debian's package, licence, and how Warpheap is related to it.
DEPENDENCIES = [
    ("Boost.Context", "libboost-context-dev", "BSL-1.0", "OPTIONAL_DEPENDENCY_OF"),  # the host backend
    ("CLI11", "libcli11-dev", "BSD-3-Clause", "BUILD_DEPENDENCY_OF"),  # the tool
    ("fmt", "libfmt-dev", "MIT", "BUILD_DEPENDENCY_OF"),
    ("nlohmann-json", "nlohmann-json3-dev", "MIT", "BUILD_DEPENDENCY_OF"),
    ("Jinja2", "python3-jinja2", "BSD-3-Clause", "OPTIONAL_DEPENDENCY_OF"),  # pages of results
    ("matplotlib", "python3-matplotlib", "PSF-2.0", "OPTIONAL_DEPENDENCY_OF"),
    ("googletest", "libgtest-dev", "BSD-3-Clause", "TEST_DEPENDENCY_OF"),
    ("benchmark", "libbenchmark-dev", "Apache-2.0", "TEST_DEPENDENCY_OF"),
]
CUDA = ("CUDA Toolkit", "NOASSERTION", "OPTIONAL_DEPENDENCY_OF")


def first_match(pattern, *command):
    """What a pattern finds in a command's output, or NOASSERTION."""
    try:
        said = subprocess.run(command, capture_output=True, text=True).stdout
    except FileNotFoundError:
        return "NOASSERTION"
    found = re.search(pattern, said)
    return found[1] if found else "NOASSERTION"


def debian_version(package):
    """The upstream part of the version."""
    return first_match(r"^(?:\d+:)?([^-+]+)", "dpkg-query", "--show", "--showformat=${Version}", package)


def packages():
    """(name, version, licence, relationship) of each."""
    found = [(name, debian_version(package), licence, how) for name, package, licence, how in DEPENDENCIES]
    nvcc = compilers.find_nvcc()
    version = first_match(r"release ([\d.]+)", nvcc[0], "--version") if nvcc else "NOASSERTION"
    return [*found, (CUDA[0], version, *CUDA[1:])]


def described(name, version, licence):
    return {
        "SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9]+", "-", name),
        "name": name,
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": licence,
        "licenseDeclared": licence,
        "copyrightText": "NOASSERTION",
    }


def document(version, sha256, seconds):
    """The document about the archive with this hash, of a commit made at `seconds` of Unix time."""
    created = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    own = described("warpheap", version, "Apache-2.0")
    own["packageFileName"] = f"warpheap-{version}.tar.gz"
    own["checksums"] = [{"algorithm": "SHA256", "checksumValue": sha256}]
    others = packages()
    parts = [described(*other[:3]) for other in others]
    related = [(part["SPDXID"], how, own["SPDXID"]) for part, (*_, how) in zip(parts, others)]
    related.insert(0, ("SPDXRef-DOCUMENT", "DESCRIBES", own["SPDXID"]))
    content = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"warpheap-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/warpheap-{version}-{sha256}",
        "creationInfo": {"created": created, "creators": ["Tool: warpheap-sbom"]},
        "packages": [own, *parts],
        "relationships": [
            {"spdxElementId": element, "relationshipType": kind, "relatedSpdxElement": to} for element, kind, to in related
        ],
    }
    return json.dumps(content, indent=2) + "\n"
