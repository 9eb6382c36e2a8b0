# SPDX-License-Identifier: Apache-2.0
"""Results of compilers, kept on disk. What others may have written is never taken for a result.

An entry is a file of this user or of root that nobody else can write. It begins with the length of the
result and a hash of that and of the entry's name, so half of a file, and an entry under another's name,
are none. A cache that cannot be found, read or written is none, and no error.
"""

import hashlib
import os
import pathlib
import stat
import struct
import tempfile

_HEAD = struct.Struct("<Q32s")  # length, hash
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def cache_folder() -> pathlib.Path | None:
    """Where results are kept: WARPHEAP_CACHE_DIR, else warpheap/ in the user's cache; None if the user has none."""
    if named := os.environ.get("WARPHEAP_CACHE_DIR"):
        return pathlib.Path(named)
    users = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(users, "warpheap") if os.path.isabs(users) else None


def read(name: str) -> bytes | None:
    """The result that was kept under this name, if it is there and whole."""
    folder = cache_folder()
    if folder is None:
        return None
    try:
        with open(os.open(folder / name, _READ), "rb") as file:
            if not _is_ours(os.fstat(file.fileno())):
                return None
            head, result = file.read(_HEAD.size), file.read()
    except OSError:
        return None
    return result if head == _head_of(name, result) else None


def keep(name: str, result: bytes) -> None:
    """Writes another file first, so that no reader sees half of this one."""
    folder = cache_folder()
    if folder is None:
        return
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        opened, beside = tempfile.mkstemp(dir=folder)
        try:
            with open(opened, "wb") as file:
                file.write(_head_of(name, result) + result)
            os.replace(beside, folder / name)
        except BaseException:
            os.unlink(beside)
            raise
    except OSError:
        pass


def _is_ours(found: os.stat_result) -> bool:
    others = stat.S_IWGRP | stat.S_IWOTH
    return stat.S_ISREG(found.st_mode) and found.st_uid in (os.geteuid(), 0) and not found.st_mode & others


def _head_of(name: str, result: bytes) -> bytes:
    length = len(result)
    return _HEAD.pack(length, hashlib.sha256(f"{name}\0{length}\0".encode() + result).digest())
