"""File signatures and suffixes of image formats."""

from __future__ import annotations

import re

from agentv.model.values.lazy_pattern import lazy_pattern

_BEGINNINGS = (
    (lazy_pattern(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (lazy_pattern(rb"\xff\xd8\xff"), "image/jpeg"),
    (lazy_pattern(rb"GIF8[79]a"), "image/gif"),
    (lazy_pattern(rb"RIFF....WEBP", re.DOTALL), "image/webp"),
)
"""Of those that all model APIs take."""

ENDINGS = (".png", ".jpg", ".jpeg", ".gif", ".webp")
"""What the names of their files end in."""


def media_type_in(data: bytes) -> str | None:
    """The media type of a picture by its first bytes, such as `image/png`; None if it is not of these four types."""
    return next((kind for beginning, kind in _BEGINNINGS if beginning.match(data)), None)


def is_none(name: str, data: bytes) -> bool:
    """Whether a file is empty, or named like a picture of the four types without being one by its first bytes."""
    return not data or (name.lower().endswith(ENDINGS) and media_type_in(data) is None)
