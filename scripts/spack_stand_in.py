# SPDX-License-Identifier: Apache-2.0
"""What a Spack recipe of a CMake project uses of Spack, as far as a check needs it: the recipe is run, and says how it builds."""

import contextlib
import sys
import types

# Directives that say something of the recipe and return nothing.
DIRECTIVES = ("conflicts", "depends_on", "license", "variant", "version")


class Recorder:
    def __init__(self):
        self.said = []  # (directive, arguments, named arguments)

    def directive(self, name):
        return lambda *words, **named: self.said.append((name, words, named))

    def of(self, name):
        return [(words, named) for directive, words, named in self.said if directive == name]


def recorded(path):
    """Runs a recipe. Returns what it said, and the options that it gives CMake with each variant's default value."""
    recorder = Recorder()

    class CMakePackage:
        def define(self, name, value):
            return f"-D{name}={'ON' if value else 'OFF'}"

        def define_from_variant(self, name, variant):
            (default,) = (named["default"] for words, named in recorder.of("variant") if words == (variant,))
            return self.define(name, default)

    package = types.ModuleType("spack.package")
    package.when = lambda condition: contextlib.nullcontext()
    for name in DIRECTIVES:
        setattr(package, name, recorder.directive(name))
    build_system = types.ModuleType("spack_repo.builtin.build_systems.cmake")
    build_system.CMakePackage = CMakePackage
    parents = ["spack", "spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems"]
    modules = {name: types.ModuleType(name) for name in parents}
    modules |= {package.__name__: package, build_system.__name__: build_system}
    content = {}
    with contextlib.ExitStack() as undo:
        for name, module in modules.items():
            sys.modules[name] = module
            undo.callback(sys.modules.pop, name)
        exec(compile(path.read_text(), path, "exec"), content)
    recipe = content["Warpheap"]
    return recorder, recipe, recipe().cmake_args()
