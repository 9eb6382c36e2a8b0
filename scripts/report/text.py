# SPDX-License-Identifier: Apache-2.0
"""Numbers as people read them."""

import math
import re

# What XML cannot have at all, and controls of a terminal. U+FFFD takes their place.
_UNPRINTABLE = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def printable(words):
    """One line of what a page and a terminal can show."""
    return _UNPRINTABLE.sub("\ufffd", re.sub(r"[\t\r\n]", " ", str(words)))


def six_digits(value):
    """A number of a results file: whole ones exactly, others to six significant digits."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return str(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.6g}"
    return "" if value is None else str(value)


def three_digits(value):
    """To three significant digits, without an exponent, and with commas."""
    if value == 0:
        return "0"
    rounded = round(value, 2 - math.floor(math.log10(abs(value))))
    decimals = 2 - math.floor(math.log10(abs(rounded))) if rounded else 0
    return f"{rounded:,.{max(decimals, 0)}f}"


def _scaled(*units):
    """With the largest unit that leaves at least 1; `units` are (factor, name), the largest first."""

    def write(value):
        factor, name = next((each for each in units if abs(value) >= each[0] * 0.9995), units[-1])
        return f"{three_digits(value / factor)} {name}".rstrip()

    return write


def bytes_text(count):
    for power, name in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        size = count / (1 << power)
        if size >= 1 and (count >= 10_000 or size * 4 == int(size * 4)):
            return f"{size:g} {name}" if round(size, 3) == size else f"{three_digits(size)} {name}"
    return f"{count:,} B"


def count_text(count):
    """A number of threads or the like; powers of two from 2^14 on as such."""
    if isinstance(count, int) and count >= 1 << 14 and count & (count - 1) == 0:
        return "2" + str(count.bit_length() - 1).translate(SUPERSCRIPTS)
    return f"{count:,}" if isinstance(count, int) else three_digits(count)


def share_text(share):
    return f"{share * 100:.2g}%" if share and abs(share) < 0.0005 else f"{share * 100:.3g}%"


def ratio_text(ratio):
    if ratio < 9.995:
        return f"{ratio:.2g}" if 0 < ratio < 0.095 else f"{ratio:.2f}"
    return f"{ratio:.1f}" if ratio < 99.95 else f"{ratio:,.0f}"


FORMATS = {
    "time": _scaled((1e6, "s"), (1e3, "ms"), (1, "µs"), (1e-3, "ns")),
    "rate": _scaled((1e9, "G/s"), (1e6, "M/s"), (1e3, "k/s"), (1, "/s")),
    "cycles": _scaled((1e9, "G"), (1e6, "M"), (1e3, "k"), (1, "")),
    "bytes": bytes_text,
    "count": count_text,
    "share": share_text,
    "permille": lambda value: share_text(value / 1000),
    "ratio": ratio_text,
    "number": three_digits,
}


def tick_text(kind, value):
    """As in FORMATS, without zeros at the end of decimals."""
    return re.sub(r"\.(\d*?)0+(?!\d)", lambda decimals: "." * bool(decimals[1]) + decimals[1], FORMATS[kind](value))


def parameter_text(name, value):
    """A parameter of a row, in words: '256 B', '2^20 threads', '8 GiB pool'."""
    if isinstance(value, str):
        return value
    if name == "thread_block":
        return f"thread blocks of {value:,}"
    if name in ("least_bytes", "most_bytes"):
        return f"{'from' if name == 'least_bytes' else 'up to'} {bytes_text(value)}"
    for end, write in (("_permille", FORMATS["permille"]), ("bytes", bytes_text), ("_ns", "{} ns".format)):
        if name.endswith(end):
            return f"{write(value)} {name[: -len(end)].replace('_', ' ').strip()}".strip()
    return f"{count_text(value)} {name.replace('_', ' ')}"


def in_order(value):
    """A key to sort parameters by: numbers, and then text."""
    return (isinstance(value, str), value)


def listed(words):
    """'a', 'a and b', 'a, b and c'."""
    words = list(words)
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
