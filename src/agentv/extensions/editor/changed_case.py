"""The one case that an edit touched, cut out of a long file so that it can be checked at once.

Every line keeps its number: those of the other cases are blank.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_TESTS = re.compile(rb"(?:tests|evalcases|eval_cases|cases)[ ]*:[ \t]*(?:#.*)?$")


@dataclass(frozen=True, slots=True)
class Change:
    """Lines of a text that differ from its earlier version.

    Attributes:
        first, last: the changed lines, counted from 0; the last is exclusive.
        added: lines more than there were.
    """

    first: int
    last: int
    added: int


def change_between(before: Sequence[str], after: Sequence[str]) -> Change:
    """What changed from one text to another: all lines between those that are equal at both ends."""
    shorter = min(len(before), len(after))
    first = next((at for at in range(shorter) if before[at] != after[at]), shorter)
    same = next((at for at in range(shorter - first) if before[-1 - at] != after[-1 - at]), shorter - first)
    return Change(first, len(after) - same, len(after) - len(before))


def reduced(data: bytes, change: Change) -> tuple[bytes, range] | None:
    """The file with the changed case as its only one, and the lines of that case counted from 1.

    None if the change is not inside one case of a list in block style.
    """
    lines = data.split(b"\n")
    top = next((at for at, line in enumerate(lines) if _TESTS.match(line.rstrip())), None)
    if top is None or change.first <= top:
        return None
    starts, end = _starts(lines, top)
    begun = [at for at in starts if at <= change.first]
    if not begun or change.first >= end:
        return None
    start = begun[-1]
    stop = next((at for at in starts if at > start), end)
    if change.last > stop:
        return None
    blank = [b""] * len(lines)
    kept = [*lines[: starts[0]], *blank[starts[0] : start], *lines[start:stop], *blank[stop:end], *lines[end:]]
    return b"\n".join(kept), range(start + 1, stop + 1)


def _starts(lines: Sequence[bytes], top: int) -> tuple[list[int], int]:
    """The lines at which the cases start, and the line after the last one."""
    marker: bytes | None = None
    starts: list[int] = []
    for at in range(top + 1, len(lines)):
        line = lines[at]
        if marker is not None and line.startswith(marker):
            starts.append(at)
        elif not line.startswith((b" ", b"#")) and line.strip():
            if not (marker is None and line.startswith(b"-")):
                return starts, at
            marker = b"- "
            starts.append(at)
        elif marker is None and line.lstrip().startswith(b"- "):
            marker = line[: line.index(b"-") + 2]
            starts.append(at)
    return starts, len(lines)
