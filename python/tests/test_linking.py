# SPDX-License-Identifier: Apache-2.0
"""The device archive: where it is found, and how hatch_build.py packs it. A library of three lines stands for the real one."""

import importlib.util
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import zipfile

import pytest

import warpheap
from warpheap import __main__ as tool
from warpheap import linking

SOURCE = pathlib.Path(__file__).parent.parent
PREFIX = "warpheap/archive/"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """The folder of an installed package, without an archive."""
    folder = tmp_path / "lib" / "python" / "site-packages" / "warpheap"
    folder.mkdir(parents=True)
    monkeypatch.setattr(linking, "_PACKAGE", folder)
    return folder


def put(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def test_the_folder_is_that_of_the_wheel(package, capsys):
    put(package / "archive", "include/warpheap.h")
    assert warpheap.archive_folder() == package / "archive"
    assert tool.main(["--archive"]) == 0
    assert capsys.readouterr().out == f"{package / 'archive'}\n"


def test_in_a_clone_it_is_what_make_archive_builds(tmp_path, monkeypatch):
    monkeypatch.setattr(linking, "_PACKAGE", tmp_path / "python" / "src" / "warpheap")
    put(tmp_path / "archive", "warpheap.h")
    with pytest.raises(warpheap.NoArchiveError, match="`make archive` builds it there"):
        warpheap.archive_folder()
    put(tmp_path / "build" / "archive", "include/warpheap.h")
    assert warpheap.archive_folder() == tmp_path / "build" / "archive"


def test_without_one_the_error_says_how_to_get_it(package, capsys):
    with pytest.raises(FileNotFoundError, match="install a wheel for Linux") as raised:
        warpheap.archive_folder()
    assert isinstance(raised.value, warpheap.WarpheapError) and str(package) in str(raised.value)
    assert tool.main(["--archive"]) == 1
    said = capsys.readouterr()
    assert said.out == "" and said.err == f"warpheap: {raised.value}\n"


def test_a_package_near_the_root_has_none(monkeypatch):
    monkeypatch.setattr(linking, "_PACKAGE", pathlib.Path("/nowhere"))
    with pytest.raises(warpheap.NoArchiveError):
        warpheap.archive_folder()


@pytest.fixture(scope="module")
def hook():
    pytest.importorskip("hatchling")
    spec = importlib.util.spec_from_file_location("hatch_build", SOURCE / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def built(hook, tmp_path):
    """A folder such as `make archive` makes, with another program's file in it."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path / "built"
    modules = [f"lib/warpheap/device_{name}" for name in ("sm_90.cubin", "lto_90.ltoir", "compute_90.ptx")]
    put(folder, "include/warpheap.h", "lib/other.so", "lib/libwarpheap_device.a", "lib/libwarpheap_host.a", *modules)
    compile_library(folder, "{MAJOR} * 10000 + {MINOR} * 100 + {PATCH}".format(**hook.version_parts()))
    (folder / "lib" / "libwarpheap_host.so").symlink_to("libwarpheap_host.so.1")
    return folder


def compile_library(folder, number):
    library = folder / "lib" / "libwarpheap_host.so.1"
    library.unlink(missing_ok=True)
    source = f"int warpheap_version(void) {{ return {number}; }}\n"
    command = ["cc", "-shared", "-fPIC", "-Wl,-soname,libwarpheap_host.so.1", "-x", "c", "-", "-o", library]
    subprocess.run(command, input=source, text=True, check=True)


def wheel_of(folder, to, monkeypatch):
    """Built by hatchling in a process of its own. Returns its path, and what the process said if there is none."""
    monkeypatch.setenv("WARPHEAP_ARCHIVE_FOLDER", str(folder))
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", to]
    done = subprocess.run(command, cwd=SOURCE, capture_output=True, text=True)
    return next(to.glob("*.whl"), None), done.stdout + done.stderr


def test_a_wheel_with_the_archive_is_for_this_platform(built, tmp_path, monkeypatch):
    wheel, said = wheel_of(built, tmp_path / "dist", monkeypatch)
    assert wheel, said
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    assert wheel.name.endswith(f"-py3-none-{platform}.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path / "installed")
    found = tmp_path / "installed" / PREFIX
    names = {path.relative_to(built) for path in built.rglob("*") if path.is_file()} - {pathlib.Path("lib/other.so")}
    assert {path.relative_to(found) for path in found.rglob("*") if path.is_file()} == names
    link = pathlib.Path("lib/libwarpheap_host.so")
    assert all((found / name).read_bytes() == (built / name).read_bytes() for name in names - {link})
    assert (found / link).read_text() == "INPUT(libwarpheap_host.so.1)\n", "and no second library"
    for where in ([f"-L{found}/lib", "-lwarpheap_host"], [found / link]):
        program = tmp_path / "program"
        source = "int warpheap_version(void);\nint main(void) { return warpheap_version() == 0; }\n"
        command = ["cc", "-x", "c", "-", "-x", "none", *where, f"-Wl,-rpath,{found}/lib", "-o", program]
        subprocess.run(command, input=source, text=True, check=True)
        assert subprocess.run([program]).returncode == 0


def test_without_the_variable_a_wheel_is_for_every_platform(hook, tmp_path, monkeypatch):
    wheel, said = wheel_of("", tmp_path, monkeypatch)
    assert wheel and wheel.name.endswith("-py3-none-any.whl"), said
    with zipfile.ZipFile(wheel) as packed:
        assert not [name for name in packed.namelist() if name.startswith(PREFIX)]


def test_no_wheel_is_built_of_a_folder_that_is_none(tmp_path, hook, monkeypatch):
    wheel, said = wheel_of(tmp_path, tmp_path, monkeypatch)
    assert wheel is None and "has no include/warpheap.h: `make archive`" in said


@pytest.mark.parametrize("lacking", ["lib/libwarpheap_device.a", "lib/libwarpheap_host.so.1", "lib/warpheap/device_sm_90.cubin"])
def test_a_folder_that_lacks_a_file_is_refused(hook, built, lacking):
    (built / lacking).unlink()
    with pytest.raises(ValueError, match=r"has no lib/.*: `make archive`"):
        hook.archive_files(str(built))


def test_a_relative_folder_is_refused(hook):
    with pytest.raises(ValueError, match="=build/archive must be an absolute path"):
        hook.archive_files("build/archive")


def test_an_archive_of_another_version_is_refused(hook, built):
    compile_library(built, "90807")
    with pytest.raises(ValueError, match="is of version 9.8.7, and the headers are of "):
        hook.archive_files(str(built))


def test_a_library_of_another_platform_is_refused(hook, built):
    (built / "lib" / "libwarpheap_host.so.1").write_text("of another machine")
    with pytest.raises(ValueError, match="cannot be used on "):
        hook.archive_files(str(built))
