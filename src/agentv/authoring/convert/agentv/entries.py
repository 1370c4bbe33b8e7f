"""Entries of YAML mappings as text: where one begins and ends, and the text without it or with another one.

Pure: text in, text out. Works on what people write by hand, in blocks and in braces; whoever uses it makes sure that
the result means the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

_WORD = re.compile(r"""(?P<quote>['"]?)(?P<name>[^'"{}\[\],:#\n]+)(?P=quote)[ \t]*:(?=[ \t\r\n]|$)[ \t]*""")
_OPEN, _CLOSE = "{[", "}]"
_COMMENT = re.compile(r"(?:^|[ \t])#[^\n]*")


class Entry(Struct, frozen=True):
    """One key with its value.

    Attributes:
        start: offset of the key.
        value: offset where the value begins, on the line of the key or below.
        end: offset behind the value; in a block, behind its last line.
        column: of the key, from 0.
        in_braces: it stands in a mapping in braces.
        name: the key.
    """

    start: int
    value: int
    end: int
    column: int
    in_braces: bool
    name: str

    def said(self, text: str) -> str:
        """The text of the value, without a comment behind it."""
        first, _, rest = text[self.value : self.end].partition("\n")
        return f"{_COMMENT.sub('', first)}\n{rest}".strip()


def offset_of(text: str, line: int, column: int) -> int:
    """The offset of a place; line and column from 1."""
    at = 0
    for _ in range(line - 1):
        at = text.find("\n", at) + 1
        if at == 0:
            return len(text)
    return at + column - 1


def entry_at(text: str, start: int) -> Entry | None:
    """The entry whose key begins at an offset; None where there is no key."""
    word = _WORD.match(text, start)
    if word is None:
        return None
    line = text.rfind("\n", 0, start) + 1
    in_braces = _is_in_braces(text, start, line)
    value = word.end()
    end = _end_in_braces(text, value) if in_braces else _end_of_block(text, start, line)
    return Entry(start, value, end, start - line, in_braces, word["name"].strip())


def _is_in_braces(text: str, start: int, line: int) -> bool:
    before = text[line:start]
    if before.replace("-", " ").strip():
        return True
    above = _COMMENT.sub("", text[:line]).rstrip()
    return above.endswith(("{", ",")) and "{" in above


def _end_in_braces(text: str, at: int) -> int:
    """The comma or brace behind a value."""
    depth, quote = 0, ""
    while at < len(text):
        letter = text[at]
        if quote:
            if letter == "\\" and quote == '"':
                at += 1
            quote = "" if letter == quote else quote
        elif letter in "'\"" and text[at - 1] in " ,:[{\n\t":
            quote = letter
        elif letter in _OPEN:
            depth += 1
        elif letter in _CLOSE or (letter == "," and not depth):
            if not depth:
                return at
            depth -= 1
        at += 1
    return at


def _close_of(text: str, at: int) -> int:
    """The brace that closes the one at an offset."""
    at = _end_in_braces(text, at + 1)
    while at < len(text) and text[at] == ",":
        at = _end_in_braces(text, at + 1)
    return at


def _end_of_block(text: str, start: int, line: int) -> int:
    """Behind the last line of a value: all lines that are indented more, and lists at the key's own column."""
    column = start - line
    end = at = _line_end(text, start)
    while at < len(text):
        stop = _line_end(text, at)
        said = text[at:stop]
        bare = said.lstrip(" ")
        indent = len(said) - len(bare)
        if bare.strip() and not bare.startswith("#"):
            if indent < column or (indent == column and not (bare.startswith("- ") and _opens_list(text, start))):
                break
            end = stop
        elif bare.strip() and indent <= column:
            break
        at = stop
    return end


def _opens_list(text: str, start: int) -> bool:
    """Whether a key has its value below it."""
    word = _WORD.match(text, start)
    return word is not None and not _COMMENT.sub("", text[word.end() : _line_end(text, word.end())]).strip()


def _line_end(text: str, at: int) -> int:
    found = text.find("\n", at)
    return len(text) if found < 0 else found + 1


def siblings(text: str, entry: Entry) -> list[Entry]:
    """The entries of the mapping that holds an entry, itself among them."""
    if entry.in_braces:
        return _in_braces(text, _brace_before(text, entry.start))
    first = entry.start
    for line, key, column, is_item in _lines_above(text, entry.start):
        if column < entry.column:
            break
        if column == entry.column:
            first = key
            if is_item:
                break
        elif line == 0:
            break
    return _in_block(text, first, entry.column)


def inner_entries(text: str, outer: Entry) -> list[Entry]:
    """The entries of a mapping that is the value of an entry; none where it is no mapping."""
    if text[outer.value : outer.value + 1] == "{":
        return _in_braces(text, outer.value)
    at = _line_end(text, outer.start)
    while at < outer.end:
        said = text[at : _line_end(text, at)]
        bare = said.lstrip(" ")
        if bare.strip() and not bare.startswith("#"):
            return [] if bare.startswith("- ") else _in_block(text, at + len(said) - len(bare), len(said) - len(bare))
        at = _line_end(text, at)
    return []


def _in_block(text: str, first: int, column: int) -> list[Entry]:
    found: list[Entry] = []
    at: int | None = first
    while at is not None and (one := entry_at(text, at)) is not None:
        found.append(one)
        at = one.end
        while at < len(text):
            said = text[at : _line_end(text, at)]
            bare = said.lstrip(" ")
            if bare.strip() and not bare.startswith("#"):
                break
            at = _line_end(text, at)
        indent = len(text[at : _line_end(text, at)]) - len(text[at : _line_end(text, at)].lstrip(" "))
        starts_item = text.startswith("- ", at + indent)
        at = at + indent if at < len(text) and indent == column and not starts_item else None
    return found


def _in_braces(text: str, brace: int) -> list[Entry]:
    found: list[Entry] = []
    at, close = brace, _close_of(text, brace)
    while (at := _next_key(text, at + 1)) < close:
        one = entry_at(text, at)
        if one is None:
            return []
        found.append(one)
        at = one.end
    return found


def _lines_above(text: str, at: int) -> Iterator[tuple[int, int, int, bool]]:
    """The lines above an offset that hold more than a comment, the closest first.

    Yields:
        (offset of the line, offset of what follows on it behind the dashes of list items, its column, has it dashes).
    """
    at = text.rfind("\n", 0, at) + 1
    while at > 0:
        line = text.rfind("\n", 0, at - 1) + 1
        said = text[line:at]
        bare = re.sub(r"^(?: |- )*", "", said)
        if bare.strip() and not bare.startswith("#"):
            column = len(said) - len(bare)
            yield line, line + column, column, "-" in said[:column]
        at = line


def _next_key(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n,":
        at += 1
    return at


def without(text: str, entry: Entry) -> str | None:
    """The text without an entry; None where the mapping would be left without any, so that the whole has to go."""
    if entry.in_braces:
        return _without_in_braces(text, entry)
    line = text.rfind("\n", 0, entry.start) + 1
    before = text[line : entry.start]
    if not before.strip():
        return text[:line] + text[entry.end :]
    following = text[entry.end : _line_end(text, entry.end)]  # the first key of a list item: the next takes its place
    bare = following.lstrip(" ")
    if len(following) - len(bare) != entry.column or not bare.strip() or bare.startswith(("#", "- ")):
        return None
    return text[: entry.start] + text[entry.end + entry.column :]


def _without_in_braces(text: str, entry: Entry) -> str | None:
    before, after = text[: entry.start].rstrip(), text[entry.end :]
    if after.startswith(","):
        return text[: entry.start] + after[1:].lstrip(" ")
    if before.endswith(","):
        return before[:-1] + after
    return None


def enclosing(text: str, entry: Entry) -> Entry | None:
    """The entry whose value is the mapping that holds an entry; None for the outermost one, and for items of a list."""
    if entry.in_braces:
        start = _brace_before(text, entry.start)
        key = _key_before(text, start)
        return entry_at(text, key) if key is not None else None
    line = text.rfind("\n", 0, entry.start) + 1
    if "-" in text[line : entry.start]:
        return None  # it begins an item of a list
    for _, key, column, is_item in _lines_above(text, entry.start):
        if column < entry.column:
            return entry_at(text, key)
        if column == entry.column and is_item:
            return None
    return None


def _brace_before(text: str, at: int) -> int:
    depth = 0
    while at > 0:
        at -= 1
        if text[at] in _CLOSE:
            depth += 1
        elif text[at] in _OPEN:
            if not depth:
                return at
            depth -= 1
    return 0


def _key_before(text: str, at: int) -> int | None:
    found = re.search(r"""['"]?[\w.$-]+['"]?[ \t]*:[ \t]*$""", text[max(0, at - 200) : at])
    return None if found is None else max(0, at - 200) + found.start()


def with_entry(text: str, sibling: Entry, name: str, said: str) -> str:
    """The text with one more entry in front of another of the same mapping.

    Args:
        text: of the file.
        sibling: the entry in front of which it is put.
        name: the key.
        said: the value, on one line or as a block indented for the column of the sibling.
    """
    key = f"{name}:{said if said.startswith(chr(10)) else f' {said}'}"
    if sibling.in_braces:
        return f"{text[: sibling.start]}{key}, {text[sibling.start :]}"
    end = "" if key.endswith("\n") else "\n"
    return f"{text[: sibling.start]}{key}{end}{' ' * sibling.column}{text[sibling.start :]}"
