"""Data inside a page: JSON that cannot end its element or be executed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any

_HALVES = re.compile("[\ud800-\udfff]")


def to_json(value: object) -> str:
    r"""One line of JSON for a `script` element that is never run.

    `<` is spelled `\u003c`, so that no text can close the element or open another. Halves of surrogate pairs are
    spelled out, since no file can hold them. What is no number in JSON, such as NaN, becomes null.
    """
    try:
        text = _encoded(value)
    except ValueError:
        text = _encoded(_numbered(value))
    text = text.replace("<", "\\u003c")
    return text if text.isascii() else _HALVES.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


def data_element(kind: str, run: int, lines: Iterable[str]) -> str:
    """A `script` element that holds lines of JSON, for the run of that number."""
    text = "\n".join(lines)
    return f'<script type="application/json" class="{kind}" data-run="{run}">{text}</script>\n'


def _encoded(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_plain)


def _plain(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else str(value)


def _numbered(value: Any) -> Any:
    """The value with None for all that is no number."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _numbered(one) for key, one in value.items()}
    return [_numbered(one) for one in value] if isinstance(value, list | tuple) else value
