#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the Python package, installs it into a fresh virtual environment, and runs its tests there. They need no GPU.

--published does what a release needs instead: sdist and wheel, twine's check of both, the wheel with Numba in a fresh
environment, `python -m warpheap` and the tests that need Numba or cuda.core there, and mypy.
"""

import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile

import compilers
import release

PACKAGE = compilers.ROOT / "python"
NEEDED = ["cuda-bindings==13.*", "nvidia-cuda-nvrtc==13.*", "numpy", "pytest", "hatchling"]
NUMBA_TESTS = ["test_cuda_core.py", "test_examples.py", "test_numba.py"]
PUBLISHED = [*NEEDED[:2], "numba-cuda[cu13]==0.30.*", "numpy<2.5", "cuda-core==1.*", *NEEDED[3:], "build", "twine", "mypy==2.4.*"]
PACKED = ("py.typed", "include/warpheap/warpheap.hpp")
HOMEPAGE = "https://example.org/warpheap"
DESCRIBED = ("License-Expression: Apache-2.0", "License-File: LICENSE", "Author: ", "Keywords: ", f"Project-URL: Homepage, {HOMEPAGE}")
FAULTY = 'def allocators() -> int:\n    return "none"\n'


def run(*command, **variables):
    words = [str(word) for word in command]
    return subprocess.run(words, cwd=tempfile.gettempdir(), capture_output=True, text=True, env={**os.environ, **variables})


def failed(what, done):
    print(f"{what}:\n{(done.stdout + done.stderr)[-4000:]}")
    return 1


def tested(python, tests, home):
    done = run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, WARPHEAP_CACHE_DIR=str(home / "cache"))
    print(done.stdout[-4000:])
    return done.returncode


def installed(python):
    return run(python, "-m", "pip", "install", "-q", "--no-compile", "--no-deps", "--no-build-isolation", PACKAGE)


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
    words = ("--no-isolation", "--sdist", "--wheel", "-o", home / "dist", PACKAGE)
    built = run(python, "-m", "build", "-q", *words, WARPHEAP_HOMEPAGE=HOMEPAGE)
    if built.returncode:
        return failed("the package cannot be built", built)
    made = sorted((home / "dist").iterdir())
    described = run(python, "-m", "twine", "check", "--strict", *made)
    if described.returncode:
        return failed("twine refuses the package", described)
    (wheel,) = (path for path in made if path.suffix == ".whl")
    lacking = [f"{path.name} lacks {what}" for path in made for what in lacking_in(path)]
    if lacking:
        print("\n".join(lacking))
        return 1
    done = run(python, "-m", "pip", "install", "-q", "--no-compile", "--no-deps", wheel)
    if done.returncode:
        return failed("the wheel cannot be installed", done)
    said = run(python, "-m", "warpheap", WARPHEAP_CACHE_DIR=str(home / "cache"))
    if said.returncode:
        return failed("python -m warpheap", said)
    print(said.stdout)
    typed = checked_types(python, PACKAGE / "src" / "warpheap", home)
    if typed.returncode:
        return failed("mypy", typed)
    return tested(python, [PACKAGE / "tests" / name for name in NUMBA_TESTS], home)


def checked_types(python, source, home):
    flags = ["--ignore-missing-imports", "--follow-imports=skip"]  # sources of other packages are not read
    return run(python, "-m", "mypy", *flags, f"--cache-dir={home / 'mypy'}", source)


def planted(python, home):
    """A test that fails must fail the check, and a wrong type must fail mypy where that is installed."""
    test = home / "test_planted.py"
    test.write_text("def test_planted():\n    import warpheap\n\n    assert not warpheap.allocators\n")
    return 0 if tested(python, [test], home) == 1 else 1


def planted_type(python, home):
    (home / "wrong.py").write_text(FAULTY)
    done = checked_types(python, home / "wrong.py", home)
    return 0 if "Incompatible return value" in done.stdout else failed("mypy did not see the injected fault", done)


def main():
    parser = compilers.arguments(__doc__)
    parser.add_argument("--published", action="store_true", help="check what would be published")
    options = parser.parse_args()
    needed = PUBLISHED if options.published else NEEDED
    with tempfile.TemporaryDirectory() as directory:
        home = pathlib.Path(directory)
        python = home / "venv" / "bin" / "python"
        made = run(sys.executable, "-m", "venv", home / "venv")
        fetched = made if made.returncode else run(python, "-m", "pip", "install", "-q", "--no-compile", *needed)
        if fetched.returncode:
            print(f"SKIP: pip cannot fetch {', '.join(needed)}, so the Python package was not tried")
            return compilers.SKIPPED
        if options.published:
            return planted_type(python, home) if options.self_test else published(python, home)
        done = installed(python)
        if done.returncode:
            return failed("the package cannot be installed", done)
        if options.self_test:
            return planted(python, home)
        return tested(python, sorted((PACKAGE / "tests").glob("test_*.py")), home)


if __name__ == "__main__":
    sys.exit(main())
