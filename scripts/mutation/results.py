# SPDX-License-Identifier: Apache-2.0
"""What came of mutants: the file of results, survivors that are known to be equivalent, and the table."""

import collections
import datetime
import json
import os
import pathlib
import subprocess

OUTCOMES = ["killed", "hung", "survived", "explained", "not reached", "no test", "same code", "invalid"]
IDENTITY = ["file", "line", "column", "operator", "before", "after"]
EXPLANATION = {"file", "function", "line", "becomes", "operator", "argument"}


class Explanations:
    """Survivors with the argument why no test can reject them. They are found by their text, since lines move."""

    def __init__(self, path):
        self.entries = json.loads(path.read_text()) if path else []
        for entry in self.entries:
            if not isinstance(entry, dict) or set(entry) != EXPLANATION or not all(entry.values()):
                raise ValueError(f"{path}: an entry has {', '.join(sorted(EXPLANATION))}: {json.dumps(entry)[:80]}")

    def argument(self, mutant):
        for entry in self.entries:
            if self._is_about(entry, mutant):
                return entry["argument"]
        return None

    def apply(self, mutant, result):
        """Makes a survivor that has its argument an explained one. Returns whether the argument is wrong: a test rejects it."""
        argument = self.argument(mutant)
        if argument and result["outcome"] == "survived":
            result.update(outcome="explained", argument=argument)
        return bool(argument) and result["outcome"] in ("killed", "hung")

    def stale(self, mutants):
        """Entries about no mutant there is: the code has changed, and the argument has to be made again."""
        files = {mutant.file for mutant in mutants}
        of_files = [entry for entry in self.entries if entry["file"] in files]
        return [entry for entry in of_files if not any(self._is_about(entry, mutant) for mutant in mutants)]

    @staticmethod
    def _is_about(entry, mutant):
        ours = (mutant.file, mutant.function, mutant.before, mutant.after, mutant.operator)
        return ours == tuple(entry[name] for name in ("file", "function", "line", "becomes", "operator"))


class Results:
    """The results of one run, kept in a file after each mutant if there is one."""

    def __init__(self, root, path, settings):
        self.path, self.rows = path, []
        self.head = {
            "commit": git(root, "describe", "--always", "--dirty", "--abbrev=12"),
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
            "settings": settings,
        }

    def add(self, mutant, result):
        self.rows.append({**{name: getattr(mutant, name) for name in [*IDENTITY, "function"]}, **result})
        if self.path:
            new = pathlib.Path(f"{self.path}.new")
            new.write_text(text_of(self.as_dictionary()))
            os.replace(new, self.path)

    def as_dictionary(self):
        rows = sorted(self.rows, key=lambda row: [row[name] for name in IDENTITY])
        counts = collections.Counter(row["outcome"] for row in rows)
        return {**self.head, "counts": {name: counts[name] for name in OUTCOMES}, "mutants": rows}


def text_of(document):
    """A document's JSON, with a line for each entry of its lists."""
    lists = {name: rows for name, rows in document.items() if isinstance(rows, list)}
    text = json.dumps({name: [] if name in lists else value for name, value in document.items()}, indent=1)
    for name, rows in lists.items():
        lines = ",\n".join(f"  {json.dumps(row)}" for row in rows)
        text = text.replace(f' "{name}": []', f' "{name}": [\n{lines}\n ]')
    return text + "\n"


def git(root, *words):
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def folder_of(file):
    """The row of the table that a header is counted in: its folder, or that of its own name."""
    path = pathlib.PurePosixPath(file)
    parent = path.parent.as_posix()
    return path.with_suffix("").as_posix() if parent == "policy/creation" else parent


def counts_by(rows, title, group_of):
    """A table of outcomes, one line a group."""
    groups = collections.defaultdict(collections.Counter)
    for row in rows:
        groups[group_of(row)][row["outcome"]] += 1
    total = sum(groups.values(), collections.Counter())
    lines = [f"| {title} | made | " + " | ".join(OUTCOMES) + " |", "|---|" + "---:|" * (len(OUTCOMES) + 1)]
    for name, counts in [*sorted(groups.items()), ("all", total)]:
        cells = [str(sum(counts.values())), *(str(counts[outcome]) for outcome in OUTCOMES)]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def table(results):
    """Markdown: counts by folder and by operator, then each survivor with its location and diff."""
    lines = counts_by(results["mutants"], "folder", lambda row: folder_of(row["file"]))
    lines += ["", *counts_by(results["mutants"], "operator", lambda row: row["operator"])]
    lines += ["", f"Commit {results['commit']}, {results['date']}; {results['settings']}."]
    for row in results["mutants"]:
        if row["outcome"] in ("survived", "explained"):
            where = f"{row['file']}:{row['line']}:{row['column']}, {row['function']}, {row['operator']}"
            lines += ["", f"{where}: {row.get('argument') or 'survived'}", "```diff", f"-{row['before']}", f"+{row['after']}", "```"]
    return "\n".join(lines)
