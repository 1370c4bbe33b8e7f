"""Comments of a YAML file, moved to a file that was generated from it.

A comment belongs to the entry below it or before it on its line. Comments are found by the positions of the values,
so a `#` inside a text of several lines is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from agentv.authoring.source.nodes import ListNode, MapNode, Node, Place, span_of
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_yaml

_DIRECTIVE = re.compile(r"#\s*yaml-language-server:")
_BESIDE = re.compile(r"\s(#.*)$")


class _Comment(NamedTuple):
    """A comment, and the line that it is about: its own, or the next one that is not a comment."""

    text: str
    line: int


def with_comments(text: str, made: Mapping[str, Node], root: Node, original: str) -> str:
    """The text of a generated YAML file with the comments of the original.

    Args:
        text: of the new file.
        made: root node of the new file; its nodes have their positions in the original.
        root: of the original.
        original: its text.
    """
    path = span_of(root.at).file
    comments = list(_comments(original.splitlines(), root))
    found = read_yaml("", text.encode(), Report()).value
    if not comments or not isinstance(found, MapNode):
        return text
    entries = sorted(_entries(MapNode(dict(made), {}, root.at), found, path))
    above: dict[int, list[str]] = {}
    for comment in comments:
        place = next((written for source, written in entries if source >= comment.line), 0)
        above.setdefault(place, []).append(comment.text)
    lines = text.splitlines()
    done: list[str] = []
    for number, line in enumerate(lines, 1):
        indent = line[: len(line) - len(line.lstrip(" "))]
        done += [f"{indent}{one}" for one in above.get(number, ())]
        done.append(line)
    return "\n".join([*done, *above.get(0, ())]) + "\n"


def _comments(lines: list[str], root: Node) -> Iterator[_Comment]:
    inside, ends = _texts(root)
    waiting: list[str] = []
    for number, line in enumerate(lines, 1):
        bare = line.strip()
        if number in inside or not bare:
            continue
        if bare.startswith("#"):
            if not _DIRECTIVE.match(bare):
                waiting.append(bare)
            continue
        yield from (_Comment(one, number) for one in waiting)
        waiting = []
        beside = _BESIDE.search(line, max(ends.get(number, 0) - 1, 0))
        if beside is not None and not _quoted(line[: beside.start()]):
            yield _Comment(beside[1], number)
    yield from (_Comment(one, len(lines) + 1) for one in waiting)


def _quoted(before: str) -> bool:
    """Whether a quote is open, so that what follows is no comment."""
    return before.count('"') % 2 == 1


def _texts(root: Node) -> tuple[set[int], dict[int, int]]:
    """The lines inside texts of several lines, and in which column the last text of each other line ends."""
    inside: set[int] = set()
    ends: dict[int, int] = {}
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, ListNode):
            stack += node.items
        elif isinstance(node, MapNode):
            stack += node.items.values()
        else:
            span = span_of(node.at)
            last = span.end_line if span.end_column > 1 else span.end_line - 1
            inside |= set(range(span.line + 1, last + 1))
            if span.line == span.end_line:
                ends[span.line] = max(ends.get(span.line, 0), span.end_column)
    return inside, ends


def _entries(made: Node, found: Node, path: str) -> Iterator[tuple[int, int]]:
    """The lines of each entry: in the original, and in the new file."""
    if isinstance(made, MapNode) and isinstance(found, MapNode):
        for key, item in made.items.items():
            if key in found.items:
                yield from _lines(made.keys.get(key) or item.at, found.keys[key], path)
                yield from _entries(item, found.items[key], path)
    elif isinstance(made, ListNode) and isinstance(found, ListNode):
        for item, other in zip(made.items, found.items, strict=False):
            yield from _lines(item.at, other.at, path)
            yield from _entries(item, other, path)


def _lines(source: Place, written: Place, path: str) -> Iterator[tuple[int, int]]:
    place = span_of(source)
    if place.file == path and place.line:
        yield place.line, span_of(written).line
