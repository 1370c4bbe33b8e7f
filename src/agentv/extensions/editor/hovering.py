"""Descriptions of keys, assertion types, providers and codes, as an editor shows them over a word."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agentv.authoring.fields.names import type_name
from agentv.codes import CODES
from agentv.errors import Diagnostic
from agentv.extensions.editor.cursor import cursor_at
from agentv.extensions.editor.disk import FileKind
from agentv.extensions.editor.project import Project
from agentv.extensions.editor.schema_view import Described, SchemaView

_WORD = re.compile(r"[\w:./-]*[\w/-]")


@dataclass(frozen=True, slots=True)
class Hover:
    """A description in Markdown, and the columns of the word that it describes."""

    text: str
    start: int
    end: int


def hover(lines: Sequence[str], place: tuple[int, int], kind: FileKind, project: Project) -> Hover | None:
    """The description of the word at a place, or None.

    Args:
        lines: of the text.
        place: line and column, counted from 0, the column in characters.
        kind: of the file.
        project: what names mean here.
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
        shown = _named(view, cursor.key, name)
    elif cursor.key is None and text[word.end() :].lstrip("\"'").startswith(":"):
        described = view.key(cursor.path, data, name)
        is_type = kind in {"eval", "template", "exam"} and cursor.path[-1:] == ("-",)
        shown = (_named(view, "type", name) if is_type else "") or (_of_key(described) if described else "")
    else:
        shown = ""
    return Hover(shown, word.start(), word.start() + len(name)) if shown else None


def _of_key(key: Described) -> str:
    default = f"\n\nDefault: `{key.default}`" if key.default else ""
    return f"**{key.name}**: {key.text}{default}" if key.text else ""


def _named(view: SchemaView, family: str, name: str) -> str:
    """The description of an assertion type or a provider, with its options."""
    plain, inverted = type_name(name) if family == "type" else (name.partition(":")[0], False)
    definition = f"{family}.{plain}"
    summary = view.summary(definition)
    if not summary:
        return ""
    options = "\n".join(f"- `{one.name}`: {one.text}" for one in view.options(definition) if one.text and not one.older)
    opposite = f"\n\nPasses where `{plain}` fails." if inverted else ""
    return f"**{name}**: {summary}{opposite}\n\n{options}".rstrip()


def explained(found: Iterable[Diagnostic]) -> str:
    """What the codes of mistakes mean, in Markdown."""
    codes = dict.fromkeys(one.code for one in found)
    return "\n\n".join(f"`{code}`: {CODES[code]} More: `agentv explain {code}`" for code in codes if code in CODES)
