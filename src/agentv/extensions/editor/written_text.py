"""Texts as they are written in YAML."""

from __future__ import annotations

import json
import re
from typing import Literal

from agentv.authoring.source.nodes import ListNode, Scalar
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_yaml

Quote = Literal["", "'", '"']

UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
"""Characters that YAML takes for line ends or refuses, unless they are escaped. Source: YAML 1.2, section 5.1."""

_WORDS = frozenset(["true", "false", "null", "yes", "no", "on", "off", "<<"])
"""What has a meaning as a key, or for other YAML readers."""


def written(text: str, quote: Quote = "") -> str:
    """A text on one line, quoted where it would be read as something else.

    Args:
        text: what it must be read as.
        quote: that it has, where a text is replaced that is quoted.
    """
    if quote == "'" and not UNPRINTABLE.search(text):
        return "'" + text.replace("'", "''") + "'"
    if not quote and _is_plain(text):
        return text
    return UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(text, ensure_ascii=False))


def _is_plain(text: str) -> bool:
    """Whether a text is read as itself without quotes, wherever it stands."""
    if text.lower() in _WORDS:
        return False
    if text.isidentifier():
        return True
    if UNPRINTABLE.search(text):
        return False
    root = read_yaml("", f"[{text}]".encode(errors="replace"), Report()).value
    items = root.items if isinstance(root, ListNode) else []
    return len(items) == 1 and isinstance(items[0], Scalar) and items[0].value == text
