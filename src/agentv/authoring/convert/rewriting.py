"""Older spellings in a text, rewritten to the canonical ones; comments and layout stay (SPEC section 1).

Pure: text in, text out. PyYAML says where keys and values are, and the text is edited there: a key is renamed in its
place, and a key in an older container, such as `execution.threshold` for `threshold`, is moved out of it. A spelling
that cannot be rewritten stays, and still works. The caller verifies that the text still means the same.
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
    """A key or name as authored, with the canonical one; both with a dot if it is in a container.

    A key that is older with one value only has that value behind a colon, and so has what becomes of it.
    """

    span: Span
    written: str
    canonical: str

    @property
    def path(self) -> list[str]:
        """The keys that lead to it from the mapping in which it is rewritten."""
        return self.written.partition(": ")[0].split(".")

    @property
    def in_place(self) -> bool:
        """Whether only the word is replaced."""
        return "." not in self.written + self.canonical and ": " not in self.written


class _Entry(Struct):
    """A key with its value: its line and column, their offsets, and the mapping that the value is."""

    name: str
    place: tuple[int, int]
    start: int
    key_end: int
    value: int
    end: int
    inside: _Mapping | None


class _Mapping(Struct):
    """The entries of a mapping, the column of its keys in a block, and its offsets."""

    entries: list[_Entry]
    in_braces: bool
    column: int
    start: int
    end: int

    def get(self, name: str) -> _Entry | None:
        """The entry of a name."""
        return next((one for one in self.entries if one.name == name), None)


def rewritten(text: str, renames: Iterable[Rename]) -> str:
    """The text with the canonical spellings.

    Args:
        text: of one file, with its line ends and byte order mark.
        renames: places in this text.
    """
    mark, text = text[: text.startswith("\ufeff")], text.removeprefix("\ufeff")
    if "\r\n" in text and text.count("\n") == text.count("\r\n"):  # lines that are made end as the others do
        return mark + rewritten(text.replace("\r\n", "\n"), renames).replace("\n", "\r\n")
    renames = list(renames)
    in_place = [one for one in renames if one.in_place and one.written not in _VALUES]
    moves = {(one.span.line, one.span.column): one for one in renames if one not in in_place}
    groups: list[list[Rename]] = [_moves_in(one, moves) for one in _mappings(text)] if moves else []
    lines = text.splitlines(keepends=True)
    for one in sorted(in_place, key=lambda one: one.span, reverse=True):  # from behind: places before stay true
        _replace(lines, one)
    text = "".join(lines)
    homes = list(_mappings(text)) if any(groups) else []
    if len(homes) == len(groups):  # as before, since words do not change what holds what
        for home, group in sorted(zip(homes, groups, strict=True), key=lambda one: one[0].start, reverse=True):
            made = _moved(text, home, group) if group else text
            for other in homes if made != text else ():
                if other.start <= home.start and other.end >= home.end:
                    other.end += len(made) - len(text)
            text = made
    return mark + text


def without_key(text: str, name: str) -> Iterator[str]:
    """The text without one entry of a name, for every place where the name is a key."""
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
    """The moves that begin at a key of a mapping, or in a container that it holds."""
    found: list[Rename] = []
    for entry in mapping.entries:
        for depth, one in ((1, entry), *((2, one) for one in (entry.inside.entries if entry.inside else ()))):
            move = moves.get(one.place)
            if move is not None and len(move.path) == depth and move.path[-1] == one.name:
                found.append(move)
    return found


def _moved(text: str, home: _Mapping, moves: Iterable[Rename]) -> str:
    """The text with the moves of one mapping, which is read again for each of them."""
    start = home.start if home.in_braces else home.start - home.column
    part = text[start : home.end]
    dashes = "" if home.in_braces else part[: home.column]
    part = " " * len(dashes) + part[len(dashes) :]
    for move in moves:
        made = _restated(part, move)
        part = part if made is None or made[: len(dashes) + 1].lstrip(" ").startswith("#") else made
    return f"{text[:start]}{dashes}{part[len(dashes) :]}{text[home.end :]}"


def _restated(text: str, rename: Rename) -> str | None:
    """The text of a mapping with one key in another place, or its value said in another way; None: not known how."""
    home = next(_mappings(text), None)
    top = home.get(rename.path[0]) if home is not None else None
    holders = [one for one in (home, top.inside if top is not None else None) if one is not None][: len(rename.path)]
    entry = holders[-1].get(rename.path[-1]) if len(holders) == len(rename.path) else None
    if home is None or top is None or entry is None:
        return None
    outer, _, key = rename.canonical.rpartition(".")
    with_value, said = ": " in rename.written, None
    if with_value:
        key, _, said = rename.canonical.partition(": ")
    elif entry.name in _VALUES and entry.name != key:  # else it is only moved, and its name is older still
        with_value, said = True, _VALUES[entry.name](text[entry.value : entry.end].strip())
    if with_value and not said:
        removal = _removal(text, holders, entry)
        return None if removal is None else _edited(text, [removal])
    key = _quoted(text, entry, key)
    if entry is top and not outer:
        return _edited(text, [(entry.start, entry.end, f"{key}{_value(text, entry, said)}")])
    return _moved_entry(text, holders, (top, entry), (outer, f"{key}{_value(text, entry, said)}"))


def _value(text: str, entry: _Entry, said: str | None) -> str:
    return text[entry.key_end : entry.end] if said is None else f": {said}"


def _moved_entry(text: str, holders: list[_Mapping], entries: tuple[_Entry, _Entry], to: tuple[str, str]) -> str | None:
    """The text with an entry in another mapping; None: it cannot be written there.

    Args:
        text: of the mapping that is rewritten.
        holders: that mapping, and the container in it that holds the entry, if one does.
        entries: that of the outer mapping, and the one that is moved.
        to: the mapping beside the container, "" for the one around, and the key with its value.
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
    if known is None and len(holders[-1].entries if entry is not top else [entry]) == 1:  # it takes the whole place
        end = top.end if into.in_braces else _line_end(text, top.end)
        added += "" if into.in_braces else "\n" if entry is top else f"\n{_beside(text, holders, top)}"
        return _edited(text, [(top.start, end, added)])
    removal = _removal(text, holders, entry)
    before = top.start if known is None else into.entries[0].start
    return None if removal is None else _edited(text, [removal, (before, before, f"{added}{gap}")])


def _removal(
    text: str, holders: list[_Mapping], entry: _Entry, *, comments: bool = True
) -> tuple[int, int, str] | None:
    """The edit that takes an entry out, and the entry that holds nothing else; None: a list item would be empty."""
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
    """The comment beside a container, as a line of its own."""
    end = top.end if holders[-1].in_braces else top.key_end
    found = _COMMENT.search(text, end, _line_end(text, end))
    return f"{' ' * holders[0].column}{found[0].strip()}\n" if found is not None else ""


def _comments_above(text: str, start: int) -> int:
    """The offset of the first of the comment lines right above a key, else of its own line."""
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
    """A name in the quotes of another key."""
    quote = text[entry.start] if text[entry.start] in "'\"" else ""
    return f"{quote}{name}{quote}"


def _edited(text: str, edits: Iterable[tuple[int, int, str]]) -> str:
    for start, end, by in sorted(edits, reverse=True):
        text = text[:start] + by + text[end:]
    return text


def _mappings(text: str) -> Iterator[_Mapping]:
    """All mappings of a YAML text, or of each line of JSON Lines, outer ones first; none if it cannot be read."""
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
    """The mappings in a node of PyYAML, whose marks count from an origin: a line and an offset."""
    import yaml

    if id(node) in seen:
        return  # an alias: it is where its anchor is
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
    """The offset behind a value, without comments below it."""
    if getattr(node, "flow_style", True) is False and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    return int(node.end_mark.index)


def _count(said: str) -> str:
    """`{count: 3}` as 3."""
    found = _COUNT.fullmatch(said)
    return said if found is None else found[1] or found[2]


def _seconds(said: str) -> str:
    return f"{float(said) / 1000:g}" if re.fullmatch(r"\d+(?:\.\d+)?", said) else said


def _limit(said: str) -> str | None:
    """`fail_on_error`: true stops after one error, false never."""
    return {"true": "1", "false": None}.get(said, said)


_VALUES: Mapping[str, Callable[[str], str | None]] = {
    "trials": _count,
    "timeout_ms": _seconds,
    "fail_on_error": _limit,
    "failOnError": _limit,
}
"""Older key → its value as the canonical key has it; None where that needs no key."""
