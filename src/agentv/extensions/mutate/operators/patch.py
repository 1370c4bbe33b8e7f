"""A patch in git's format, read and applied to texts. Hunks fit exactly where they say, or not at all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentv.model.values.lazy_pattern import lazy_pattern

_LINE = lazy_pattern(r"[^\n]*\n|[^\n]+")
_HUNK = lazy_pattern(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_MODE = lazy_pattern(r"(?:new file mode|new mode|index [0-9a-f]+\.\.[0-9a-f]+) (\d{6})$")


@dataclass(frozen=True, slots=True)
class Hunk:
    """One hunk. Places count from 0; lines keep their ends.

    Attributes:
        old_start, new_start: where it begins before and after the change.
        lines: (` `, `-` or `+`, line), in order.
    """

    old_start: int
    new_start: int
    lines: tuple[tuple[str, str], ...]

    @property
    def old(self) -> list[str]:
        """The lines before the change."""
        return [line for sign, line in self.lines if sign != "+"]

    @property
    def new(self) -> list[str]:
        """The lines after the change."""
        return [line for sign, line in self.lines if sign != "-"]

    @property
    def removed(self) -> tuple[str, ...]:
        """The lines that the change takes away."""
        return tuple(line for sign, line in self.lines if sign == "-")

    @property
    def added(self) -> tuple[str, ...]:
        """The lines that the change adds."""
        return tuple(line for sign, line in self.lines if sign == "+")

    def reverted(self, text: str) -> str | None:
        """A text with the change in it, without this one hunk; None: it is not there."""
        lines = lines_of(text)
        end = self.new_start + len(self.new)
        if lines[self.new_start : end] != self.new:
            return None
        return "".join((*lines[: self.new_start], *self.old, *lines[end:]))


@dataclass(frozen=True, slots=True)
class FilePatch:
    """What a patch does to one file.

    Attributes:
        mode: of the file afterwards, as git writes it; empty: it is not named.
    """

    mode: str
    hunks: tuple[Hunk, ...]

    def applied(self, text: str) -> str | None:
        """A text with the change; None: it is not the text that the patch was made of."""
        lines = lines_of(text)
        for hunk in reversed(self.hunks):
            end = hunk.old_start + len(hunk.old)
            if lines[hunk.old_start : end] != hunk.old:
                return None
            lines[hunk.old_start : end] = hunk.new
        return "".join(lines)


def lines_of(text: str) -> list[str]:
    """The lines of a text as git counts them, with their ends."""
    return _LINE.findall(text)


def read_patch(text: str) -> tuple[FilePatch, ...] | None:
    """What a patch does to each file, in its order; None: it is no patch in git's format."""
    try:
        return tuple(_files(lines_of(text)))
    except (ValueError, IndexError):
        return None


def _files(lines: Sequence[str]) -> Iterator[FilePatch]:
    place = 0
    while place < len(lines):
        if not lines[place].startswith("diff --git "):
            raise ValueError(lines[place])
        place += 1
        mode, hunks = "", []
        while place < len(lines) and not lines[place].startswith("diff --git "):
            found = _HUNK.match(lines[place])
            if found is not None:
                hunk, place = _hunk(found, lines, place + 1)
                hunks.append(hunk)
                continue
            if not hunks:
                named = _MODE.match(lines[place].rstrip("\n"))
                mode = named[1] if named is not None else mode
            place += 1
        yield FilePatch(mode, tuple(hunks))


def _hunk(found: re.Match[str], lines: Sequence[str], place: int) -> tuple[Hunk, int]:
    """A hunk by its header, and the place after it."""
    old, new = _count(found[2]), _count(found[4])
    start = (int(found[1]) - (1 if old else 0), int(found[3]) - (1 if new else 0))
    read: list[tuple[str, str]] = []
    while old or new:
        sign, line = lines[place][:1], lines[place][1:]
        if sign == "\\":
            read[-1] = (read[-1][0], read[-1][1].removesuffix("\n"))
        elif sign in {" ", "-", "+"}:
            read.append((sign, line))
            old -= sign != "+"
            new -= sign != "-"
        else:
            raise ValueError(lines[place])
        place += 1
    if place < len(lines) and lines[place].startswith("\\"):
        read[-1] = (read[-1][0], read[-1][1].removesuffix("\n"))
        place += 1
    return Hunk(*start, tuple(read)), place


def _count(written: str | None) -> int:
    return 1 if written is None else int(written)
