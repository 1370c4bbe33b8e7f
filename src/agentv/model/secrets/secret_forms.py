"""Values that count as secrets, and the encodings in which they are searched for."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from urllib.parse import quote, quote_plus

from agentv.model.values.lazy_pattern import lazy_pattern

SHORTEST = 8
"""Characters below which a value is not searched for: it would be found in every other word."""

_WORD = lazy_pattern(r"[A-Z]?[a-z]+|[A-Z]+")
_LONGEST_WORD = 11
_PLACEHOLDERS = frozenset(
    {
        "no-key-required",
        "no_key_required",
        "none-needed",
        "not-a-key",
        "not-needed",
        "not-required",
        "not-used",
        "not_needed",
        "not_required",
        "not_used",
        "lm-studio",
        "lm_studio",
        "placeholder",
        "your-api-key",
        "your_api_key",
    }
)
"""What people write where a server wants no key, beyond single words."""


def is_searched(value: str) -> bool:
    """Whether a secret is distinct from ordinary text: eight characters or more, and no plain word (`localhost`)."""
    text = value.strip()
    return (
        len(text) >= SHORTEST
        and len(set(text)) > 1
        and (len(text) > _LONGEST_WORD or _WORD.fullmatch(text) is None)
        and text.lower() not in _PLACEHOLDERS
    )


def forms_of(value: str) -> set[str]:
    """How a value reads plain, escaped for JSON, in base64, in hex and in a URL."""
    bare = value.strip()
    data = bare.encode(errors="replace")
    forms = {value, bare, data.hex(), data.hex().upper(), quote_plus(data)}
    forms |= {json.dumps(one, ensure_ascii=ascii_only)[1:-1] for one in (value, bare) for ascii_only in (False, True)}
    forms.add(json.dumps(bare)[1:-1].replace("/", "\\/"))  # as PHP escapes JSON
    for percent in (quote(data, safe=""), quote(data)):
        forms |= {percent, _PERCENT.sub(lambda found: found[0].lower(), percent)}
    for offset in range(3):
        inside = _base64_of(data, offset)
        forms |= {inside, inside.translate(_FOR_URLS)}
    return forms


_PERCENT = lazy_pattern(r"%[0-9A-F]{2}")
_FOR_URLS = str.maketrans("+/", "-_")


def _base64_of(data: bytes, offset: int) -> str:
    """The characters of base64 that these bytes alone decide, `offset` bytes behind a multiple of three."""
    encoded = b64encode(b"\0" * offset + data).decode()
    return encoded[math.ceil(offset * 8 / 6) : (offset + len(data)) * 8 // 6]
