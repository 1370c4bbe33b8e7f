"""A sentence for the judge that was probably meant for an assertion: `- contains "refund"`, without its colon."""

from __future__ import annotations

import re
from collections.abc import Callable

from agentv.model.values.formatting import shorten
from agentv.model.values.lazy_pattern import lazy_pattern

_BEGIN = lazy_pattern(r"(?P<name>[A-Za-z][\w-]*)(?:\s+|:)(?P<value>\S.*)", re.DOTALL)
_VALUE = lazy_pattern(r"\"[^\"]*\"|'[^']*'|[+-]?\d+(?:\.\d+)?")
"""A quoted text or a number, and nothing behind it: `Contains 3 reasons` is a sentence."""

_VERBS = frozenset({"contains", "equals", "icontains", "regex"})
"""Names of types behind which one word alone, as in `contains hello`, is a value."""

_LONGEST = 61
"""Characters of the value that the hint shows."""


_EXPRESSION = lazy_pattern(
    r"(?:not\s+)?(?:len\s*\(\s*output\s*\)|output(?:\.[A-Za-z_]\w*(?:\([^()]*\))?)*)\s*(?:[<>]=?|[!=]==?|in\b)\s*\S.*"
    r"|.+\s(?:not\s+)?in\s+output(?:\.[a-z]+\(\))?"
    r"|(?:re|json)\.[a-z]+\(.*\).*"
    r"|output(?:\.[A-Za-z_]\w*\([^()]*\))+",
    re.DOTALL,
)
_QUOTED = lazy_pattern(r"[\"'].*[\"']\s+(?:not\s+)?in\s+output.*|(?!.*\s(?:not\s+)?in\s+output).*", re.DOTALL)


def looks_like_code(sentence: str) -> bool:
    """Whether a sentence for the judge is a Python or JavaScript expression: `len(output) > 3`, `"a" in output`."""
    text = sentence.strip()
    return _EXPRESSION.fullmatch(text) is not None and _QUOTED.fullmatch(text) is not None


def colon_forgotten(sentence: str, known: Callable[[str], bool]) -> tuple[str, str] | None:
    """The name at the start of a sentence, and the entry that was probably meant; None if it is a sentence.

    An English word, such as `contains`, is not enough: a value has to follow it, or one word that ends
    the text, as in `contains hello`. No sentence starts with `not_contains`.

    Args:
        sentence: as authored.
        known: whether a name is that of an assertion type.
    """
    found = _BEGIN.fullmatch(sentence.strip())
    if found is None:
        return None
    name, value = found["name"], found["value"]
    is_short = name in _VERBS and " " not in value
    if not ("-" in name or "_" in name or is_short or _VALUE.fullmatch(value)) or not known(name):
        return None
    value = " ".join(value.split())
    return name, f"- {name}: {shorten(value, _LONGEST)}"
