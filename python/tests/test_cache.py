# SPDX-License-Identifier: Apache-2.0
"""What is read from the cache is a whole entry that this user or root wrote, and a cache that does not work is none."""

import os
import stat
import subprocess
import sys

import pytest

import warpheap
from warpheap import cache

RESULT = b"a result" * 1000


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("WARPHEAP_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def entry(folder):
    cache.keep("name", RESULT)
    return folder / "name"


def test_an_entry_is_read_as_it_was_kept(folder):
    assert cache.read("name") is None
    for result in (RESULT, b"", b"another"):
        cache.keep("name", result)
        assert cache.read("name") == result
    assert cache.read("other") is None
    assert os.listdir(folder) == ["name"]


def test_folder_and_entries_are_the_users_own(entry):
    assert stat.S_IMODE(entry.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(entry.stat().st_mode) == 0o600


@pytest.mark.parametrize("length", [0, 1, 39, 40, 41, 1000, len(RESULT) + 39])
def test_half_of_an_entry_is_none(entry, length):
    entry.write_bytes(entry.read_bytes()[:length])
    assert cache.read("name") is None
    cache.keep("name", RESULT)
    assert cache.read("name") == RESULT


def test_an_entry_that_was_changed_is_none(entry):
    whole = entry.read_bytes()
    for at in (0, 8, 40, len(whole) - 1):
        entry.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert cache.read("name") is None
    entry.write_bytes(whole + b"x")
    assert cache.read("name") is None


def test_an_entry_under_the_name_of_another_is_none(entry):
    os.link(entry, entry.parent / "other")
    assert cache.read("other") is None and cache.read("name") == RESULT


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_an_entry_that_others_can_write_is_none(entry, mode):
    entry.chmod(mode)
    assert cache.read("name") is None


def test_an_entry_of_another_user_is_none(entry, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    if os.getuid() == 0:
        assert cache.read("name") == RESULT, "root's"
        os.chown(entry, 12345, 12345)
    assert cache.read("name") is None


def test_an_entry_that_is_no_file_of_its_own_is_none(entry):
    """A pipe is not waited for."""
    for make in (lambda: entry.symlink_to(entry.parent / "whole"), lambda: os.mkfifo(entry), entry.mkdir):
        whole = entry.rename(entry.parent / "whole") if entry.is_file() else entry.parent / "whole"
        make()
        assert cache.read("name") is None
        entry.rmdir() if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    whole.rename(entry)
    assert cache.read("name") == RESULT


@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("call", ["write", "replace"])
def test_a_write_that_fails_leaves_nothing_behind(folder, monkeypatch, fault, call):
    def fail(*_):
        raise fault

    if call == "replace":
        monkeypatch.setattr(os, "replace", fail)
    else:
        monkeypatch.setattr(cache, "_head_of", fail)
    try:
        cache.keep("name", RESULT)
    except KeyboardInterrupt:
        assert isinstance(fault, KeyboardInterrupt)
    assert os.listdir(folder) == []


def test_a_folder_that_is_there_keeps_its_rights(folder):
    folder.mkdir(mode=0o755)
    folder.chmod(0o1777)
    cache.keep("name", RESULT)
    assert cache.read("name") == RESULT and stat.S_IMODE(folder.stat().st_mode) == 0o1777


@pytest.mark.parametrize(
    ("variables", "found"),
    [
        ({"WARPHEAP_CACHE_DIR": "/a", "XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/a"),
        ({"XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/b/warpheap"),
        ({"XDG_CACHE_HOME": "", "HOME": "/c"}, "/c/.cache/warpheap"),
        ({"XDG_CACHE_HOME": "b", "HOME": "/c"}, "None"),
        ({"HOME": "c"}, "None"),
    ],
)
def test_the_folder_is_that_of_the_variables(variables, found):
    code = "from warpheap.cache import cache_folder; print(cache_folder())"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": os.pathsep.join(sys.path), **variables}, capture_output=True, text=True
    )
    assert done.stdout.strip() == found, done.stderr


def test_a_user_without_a_home_has_no_cache(monkeypatch, capsys):
    for name in ("WARPHEAP_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as where the user is not known
    assert cache.cache_folder() is None and cache.read("name") is None
    cache.keep("name", RESULT)
    assert warpheap.compile("", "sm_80", "ptx")
    from warpheap.__main__ import _cache

    assert "no home" in _cache()
