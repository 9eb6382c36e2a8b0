# SPDX-License-Identifier: Apache-2.0
"""Scales of axes, and where their ticks are."""

import math


class Scale:
    """Maps values of [low, high] to pixels of [start, end]."""

    def __init__(self, low, high, start, end, logarithmic):
        self.logarithmic = logarithmic
        self.low, self.high, self.start, self.end = low, high, start, end

    def __call__(self, value):
        place = math.log if self.logarithmic else float
        low, high = place(self.low), place(self.high)
        part = (place(value) - low) / (high - low) if high > low else 0.5
        return self.start + part * (self.end - self.start)


def _log_ends(values):
    """The ends of a logarithmic axis, with some room; a flat line gets an axis too."""
    low, high = math.log10(min(values)), math.log10(max(values))
    room = 0.2 if high - low < 0.2 else (high - low) * 0.04
    return 10 ** (low - room), 10 ** (high + room)


def value_scale(values, start, end, kind):
    """Of measured values: logarithmic, but for shares, which begin at 0."""
    if kind == "share":
        return Scale(0, max(max(values) * 1.04, 1e-4), start, end, False)
    positive = [value for value in values if value > 0]
    if not positive or (kind == "count" and min(values) <= 0):
        return Scale(0, max([1e-9, *values]) * 1.04, start, end, False)
    return Scale(*_log_ends(positive), start, end, True)


def argument_scale(values, start, end, logarithmic):
    """Of a parameter."""
    return Scale(min(values), max(values), start, end, logarithmic)


def _linear_ticks(low, high, wanted):
    raw = (high - low) / wanted
    step = 10 ** math.floor(math.log10(raw))
    step *= next(factor for factor in (1, 2, 5, 10) if step * factor >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [index * step for index in range(first, math.floor(high / step + 1e-9) + 1)]


def _log_ticks(low, high, wanted):
    decades = math.log10(high) - math.log10(low)
    if decades < 0.7:
        return [tick for tick in _linear_ticks(low, high, wanted) if tick > 0]
    steps = (1, 2, 5) if decades < 2.2 else (1,)
    every = max(1, math.ceil(decades / wanted))
    ticks = []
    for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        if steps == (1,) and power % every:
            continue
        ticks.extend(10.0**power * step for step in steps if low <= 10.0**power * step <= high)
    return ticks


def value_ticks(scale, wanted=6):
    make = _log_ticks if scale.logarithmic else _linear_ticks
    return make(scale.low, scale.high, wanted)


def argument_ticks(scale, values, room):
    """Those of the values that are at least `room` pixels apart; of many values, powers of two or round numbers."""
    values = sorted(set(values))
    if len(values) > 24:
        if scale.logarithmic:
            low, high = math.ceil(math.log2(scale.low)), math.floor(math.log2(scale.high))
            values = [1 << power for power in range(max(low, 0), high + 1)]
        else:
            values = _linear_ticks(scale.low, scale.high, 6)
    kept = values[-1:]
    for value in reversed(values[:-1]):
        if abs(scale(value) - scale(kept[-1])) >= room:
            kept.append(value)
    first = values[0]
    if kept[-1] != first:  # the least is named in place of its neighbour
        if len(kept) > 1:
            kept.pop()
        kept.append(first)
    return kept[::-1]


def spread_out(wanted, room, low, high):
    """Positions near those wanted (ascending), `room` apart, within [low, high] as far as they fit."""
    placed = []
    for position in wanted:
        placed.append(max(position, placed[-1] + room) if placed else max(position, low))
    over = placed[-1] - high if placed else 0
    if over > 0:
        placed[-1] -= over
        for index in range(len(placed) - 2, -1, -1):
            placed[index] = min(placed[index], placed[index + 1] - room)
    # Below `low` only where there is no room at all.
    return placed
