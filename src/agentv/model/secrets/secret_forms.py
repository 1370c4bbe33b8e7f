"""Values that count as secrets, and every encoding to search for."""

from __future__ import annotations

import json
import math
from base64 import a85encode, b32encode, b64encode, b85encode
from collections.abc import Iterator
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

_ENCODED_WHOLE = 1000
"""Characters beyond which a value (a certificate, a credentials file) is searched for in fewer encodings."""

_PERCENT = lazy_pattern(r"%[0-9A-F]{2}")


def is_searched(value: str) -> bool:
    """Whether a secret can be told from ordinary text: eight characters or more, and no plain word (`localhost`)."""
    text = value.strip()
    return (
        len(text) >= SHORTEST
        and len(set(text)) > 1
        and (len(text) > _LONGEST_WORD or _WORD.fullmatch(text) is None)
        and text.lower() not in _PLACEHOLDERS
    )


def written_forms(value: str) -> Iterator[str]:
    """How a value reads as text: plain, escaped for JSON, Python, HTML and URLs, with any line ends. May repeat itself.

    Pages stand in JSON, as answers and tool results do, and JSON stands in pages: both are listed.
    """
    bare = value.strip()
    for one in (*_with_line_ends(value), *_with_line_ends(bare)):
        for text in _text_forms(one):
            yield text
            yield from _html_forms(text)
        for page in _html_forms(one):
            yield from _text_forms(page)
    writable = bare.encode(errors="replace")
    for safe in ("", "/", "!'()*", "!#$&'()*+,/:;=?@[]"):
        percent = quote(writable, safe=safe)
        yield percent
        yield _PERCENT.sub(lambda found: found[0].lower(), percent)
    yield quote_plus(writable)


def _with_line_ends(value: str) -> tuple[str, ...]:
    """A value, and if it has several lines, as it reads with the line ends of Unix and of Windows."""
    if "\n" not in value and "\r" not in value:
        return (value,)
    unix = value.replace("\r\n", "\n").replace("\r", "\n")
    return (value, unix, unix.replace("\n", "\r\n"))


def _text_forms(text: str) -> Iterator[str]:
    """A text as it is, and escaped for JSON, for JSON within JSON, for Python, and for Python within JSON."""
    yield text
    for ascii_only in (False, True):
        escaped = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        yield escaped
        yield from (json.dumps(escaped)[1:-1], json.dumps(escaped, ensure_ascii=False)[1:-1])
    literal = repr(text)[1:-1]
    yield from (literal, json.dumps(literal)[1:-1])


def _html_forms(text: str) -> Iterator[str]:
    """As `html.escape` writes it, and others do; the module holds the names of two thousand characters."""
    inside = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    yield inside
    for double, single in (("&quot;", "&#x27;"), ("&quot;", "&#39;"), ("&#34;", "&apos;")):
        yield inside.replace('"', double).replace("'", single)


def encoded_forms(value: str) -> Iterator[str]:
    """How a value reads encoded: hex, base64 (also for URLs), base32 and base85 wherever in a longer text it stands."""
    data = value.strip().encode(errors="replace")
    for offset in range(3):
        inside = _base64_of(data, offset)
        yield inside
        yield inside.translate(_FOR_URLS)
    if len(data) <= _ENCODED_WHOLE:
        yield data.hex()
        yield data.hex().upper()
        for offset in range(5):
            yield _base32_of(data, offset)
        for offset in range(4):
            whole = data[offset : len(data) - (len(data) - offset) % 4]
            yield b85encode(whole).decode()
            yield a85encode(whole).decode()


def spaced_forms(value: str) -> Iterator[str]:
    """How a value reads in hex with signs between its bytes, as `aa:bb:cc`: few of its letters are many there."""
    data = value.strip().encode(errors="replace")
    for sign in (":", " ") if len(data) <= _ENCODED_WHOLE else ():
        yield data.hex(sign)
        yield data.hex(sign).upper()


_FOR_URLS = str.maketrans("+/", "-_")


def _base64_of(data: bytes, offset: int) -> str:
    """The characters of base64 that these bytes alone decide, `offset` bytes behind a multiple of three."""
    encoded = b64encode(b"\0" * offset + data).decode()
    return encoded[math.ceil(offset * 8 / 6) : (offset + len(data)) * 8 // 6]


def _base32_of(data: bytes, offset: int) -> str:
    """Likewise of base32, `offset` bytes behind a multiple of five."""
    encoded = b32encode(b"\0" * offset + data).decode()
    return encoded[math.ceil(offset * 8 / 5) : (offset + len(data)) * 8 // 5]
