# SPDX-License-Identifier: Apache-2.0
"""Which parameters make charts of their own: those that neither what is drawn over decides, nor the ones before them.

`members` are (row, value, arguments).
"""

from text import in_order, parameter_text

# Read last: it often follows from sizes and threads.
LAST = ("pool_bytes",)


def _varied(given):
    """Names of the arguments that differ among some rows, in order."""
    names = list(dict.fromkeys(name for each in given for name in each))
    names.sort(key=lambda name: name in LAST)
    return [name for name in names if len({each.get(name) for each in given}) > 1]


def _span(name, values):
    """'1,024 to 2^20 threads'."""
    if not values:
        return ""
    first, last = parameter_text(name, values[0]), parameter_text(name, values[-1])
    if len(values) == 1:
        return first
    unit = last.partition(" ")[2]
    return f"{first[: -len(unit) - 1] if unit and first.endswith(' ' + unit) else first} to {last}"


class Split:
    """A parameter that makes charts of its own: what its value is for a row, as the chart's title says it."""

    def __init__(self, name, labels=None):
        self.name, self.labels = name, labels

    def __call__(self, member):
        row, _, given = member
        return self.labels[row.source.number] if self.labels else given.get(self.name)


def _conflicts(members, name, x, splits, by_source):
    """Whether the parameter has several values where x and the charts so far are the same."""
    decided = {}
    for member in members:
        place = tuple(split(member) for split in splits) + ((member[0].source.number,) if by_source else ())
        decided.setdefault((member[2].get(x), place), set()).add(member[2].get(name))
    return any(len(values) > 1 for values in decided.values())


def _sweeps(members, name, x):
    """Files whose rows may share a chart, as the parameter follows from x in the same way: file number to a label. None if the
    parameter does not change with x within a file."""
    maps = {}
    for row, _, given in members:
        maps.setdefault(row.source.number, {})[given.get(x)] = given.get(name)
    if all(len(set(values.values())) == 1 for values in maps.values()):
        return None
    sweeps = []
    for number, values in maps.items():
        for known, numbers in sweeps:
            if all(known.get(at, value) == value for at, value in values.items()):
                known.update(values)
                numbers.append(number)
                break
        else:
            sweeps.append((dict(values), [number]))
    labels = {}
    for known, numbers in sweeps:
        told = sorted((value for value in set(known.values()) if value is not None), key=in_order)
        labels.update({number: _span(name, told) for number in numbers})
    return labels


def splits_of(members, x):
    """The parameters that make charts of their own: those that x and the ones before them do not decide."""
    splits = []
    for name in _varied([given for _, _, given in members]):
        if name == x or not _conflicts(members, name, x, splits, False):
            continue
        labels = None if _conflicts(members, name, x, splits, True) else _sweeps(members, name, x)
        splits.append(Split(name, labels))
    return splits
