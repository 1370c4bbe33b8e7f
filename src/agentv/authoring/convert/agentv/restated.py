"""One older spelling rewritten, where that moves a key, or says its value in another way.

Pure: text in, text out. `fixes` renames keys where they stand; this is for what remains. Whoever uses it makes sure
that the result means the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from textwrap import dedent, indent

from msgspec.structs import replace

from agentv.authoring.convert.agentv.entries import (
    Entry,
    enclosing,
    entry_at,
    inner_entries,
    offset_of,
    siblings,
    with_entry,
    without,
)
from agentv.authoring.convert.fixes import Rename

_COUNT = re.compile(r"\{[ ]*count:[ ]*(\d+)[ ]*\}|count:[ ]*(\d+)")


def restated(text: str, rename: Rename) -> str | None:
    """The text with one spelling rewritten; None where it is not known how."""
    at = offset_of(text, rename.span.line, rename.span.column)
    entry = entry_at(text, at)
    name, _, value = rename.written.rpartition(".")[2].partition(": ")
    if entry is None or entry.name != name:
        return None
    if value:  # the older spelling is a key with this value
        name, _, value = rename.canonical.partition(": ")
        return _replaced(text, entry, name, value) if value else without(text, entry)
    said = _VALUES[name](entry.said(text)) if name in _VALUES else _block_of(text, entry)
    outer, _, key = rename.canonical.rpartition(".")
    if said is None:
        return _removed(text, entry)
    if rename.moves or outer:
        return _moved(text, entry, key, (outer, said), out_of="." in rename.written)
    return _replaced(text, entry, key, said)


def _replaced(text: str, entry: Entry, key: str, said: str) -> str:
    """The entry under another key, with another value; a comment behind it stays."""
    old = text[entry.value : entry.end]
    stripped = old.strip()
    comment = re.search(r"[ \t]+#[^\n]*", old) if not entry.in_braces and "\n" not in stripped else None
    tail = comment[0] if comment is not None else ""
    end = "" if entry.in_braces else "\n"
    gap = "" if said.startswith("\n") else " "
    key = _quoted(text, entry, key)
    return f"{text[: entry.start]}{key}:{gap}{said.rstrip()}{tail}{end}{text[entry.end :]}"


def _removed(text: str, entry: Entry) -> str | None:
    """The text without an entry, and without the mapping that held nothing else."""
    made = without(text, entry)
    outer = enclosing(text, entry)
    if outer is None or len(siblings(text, entry)) > 1:
        return made
    said = text[outer.value : outer.end].rpartition("}")[2].strip()
    if said.startswith("#") and not outer.in_braces:  # a comment behind the braces stays
        above = text.rfind("\n", 0, outer.start) + 1
        gone = without(text, outer)
        return None if gone is None else f"{gone[:above]}{' ' * outer.column}{said}\n{gone[above:]}"
    return without(text, outer)


def _moved(text: str, entry: Entry, key: str, to: tuple[str, str], *, out_of: bool) -> str | None:
    """The entry in another mapping.

    Args:
        text: of the file.
        entry: to move.
        key: its key there.
        to: the mapping beside it, "" for the one around, and the value.
        out_of: it leaves the mapping that it stands in.
    """
    outer, said = to[0] and _quoted(text, entry, to[0]), to[1]
    key = _quoted(text, entry, key)
    home = enclosing(text, entry) if out_of else entry
    if home is None or (out_of and entry.in_braces != home.in_braces and said.startswith("\n")):
        return None
    marked = _removed(text, entry)
    if marked is None and not out_of:
        return None
    if not outer:
        return _in_front_of(text, home, entry, key, said)
    known = _sibling(text, home, to[0])
    if known is None:
        inside = f"{{{key}: {said.strip()}}}" if not said.startswith("\n") and home.in_braces else None
        nested = inside or f"\n{' ' * (home.column + 2)}{key}: {said.strip()}"
        return None if said.startswith("\n") else _in_front_of(text, home, entry, outer, nested)
    first = next(iter(inner_entries(text, known)), None)
    if first is None or said.startswith("\n"):
        return None
    return _both(text, entry, first, key, said)


def _in_front_of(text: str, home: Entry, entry: Entry, key: str, said: str) -> str | None:
    """Put the entry in front of the mapping that held it, and take it out of there."""
    if said.startswith("\n") and not home.in_braces and home is not entry:
        said = f"\n{indent(dedent(said.strip(chr(10))), ' ' * (home.column + 2))}"
    return _both(text, entry, home, key, said)


def _both(text: str, entry: Entry, sibling: Entry, key: str, said: str) -> str | None:
    """Put an entry in front of a sibling and remove the old one, the later place first."""
    added = with_entry(text, sibling, key, said)
    grown = len(added) - len(text)
    if entry.start >= sibling.start:
        moved = replace(entry, start=entry.start + grown, value=entry.value + grown, end=entry.end + grown)
        again = entry_at(added, moved.start)
        return None if again is None else _removed(added, again)
    again = entry_at(added, entry.start)
    return None if again is None else _removed(added, again)


def _sibling(text: str, entry: Entry, name: str) -> Entry | None:
    """The entry of a name in the mapping that holds an entry."""
    return next((one for one in siblings(text, entry) if one.name == name), None)


def _quoted(text: str, entry: Entry, name: str) -> str:
    """A name in the quotes of another key."""
    quote = text[entry.start] if text[entry.start] in "'\"" else ""
    return f"{quote}{name}{quote}"


def _block_of(text: str, entry: Entry) -> str:
    """The value as it is written; what stands below its key keeps its line end in front."""
    raw = text[entry.value : entry.end]
    first, _, rest = raw.partition("\n")
    return f"\n{rest.rstrip()}" if not first.split("#")[0].strip() and rest.strip() else raw.strip()


def _count(said: str) -> str:
    """`{count: 3}` as 3."""
    found = _COUNT.fullmatch(said)
    return said if found is None else found[1] or found[2]


def _seconds(said: str) -> str:
    return f"{float(said) / 1000:g}" if re.fullmatch(r"\d+(?:\.\d+)?", said) else said


def _limit(said: str) -> str | None:
    """`fail_on_error`: true stops after one error, false never."""
    word = said.partition("#")[0].strip()
    return {"true": "1", "false": None}.get(word, word)


_VALUES: Mapping[str, Callable[[str], str | None]] = {
    "trials": _count,
    "timeout_ms": _seconds,
    "fail_on_error": _limit,
    "failOnError": _limit,
}
"""Older key → its value as the canonical key has it; None where that needs no key."""
