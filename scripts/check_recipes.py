#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds Warpheap by a recipe of packaging/, from a draft release, and a program with what was installed.

  conan   with Conan from PyPI: `conan create` with its test_package
  conda   with rattler-build from PyPI; what the recipe needs comes from this machine, not from conda-forge
  vcpkg   vcpkg cannot be had from PyPI or Debian: the port is run with tests/package/vcpkg_stand_in.cmake
  spack   nor can Spack: the recipe is run with scripts/spack_stand_in.py
"""

import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.request

import compilers
import release
import spack_stand_in

CONSUMERS = compilers.ROOT / "tests" / "package"
NEEDED = {"conan": "conan==2.*", "conda": "py-rattler-build>=0.70"}
HEAD = 'cmake_minimum_required(VERSION 3.25)\nproject(consumer LANGUAGES CXX)\nadd_executable(main "{source}")\n'
RATTLER = """
import pathlib, sys
import rattler_build as rattler
recipe, output = pathlib.Path(sys.argv[1]), sys.argv[2]
full = rattler.Stage0Recipe.from_file(recipe)
told = full.as_single_output()
print(told.package.name, told.about.license)
# What is needed to build is on this machine: without it in the recipe, nothing is asked of a channel.
text = recipe.read_text()
begin, end = text.index("requirements:"), text.index("tests:")
local = rattler.Stage0Recipe.from_yaml(text[:begin] + text[end:], recipe_dir=recipe.parent)
settings = rattler.ToolConfiguration(test_strategy="native")
for built in local.run_build(tool_config=settings, output_dir=output, channels=[], env_isolation=rattler.EnvironmentIsolation.NONE):
    print(*built.packages)
"""


class Failed(Exception):
    pass


def run(*command, **variables):
    """What a command says; Failed if it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, env={**os.environ, **variables})
    if done.returncode:
        raise Failed(f"{' '.join(words[:2])} …\n{(done.stdout + done.stderr)[-4000:]}")
    return done.stdout


def consume(prefix, home, usage="find_package(warpheap CONFIG REQUIRED)\ntarget_link_libraries(main PRIVATE warpheap::warpheap)\n"):
    """Builds and runs a program that finds Warpheap below `prefix` as `usage` says."""
    (home / "CMakeLists.txt").write_text(HEAD.format(source=CONSUMERS / "consumer.cpp") + usage)
    run("cmake", "-G", "Ninja", "-S", home, "-B", home / "consumer", f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Debug")
    run("cmake", "--build", home / "consumer")
    print(run(home / "consumer" / "main").strip())


def conan(recipe, home):
    """Boost is this machine's."""
    program, variables = home / "venv" / "bin" / "conan", {"CONAN_HOME": str(home / "conan")}
    run(program, "profile", "detect", **variables)
    boost = run("dpkg-query", "-W", "-f", "${Version}", "libboost-context-dev").rpartition(".")[0]
    profile = home / "profile"
    profile.write_text(f"include(default)\n[settings]\ncompiler.cppstd=20\n[platform_requires]\nboost/{boost}\n")
    run(program, "create", recipe, "--profile:all", profile, "--no-remote", **variables)


def conda(recipe, home):
    print(run(home / "venv" / "bin" / "python", "-c", RATTLER, recipe / "recipe.yaml", home / "packages").strip())


def vcpkg(recipe, home):
    text = (recipe / "vcpkg.json").read_text()
    manifest = json.loads(text)
    names = [dependency["name"] for dependency in manifest["dependencies"]]
    if text != json.dumps(manifest, indent=2) + "\n" or names != sorted(names):
        raise Failed("vcpkg.json is not as `vcpkg format-manifest` writes it")
    stand_in = CONSUMERS / "vcpkg_stand_in.cmake"
    run("cmake", "-D", f"PORT_DIR={recipe}", "-D", f"WORK={home / 'vcpkg'}", "-P", stand_in)
    usage = re.findall(r"^    (.*)", (recipe / "usage").read_text(), re.MULTILINE)
    consume(home / "vcpkg" / "package", home, "\n".join(usage))


def spack(recipe, home):
    recorder, package, options = spack_stand_in.recorded(recipe / "package.py")
    ((_, version),) = recorder.of("version")
    packed = home / "fetched.tar.gz"
    urllib.request.urlretrieve(package.url, packed)
    if hashlib.sha256(packed.read_bytes()).hexdigest() != version["sha256"]:
        raise Failed(f"the archive's hash is not {version['sha256']}")
    (home / "source").mkdir()
    run("tar", "xf", packed, "-C", home / "source", "--strip-components=1")
    run("cmake", "-G", "Ninja", "-S", home / "source", "-B", home / "build", f"-DCMAKE_INSTALL_PREFIX={home / 'prefix'}", *options)
    run("cmake", "--build", home / "build", "--target", "install")
    consume(home / "prefix", home)


RECIPES = {"conan": conan, "conda": conda, "vcpkg": vcpkg, "spack": spack}
FOLDERS = {"conda": "conda-forge"}
WRONG_HASH = "0" * 64


def prepared(name, home):
    """The folder of the filled-in recipe; None where its tool cannot be had."""
    release.make(home / "release", release.draft_commit())
    if name in NEEDED:
        run(sys.executable, "-m", "venv", home / "venv")
        try:
            run(home / "venv" / "bin" / "python", "-m", "pip", "install", "-q", "--no-compile", NEEDED[name])
        except Failed:
            return None
    return home / "release" / "recipes" / FOLDERS.get(name, name)


def spoil(recipe):
    """Another hash than the archive's, in all files of a recipe."""
    for path in recipe.rglob("*.*"):
        if path.is_file():
            path.write_text(re.sub(r"\b[0-9a-f]{64,128}\b", lambda found: "0" * len(found[0]), path.read_text()))


def main():
    parser = compilers.arguments(__doc__)
    parser.add_argument("recipe", choices=RECIPES)
    options = parser.parse_args()
    build = RECIPES[options.recipe]
    with tempfile.TemporaryDirectory() as directory:
        home = pathlib.Path(directory)
        recipe = prepared(options.recipe, home)
        if not recipe:
            print(f"SKIP: pip cannot fetch {NEEDED[options.recipe]}, so the recipe was not tried")
            return compilers.SKIPPED
        if options.self_test:
            spoil(recipe)
        try:
            build(recipe, home)
        except Failed as failure:
            print(failure)
            return 0 if options.self_test and WRONG_HASH in str(failure) else 1
    print(f"{options.recipe} builds Warpheap")
    return 1 if options.self_test else 0


if __name__ == "__main__":
    sys.exit(main())
