"""Values out of an agent's events, which may lack any key and hold anything in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentv.model.values.values import JsonObject


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


def items(event: Mapping[str, Any], key: str) -> Iterator[JsonObject]:
    """The objects of a list; none for anything else."""
    value = event.get(key)
    return (one for one in value if isinstance(one, dict)) if isinstance(value, list) else iter(())


def number(event: Mapping[str, Any], key: str) -> float | None:
    """A number that is not negative; None for anything else."""
    value = event.get(key)
    sound = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
    return float(value) if sound and value is not None else None


def count(event: Mapping[str, Any], key: str) -> int:
    """A whole number that is not negative; 0 for anything else."""
    value = event.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0
