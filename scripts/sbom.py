# SPDX-License-Identifier: Apache-2.0
"""A bill of materials as SPDX 2.3 JSON: Warpheap, and what each of its parts takes from others.

Nothing of another project is in the release, but for the libraries that are linked into the device archive's host library. Versions are
those of this machine's Debian packages and of nvcc, where they are.
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
    ("CUDA Toolkit", None, "NOASSERTION", "OPTIONAL_DEPENDENCY_OF"),
]

# What the device archive's host library has inside.
INSIDE = [("CUDA Runtime", None, "NOASSERTION"), ("libstdc++ and libgcc", "libstdc++6", "GPL-3.0-or-later WITH GCC-exception-3.1")]


def version_of(package):
    """The upstream part of a Debian package's version, or nvcc's; NOASSERTION where it is not installed."""
    nvcc = compilers.find_nvcc() or ["false"]
    command = ["dpkg-query", "--show", "--showformat=${Version}", package] if package else [nvcc[0], "--version"]
    said = subprocess.run(["env", *command], capture_output=True, text=True).stdout
    found = re.search(r"^(?:\d+:)?([^-+]+)" if package else r"release ([\d.]+)", said)
    return found[1] if found else "NOASSERTION"


def described(name, version, licence, **more):
    return {
        "SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9]+", "-", name),
        "name": name,
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": licence,
        "licenseDeclared": licence,
        "copyrightText": "NOASSERTION",
        **more,
    }


def described_file(name, version, file, sha256):
    return described(name, version, "Apache-2.0", packageFileName=file, checksums=[{"algorithm": "SHA256", "checksumValue": sha256}])


def of_device_archive(version, file, sha256):
    """Packages and relationships of the device archive in this file: what it is made of, and has inside."""
    packed = described_file("warpheap-archive", version, file, sha256) | {"licenseConcluded": "NOASSERTION"}
    inside = [described(name, version_of(package), licence) for name, package, licence in INSIDE]
    related = [("SPDXRef-DOCUMENT", "DESCRIBES", packed["SPDXID"]), (packed["SPDXID"], "GENERATED_FROM", "SPDXRef-warpheap")]
    return [packed, *inside], [*related, *((packed["SPDXID"], "STATIC_LINK", each["SPDXID"]) for each in inside)]


def document(version, sha256, seconds, device_archive=None):
    """The document about the archive with this hash, of a commit made at `seconds` of Unix time; and about the device archive, of which
    file and hash are given."""
    own = described_file("warpheap", version, f"warpheap-{version}.tar.gz", sha256)
    parts = [described(name, version_of(package), licence) for name, package, licence, _ in DEPENDENCIES]
    more, more_related = of_device_archive(version, *device_archive) if device_archive else ([], [])
    related = [("SPDXRef-DOCUMENT", "DESCRIBES", own["SPDXID"]), *more_related]
    related += [(part["SPDXID"], how, own["SPDXID"]) for part, (*_, how) in zip(parts, DEPENDENCIES)]
    content = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"warpheap-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/warpheap-{version}-{sha256}",
        "creationInfo": {
            "created": datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "creators": ["Tool: warpheap-sbom"],
        },
        "packages": [own, *parts, *more],
        "relationships": [{"spdxElementId": one, "relationshipType": how, "relatedSpdxElement": other} for one, how, other in related],
    }
    return json.dumps(content, indent=2) + "\n"
