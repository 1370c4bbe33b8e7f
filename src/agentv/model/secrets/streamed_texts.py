"""Secrets in the native stream of an agent, which sends a text in pieces, each in a JSON object on a line of its own.

A model sends a few letters at a time, so that a secret is in no line as a whole. So the texts at one place of the
objects, such as `params.update.content.text`, are searched as one text.
"""

from __future__ import annotations

import json
from typing import Any

from agentv.model.secrets.redaction import REDACTED, Redactor
from agentv.model.values.joined_texts import Change, Path, PieceChanges, joined_texts


def redacted_stream(data: bytes, redactor: Redactor) -> bytes:
    """The lines, without the secrets whose pieces are in several of them. What is no JSON object stays as it is."""
    if not redactor or b"\n{" not in data:
        return data
    lines = data.split(b"\n")
    objects = [_object(line) for line in lines]
    changes = PieceChanges()
    for joined in joined_texts(objects, _place):
        if len(joined.pieces) == 1:
            continue
        for first, last in redactor.stretches(joined.text):
            inside = joined.inside(first, last)
            for number, piece in enumerate(inside if len(inside) > 1 else ()):
                changes.add(piece, Change(first, last, "" if number else REDACTED))
    for line in changes.values():
        written = json.dumps(changes.changed(line, objects[line]), separators=(",", ":"), ensure_ascii=False)
        lines[line] = written.encode(errors="surrogatepass")
    return b"\n".join(lines)


def _object(line: bytes) -> Any:
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _place(value: Any, number: int) -> Path:
    """Entries of a list have one place."""
    del value
    return () if number < 0 else ("*",)
