"""The items of a rubric (a checklist or score ranges) and the scale of points (SPEC section 9)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import Annotated, Literal, TypeAlias

from msgspec.structs import replace

from agentv.model.run.grade import PLACES
from agentv.model.run.rubric import RubricItem
from agentv.registry.fields import Alias, Between, Declared, Doc, Issue, Nonempty, Text


@dataclass(frozen=True, slots=True)
class RubricEntry(Declared):
    """One item of a checklist, or of score ranges, as authored."""

    outcome: Annotated[
        Text | None,
        Nonempty(),
        Alias(("expected_outcome", "criteria", "description")),
        Doc("what the answer must do; required without score ranges"),
    ] = None
    id: Annotated[Text | None, Doc("its name in the judge's reply; default: r1, r2, … by position")] = None
    weight: Annotated[float, Between(0), Doc("weight of the item in the score")] = 1.0
    required: Annotated[
        bool | Annotated[float, Between(0, MAX_POINTS)] | None,
        Doc(
            "true (default): if the item fails, the grade fails with score 0; with score ranges, true requires all 10 "
            "points, and a number is the same as min_score"
        ),
    ] = None
    operator: Annotated[
        Literal["correctness", "contradiction"],
        Doc("correctness: the answer must do it; contradiction: the answer must not contradict it"),
    ] = "correctness"
    score_ranges: Annotated[AuthoredRanges | None, Doc("points 0 to 10 → what earns them")] = None
    min_score: Annotated[
        Annotated[float, Between(0, MAX_POINTS)] | None,
        Doc(
            "minimum of an item with score ranges: points above 1, or a share of them from 0 to 1; below it, the grade "
            "fails with score 0"
        ),
    ] = None
    required_min_score: Annotated[
        Annotated[int, Between(0, MAX_POINTS)] | None, Doc("older: min_score in points, from 0 to 10")
    ] = None

    @property
    def gate(self) -> int | None:
        """Minimum points of the item; None if it has no minimum."""
        if self.required_min_score is not None:
            return self.required_min_score
        if self.min_score is not None:
            return _points(self.min_score)
        return None if self.required in (None, False) else _points(float(self.required or 0))

    def validate(self) -> Iterator[Issue]:
        """Report problems of the item by itself."""
        yield from _id_issues(self)
        if self.score_ranges is None:
            yield from _unranged_issues(self)
            return
        for issue in range_issues(self.score_ranges):
            yield replace(issue, path=("score_ranges", *issue.path))
        yield from _gate_issues(self)


def _points(mark: float) -> int:
    """Return a minimum in points. A value of up to 1 is a share of the points, as in AgentV."""
    return ceil(round(mark * MAX_POINTS if mark <= 1 else mark, PLACES))


Entries: TypeAlias = tuple[RubricEntry | Text, ...]


def items_of(entries: Entries) -> tuple[RubricItem, ...]:
    """Return the items as the judge gets them. An item without an id is named by its position."""
    items = []
    for place, entry in enumerate(entries, 1):
        if isinstance(entry, str):
            items.append(RubricItem(f"r{place}", entry))
            continue
        ranged = entry.score_ranges
        item = RubricItem(
            entry.id or f"r{place}",
            entry.outcome or "",
            entry.weight,
            entry.required is not False,
            entry.operator,
            ranges_of(ranged) if ranged else (),
            entry.gate if ranged else None,
        )
        items.append(item)
    return tuple(items)


_NOT_IN_IDS = re.compile(r"[\[\]\r\n\v\f\x1c-\x1e\x85\u2028\u2029]")
"""Characters that would end an id in the prompt, which shows it in brackets on one line."""


def _id_issues(entry: RubricEntry) -> Iterator[Issue]:
    if entry.id is None:
        return
    if not entry.id.strip():
        hint = "without an id, the item is named by position: r1, r2, …"
        yield Issue(("id",), "the id is empty", code="missing-value", hint=hint)
    elif _NOT_IN_IDS.search(entry.id):
        message = f"the id {entry.id!r} contains brackets or line breaks"
        yield Issue(("id",), message, hint="remove brackets and line breaks")


def label_text(entry: RubricEntry | str) -> str:
    """Return the text of an item in a label."""
    return entry if isinstance(entry, str) else entry.outcome or entry.id or "score ranges"


def item_issues(entries: Entries) -> Iterator[Issue]:
    """Report problems of a list of items. The paths start at the rubric's `value`."""
    if not entries:
        yield Issue(("value",), "the checklist has no items", code="missing-value")
    ranged = any(isinstance(entry, RubricEntry) and entry.score_ranges is not None for entry in entries)
    for place, entry in enumerate(entries):
        if isinstance(entry, RubricEntry):
            yield from (replace(issue, path=("value", place, *issue.path)) for issue in entry.validate())
        elif not entry.strip():
            yield Issue(("value", place), "the item is empty", code="missing-value")
        if ranged and (isinstance(entry, str) or entry.score_ranges is None):
            hint = "give it 'score_ranges', or write an llm-rubric of its own"
            yield Issue(("value", place), "this item has no score ranges, but other items have", hint=hint)
    items = items_of(entries)
    if items and not any(item.weight for item in items):
        yield Issue(
            ("value",), "every item has weight 0, so there is no score", hint="give at least one a weight above 0"
        )
    yield from _duplicate_issues(items)


_UNRANGED_HINTS = {
    "min_score": "write 'required: true'",
    "required_min_score": "write 'required: true'",
    "required": "write true or false",
}


def _unranged_issues(entry: RubricEntry) -> Iterator[Issue]:
    """Report what is wrong with an item of a checklist."""
    if entry.outcome is None:
        yield Issue((), "an item without 'score_ranges' needs 'outcome'", code="missing-key")
    for key, hint in _UNRANGED_HINTS.items():
        if isinstance(found := getattr(entry, key), int | float) and not isinstance(found, bool):
            message = f"'{key}' is in points, but this item has no 'score_ranges'"
            yield Issue((key,), message, hint=hint)


def _gate_issues(entry: RubricEntry) -> Iterator[Issue]:
    """Report what is wrong with an item with score ranges, other than the ranges."""
    for key in ("min_score", "required"):
        mark = getattr(entry, key)
        if isinstance(mark, float) and mark > 1 and not mark.is_integer():
            message = f"'{key}' of an item must be a whole number of points, or a share from 0 to 1, found {mark:g}"
            yield Issue((key,), message, hint=f"write {mark / MAX_POINTS:g}")
    minimums = [key for key in ("min_score", "required_min_score") if getattr(entry, key) is not None]
    if minimums and entry.required is not None and entry.required is not True:
        yield Issue(("required",), f"'required' and '{minimums[0]}' both set the minimum; keep one of them")
    if len(minimums) > 1:
        message = "'required_min_score' is another spelling of 'min_score', which is set too; keep one of them"
        yield Issue(("required_min_score",), message, "two-spellings")
    if entry.operator == "contradiction":
        message = "'contradiction' requires a checklist item, but this item has score ranges"
        yield Issue(("operator",), message)


def _duplicate_issues(items: tuple[RubricItem, ...]) -> Iterator[Issue]:
    first: dict[str, int] = {}
    for place, item in enumerate(items):
        before = first.setdefault(item.id, place)
        if before != place:
            message = f"items {before + 1} and {place + 1} have the same id '{item.id}'"
            yield Issue(("value", place), message, code="duplicate-id")


MAX_POINTS = 10
"""Maximum points of an item."""

Ranges: TypeAlias = tuple[tuple[int, int, str], ...]
"""(lowest points, highest points, what earns them), ascending."""

_POINTS = re.compile(r"\s*(?P<low>\d{1,3})\s*(?:[-\u2013]\s*(?P<high>\d{1,3})\s*)?")
_RANGE_HINT = "write points as '0-3' or '10'"


@dataclass(frozen=True, slots=True)
class ScoreRange(Declared):
    """One range, as an item of a list."""

    score_range: Annotated[tuple[int, ...], Doc("lowest and highest points, as in [0, 3]")]
    outcome: Annotated[Text, Nonempty(), Alias(("expected_outcome",)), Doc("what earns them")]


AuthoredRanges: TypeAlias = Mapping[str, Text] | tuple[ScoreRange, ...]
"""`{"0-3": …, "4-10": …}`, `{0: …, 4: …}` by the lowest points of each range, or a list."""


@dataclass(frozen=True, slots=True)
class _Band:
    """One range, and its key or index in the eval file."""

    at: str | int
    low: int
    high: int
    text: str

    def __str__(self) -> str:
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"


def ranges_of(authored: AuthoredRanges) -> Ranges:
    """Return the ranges of an item without issues."""
    bands = (band for band in _bands(authored) if isinstance(band, _Band))
    return tuple(sorted((band.low, band.high, band.text) for band in bands))


def range_issues(authored: AuthoredRanges) -> list[Issue]:
    """Return the problems of the ranges. The paths start at the item's `score_ranges`."""
    if not authored:
        return [Issue((), "'score_ranges' is empty", code="missing-value", hint="describe what earns 0 to 10 points")]
    bands = [*_bands(authored)]
    issues = [one for one in bands if isinstance(one, Issue)]
    sound = [one for one in bands if isinstance(one, _Band)]
    return issues or [*_band_issues(sound)] or [*_coverage_issues(sound, begins=_is_by_start(authored))]


def _bands(authored: AuthoredRanges) -> Iterator[_Band | Issue]:
    if not isinstance(authored, Mapping):
        for place, one in enumerate(authored):
            if len(one.score_range) == 2:
                yield _Band(place, *one.score_range, one.outcome)
            else:
                message = f"'score_range' must be the lowest and the highest points, found {list(one.score_range)}"
                yield Issue((place, "score_range"), message, hint="write [0, 3], or [10, 10] for a single number")
        return
    if _is_by_start(authored):
        begins = sorted((int(key), key) for key in authored)
        for (low, key), following in zip(begins, [*(low for low, _ in begins[1:]), MAX_POINTS + 1], strict=True):
            yield _Band(key, low, max(low, following - 1), authored[key])
        return
    for key, text in authored.items():
        found = _POINTS.fullmatch(key)
        if found is None:
            yield Issue((key,), f"'{key}' is not a range of points", hint=_RANGE_HINT)
        else:
            yield _Band(key, int(found["low"]), int(found["high"] or found["low"]), text)


def _is_by_start(authored: AuthoredRanges) -> bool:
    """Return whether every key is a single number: the lowest points of a range that ends before the next begins."""
    return isinstance(authored, Mapping) and all(key.strip().isdecimal() and len(key.strip()) < 4 for key in authored)


def _band_issues(bands: list[_Band]) -> Iterator[Issue]:
    for band in bands:
        if not band.text.strip():
            yield Issue((band.at,), f"the description of {band} points is empty", code="missing-value")
        if band.low < 0 or band.high > MAX_POINTS:
            yield Issue((band.at,), f"points must be from 0 to {MAX_POINTS}, found {band}")
        elif band.low > band.high:
            yield Issue((band.at,), f"the range {band} ends before it starts", hint=f"write {band.high}-{band.low}")


def _coverage_issues(bands: list[_Band], *, begins: bool) -> Iterator[Issue]:
    ranked = sorted(bands, key=lambda band: (band.low, band.high))
    for one, other in pairwise(ranked):
        if other.low <= one.high:
            both = f"{other.low}" if other.low == min(one.high, other.high) else f"{other.low} to {one.high}"
            yield Issue((other.at,), f"the ranges {one} and {other} overlap at {both} points")
    covered = {points for band in bands for points in range(band.low, band.high + 1)}
    missing = [str(points) for points in range(MAX_POINTS + 1) if points not in covered]
    if missing:
        hint = "a single number is the start of a range: start with 0" if begins else None
        yield Issue((), f"no range covers {', '.join(missing)} points; cover all from 0 to {MAX_POINTS}", hint=hint)


DEFAULT_SCALE = (1, 5)
"""The scale if only `pass_threshold` is given (seed 004)."""

_SCALE = re.compile(r"\s*(?P<low>[+-]?\d{1,6})\s*(?:-|\u2013|\.\.|to)\s*(?P<high>[+-]?\d{1,6})\s*")
_HINT = "write 1-5, [1, 5] or {min: 1, max: 5}"
_LARGEST = 1_000_000


@dataclass(frozen=True, slots=True)
class Bounds(Declared):
    """A scale as a mapping."""

    min: Annotated[int, Doc("lowest points")]
    max: Annotated[int, Doc("highest points")]


AuthoredScale: TypeAlias = Text | tuple[int, ...] | Bounds


def scale_of(authored: AuthoredScale | None) -> tuple[int, int] | None:
    """Return the lowest and the highest points, or None if the scale is invalid."""
    if authored is None:
        return DEFAULT_SCALE
    if isinstance(authored, Bounds):
        low, high = authored.min, authored.max
    elif isinstance(authored, str):
        found = _SCALE.fullmatch(authored)
        if found is None:
            return None
        low, high = int(found["low"]), int(found["high"])
    elif len(authored) == 2:
        low, high = authored
    else:
        return None
    return (low, high) if -_LARGEST <= low < high <= _LARGEST else None


def threshold_of(scale: tuple[int, int], given: int | None) -> int:
    """Return the minimum points to pass. The default is three quarters up the scale, which is 4 of 1-5."""
    low, high = scale
    return given if given is not None else high - (high - low) // 4


def scale_issues(authored: AuthoredScale | None, pass_threshold: int | None) -> Iterator[Issue]:
    """Report problems of `scale` and `pass_threshold`, at least one of which is given."""
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
