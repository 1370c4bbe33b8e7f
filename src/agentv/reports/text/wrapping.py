"""Text broken into lines that fit a column of a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from agentv.reports.text.escaping import TAB, cells, safe


def wrapped(text: str, width: int) -> Iterator[str]:
    """The lines of a text, safe and none wider than `width`; broken between words where one fits.

    Args:
        text: any text.
        width: columns, at least 2: a wide letter takes two.
    """
    for line in safe(text).replace("\t", TAB).split("\n"):
        yield from _broken(line.rstrip(), max(width, 2))


def _broken(line: str, width: int) -> Iterator[str]:
    while cells(line) > width:
        end = _fitting(line, width)
        space = line.rfind(" ", 1, end + 1)
        end = space if space > 0 else end
        yield line[:end].rstrip()
        line = line[end:].lstrip()
    yield line


def _fitting(line: str, width: int) -> int:
    """Number of letters that fit, at least one."""
    taken = 0
    for place, letter in enumerate(line):
        taken += cells(letter)
        if taken > width:
            return max(place, 1)
    return len(line)
