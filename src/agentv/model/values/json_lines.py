"""JSON lines that every reader of lines splits in the same places."""

from __future__ import annotations

_BREAKS = ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"), (b"\xc2\x85", b"\\u0085"))
"""Characters that end a line for Python's `splitlines` and for JavaScript, and none in JSON: UTF-8 → their escapes."""


def without_breaks(line: bytes) -> bytes:
    """A line of JSON in UTF-8 with every character escaped that a reader may take for the end of the line."""
    for character, escape in () if line.isascii() else _BREAKS:
        if character in line:
            line = line.replace(character, escape)
    return line
