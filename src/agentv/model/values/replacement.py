"""Copies of frozen dataclasses with some fields changed, made in a third of the time that `dataclasses.replace` takes.

For what is done once a trial or a case; elsewhere `replace` says the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

T = TypeVar("T")


def varied(one: T, **changes: Any) -> T:
    """As `dataclasses.replace`, for a class whose fields, two or more, are all given to `__init__`."""
    cls: Any = type(one)
    names, values = _fields_of(cls)
    made: T = cls(**{**dict(zip(names, values(one), strict=True)), **changes})
    return made


@cache
def _fields_of(cls: type) -> tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]]:
    names = tuple(one.name for one in fields(cls))
    return names, attrgetter(*names)
