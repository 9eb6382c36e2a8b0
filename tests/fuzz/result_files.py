# SPDX-License-Identifier: Apache-2.0
"""Results as no program wrote them, given to the script that makes a page of them: it must make a page without a script, or say in one
sentence what is wrong.
"""

import copy
import json
import pathlib
import random
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "report"))

import page  # noqa: E402
import results  # noqa: E402

MOST_BYTES = 20_000  # of a file to begin with
SCRIPT = '"><script>alert(1)</script>'
ODD = [None, True, -1, 0, 1e308, 10**401, "", "\0", "\ud800", "1e999", SCRIPT, "\x1b[31m", [], {}, [[]], [None], {"a": []}]


def _texts():
    """Small files of results, one of each set of fields."""
    found = {}
    for path in sorted((ROOT / "bench" / "results").glob("*.json")):
        if path.stat().st_size <= MOST_BYTES:
            document = json.loads(path.read_text(encoding="utf-8"))
            found.setdefault(json.dumps(sorted(document)), document)
    return list(found.values())


def _places(value):
    """(container, key) of everything in a document."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in list(pairs):
        yield value, key
        yield from _places(part)


def _change(document, draw):
    container, key = draw.choice(list(_places(document)) or [({"": 0}, "")])
    kind = draw.randrange(4)
    if kind == 0 and isinstance(container, dict):
        container[draw.choice([SCRIPT, "\0", "bytes", "results"])] = container.pop(key)
    elif kind == 1:
        del container[key]
    elif kind == 2 and isinstance(container[key], (int, float)):
        container[key] = draw.choice([-container[key], container[key] * 10**30, str(container[key])])
    else:
        container[key] = copy.deepcopy(draw.choice(ODD))


def _input(draw, documents):
    document = copy.deepcopy(draw.choice(documents))
    for _ in range(draw.randint(1, 4)):
        _change(document, draw)
    text = json.dumps(document)
    if draw.randrange(8) == 0:
        at = draw.randrange(len(text))
        text = text[:at] + draw.choice(["", "\ufeff", "1e999", "NaN", "[" * 2000]) + text[at + draw.randrange(3) :]
    return text


def _fault(text):
    """What is wrong with what is made of an input; empty if nothing is."""
    try:
        made, _ = page.build([results.source_of("f", text)], None)
        made.encode("utf-8")
    except results.Fault:
        return ""
    except Exception as error:  # noqa: BLE001: any other is the fault that is looked for
        return f"{type(error).__name__}: {error}"
    return "a script in the page" if "<script" in made else ""


def fuzz(seconds, seed):
    """Returns how many inputs were tried, and the first that shows a fault with the fault, or None."""
    draw, documents, tried = random.Random(seed), _texts(), 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        text = _input(draw, documents)
        tried += 1
        if fault := _fault(text):
            return tried, (text, fault)
    return tried, None
