"""Values of plain scalars: YAML 1.2.2, section 10.3.2 (core schema)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agentv.model.values.lazy_pattern import lazy_pattern

TAGS = "tag:yaml.org,2002:"
"""What `!!` stands for."""

SPECIAL = frozenset("nN~tTfF+-.0123456789")
"""First characters of scalars that may be something other than text."""

_WORDS = {
    **dict.fromkeys(("null", "Null", "NULL", "~", ""), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_INT = lazy_pattern(r"[-+]?[0-9]+")
_BASED = lazy_pattern(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = lazy_pattern(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_DIGITS = 400
"""A number with more digits than any float can tell apart is text."""


def resolve(text: str) -> bool | int | float | str | None:
    """The value of a plain scalar without a tag."""
    if text in _WORDS:
        return _WORDS[text]
    if len(text) > _DIGITS:
        return text
    if _INT.fullmatch(text):
        return int(text)
    if _BASED.fullmatch(text):
        return int(text, 0)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text


def _of_type(*types: type) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        value = resolve(text)
        if type(value) not in types:
            raise ValueError(text)
        return value

    return read


TAGGED: dict[str, Callable[[str], Any]] = {
    f"{TAGS}str": str,
    f"{TAGS}null": _of_type(type(None)),
    f"{TAGS}bool": _of_type(bool),
    f"{TAGS}int": _of_type(int),
    f"{TAGS}float": lambda text: float(_of_type(int, float)(text)),
    "!": str,
}
"""Tag → the value of a text; ValueError where the text is no such thing."""

MAPPINGS = (None, "!", f"{TAGS}map")
LISTS = (None, "!", f"{TAGS}seq")
"""Tags that a mapping, or a list, may have."""

KEYS = (None, "!", f"{TAGS}str")
"""Tags that a key may have, which is text in every case."""


def shorthand(tag: str) -> str:
    """A tag as people write it."""
    return f"!!{tag.removeprefix(TAGS)}" if tag.startswith(TAGS) else tag
