#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds Warpheap by a recipe of packaging/, from a draft release, and a program with what was installed.

  conan   with Conan from PyPI: `conan create` with its test_package
  conda   with rattler-build from PyPI; what the recipe needs comes from this machine, not from conda-forge
  cmake   FetchContent, of the archive by its hash
  vcpkg, spack   neither can be had from PyPI or Debian: the recipe's archive, hash and options of CMake are taken from its text
"""

import ast
import hashlib
import json
import pathlib
import re
import sys
import tempfile
import urllib.request

import compilers
import release

CONSUMER = compilers.ROOT / "tests" / "package" / "consumer.cpp"
HEAD = f'cmake_minimum_required(VERSION 3.25)\nproject(consumer LANGUAGES CXX)\nadd_executable(main "{CONSUMER}")\n'
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
succeed = compilers.succeed


def conan(recipe, home):
    """Boost is this machine's."""
    program = compilers.venv_or_skip(home, "conan==2.*").with_name("conan")
    variables = {"CONAN_HOME": str(home / "conan")}
    succeed(program, "profile", "detect", **variables)
    boost = succeed("dpkg-query", "-W", "-f", "${Version}", "libboost-context-dev").rpartition(".")[0]
    profile = home / "profile"
    profile.write_text(f"include(default)\n[settings]\ncompiler.cppstd=20\n[platform_requires]\nboost/{boost}\n")
    succeed(program, "create", recipe / "all", "--version", release.version_of(), "--profile:all", profile, "--no-remote", **variables)


def conda(recipe, home):
    python = compilers.venv_or_skip(home, "py-rattler-build>=0.70")
    print(succeed(python, "-c", RATTLER, recipe / "recipe.yaml", home / "packages").strip())


def cmake(recipe, home):
    consume((recipe / "fetch_content.cmake").read_text(), home)


def vcpkg(recipe, home):
    text = (recipe / "vcpkg.json").read_text()
    manifest = json.loads(text)
    names = [dependency["name"] for dependency in manifest["dependencies"]]
    if text != json.dumps(manifest, indent=2) + "\n" or names != sorted(names):
        raise compilers.Failed("vcpkg.json is not as `vcpkg format-manifest` writes it")
    portfile = (recipe / "portfile.cmake").read_text()
    installed(portfile, "sha512", re.findall(r"-D\w+=\w+", portfile), home)
    if not (home / "prefix" / re.search(r"CONFIG_PATH (\S+)\)", portfile)[1]).is_dir():
        raise compilers.Failed("portfile.cmake moves a folder that is not there")
    consume("\n".join(re.findall(r"^    (.*)", (recipe / "usage").read_text(), re.MULTILINE)), home)


def spack(recipe, home):
    text = (recipe / "package.py").read_text()
    ast.parse(text)
    variants = dict(re.findall(r'variant\("(\w+)", default=(\w+)', text))
    options = re.findall(r'define\("(\w+)", (\w+)\)', text)
    options += [(name, variants[variant]) for name, variant in re.findall(r'define_from_variant\("(\w+)", "(\w+)"\)', text)]
    installed(text, "sha256", [f"-D{name}={value.upper()}" for name, value in options], home)
    consume("find_package(warpheap CONFIG REQUIRED)\ntarget_link_libraries(main PRIVATE warpheap::warpheap)\n", home)


def installed(text, kind, options, home):
    """Fetches the archive that a recipe names, compares its hash, and installs it with a recipe's options."""
    packed = home / "fetched.tar.gz"
    urllib.request.urlretrieve(re.search(r'"((?:file|https?):[^"]*\.tar\.gz)"', text)[1], packed)
    hashes = re.findall(r"\b[0-9a-f]{64,128}\b", text)
    if hashes != [hashlib.new(kind, packed.read_bytes()).hexdigest()]:
        raise compilers.Failed(f"the archive's hash is not {hashes}")
    (home / "source").mkdir()
    succeed("tar", "xf", packed, "-C", home / "source", "--strip-components=1")
    prefix = f"-DCMAKE_INSTALL_PREFIX={home / 'prefix'}"
    said = succeed("cmake", "-G", "Ninja", "-S", home / "source", "-B", home / "build", prefix, "-DCMAKE_INSTALL_LIBDIR=lib", *options)
    if "not used by the project" in said:
        raise compilers.Failed(said)
    succeed("cmake", "--build", home / "build", "--target", "install")


def consume(usage, home):
    """Builds and runs a program that finds Warpheap as `usage` says."""
    (home / "CMakeLists.txt").write_text(HEAD + usage)
    succeed("cmake", "-G", "Ninja", "-S", home, "-B", home / "consumer", f"-DCMAKE_PREFIX_PATH={home / 'prefix'}", "-DCMAKE_BUILD_TYPE=Debug")
    succeed("cmake", "--build", home / "consumer")
    print(succeed(home / "consumer" / "main").strip())


RECIPES = {"cmake": cmake, "conan": conan, "conda-forge": conda, "vcpkg": vcpkg, "spack": spack}


def main():
    parser = compilers.arguments(__doc__)
    parser.add_argument("recipe", choices=RECIPES)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        home = pathlib.Path(directory)
        release.make(home / "release", release.draft_commit())
        recipe = home / "release" / "recipes" / options.recipe
        for path in recipe.rglob("*.*") if options.self_test else ():  # another hash than the archive's
            path.write_text(re.sub(r"\b[0-9a-f]{64,128}\b", lambda found: "0" * len(found[0]), path.read_text()))
        try:
            RECIPES[options.recipe](recipe, home)
        except compilers.Failed as failure:
            print(failure)
            return 0 if options.self_test and "0" * 64 in str(failure) else 1
    print(f"{options.recipe} builds Warpheap")
    return 1 if options.self_test else 0


if __name__ == "__main__":
    sys.exit(main())
