"""The package's version is the headers' own."""

import pathlib
import re

from hatchling.metadata.plugin.interface import MetadataHookInterface

HEADER = pathlib.Path(__file__).parent.parent / "include" / "warpheap" / "version.hpp"


class VersionOfHeaders(MetadataHookInterface):
    def update(self, metadata):
        parts = dict(re.findall(r"#define WARPHEAP_VERSION_(MAJOR|MINOR|PATCH) (\d+)", HEADER.read_text()))
        metadata["version"] = "{MAJOR}.{MINOR}.{PATCH}".format(**parts)
