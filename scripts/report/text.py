# SPDX-License-Identifier: Apache-2.0
"""Numbers as people read them."""

import math
import re

SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def six_digits(value):
    """A number of a results file: whole ones exactly, others to six significant digits."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return str(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.6g}"
    return "" if value is None else str(value)


def three_digits(value):
    """To three significant digits, without an exponent, and with commas."""
    if value == 0:
        return "0"
    digits = 2 - math.floor(math.log10(abs(value)))
    rounded = round(value, digits)
    decimals = 2 - math.floor(math.log10(abs(rounded))) if rounded else 0
    return f"{rounded:,.{max(decimals, 0)}f}"


def _scaled(value, units):
    """With the largest unit that leaves at least 1; `units` are (factor, name), the largest first."""
    for factor, name in units:
        if abs(value) >= factor * 0.9995:
            return f"{three_digits(value / factor)} {name}"
    factor, name = units[-1]
    return f"{three_digits(value / factor)} {name}"


def time_text(microseconds):
    return _scaled(microseconds, ((1e6, "s"), (1e3, "ms"), (1, "µs"), (1e-3, "ns")))


def rate_text(per_second):
    return _scaled(per_second, ((1e9, "G/s"), (1e6, "M/s"), (1e3, "k/s"), (1, "/s")))


def bytes_text(count):
    for power, name in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        size = count / (1 << power)
        if size >= 1 and (count >= 10_000 or size * 4 == int(size * 4)):
            return f"{size:g} {name}" if round(size, 3) == size else f"{three_digits(size)} {name}"
    return f"{count:,} B"


def cycles_text(cycles):
    return _scaled(cycles, ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""))).rstrip()


def byte_rate_text(per_second):
    return _scaled(per_second, ((1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1, "B/s")))


def count_text(count):
    """A number of threads or the like; powers of two from 2^14 on as such."""
    if isinstance(count, int) and count >= 1 << 14 and count & (count - 1) == 0:
        return "2" + str(count.bit_length() - 1).translate(SUPERSCRIPTS)
    return f"{count:,}" if isinstance(count, int) else three_digits(count)


def share_text(share):
    if share and abs(share) < 0.0005:
        return f"{share * 100:.2g}%"
    return f"{share * 100:.3g}%"


def ratio_text(ratio):
    if 0 < ratio < 0.095:
        return f"{ratio:.2g}"
    if ratio < 9.995:
        return f"{ratio:.2f}"
    return f"{ratio:.1f}" if ratio < 99.95 else f"{ratio:,.0f}"


FORMATS = {
    "time": time_text,
    "rate": rate_text,
    "bytes": bytes_text,
    "byte_rate": byte_rate_text,
    "count": count_text,
    "cycles": cycles_text,
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
    if name == "pool_bytes":
        return f"{bytes_text(value)} pool"
    if name == "bytes":
        return bytes_text(value)
    if name == "thread_block":
        return f"thread blocks of {value:,}"
    if name in ("least_bytes", "most_bytes"):
        return f"{'from' if name == 'least_bytes' else 'up to'} {bytes_text(value)}"
    if name.endswith("_permille"):
        return f"{share_text(value / 1000)} {name[:-9].replace('_', ' ')}"
    if name.endswith("_bytes"):
        return f"{bytes_text(value)} {name[:-6].replace('_', ' ')}"
    if name.endswith("_ns"):
        return f"{value} ns {name[:-3].replace('_', ' ')}"
    return f"{count_text(value)} {name.replace('_', ' ')}"


def in_order(value):
    """A key to sort parameters by: numbers, and then text."""
    return (isinstance(value, str), value)


def separated(words):
    """'a', 'a and b', 'a, b and c', in pieces."""
    words = list(words)
    for number, word in enumerate(words, 1):
        yield word
        if number < len(words):
            yield " and " if number == len(words) - 1 else ", "


def listed(words):
    return "".join(separated(words))
