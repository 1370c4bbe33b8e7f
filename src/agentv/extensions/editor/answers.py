"""What the editor shows for a place in a file: completions, descriptions and quick fixes."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from agentv.authoring.source.nearest import type_name
from agentv.authoring.source.nodes import ListNode, Scalar
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_yaml
from agentv.codes import CODES
from agentv.errors import Diagnostic
from agentv.extensions.editor.cursor import Cursor, cursor_at
from agentv.extensions.editor.index import TARGET_KEYS, FileIndex, FileKind
from agentv.extensions.editor.project import Project
from agentv.extensions.editor.schema_view import Described, SchemaView
from agentv.model.values.values import Span

_MOST = 500
"""Maximum number of completions; the editor filters them as the user types."""

_PATH_STARTS = ("./", "../", "/", "file://")


class Completion(Struct, frozen=True):
    """A word that can be completed at the cursor.

    Attributes:
        insert: text to insert, such as a key with its colon.
        what: kind of word, for the editor's icon.
    """

    label: str
    insert: str
    what: Literal["key", "value", "name", "file"]
    text: str = ""


class Completions(Struct, frozen=True):
    """Completions at the cursor, most likely first, and the start column of the word that they replace."""

    start: int
    items: tuple[Completion, ...]


def complete(
    lines: Sequence[str], place: tuple[int, int], kind: FileKind, project: Project, known: FileIndex | None
) -> Completions:
    """The completions at a place.

    Args:
        lines: lines of the text.
        place: line and column of the cursor, counted from 0, the column in characters.
        kind: kind of the file.
        project: scope of names.
        known: names of the file when it could last be parsed.
    """
    cursor = cursor_at(lines, *place)
    if cursor is None:
        return Completions(place[1], ())
    if cursor.prefix.startswith(_PATH_STARTS):
        return _paths(cursor, project)
    named = list(_names_at(cursor, project, known))
    view = project.schema(kind)
    items: Iterable[Completion] = named
    if view is not None and cursor.key is None:
        data = cursor.skeleton()
        keys = [one for one in view.keys(cursor.path, data) if one.name not in cursor.siblings and not one.deprecated]
        items = [*named, *(Completion(one.name, f"{one.name}: ", "key", one.text) for one in keys)]
    elif view is not None and cursor.key is not None and not named:
        values = view.values(cursor.path, cursor.skeleton(), cursor.key)
        about = cursor.key if cursor.key in {"type", "provider"} else None
        items = [Completion(one, one, "value", view.summary(f"{about}.{one}") if about else "") for one in values]
    return Completions(cursor.start, tuple(items)[:_MOST])


def _names_at(cursor: Cursor, project: Project, known: FileIndex | None) -> Iterator[Completion]:
    """Names of the project, if the cursor is where a name is expected."""
    key = cursor.key if cursor.key is not None else next((one for one in reversed(cursor.path) if one != "-"), "")
    in_value = cursor.key is not None or (bool(cursor.path) and cursor.path[-1] == "-")
    if not in_value:
        return
    if key in TARGET_KEYS:
        names = dict.fromkeys(name.text for name in project.targets())
        yield from (Completion(name, name, "name", "a target of .agentv/targets.yaml") for name in names)
    elif key == "depends_on":
        own = cursor.levels[-1].get("id", "")
        cases = known.cases if known else ()
        yield from (Completion(one.id, one.id, "name", "a case of this file") for one in cases if one.id != own)
    elif key == "include":
        yield from (Completion(name, name, "name", "a template") for name in project.templates())


def _paths(cursor: Cursor, project: Project) -> Completions:
    """The files and directories that complete a path."""
    written = cursor.prefix.removeprefix("file://")
    folder, _, begun = written.rpartition("/")
    base = Path(project.root) if written.startswith("/") else Path(project.directory)
    directory = base / folder.lstrip("/")
    try:
        entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
    except OSError:
        return Completions(cursor.start, ())
    shown = [entry for entry in entries if begun.startswith(".") or not entry.name.startswith(".")]
    items = (f"{entry.name}/" if entry.is_dir() else entry.name for entry in shown[:_MOST])
    start = cursor.start + len(cursor.prefix) - len(begun)
    return Completions(start, tuple(Completion(name, name, "file") for name in items))


_WORD = re.compile(r"[\w:./-]*[\w/-]")


class Hover(Struct, frozen=True):
    """A description in Markdown, and the columns of the described word."""

    text: str
    start: int
    end: int


def hover(lines: Sequence[str], place: tuple[int, int], kind: FileKind, project: Project) -> Hover | None:
    """The description of the word at a place, or None.

    Args:
        lines: lines of the text.
        place: line and column, counted from 0, the column in characters.
        kind: kind of the file.
        project: scope of names.
    """
    line, column = place
    text = lines[line] if line < len(lines) else ""
    word = next((match for match in _WORD.finditer(text) if match.start() <= column <= match.end()), None)
    cursor = cursor_at(lines, line, word.start()) if word is not None else None
    view = project.schema(kind)
    if word is None or cursor is None or view is None:
        return None
    name = word[0].rstrip(":")
    data = cursor.skeleton()
    if cursor.key in {"type", "provider"}:
        shown = _described(view, cursor.key, name)
    elif cursor.key is None and text[word.end() :].lstrip("\"'").startswith(":"):
        described = view.key(cursor.path, data, name)
        is_type = kind in {"eval", "template", "exam"} and cursor.path[-1:] == ("-",)
        shown = (_described(view, "type", name) if is_type else "") or (_of_key(described) if described else "")
    else:
        shown = ""
    return Hover(shown, word.start(), word.start() + len(name)) if shown else None


def _of_key(key: Described) -> str:
    default = f"\n\nDefault: `{key.default}`" if key.default else ""
    return f"**{key.name}**: {key.text}{default}" if key.text else ""


def _described(view: SchemaView, family: str, name: str) -> str:
    """The description of an assertion type or a provider, with its options."""
    plain, inverted = type_name(name) if family == "type" else (name.partition(":")[0], False)
    definition = f"{family}.{plain}"
    summary = view.summary(definition)
    if not summary:
        return ""
    options = "\n".join(
        f"- `{one.name}`: {one.text}" for one in view.options(definition) if one.text and not one.deprecated
    )
    opposite = f"\n\nPasses where `{plain}` fails." if inverted else ""
    return f"**{name}**: {summary}{opposite}\n\n{options}".rstrip()


def explanations(found: Iterable[Diagnostic]) -> str:
    """Explanations of the codes of diagnostics, in Markdown."""
    codes = dict.fromkeys(one.code for one in found)
    return "\n\n".join(f"`{code}`: {CODES[code]} More: `agentv explain {code}`" for code in codes if code in CODES)


Quote = Literal["", "'", '"']

UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
"""Characters that YAML treats as line ends or rejects unless escaped. Source: YAML 1.2, section 5.1."""

_WORDS = frozenset(["true", "false", "null", "yes", "no", "on", "off", "<<"])
"""Words with a special meaning as a key or to other YAML parsers."""

_SUGGESTION = re.compile(r"did you mean '(?P<word>[^']+)'\?")
_QUOTES: Final[tuple[Quote, ...]] = ("'", '"')


class QuickFix(Struct, frozen=True):
    """A replacement of one span of a file."""

    title: str
    span: Span
    text: str


def quick_fix(found: Diagnostic, line: str) -> QuickFix | None:
    """The fix of a diagnostic; None if it suggests no replacement for the text of its span.

    Args:
        found: the diagnostic.
        line: the line that its span begins in.
    """
    span = found.span
    if span is None or span.line != span.end_line:
        return None
    written = line[span.column - 1 : span.end_column - 1]
    quote: Quote = next((one for one in _QUOTES if written.startswith(one)), "")
    if found.rename is not None:
        older, word = found.rename
        if "." in older or "." in word or written.strip("'\"") != older:
            return None  # the key moves elsewhere, which needs `agentv validate --fix`
    else:
        match = _SUGGESTION.search(found.hint or "")
        bare = written.strip("'\"")
        if match is None or not bare or f"'{bare}'" not in found.message:
            return None  # the message is not about the word in the span
        word = match["word"]
        if word.endswith(f": {written}"):
            return None  # the hint also adds a key
    return QuickFix(f"Replace '{written.strip(quote)}' with '{word}'", span, in_yaml(word, quote))


def in_yaml(text: str, quote: Quote = "") -> str:
    """A string as a YAML scalar on one line, quoted if necessary.

    Args:
        text: the string.
        quote: quotation mark of the scalar that it replaces; "" for none.
    """
    if quote == "'" and not UNPRINTABLE.search(text):
        return "'" + text.replace("'", "''") + "'"
    if not quote and _is_plain(text):
        return text
    return UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(text, ensure_ascii=False))


def _is_plain(text: str) -> bool:
    """Whether a string needs no quotes in any context."""
    if text.lower() in _WORDS:
        return False
    if text.isidentifier():
        return True
    if UNPRINTABLE.search(text):
        return False
    root = read_yaml("", f"[{text}]".encode(errors="replace"), Report()).value
    items = root.items if isinstance(root, ListNode) else []
    return len(items) == 1 and isinstance(items[0], Scalar) and items[0].value == text
