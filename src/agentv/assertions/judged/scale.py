"""The scale of eva's rubrics: whole points between two bounds, and those at which an answer passes (SPEC section 9)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from agentv.registry.fields import Declared, Doc, Issue, Text

EVA = (1, 5)
"""The scale where only `pass_threshold` is given (seed 004)."""

_WRITTEN = re.compile(r"\s*(?P<low>[+-]?\d{1,6})\s*(?:-|\u2013|\.\.|to)\s*(?P<high>[+-]?\d{1,6})\s*")
_HINT = "write 1-5, [1, 5] or {min: 1, max: 5}"
_LARGEST = 1_000_000


@dataclass(frozen=True, slots=True)
class Bounds(Declared):
    """A scale as a mapping."""

    min: Annotated[int, Doc("lowest points")]
    max: Annotated[int, Doc("highest points")]


Authored: TypeAlias = Text | tuple[int, ...] | Bounds


def scale_of(authored: Authored | None) -> tuple[int, int] | None:
    """Lowest and highest points; None where there is no telling."""
    if authored is None:
        return EVA
    if isinstance(authored, Bounds):
        low, high = authored.min, authored.max
    elif isinstance(authored, str):
        found = _WRITTEN.fullmatch(authored)
        if found is None:
            return None
        low, high = int(found["low"]), int(found["high"])
    elif len(authored) == 2:
        low, high = authored
    else:
        return None
    return (low, high) if -_LARGEST <= low < high <= _LARGEST else None


def threshold_of(scale: tuple[int, int], given: int | None) -> int:
    """The points at which an answer passes: three quarters up the scale, which is 4 of 1-5, where none are given."""
    low, high = scale
    return given if given is not None else high - (high - low) // 4


def scale_issues(authored: Authored | None, pass_threshold: int | None) -> Iterator[Issue]:
    """Problems of `scale` and `pass_threshold`, at least one of which is given."""
    scale = scale_of(authored)
    if scale is None:
        shown = list(authored) if isinstance(authored, tuple) else authored
        described = f"{shown.min} to {shown.max}" if isinstance(shown, Bounds) else f"{shown!r}"
        yield Issue(
            ("scale",), f"'scale' must be two whole numbers, the lower one first, found {described}", hint=_HINT
        )
        return
    low, high = scale
    if pass_threshold is not None and not low <= pass_threshold <= high:
        message = f"'pass_threshold' must be on the scale from {low} to {high}, found {pass_threshold}"
        yield Issue(("pass_threshold",), message)
    elif pass_threshold == low:
        message = f"{low} is the lowest value of the scale, so every answer passes"
        yield Issue(("pass_threshold",), message, "zero-threshold", f"use a value above {low}", warning=True)
