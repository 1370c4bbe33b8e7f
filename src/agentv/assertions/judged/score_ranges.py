"""Points 0 to 10 of a rubric's item and what earns them, in the three shapes that AgentV writes (SPEC section 9)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, TypeAlias

from agentv.registry.fields import Alias, Declared, Doc, Issue, Nonempty, Text

MOST = 10
"""Points that an item can earn."""

Ranges: TypeAlias = tuple[tuple[int, int, str], ...]
"""(lowest points, highest points, what earns them), ascending."""

_POINTS = re.compile(r"\s*(?P<low>\d{1,3})\s*(?:[-\u2013]\s*(?P<high>\d{1,3})\s*)?")
_HINT = "write points as '0-3' or '10'"


@dataclass(frozen=True, slots=True)
class ScoreRange(Declared):
    """One range, as an item of a list."""

    score_range: Annotated[tuple[int, ...], Doc("lowest and highest points, as in [0, 3]")]
    outcome: Annotated[Text, Nonempty(), Alias(("expected_outcome",)), Doc("what earns them")]


Authored: TypeAlias = Mapping[str, Text] | tuple[ScoreRange, ...]
"""`{"0-3": …, "4-10": …}`, `{0: …, 4: …}` by where each range begins, or a list."""


@dataclass(frozen=True, slots=True)
class _Band:
    """One range, and the key or place that it stands under."""

    at: str | int
    low: int
    high: int
    text: str

    def __str__(self) -> str:
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"


def ranges_of(authored: Authored) -> Ranges:
    """The ranges of an item that has no issues."""
    bands = (band for band in _bands(authored) if isinstance(band, _Band))
    return tuple(sorted((band.low, band.high, band.text) for band in bands))


def range_issues(authored: Authored) -> list[Issue]:
    """Problems of the ranges; the paths start at the item's `score_ranges`."""
    if not authored:
        return [Issue((), "'score_ranges' is empty", code="missing-value", hint="describe what earns 0 to 10 points")]
    bands = [*_bands(authored)]
    issues = [one for one in bands if isinstance(one, Issue)]
    sound = [one for one in bands if isinstance(one, _Band)]
    return issues or [*_each(sound)] or [*_together(sound, begins=_by_beginning(authored))]


def _bands(authored: Authored) -> Iterator[_Band | Issue]:
    if not isinstance(authored, Mapping):
        for place, one in enumerate(authored):
            yield _listed(place, one)
        return
    if _by_beginning(authored):
        yield from _begun(authored)
        return
    for key, text in authored.items():
        found = _POINTS.fullmatch(key)
        if found is None:
            yield Issue((key,), f"'{key}' is not a range of points", hint=_HINT)
        else:
            yield _Band(key, int(found["low"]), int(found["high"] or found["low"]), text)


def _listed(place: int, one: ScoreRange) -> _Band | Issue:
    if len(one.score_range) != 2:
        message = f"'score_range' must be the lowest and the highest points, found {list(one.score_range)}"
        return Issue((place, "score_range"), message, hint="write [0, 3], or [10, 10] for a single number")
    return _Band(place, *one.score_range, one.outcome)


def _by_beginning(authored: Authored) -> bool:
    """Whether every key is one number, and so the lowest points of a range that ends before the next one begins."""
    return isinstance(authored, Mapping) and all(key.strip().isdecimal() and len(key.strip()) < 4 for key in authored)


def _begun(authored: Mapping[str, str]) -> Iterator[_Band]:
    begins = sorted((int(key), key) for key in authored)
    for (low, key), following in zip(begins, [*(low for low, _ in begins[1:]), MOST + 1], strict=True):
        yield _Band(key, low, max(low, following - 1), authored[key])


def _each(bands: list[_Band]) -> Iterator[Issue]:
    for band in bands:
        if not band.text.strip():
            yield Issue((band.at,), f"the description of {band} points is empty", code="missing-value")
        if band.low < 0 or band.high > MOST:
            yield Issue((band.at,), f"points must be from 0 to {MOST}, found {band}")
        elif band.low > band.high:
            yield Issue((band.at,), f"the range {band} ends before it starts", hint=f"write {band.high}-{band.low}")


def _together(bands: list[_Band], *, begins: bool) -> Iterator[Issue]:
    ranked = sorted(bands, key=lambda band: (band.low, band.high))
    for one, other in pairwise(ranked):
        if other.low <= one.high:
            both = f"{other.low}" if other.low == min(one.high, other.high) else f"{other.low} to {one.high}"
            yield Issue((other.at,), f"the ranges {one} and {other} overlap at {both} points")
    covered = {points for band in bands for points in range(band.low, band.high + 1)}
    missing = [str(points) for points in range(MOST + 1) if points not in covered]
    if missing:
        hint = "a single number is the start of a range: start with 0" if begins else None
        yield Issue((), f"no range covers {', '.join(missing)} points; cover all from 0 to {MOST}", hint=hint)
