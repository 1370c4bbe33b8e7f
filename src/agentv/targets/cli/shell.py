"""Position of a placeholder in a shell line: bare, or inside quotes, arithmetic, a here-document.

Reads as much of the shell's grammar as quoting needs (POSIX.1-2024, XCU 2.2, 2.3 and 2.6). What it decides is only
how a reference to a variable is written into the line; no value is ever written there, so a mistake of it cannot let
an answer or a prompt run as code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

Where = Literal[
    "bare", "single quotes", "double quotes", "arithmetic", "${…}", "quoted ${…}", "a here-document", "a shell variable"
]


@dataclass(frozen=True, slots=True)
class Placed:
    """A word in braces, such as `{PROMPT}`: its name, where it begins and ends, and what is around it."""

    name: str
    begin: int
    end: int
    where: Where


WORD = re.compile(r"\{([A-Z_]+)\}")

_TOKEN = re.compile(
    r"""(?P<escaped>\\.) | (?P<single>\$?') | (?P<word>\$?\{[A-Z_]+\}) | (?P<bracket>["`()}] | \$\(\(? | \$\{) | <<<
    | (?P<document><<-?[ \t]*['"\\]?(?P<delimiter>[\w.-]+)['"]?)
    | (?P<comment>(?:^|(?<=[\s;&|(]))\#[^\n]*) | (?P<newline>\n)""",
    re.VERBOSE | re.DOTALL,
)
_SINGLE = re.compile(r"[^']*'?")
_ANSI_C = re.compile(r"(?:[^'\\]|\\.)*'?", re.DOTALL)

_OPENS: dict[Where, dict[str, tuple[Where, str]]] = {
    "bare": {
        '"': ("double quotes", '"'),
        "`": ("bare", "`"),
        "$(": ("bare", ")"),
        "(": ("bare", ")"),
        "${": ("${…}", "}"),
    },
    "double quotes": {"`": ("bare", "`"), "$(": ("bare", ")"), "${": ("quoted ${…}", "}")},
    "arithmetic": {"$(": ("bare", ")"), "(": ("arithmetic", ")"), "${": ("${…}", "}"), "`": ("bare", "`")},
    "${…}": {'"': ("double quotes", '"'), "`": ("bare", "`"), "$(": ("bare", ")"), "${": ("${…}", "}")},
    "quoted ${…}": {"`": ("bare", "`"), "$(": ("bare", ")"), "${": ("quoted ${…}", "}")},
}
"""What opens a context inside another: the new context, and what closes it."""

_QUOTABLE = frozenset({"bare", "${…}"})
"""Contexts in which a single quote quotes."""


def words_in_braces(line: str) -> Iterator[Placed]:
    """All words in braces in a line, in order. One behind a backslash, or in a comment, is plain text and left out."""
    return _WordReader(line).words()


class _WordReader:
    """A pass over a line, with the contexts that are open and the here-documents that are to come."""

    def __init__(self, line: str) -> None:
        self._line = line
        self._at = 0
        self._open: list[tuple[Where, str]] = [("bare", "")]
        self._documents: list[str] = []

    def words(self) -> Iterator[Placed]:
        readers = {
            "single": self._single,
            "word": self._word,
            "bracket": self._bracket,
            "document": self._document,
            "comment": self._comment,
            "newline": self._newline,
        }
        while (token := _TOKEN.search(self._line, self._at)) is not None:
            self._at = token.end()
            read = readers.get(token.lastgroup or "")
            if read is not None:
                yield from read(token)

    @property
    def _where(self) -> Where:
        return self._open[-1][0]

    def _single(self, token: re.Match[str]) -> Iterable[Placed]:
        if self._where not in _QUOTABLE:
            return ()
        rest = (_ANSI_C if token[0] == "$'" else _SINGLE).match(self._line, self._at)
        begin, self._at = self._at, rest.end() if rest else self._at
        return _within(self._line, begin, self._at, "single quotes")

    def _word(self, token: re.Match[str]) -> Iterable[Placed]:
        where: Where = "a shell variable" if token[0].startswith("$") else self._where
        yield Placed(token[0].strip("${}"), token.start(), token.end(), where)

    def _bracket(self, token: re.Match[str]) -> Iterable[Placed]:
        where, closer = self._open[-1]
        if token[0] == closer:
            self._open.pop()
        elif token[0] == "$((":
            self._open += [("arithmetic", ")"), ("arithmetic", ")")]
        elif token[0] in _OPENS[where]:
            self._open.append(_OPENS[where][token[0]])
        return ()

    def _document(self, token: re.Match[str]) -> Iterable[Placed]:
        if self._where == "bare":
            self._documents.append(token["delimiter"])
        return ()

    def _comment(self, token: re.Match[str]) -> Iterable[Placed]:
        if self._where != "bare":
            self._at = token.start() + 1
        return ()

    def _newline(self, _token: re.Match[str]) -> Iterable[Placed]:
        documents, self._documents = (self._documents, []) if self._where == "bare" else ([], self._documents)
        for delimiter in documents:
            begin, self._at = self._at, _end_of(delimiter, self._line, self._at)
            yield from _within(self._line, begin, self._at, "a here-document")


def _within(line: str, begin: int, end: int, where: Where) -> Iterator[Placed]:
    for word in WORD.finditer(line, begin, end):
        yield Placed(word[1], word.start(), word.end(), where)


def _end_of(delimiter: str, line: str, at: int) -> int:
    found = re.compile(rf"^\t*{re.escape(delimiter)}$", re.MULTILINE).search(line, at)
    return found.end() if found else len(line)
