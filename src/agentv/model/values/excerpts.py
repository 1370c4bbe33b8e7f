"""Short excerpts of long texts, as messages and evidence show them."""

from __future__ import annotations

LIMIT = 200
"""Characters of an excerpt, the mark of a cut included."""

CUT = " […] "
"""Stands where something was left out."""


def excerpt(text: str, limit: int = LIMIT) -> str:
    """The text itself if it is short, else its start and end with a mark between them."""
    if len(text) <= limit:
        return writable(text)
    room = limit - len(CUT)
    return f"{writable(text[: room - room // 2])}{CUT}{writable(text[-(room // 2) :])}"


def writable(text: str) -> str:
    """The text without halves of surrogate pairs, which JSON can contain but which cannot be written to a file."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
