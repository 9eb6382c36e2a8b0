# SPDX-License-Identifier: Apache-2.0
"""Compiles a test against a tree with one header replaced, runs it, and says what came of it.

The tree is an overlay: folders of its own with a link for each header, because a header finds others relative to itself. What a
test said of given contents is kept in the cache, for the next run.
"""

import atexit
import dataclasses
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import threading

from .project import digest

FAILED = re.compile(r"^\[  FAILED  \] ([\w/.]+)", re.MULTILINE)
FAILED_ASSERTION = re.compile(r"error: (static assertion failed|non-constant condition for static assertion)")
BEGUN = re.compile(r"^\[ RUN      \] ([\w/.]+)", re.MULTILINE)
STEP_CAP = "step cap: the run has taken"
LIMITS = "ulimit -c 0 -f 131072 -v 16777216 -t {seconds}; exec \"$@\""
# A program counts as hung after this many times the processor time that it takes with the original, and some seconds.
PATIENCE, LEAST_SECONDS = 6, 5
COMPILER_SECONDS = 900
KILLING = ("killed", "hung")


@dataclasses.dataclass
class Verdict:
    """What one test said of one tree."""

    what: str  # passed, killed, hung, invalid, same code
    by: str = ""  # the test that failed, and how
    object: str = ""  # digest of the object code
    compile_seconds: float = 0.0  # of a processor, as the next
    run_seconds: float = 0.0


class Interrupted(Exception):
    pass


class Judge:
    def __init__(self, project, least_seconds=LEAST_SECONDS):
        self.project, self.least_seconds = project, least_seconds
        self.running, self.stopped = set(), False
        self.lock = threading.Lock()
        self.baseline_locks = {}
        project.cache.mkdir(parents=True, exist_ok=True)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="work_", dir=project.cache))
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        self.precompiled = self._precompile()

    def stop(self):
        """Ends all programs that were started; later ones do not start."""
        with self.lock:
            self.stopped = True
            for process in self.running:
                kill(process)

    def baseline(self, test):
        """What a test says of the tree as it is."""
        with self.lock:
            mine = self.baseline_locks.setdefault(test, threading.Lock())
        with mine:
            return self.verdict(test, None, None, None)

    def verdict(self, test, header, text, original):
        """What a test says of the tree with `text` for `header`; `original` is what it says of the tree as it is."""
        kept = self._kept(test, header, text)
        if kept.is_file():
            return Verdict(**json.loads(kept.read_text()))
        with tempfile.TemporaryDirectory(dir=self.folder) as place:
            include = pathlib.Path(place) / "include"
            overlay(self.project.base, include, header, text)
            said = self._compile_and_run(pathlib.Path(place), include, test, original)
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(dataclasses.asdict(said)))
        return said

    def _kept(self, test, header, text):
        """Where the cache keeps the verdict: named by everything that the program is made of."""
        inputs = dict(self.project.inputs(test))
        if header is not None:
            inputs[f"include/{self.project.library}/{header}"] = digest(text.encode())
        seeds = os.environ.get("WARPHEAP_TEST_SEEDS", "")
        parts = [self.project.flags_digest, test, seeds, *(f"{name} {said}" for name, said in sorted(inputs.items()))]
        return self.project.cache / "verdicts" / digest("\n".join(parts).encode())

    def _compile_and_run(self, place, include, test, original):
        objects, compiled = [], 0.0
        for number, unit in enumerate(self.project.units(test)):
            objects.append(place / f"{number}.o")
            flags = [*self.precompiled, *self.project.flags, f"-I{include}", f"-ffile-prefix-map={include}=include", "-frandom-seed=0"]
            command = ["g++", *flags, "-c", str(self.project.root / unit), "-o", str(objects[-1])]
            code, said, _, seconds = self._run(command, place / "compiler", COMPILER_SECONDS)
            compiled += seconds
            if code != 0:
                what, by = outcome_of_compiler(said.replace(f"{include}/", "").replace(f"{self.project.root}/", ""))
                return Verdict(what, by, compile_seconds=compiled)
        whole = digest(b"".join(path.read_bytes() for path in objects))
        if original is not None and whole == original.object:
            return Verdict("same code", object=whole, compile_seconds=compiled)
        program = place / "program"
        command = ["g++", *map(str, objects), "-o", str(program), *self.project.libraries]
        code, said, _, seconds = self._run(command, place / "linker", COMPILER_SECONDS)
        compiled += seconds
        if code != 0:
            return Verdict("invalid", said[-300:], compile_seconds=compiled)
        limit = self.least_seconds + PATIENCE * (original.run_seconds if original else 60)
        limited = ["sh", "-c", LIMITS.format(seconds=int(limit) + 1), "sh", str(program), "--gtest_fail_fast", "--gtest_color=no"]
        # The limit is one of processor time, since other programs run too; one that sleeps meets the second limit.
        code, said, timed_out, ran = self._run(limited, place / "output", 5 * limit)
        what, by = outcome_of_run(code, said, timed_out)
        return Verdict(what, by, whole, compiled, ran)

    def _run(self, command, output, seconds):
        """(exit status, the end of what it said, whether it was ended after `seconds`, processor seconds)."""
        with open(output, "wb") as said:
            with self.lock:
                if self.stopped:
                    raise Interrupted
                process = subprocess.Popen(
                    command, cwd=self.project.root, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT, start_new_session=True
                )
                self.running.add(process)
            timed_out = threading.Event()
            alarm = threading.Timer(seconds, lambda: (timed_out.set(), kill(process)))
            alarm.start()
            try:
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            finally:
                alarm.cancel()
                with self.lock:
                    self.running.discard(process)
        if self.stopped:
            raise Interrupted
        with open(output, "rb") as said:
            size = said.seek(0, os.SEEK_END)
            said.seek(max(0, size - 200_000))
            text = said.read().decode(errors="replace")
        return process.returncode, text, timed_out.is_set(), usage.ru_utime + usage.ru_stime

    def _precompile(self):
        """The flags that give every test the precompiled header; none where the project has none."""
        if not self.project.precompiled:
            return []
        header = self.project.cache / f"precompiled_{self.project.flags_digest}.hpp"
        header.write_text(self.project.precompiled)
        made = pathlib.Path(f"{header}.gch")
        if not made.is_file():
            command = ["g++", *self.project.flags, "-x", "c++-header", "-o", str(made), str(header)]
            code, said, _, _ = self._run(command, self.folder / "compiler", 600)
            if code != 0:
                made.unlink(missing_ok=True)
                raise SystemExit(f"mutate: the header that all tests share does not compile: {said[-300:]}")
        return ["-include", str(header)]


def overlay(base, include, header, text):
    """Links for all headers below `base`/.., and a file with `text` in place of `header`, unless that is None."""
    for path in sorted(base.parent.rglob("*")):
        link = include / path.relative_to(base.parent)
        if path.is_dir():
            link.mkdir(parents=True, exist_ok=True)
        else:
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path)
    if header is not None:
        replaced = include / base.name / header
        replaced.unlink()
        replaced.write_text(text)


def outcome_of_compiler(said):
    """(killed or invalid, the first error): a static assertion is a test, and any other error says that it is no C++. One that is
    not constant any more does not end."""
    error = ([line for line in said.splitlines() if "error:" in line] or [said[-200:]])[0][:300]
    return "killed" if FAILED_ASSERTION.search(error) else "invalid", error


def outcome_of_run(code, said, timed_out):
    """(passed, killed or hung; which test, and how)."""
    begun, failed = BEGUN.findall(said), FAILED.findall(said)
    test = (failed or begun[-1:] or ["the program"])[0]
    if timed_out or code == -signal.SIGXCPU:
        return "hung", f"{(begun or [test])[-1]}, out of time"
    if code == 0:
        return "passed", ""
    if STEP_CAP in said:
        return "hung", f"{test}, at the step cap"
    if code < 0:
        return "killed", f"{(begun or [test])[-1]}, by {signal.Signals(-code).name}"
    return "killed", test


def kill(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def judge_mutant(judge, mutant, tests, budget, report):
    """The result of one mutant: a dictionary as it stands in the JSON. `report` takes lines about tests that cannot judge."""
    spent, judged = 0.0, False  # as it was when the verdicts were new: the cache does not change which tests judge
    text = mutant.apply((judge.project.base / mutant.file).read_text())
    result = {"outcome": "", "by": "", "test": "", "seconds": 0.0, "passed": [], "same": [], "left": 0}
    for test in judge.project.judges(mutant.file, mutant.function, tests):
        # Without its baseline, which costs a compilation itself, nothing is known of a test: so no more are tried
        # when one was left out and half of the budget is gone.
        if judged and (spent >= budget or (result["left"] and 2 * spent >= budget)):
            result["left"] += 1
            continue
        original = judge.baseline(test)
        if original.what != "passed":
            fault = "does not build alone" if original.what == "invalid" else "fails"
            report(f"{test} cannot judge: it {fault} as it is: {original.by}")
            continue
        if judged and spent + original.compile_seconds + original.run_seconds > budget:
            result["left"] += 1
            continue
        judged = True
        said = judge.verdict(test, mutant.file, text, original)
        spent += said.compile_seconds + said.run_seconds
        if said.what == "invalid" or said.what in KILLING:
            result.update(outcome=said.what, by=said.by, test=test)
            break
        result["same" if said.what == "same code" else "passed"].append(test)
    if not result["outcome"]:
        unreached = "not reached" if result["left"] else "same code"
        result["outcome"] = "survived" if result["passed"] else unreached if judged else "no test"
    result["seconds"] = round(spent, 1)
    return result
