#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the Python package, installs it into a fresh virtual environment, and runs its tests there. They need no GPU.

--published does what a release needs instead: an sdist, the wheel built from it and, where nvcc is, a wheel with the device archive;
twine's check of all; the last wheel from its file alone, with what it asks of PyPI, where `python -m warpheap` compiles every allocator;
with Numba, the tests that need that or cuda.core; and mypy, as strict as it can be, on the package and on a user's program with every
public name.
"""

import os
import pathlib
import subprocess
import sys
import tarfile
import zipfile

import compilers
import release

PACKAGE = compilers.ROOT / "python"
NEEDED = ["cuda-bindings==13.*", "nvidia-cuda-nvrtc==13.*", "numpy", "pytest", "hatchling"]
NUMBA_TESTS = ["test_cuda_core.py", "test_examples.py", "test_numba.py", "test_simulated_heap.py"]
PUBLISHED = [*NEEDED[:2], "numba-cuda[cu13]==0.30.*", "numpy<2.5", "cuda-core==1.*", *NEEDED[3:], "build", "twine", "mypy==2.4.*"]
PACKED = ("py.typed", "numba.pyi", "include/warpheap/warpheap.hpp")
DESCRIBED = ("License-Expression: Apache-2.0", "License-File: LICENSE", "Author: ", "Keywords: ")
PLANTED = "test_planted.py"
FAILING = "def test_planted():\n    import warpheap\n\n    assert not warpheap.allocators\n"
WRONG_TYPE = 'import warpheap\n\nname: int = warpheap.Heap(1 << 30).allocator\n'
succeed = compilers.succeed


def tested(python, tests, home):
    """What pytest says of tests that do not pass."""
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(command, cwd=home, capture_output=True, text=True, env={**os.environ, "WARPHEAP_CACHE_DIR": str(home / "cache")})
    print(done.stdout[-4000:])
    return [f"pytest ends with {done.returncode} {done.stderr[-4000:]}"] if done.returncode else []


def lacking_in(path):
    """What a wheel or an sdist should have, and has not."""
    version = release.version_of()
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            found = {name: archive.read(name) for name in archive.namelist()}
        about, package = f"warpheap-{version}.dist-info/", "warpheap/"
        metadata, licence = f"{about}METADATA", f"{about}licenses/LICENSE"
    else:
        with tarfile.open(path) as archive:
            found = {each.name: archive.extractfile(each).read() for each in archive.getmembers() if each.isfile()}
        about = f"warpheap-{version}/"
        metadata, licence, package = f"{about}PKG-INFO", f"{about}LICENSE", f"{about}src/warpheap/"
    yield from (name for name in (metadata, *(package + name for name in PACKED)) if name not in found)
    if found.get(licence) != (compilers.ROOT / "LICENSE").read_bytes():
        yield licence
    lines = found.get(metadata, b"").decode().partition("\n\n")[0].splitlines()
    yield from (line for line in DESCRIBED if not any(each.startswith(line) for each in lines))


def published(python, home):
    """What is wrong with sdist and wheels, and with what a wheel installs: the one with the device archive, where nvcc is."""
    archive = compilers.install_archive(home / "built", ["90"]) if compilers.find_nvcc() else None
    release.make_python(python, home / "dist", release.draft_commit(), archive)
    made = sorted((home / "dist").iterdir())
    succeed(python, "-m", "twine", "check", "--strict", *made)
    lacking = [f"{path.name} lacks {what}" for path in made for what in lacking_in(path)]
    if lacking:
        return lacking
    wheel = next(home.glob("dist/*linux*.whl" if archive else "dist/*-any.whl"))
    alone = compilers.venv_or_skip(home / "alone", f"{wheel}[cu13]")
    print(succeed(alone, "-m", "warpheap", WARPHEAP_CACHE_DIR=str(home / "cache")))
    if archive:
        link_a_program(alone, home)
    succeed(python, "-m", "pip", "install", "-q", "--no-compile", "--no-deps", wheel)
    check_types(python, home, PACKAGE / "src" / "warpheap")
    check_types(python, home, PACKAGE / "tests" / "typed_program.py")
    return tested(python, [PACKAGE / "tests" / name for name in NUMBA_TESTS], home)


def link_a_program(python, home):
    """The example of the device archive, from what is installed alone. Without a GPU it ends well too."""
    folder = pathlib.Path(succeed(python, "-m", "warpheap", "--archive").strip())
    example, lists, main = (compilers.ROOT / "examples" / "26_c_archive", home / "lists.o", home / "main.o")
    nvcc = compilers.find_nvcc()[0]
    succeed("gcc", "-std=c99", f"-I{folder}/include", "-c", example / "main.c", "-o", main)
    succeed(nvcc, "-std=c++11", "-rdc=true", "-arch=sm_90", "-c", example / "lists.cu", "-o", lists)
    linked = [f"-L{folder}/lib", "-lwarpheap_device", "-lwarpheap_host", f"-Xlinker=-rpath,{folder}/lib"]
    succeed(nvcc, "-arch=sm_90", lists, main, *linked, "-o", home / "lists")
    print(succeed(home / "lists"))


def check_types(python, home, source):
    succeed(python, "-m", "mypy", "--strict", f"--config-file={PACKAGE / 'pyproject.toml'}", f"--cache-dir={home / 'mypy'}", source)


def installed(python, home, negative):
    """A test that fails must fail the check."""
    succeed(python, "-m", "pip", "install", "-q", "--no-compile", "--no-deps", "--no-build-isolation", PACKAGE)
    return tested(python, [home / PLANTED] if negative else sorted((PACKAGE / "tests").glob("test_*.py")), home)


def main():
    parser = compilers.arguments(__doc__)
    parser.add_argument("--published", action="store_true", help="check what would be published")
    options = parser.parse_args()
    with compilers.folder_of({PLANTED: FAILING, "wrong.py": WRONG_TYPE}) as home:
        python = compilers.venv_or_skip(home, *(PUBLISHED if options.published else NEEDED))
        try:
            if not options.published:
                faults = installed(python, home, options.self_test)
            elif options.self_test:
                succeed(python, "-m", "pip", "install", "-q", "--no-compile", "--no-deps", "--no-build-isolation", PACKAGE)
                faults = check_types(python, home, home / "wrong.py")
            else:
                faults = published(python, home)
        except compilers.Failed as failure:
            faults = [str(failure)]
    print("\n".join(faults or ["no fault"]))
    if options.self_test:
        return 0 if faults and ("Incompatible types in assignment" in faults[0] if options.published else faults[0].startswith("pytest ends with 1 ")) else 1
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
