# SPDX-License-Identifier: Apache-2.0
"""The package's version is the headers' own, and the headers are packed with it. The project's address is what
WARPHEAP_HOMEPAGE says, since a copy of the source does not know where it is published.

One copy of them is in the repository, outside this folder; an sdist has them inside.
"""

import os
import pathlib
import re

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

HERE = pathlib.Path(__file__).parent
PACKED = "src/warpheap/include/warpheap"


def headers() -> pathlib.Path:
    """The folder of the headers, in an sdist or in the repository."""
    return HERE / PACKED if (HERE / PACKED).exists() else HERE.parent / "include" / "warpheap"


class VersionOfHeaders(MetadataHookInterface):
    def update(self, metadata):
        text = (headers() / "version.hpp").read_text()
        parts = dict(re.findall(r'#define WARPHEAP_VERSION_(MAJOR|MINOR|PATCH|SUFFIX) "?([^"\n]*)', text))
        metadata["version"] = "{MAJOR}.{MINOR}.{PATCH}{SUFFIX}".format(**parts)
        if homepage := os.environ.get("WARPHEAP_HOMEPAGE"):
            metadata["urls"] = {"Homepage": homepage}


class PackedHeaders(BuildHookInterface):
    def initialize(self, version, build_data):
        inside = PACKED if self.target_name == "sdist" else PACKED.removeprefix("src/")
        build_data["force_include"][str(headers())] = inside
