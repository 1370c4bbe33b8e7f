"""File signatures and suffixes of image formats."""

from __future__ import annotations

import re

_BEGINNINGS = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "image/webp"),
)
"""Of those that all model APIs take."""

LONGEST_BEGINNING = 12
"""Bytes that tell one."""

ENDINGS = (".png", ".jpg", ".jpeg", ".gif", ".webp")
"""What the names of their files end in."""


def media_type_in(data: bytes) -> str | None:
    """The media type of a picture by its first bytes, such as `image/png`; None where it is none of these four."""
    return next((kind for beginning, kind in _BEGINNINGS if beginning.match(data)), None)


def is_none(name: str, data: bytes) -> bool:
    """Whether a file called a picture of one of the four kinds is none, by its first bytes. An empty file never is."""
    return not data or (name.lower().endswith(ENDINGS) and media_type_in(data) is None)
