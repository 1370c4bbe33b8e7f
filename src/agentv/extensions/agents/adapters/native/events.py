"""Values out of an agent's events, which may lack any key and hold anything in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentv.model.values.values import JsonObject, objects_in


def text(event: Mapping[str, Any], key: str) -> str:
    """A text; empty for anything else."""
    value = event.get(key)
    return value if isinstance(value, str) else ""


def texts(event: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """The texts of a list; none for anything else."""
    value = event.get(key)
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()


def mapping(event: Mapping[str, Any], key: str) -> JsonObject:
    """An object; empty for anything else."""
    value = event.get(key)
    return value if isinstance(value, dict) else {}


def items(event: Mapping[str, Any], key: str) -> list[JsonObject]:
    """The objects of a list; none for anything else."""
    return objects_in(event.get(key))


_MOST = 1e18
"""Numbers above are not counts."""


def number(event: Mapping[str, Any], key: str) -> float | None:
    """A number that is not negative; None for anything else."""
    value = event.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= _MOST else None


def count(event: Mapping[str, Any], key: str) -> int:
    """A whole number that is not negative; 0 for anything else."""
    return int(number(event, key) or 0)
