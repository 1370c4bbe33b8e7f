"""Replaces older spellings in the text of a file with the canonical ones; comments and layout stay (SPEC section 1).

PyYAML gives the positions of keys and values, and the text is edited there: a key is renamed in place, and a key in an
older container, such as `execution.threshold` for `threshold`, is moved out of it. A spelling that cannot be rewritten
stays, and still works. The caller verifies that the text still means the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from textwrap import dedent, indent
from typing import Any

from msgspec import Struct

from agentv.model.values.values import Span

_COMMENT = re.compile(r"[ \t]#[^\r\n]*")
_ALIAS = re.compile(r"[ \t]*\*[^\s,{}\[\]]+")
_COUNT = re.compile(r"\{[ ]*count:[ ]*(\d+)[ ]*\}|count:[ ]*(\d+)")


class Rename(Struct, frozen=True):
    """An older key or name and its canonical spelling, as paths with dots for keys in a container.

    If only one value of a key is an older spelling, both are written with their values: `key: value`.
    """

    span: Span
    written: str
    canonical: str

    @property
    def path(self) -> list[str]:
        """The keys from the mapping that is rewritten to the older key."""
        return self.written.partition(": ")[0].split(".")

    @property
    def in_place(self) -> bool:
        """Whether the spelling is replaced where it is, without moving its value."""
        return "." not in self.written + self.canonical and ": " not in self.written


class _Entry(Struct):
    """A key with its value.

    Attributes:
        place: line and column of the key, from 1.
        start, key_end: offsets of the key.
        value, end: offsets of the value.
        inside: the value, if it is a mapping.
    """

    name: str
    place: tuple[int, int]
    start: int
    key_end: int
    value: int
    end: int
    inside: _Mapping | None


class _Mapping(Struct):
    """A mapping. `column`: that of its keys, from 0, in block style; `start`, `end`: its offsets in the text."""

    entries: list[_Entry]
    in_braces: bool
    column: int
    start: int
    end: int

    def get(self, name: str) -> _Entry | None:
        """The entry with this key, or None."""
        return next((one for one in self.entries if one.name == name), None)


def rewritten(text: str, renames: Iterable[Rename]) -> str:
    """The text with the canonical spellings.

    Args:
        text: text of one file, including line endings and any byte order mark.
        renames: spellings to replace, with their positions in this text.
    """
    mark, text = text[: text.startswith("\ufeff")], text.removeprefix("\ufeff")
    if "\r\n" in text and text.count("\n") == text.count("\r\n"):  # new lines get the same line ending
        return mark + rewritten(text.replace("\r\n", "\n"), renames).replace("\n", "\r\n")
    renames = list(renames)
    in_place = [one for one in renames if one.in_place and one.written not in _VALUES]
    moves = {(one.span.line, one.span.column): one for one in renames if one not in in_place}
    groups: list[list[Rename]] = [_moves_in(one, moves) for one in _mappings(text)] if moves else []
    lines = text.splitlines(keepends=True)
    for one in sorted(
        in_place, key=lambda one: one.span, reverse=True
    ):  # from the end, so that earlier positions stay valid
        _replace(lines, one)
    text = "".join(lines)
    homes = list(_mappings(text)) if any(groups) else []
    if len(homes) == len(groups):  # renaming does not change the structure
        for home, group in sorted(zip(homes, groups, strict=True), key=lambda one: one[0].start, reverse=True):
            made = _moved(text, home, group) if group else text
            for other in homes if made != text else ():
                if other.start <= home.start and other.end >= home.end:
                    other.end += len(made) - len(text)
            text = made
    return mark + text


def without_key(text: str, name: str) -> Iterator[str]:
    """For each place where a name is a key, the text without that entry."""
    for mapping in _mappings(text):
        entry = mapping.get(name)
        edit = None if entry is None else _removal(text, [mapping], entry, comments=False)
        if edit is not None:
            yield _edited(text, [edit])


def _replace(lines: list[str], rename: Rename) -> None:
    at, first, last = rename.span.line - 1, rename.span.column - 1, rename.span.end_column - 1
    if rename.span.line != rename.span.end_line or at >= len(lines):
        return
    line = lines[at]
    token = line[first:last]
    quote = token[:1] if token[:1] in {"'", '"'} else ""
    if token.strip("'\"").strip() == rename.written.strip():
        lines[at] = f"{line[:first]}{quote}{rename.canonical}{quote}{line[last:]}"


def _moves_in(mapping: _Mapping, moves: Mapping[tuple[int, int], Rename]) -> list[Rename]:
    """The moves of keys of a mapping, or of a container in it."""
    found: list[Rename] = []
    for entry in mapping.entries:
        for depth, one in ((1, entry), *((2, one) for one in (entry.inside.entries if entry.inside else ()))):
            move = moves.get(one.place)
            if move is not None and len(move.path) == depth and move.path[-1] == one.name:
                found.append(move)
    return found


def _moved(text: str, home: _Mapping, moves: Iterable[Rename]) -> str:
    """The text with the moves of one mapping, which is parsed again for each of them."""
    start = home.start if home.in_braces else home.start - home.column
    part = text[start : home.end]
    dashes = "" if home.in_braces else part[: home.column]
    part = " " * len(dashes) + part[len(dashes) :]
    for move in moves:
        made = _renamed_entry(part, move)
        part = part if made is None or made[: len(dashes) + 1].lstrip(" ").startswith("#") else made
    return f"{text[:start]}{dashes}{part[len(dashes) :]}{text[home.end :]}"


def _renamed_entry(text: str, rename: Rename) -> str | None:
    """The text of a mapping with one key moved or its value translated, or None if that is not possible."""
    home = next(_mappings(text), None)
    top = home.get(rename.path[0]) if home is not None else None
    holders = [one for one in (home, top.inside if top is not None else None) if one is not None][: len(rename.path)]
    entry = holders[-1].get(rename.path[-1]) if len(holders) == len(rename.path) else None
    if home is None or top is None or entry is None:
        return None
    outer, _, key = rename.canonical.rpartition(".")
    with_value, value = ": " in rename.written, None
    if with_value:
        key, _, value = rename.canonical.partition(": ")
    elif entry.name in _VALUES and entry.name != key:  # else only moved: still an older spelling
        with_value, value = True, _VALUES[entry.name](text[entry.value : entry.end].strip())
    if with_value and not value:
        removal = _removal(text, holders, entry)
        return None if removal is None else _edited(text, [removal])
    key = _quoted(text, entry, key)
    if entry is top and not outer:
        return _edited(text, [(entry.start, entry.end, f"{key}{_value(text, entry, value)}")])
    return _moved_entry(text, holders, (top, entry), (outer, f"{key}{_value(text, entry, value)}"))


def _value(text: str, entry: _Entry, value: str | None) -> str:
    return text[entry.key_end : entry.end] if value is None else f": {value}"


def _moved_entry(text: str, holders: list[_Mapping], entries: tuple[_Entry, _Entry], to: tuple[str, str]) -> str | None:
    """The text with an entry moved to another mapping, or None if it cannot be written there.

    Args:
        text: text of the mapping that is rewritten.
        holders: that mapping, and the container in it that holds the entry, if any.
        entries: the entry of the outer mapping, and the one to move; the same if there is no container.
        to: key of the mapping to move it to, or "" for the outer mapping, and the text of the key with its value.
    """
    home, (top, entry), (outer, added) = holders[0], entries, to
    known = home.get(outer) if outer else None
    into = known.inside if known is not None else home
    if into is None:
        return None
    if not holders[-1].in_braces:
        above = entry.start if entry is top else _comments_above(text, entry.start)
        comments = text[above : entry.start].rpartition("\n")[0]
        behind = text[entry.end : _line_end(text, entry.end)].rstrip()
        added = dedent(f"{comments}\n{' ' * holders[-1].column}{added}{behind}".lstrip("\n"))
    if into.in_braces and ("\n" in added or _COMMENT.search(added)):
        return None
    if outer and known is None:
        outer = _quoted(text, entry, outer)
        added = f"{outer}: {{{added}}}" if into.in_braces else f"{outer}:\n{indent(added, '  ')}"
    gap = ", " if into.in_braces else f"\n{' ' * into.column}"
    added = added if into.in_braces else indent(added, " " * into.column).lstrip(" ")
    if known is None and len(holders[-1].entries if entry is not top else [entry]) == 1:  # the container is replaced
        end = top.end if into.in_braces else _line_end(text, top.end)
        added += "" if into.in_braces else "\n" if entry is top else f"\n{_beside(text, holders, top)}"
        return _edited(text, [(top.start, end, added)])
    removal = _removal(text, holders, entry)
    before = top.start if known is None else into.entries[0].start
    return None if removal is None else _edited(text, [removal, (before, before, f"{added}{gap}")])


def _removal(
    text: str, holders: list[_Mapping], entry: _Entry, *, comments: bool = True
) -> tuple[int, int, str] | None:
    """The edit that removes an entry, and its container if that becomes empty; None if a list item would be empty."""
    mapping = holders[-1]
    place = mapping.entries.index(entry)
    following = mapping.entries[place + 1] if place + 1 < len(mapping.entries) else None
    if len(mapping.entries) == 1:
        top = next((one for one in holders[0].entries if one.inside is mapping), None)
        found = None if top is None else _removal(text, holders[:1], top, comments=comments)
        return found and (*found[:2], "" if top is None or holders[0].in_braces else _beside(text, holders, top))
    if mapping.in_braces and following is None:
        return mapping.entries[place - 1].end, entry.end, ""
    if not text[text.rfind("\n", 0, entry.start) + 1 : entry.start].strip() and not mapping.in_braces:
        line = entry.start - mapping.column
        return _comments_above(text, entry.start) if comments else line, _line_end(text, entry.end), ""
    return None if following is None else (entry.start, following.start, "")


def _beside(text: str, holders: list[_Mapping], top: _Entry) -> str:
    """The comment at the end of a container's first line, as a separate line; "" if none exists."""
    end = top.end if holders[-1].in_braces else top.key_end
    found = _COMMENT.search(text, end, _line_end(text, end))
    return f"{' ' * holders[0].column}{found[0].strip()}\n" if found is not None else ""


def _comments_above(text: str, start: int) -> int:
    """The offset of the first comment line directly above a key, or of the key's line if none exists."""
    line = text.rfind("\n", 0, start) + 1
    while line:
        above = text.rfind("\n", 0, line - 1) + 1
        if not text[above:line].lstrip().startswith("#"):
            break
        line = above
    return line


def _line_end(text: str, at: int) -> int:
    found = text.find("\n", at)
    return len(text) if found < 0 else found + 1


def _quoted(text: str, entry: _Entry, name: str) -> str:
    """The name, quoted like the key of an entry."""
    quote = text[entry.start] if text[entry.start] in "'\"" else ""
    return f"{quote}{name}{quote}"


def _edited(text: str, edits: Iterable[tuple[int, int, str]]) -> str:
    for start, end, by in sorted(edits, reverse=True):
        text = text[:start] + by + text[end:]
    return text


def _mappings(text: str) -> Iterator[_Mapping]:
    """All mappings of a YAML text, or of each line of JSON Lines, outer ones first; none if it is invalid."""
    import yaml

    try:
        roots = [(0, 0, yaml.compose(text, Loader=yaml.CSafeLoader))]
    except yaml.YAMLError:
        starts = enumerate([0, *(found.end() for found in re.finditer("\n", text))])
        lines = [(number, at, text[at : _line_end(text, at)]) for number, at in starts]
        try:
            roots = [(number, at, yaml.compose(line, Loader=yaml.CSafeLoader)) for number, at, line in lines]
        except yaml.YAMLError:
            return
    for number, at, root in roots:
        yield from _read(root, text, (number, at), set())


def _read(node: Any, text: str, origin: tuple[int, int], seen: set[int]) -> Iterator[_Mapping]:
    """The mappings in a PyYAML node.

    Args:
        node: the node.
        text: the whole text.
        origin: line and offset where the part with the node starts, to which its marks are relative.
        seen: ids of the nodes that were already read.
    """
    import yaml

    if id(node) in seen:
        return  # an alias: the node was read at its anchor
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for one in node.value:
            yield from _read(one, text, origin, seen)
    if not isinstance(node, yaml.MappingNode) or not node.value:
        return
    entries: list[_Entry] = []
    below: list[_Mapping] = []
    line, at = origin
    for key, value in node.value:
        inner = list(_read(value, text, origin, seen))
        mark, key_end = key.start_mark, key.end_mark.index + at
        begin, end = value.start_mark.index + at, _end(value) + at
        if begin < key_end:
            begin, end = key_end + 1, found.end() if (found := _ALIAS.match(text, key_end + 1)) else key_end + 1
        while getattr(value, "style", None) in ("|", ">") and text[end - 1].isspace():
            end -= 1
        own = inner[0] if isinstance(value, yaml.MappingNode) and inner else None
        place = mark.line + line + 1, mark.column + 1
        entries.append(_Entry(str(key.value), place, mark.index + at, key_end, begin, end, own))
        below += inner
    first = entries[0].start
    start, end = node.start_mark.index + at, node.end_mark.index + at
    if not node.flow_style:
        start, end = first, _line_end(text, entries[-1].end)
    yield _Mapping(entries, bool(node.flow_style), entries[0].place[1] - 1, start, end)
    yield from below


def _end(node: Any) -> int:
    """The end offset of a value, without the comments below it."""
    if getattr(node, "flow_style", True) is False and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    return int(node.end_mark.index)


def _count(value: str) -> str:
    """`3` for `{count: 3}`; any other value unchanged."""
    found = _COUNT.fullmatch(value)
    return value if found is None else found[1] or found[2]


def _seconds(value: str) -> str:
    return f"{float(value) / 1000:g}" if re.fullmatch(r"\d+(?:\.\d+)?", value) else value


def _limit(value: str) -> str | None:
    """`max_errors` for a value of `fail_on_error`: true stops after one error, false never."""
    return {"true": "1", "false": None}.get(value, value)


_VALUES: Mapping[str, Callable[[str], str | None]] = {
    "trials": _count,
    "timeout_ms": _seconds,
    "fail_on_error": _limit,
    "failOnError": _limit,
}
"""Older key → function that translates its value; it returns None if the key is not needed."""
