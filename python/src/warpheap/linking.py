# SPDX-License-Identifier: Apache-2.0
"""The device archive: malloc and free of device code compiled once, for nvcc, nvJitLink and the driver to link with.

Machine code fits one platform, so a second wheel has it, beside the one that fits all.
"""

import pathlib

from .errors import NoArchiveError

_PACKAGE = pathlib.Path(__file__).parent
_HEADER = pathlib.Path("include", "warpheap.h")


def archive_folder() -> pathlib.Path:
    """The folder with include/ and lib/ of the device archive: that of the wheel or, in a clone of the source, of `make archive`.

    Raises NoArchiveError, a FileNotFoundError, where there is none.
    """
    clone = _PACKAGE.parent.parent.parent
    if (clone / "archive" / "warpheap.h").is_file():
        folder, remedy = clone / "build" / "archive", "`make archive` builds it there (it needs nvcc)"
    else:
        folder = _PACKAGE / "archive"
        remedy = "install a wheel for Linux on x86-64 that has it, or build it by `make archive` in a clone of Warpheap"
    if not (folder / _HEADER).is_file():
        raise NoArchiveError(f"there is no device archive in {folder}: {remedy}")
    return folder
