# SPDX-License-Identifier: Apache-2.0
"""The package's version is the headers' own, and the headers are packed with it. The project's address is
that of the repository in CITATION.cff, if it has one; an sdist has it in PKG-INFO. If WARPHEAP_ARCHIVE_FOLDER names
the folder of a built device archive, a wheel has that too, and is for this platform alone.

One copy of them is in the repository, outside this folder; an sdist has them inside.
"""

import ctypes
import os
import pathlib
import re
import sysconfig
import tempfile

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

HERE = pathlib.Path(__file__).parent
PACKED = "src/warpheap/include/warpheap"

# The files of a device archive: a folder must have one at least for each pattern, and no other file is packed.
ARCHIVE = (
    "include/warpheap.h",
    "lib/libwarpheap_device.a",
    "lib/libwarpheap_host.a",
    "lib/libwarpheap_host.so",
    "lib/libwarpheap_host.so.*",
    "lib/warpheap/device_*.cubin",
    "lib/warpheap/device_*.ltoir",
    "lib/warpheap/device_*.ptx",
)


def headers() -> pathlib.Path:
    """The folder of the headers, in an sdist or in the repository."""
    return HERE / PACKED if (HERE / PACKED).exists() else HERE.parent / "include" / "warpheap"


def version_parts() -> dict[str, str]:
    text = (headers() / "version.hpp").read_text()
    return dict(re.findall(r'#define WARPHEAP_VERSION_(MAJOR|MINOR|PATCH|SUFFIX) "?([^"\n]*)', text))


def repository() -> str:
    """The repository's address, in a checkout that has one; otherwise empty."""
    citation = HERE.parent / "CITATION.cff"
    if (HERE / PACKED).exists() or not citation.exists():
        return ""
    found = re.search(r"^repository-code: *(\S+)(?: +#.*)?$", citation.read_text(), re.MULTILINE)
    return found[1] if found else ""


def archive_files(named: str) -> list[pathlib.Path]:
    """The files of the device archive in this folder. Raises ValueError unless it is whole, and of this platform and version."""
    folder = pathlib.Path(named)
    if not folder.is_absolute():
        raise ValueError(f"WARPHEAP_ARCHIVE_FOLDER={named} must be an absolute path, as builds run in folders of their own")
    found = {pattern: sorted(folder.glob(pattern)) for pattern in ARCHIVE}
    for pattern, paths in found.items():
        if not paths:
            raise ValueError(f"WARPHEAP_ARCHIVE_FOLDER={named} has no {pattern}: `make archive` makes one in build/archive")
    numbers = "{MAJOR}.{MINOR}.{PATCH}".format(**version_parts())
    built = version_of(folder / "lib" / "libwarpheap_host.so")
    if built != numbers:
        raise ValueError(f"WARPHEAP_ARCHIVE_FOLDER={named} is of version {built}, and the headers are of {numbers}: run `make archive` again")
    return [path for paths in found.values() for path in paths]


def version_of(library: pathlib.Path) -> str:
    """What a host library says. WARPHEAP_VERSION has two digits each for minor version and patch."""
    try:
        number = ctypes.CDLL(str(library)).warpheap_version()
    except (OSError, AttributeError) as problem:
        raise ValueError(f"{library} cannot be used on {sysconfig.get_platform()}: {problem}") from problem
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


class VersionOfHeaders(MetadataHookInterface):
    def update(self, metadata):
        metadata["version"] = "{MAJOR}.{MINOR}.{PATCH}{SUFFIX}".format(**version_parts())
        if address := repository():
            metadata["urls"] = {"Repository": address}


class PackedHeaders(BuildHookInterface):
    def initialize(self, version, build_data):
        inside = PACKED if self.target_name == "sdist" else PACKED.removeprefix("src/")
        build_data["force_include"][str(headers())] = inside
        named = os.environ.get("WARPHEAP_ARCHIVE_FOLDER")
        if named and self.target_name == "wheel":
            self.pack_archive(pathlib.Path(named), build_data)

    def pack_archive(self, folder, build_data):
        """Adds it to the wheel. Wheels have no links, and the loader would take a copy for another library. So the link is a text that
        tells linkers which library to read."""
        self.texts = tempfile.TemporaryDirectory()
        for path in archive_files(str(folder)):
            packed = path
            if path.is_symlink():
                packed = pathlib.Path(self.texts.name, path.name)
                packed.write_text(f"INPUT({path.readlink().name})\n")
            build_data["force_include"][str(packed)] = f"warpheap/archive/{path.relative_to(folder)}"
        build_data["pure_python"] = False
        build_data["tag"] = "py3-none-" + re.sub(r"[-.]", "_", sysconfig.get_platform())

    def finalize(self, version, build_data, artifact_path):
        if texts := getattr(self, "texts", None):
            texts.cleanup()
