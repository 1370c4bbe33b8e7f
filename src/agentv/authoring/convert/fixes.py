"""Older spellings in a text, rewritten to the canonical ones; comments and layout stay (SPEC section 1).

Pure: text in, text out. A key is replaced in its place. A key in an older container, such as
`execution.threshold` for `threshold`, is moved out of it, if the container is written as a block. A spelling that
cannot be rewritten stays, and still works. The caller verifies that the text still has the same meaning before writing
it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, dropwhile

from msgspec import Struct, field

from agentv.model.values.span import Span

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_INDENT = re.compile(r"[ ]*")
_HEADER = re.compile(r"(?P<key>[\w-]+):[ \t]*(?P<comment>#[^\r\n]*)?(?P<end>[\r\n]*)")


class Rename(Struct, frozen=True):
    """A key or name as authored, with the canonical one; both with a dot if it is in a container."""

    span: Span
    written: str
    canonical: str

    @property
    def moves(self) -> bool:
        """Whether it must leave its container."""
        return "." in self.written

    @property
    def enters(self) -> bool:
        """Whether it must move into a container, which may be elsewhere; it then stays in place."""
        return "." in self.canonical and not self.moves


def rewritten(text: str, renames: Iterable[Rename]) -> str:
    """The text with the canonical spellings.

    Args:
        text: of one file, with its line ends and byte order mark.
        renames: places in this text.
    """
    lines = _LINE.findall(text)
    moving: dict[int, Rename] = {}
    for rename in sorted(renames, key=lambda one: one.span, reverse=True):  # from behind: places before stay true
        if rename.moves:
            moving[rename.span.line - 1] = rename
        elif not rename.enters:
            _replace(lines, rename)
    for start in sorted(_containers(lines, moving), reverse=True):
        stop = _end_of(lines, start)
        inside = {at - start: rename for at, rename in moving.items() if start < at < stop}
        lines[start:stop] = _without_container(lines, start, stop, inside)
    return "".join(lines)


def _replace(lines: list[str], rename: Rename) -> None:
    at, first, last = rename.span.line - 1, rename.span.column - 1, rename.span.end_column - 1
    if rename.span.line != rename.span.end_line or at >= len(lines):
        return
    line = lines[at]
    token = line[first:last]
    quote = token[:1] if token[:1] in {"'", '"'} else ""
    if token.strip("'\"").strip() == rename.written.strip():
        lines[at] = f"{line[:first]}{quote}{rename.canonical}{quote}{line[last:]}"


def _containers(lines: Sequence[str], moving: Mapping[int, Rename]) -> set[int]:
    """The lines of the keys whose mappings hold what moves: the nearest line above that is indented less."""
    found: set[int] = set()
    for at, rename in moving.items():
        indent = _indent(lines[at])
        above = (line for line in range(at - 1, -1, -1) if _says(lines[line]) and _indent(lines[line]) < indent)
        start = next(above, None)
        header = _HEADER.fullmatch(lines[start].lstrip(" ")) if start is not None else None
        if start is not None and header is not None and header["key"] == rename.written.partition(".")[0]:
            found.add(start)
    return found


def _end_of(lines: Sequence[str], start: int) -> int:
    """The line behind the block of a key; comments and blank lines between it and what follows are not its own."""
    outer = _indent(lines[start])
    stop = start + 1
    for at in range(start + 1, len(lines)):
        if _says(lines[at]) and _indent(lines[at]) <= outer:
            break
        if _says(lines[at]) or _indent(lines[at]) > outer:
            stop = at + 1
    return stop


class _Child(Struct):
    """One key of a container: the lines of its comments, of itself and of its value."""

    lines: list[str] = field(default_factory=list)
    at: int | None = None


def _without_container(
    lines: Sequence[str], start: int, stop: int, moving: Mapping[int, Rename]
) -> Iterator[str] | Sequence[str]:
    """The lines that stand in place of a container: what moves out of it, and the container with what stays."""
    whole = lines[start:stop]
    children = list(_children(whole))
    to_run = [one for one in children if _home(one, moving) == "run"]
    if to_run and any(line.startswith(f"{whole[0][: _indent(whole[0])]}run:") for line in lines):
        return whole  # the two would have to be joined
    return _rebuilt(whole[0], children, moving)


def _rebuilt(header: str, children: Sequence[_Child], moving: Mapping[int, Rename]) -> Iterator[str]:
    outer = _indent(header)
    match = _HEADER.fullmatch(header.lstrip(" "))
    staying = [one for one in children if _home(one, moving) is None]
    comment, end = (match["comment"], match["end"]) if match else (None, "\n")
    if comment and not staying:
        yield f"{' ' * outer}{comment}{end}"
    for child in children:
        if _home(child, moving) == "":
            yield from _moved(child, moving, outer)
    to_run = [one for one in children if _home(one, moving) == "run"]
    if to_run:
        yield f"{' ' * outer}run:{end}"
        inside = chain.from_iterable(_moved(child, moving, None) for child in to_run)
        yield from dropwhile(lambda line: not line.strip(), inside)
    if staying:
        yield header
        for child in staying:
            yield from child.lines


def _home(child: _Child, moving: Mapping[int, Rename]) -> str | None:
    """Where a child goes: None stays, "" to the mapping around the container, else to the mapping of that key."""
    rename = moving.get(child.at) if child.at is not None else None
    return None if rename is None else rename.canonical.rpartition(".")[0]


def _children(whole: Sequence[str]) -> Iterator[_Child]:
    """The keys of a block mapping, each with the comments above it."""
    inner = next((_indent(line) for line in whole[1:] if _says(line)), 0)
    child = _Child()
    for number, line in enumerate(whole[1:], 1):
        begins = _says(line) and _indent(line) == inner and not line.lstrip(" ").startswith("- ")
        if child.at is not None and (begins or not _says(line)) and not _goes_on(whole, number, inner):
            yield child
            child = _Child()
        child.lines.append(line)
        if begins:
            child.at = number
    yield child


def _goes_on(whole: Sequence[str], number: int, inner: int) -> bool:
    """Whether a line is inside the value of the key above: a blank line or comment is, if more of the value follows."""
    following = next((line for line in whole[number:] if _says(line)), "")
    return _indent(following) > inner or following.lstrip(" ").startswith("- ")


def _moved(child: _Child, moving: Mapping[int, Rename], outer: int | None) -> Iterator[str]:
    """The lines of a child under its canonical key; dedented to a column, or where they are."""
    rename = moving[child.at or 0]
    name, key = rename.written.rpartition(".")[2], rename.canonical.rpartition(".")[2]
    first = next(line for line in child.lines if _says(line))
    less = 0 if outer is None else _indent(first) - outer
    renamed = False
    for line in child.lines:
        shifted = line[min(less, _indent(line)) :]
        if line is first and not renamed:
            shifted = re.sub(rf"^( *)(['\"]?){re.escape(name)}\2(?=[ \t]*:)", rf"\g<1>{key}", shifted)
            renamed = True
        yield shifted


def _says(line: str) -> bool:
    """Whether a line holds more than a comment."""
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _indent(line: str) -> int:
    found = _INDENT.match(line)
    return found.end() if found else 0
