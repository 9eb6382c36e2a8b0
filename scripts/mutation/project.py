# SPDX-License-Identifier: Apache-2.0
"""The sources that judge: which tests include a header, and which of those are nearest to it."""

import dataclasses
import fnmatch
import hashlib
import pathlib
import re
import subprocess
import threading

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
# Programs of several sources with CMake rules of their own, and the tool's tests, which need the tool.
APART = ("tests/override/*", "tests/compile/*", "tests/package/*", "tests/sanitizer/*", "tests/tool/*")


@dataclasses.dataclass
class Project:
    """A tree with headers below include/<library>/ and tests that mirror them below tests/."""

    root: pathlib.Path
    library: str
    cache: pathlib.Path
    flags: list
    libraries: list
    precompiled: str = ""  # a source to precompile for every test

    def __post_init__(self):
        self.base = self.root / "include" / self.library
        self.flags_digest = digest(" ".join([*self.flags, *self.libraries, self.precompiled]).encode())
        self._digests, self._inputs, self._lock = {}, {}, threading.Lock()
        self._includers = self._find_includers()

    def tests(self, patterns):
        every = sorted(path.relative_to(self.root).as_posix() for path in (self.root / "tests").rglob("*_test.cpp"))
        alone = [name for name in every if not any(fnmatch.fnmatchcase(name, apart) for apart in APART)]
        return alone if not patterns else [name for name in alone if any(fnmatch.fnmatchcase(name, p) for p in patterns)]

    def units(self, test):
        """The sources of a test's program: itself, and beside it the second unit that its name begins like, if any."""
        path = self.root / test
        second = sorted(path.parent.glob("*_other_unit.cpp"))
        others = [unit for unit in second if path.name.startswith(unit.name.removesuffix("other_unit.cpp"))]
        return [test, *(unit.relative_to(self.root).as_posix() for unit in others)]

    def digest_of(self, name):
        """Of a file's content, read once a run."""
        if name not in self._digests:
            self._digests[name] = digest((self.root / name).read_bytes())
        return self._digests[name]

    def inputs(self, test):
        """{file: digest of its content} of all files of the project that a test's program is compiled from."""
        with self._lock:
            if test not in self._inputs:
                self._inputs[test] = {name: self.digest_of(name) for name in sorted(self._dependencies(test))}
            return self._inputs[test]

    def judges(self, header, function, tests):
        """The tests that include a header: the nearest first, of these one that names the function, and the shortest."""
        name, levels = f"include/{self.library}/{header}", self.users(header)
        order = []
        for test in tests:
            if name in self.inputs(test):
                text = (self.root / test).read_text()
                is_silent = not re.search(rf"\b{re.escape(function)}\b", text)
                far = min(2 * level + distance(user, test) for user, level in levels.items())
                order.append((far, is_silent, len(text), test))
        return [test for *_, test in sorted(order)]

    def users(self, header):
        """{header: by how many steps of #include it comes to this one}, itself among them."""
        levels, edge = {header: 0}, {header}
        while edge:
            level = 1 + max(levels.values())
            edge = {user for name in edge for user in self._includers.get(name, ())} - levels.keys()
            levels.update(dict.fromkeys(edge, level))
        return levels

    def _find_includers(self):
        """{header: the headers that include it}."""
        base, found = self.base.resolve(), {}
        for path in base.rglob("*.hpp"):
            for included in INCLUDE.findall(path.read_text()):
                target = (path.parent / included).resolve()
                if target.is_relative_to(base):
                    found.setdefault(target.relative_to(base).as_posix(), []).append(path.relative_to(base).as_posix())
        return found

    def _dependencies(self, test):
        found = set()
        for unit in self.units(test):
            kept = self.cache / "dependencies" / digest((self.flags_digest + unit).encode())
            names = self._still_valid(kept)
            if names is None:
                names = self._ask_compiler(unit)
                kept.parent.mkdir(parents=True, exist_ok=True)
                kept.write_text("".join(f"{self.digest_of(name)} {name}\n" for name in names))
            found.update(names)
        return found

    def _still_valid(self, kept):
        """The names that were kept, if none of the files has changed since."""
        if not kept.is_file():
            return None
        lines = [line.split(" ", 1) for line in kept.read_text().splitlines()]
        good = all((self.root / name).is_file() and self.digest_of(name) == said for said, name in lines)
        return [name for _, name in lines] if good else None

    def _ask_compiler(self, unit):
        command = ["g++", *self.flags, f"-I{self.root}/include", "-MM", str(self.root / unit)]
        done = subprocess.run(command, cwd=self.root, capture_output=True, text=True)
        if done.returncode != 0:  # it does not compile either, and then says so
            return [unit]
        words = done.stdout.replace("\\\n", " ").split()[1:]
        paths = {pathlib.Path(self.root, word).resolve() for word in words}
        return sorted(path.relative_to(self.root).as_posix() for path in paths if path.is_relative_to(self.root))


def distance(header, test):
    """How far a test is from a header: 0 for the test of its name, 1 for its allocator's conformance, 2 for its
    folder's, 3 for an exploration, 20 for others."""
    at, name = pathlib.PurePosixPath(header), pathlib.PurePosixPath(test).relative_to("tests")
    folder = list(at.parent.parts)
    stem = name.name.removesuffix("_test.cpp")
    parts = [part for part in name.parent.parts if part != "host"]
    if parts == folder and (stem == at.stem or stem.startswith(f"{at.stem}_")):
        return 0
    if parts == ["conformance"] and stem in (at.stem, at.parent.name):
        return 1
    if parts == ["explore"]:
        return 3
    is_near = parts == folder if folder != ["policy", "creation"] else parts == [*folder, at.stem]
    return 2 if is_near or [*parts, stem] == folder else 20


def digest(content):
    return hashlib.sha256(content).hexdigest()[:24]
