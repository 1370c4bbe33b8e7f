"""One value of the answer changed: a number, a date, a name. Every mention of it changes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from agentv.extensions.mutate.operators.mutant import MOST, Answer, Line, Mutant, quoted
from agentv.extensions.mutate.operators.named import words_of
from agentv.model.values.values import lazy_pattern

_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September", "October"),
    *("November", "December"),
)
_ISO = r"\d{4}-\d{2}-\d{2}"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_MONTH = f"(?:{'|'.join(_MONTHS)})"
_WRITTEN = rf"(?:{_DAY} {_MONTH}|{_MONTH} {_DAY})(?:,? \d{{4}})?"
_DATE = lazy_pattern(rf"(?<![\w-])(?:{_ISO}|{_WRITTEN})(?![\w-])")
_NUMBER = lazy_pattern(r"(?<![\w.,:/#-])\d+(?:,\d{3})*(?:\.\d+)?(?![\w:/-]|[.,]\d)")
_NAME = lazy_pattern(r"(?<=[\w,;:)\"'] )(?:[A-Z][a-z]{2,}(?:-[A-Z][a-z]+)?)(?: [A-Z][a-z]{2,}(?:-[A-Z][a-z]+)?)*")
_AFTER = lazy_pattern(r" ?[^\W\d_]+")

_NAMES = ("Marlow", "Quentin", "Tobias", "Ingrid", "Helmsley")


@dataclass(frozen=True, slots=True)
class _Found:
    """A value in an answer.

    Attributes:
        text: as it stands there.
        new: what it becomes.
        shown: it with its neighbour, as `30 days`.
    """

    text: str
    new: str
    shown: str


def change_numbers(answer: Answer) -> Iterator[Mutant]:
    """A number becomes twice as large."""
    taken = [one.span() for one in _DATE.finditer(answer.output)]
    found = (
        _Found(one[0], _doubled(one[0]), _with_unit(answer.output, one))
        for one in _NUMBER.finditer(answer.output)
        if not any(start <= one.start() < end for start, end in taken)
    )
    return _changed(answer, found)


def change_dates(answer: Answer) -> Iterator[Mutant]:
    """A date becomes a later one."""
    dates = (one[0] for one in _DATE.finditer(answer.output))
    return _changed(answer, (_Found(one, _later(one), one) for one in dates))


def change_names(answer: Answer) -> Iterator[Mutant]:
    """A name becomes another one. Capitals at the start of a sentence are no names."""
    new = _NAMES[answer.drawn("change-name", len(_NAMES))]
    dates = " ".join(_DATE.findall(answer.output))
    found = (one[0] for one in _NAME.finditer(answer.output) if one[0] not in dates and one[0] not in _MONTHS)
    return _changed(answer, (_Found(one, new, one) for one in found if one != new))


def _changed(answer: Answer, found: Iterable[_Found]) -> Iterator[Mutant]:
    """The mutants of distinct values, named ones first."""
    distinct: dict[str, _Found] = {}
    for one in found:
        if one.new != one.text:
            distinct.setdefault(one.text, one)
    ranked = sorted(distinct.values(), key=lambda one: not _counts(answer, one))
    for one in ranked[:MOST]:
        output = one.new.join(re.split(_exactly(one.text), answer.output))
        if output == answer.output:
            continue
        became = one.shown.replace(one.text, one.new, 1)
        change = f"{quoted(one.shown)} became {quoted(became)}"
        yield Mutant(change, _counts(answer, one), output, lines=_lines(one))


def _counts(answer: Answer, found: _Found) -> bool:
    """Whether a word that goes is named."""
    gone = words_of(found.text) - words_of(found.new)
    if not gone:
        return any(found.text in one for one in answer.phrases)
    return answer.named.holds_value(" ".join(gone))


def _lines(found: _Found) -> tuple[Line, ...]:
    shown: tuple[Line, ...] = ({"contains": found.shown},) if found.shown != found.text else ()
    return (*shown, {"contains": found.text}, {"regex": _exactly(found.text)})


def _exactly(text: str) -> str:
    """The pattern of a value that is no part of a longer word."""
    return rf"(?<!\w){re.escape(text)}(?!\w)"


def _with_unit(text: str, found: re.Match[str]) -> str:
    after = _AFTER.match(text, found.end())
    return found[0] + (after[0] if after and words_of(after[0]) else "")


def _doubled(number: str) -> str:
    plain = number.replace(",", "")
    if "." in plain:
        places = len(plain.partition(".")[2])
        return f"{float(plain) * 2 or 1:.{places}f}"
    if len(plain) > 4 and "," not in number:
        return str(int(plain[:18]) + 1) + plain[18:]  # it may be an identifier: the next one
    return f"{int(plain[:30]) * 2 or 1:{',' if ',' in number else ''}}"


def _later(written: str) -> str:
    if written[0].isdigit() and written[4:5] == "-":
        try:
            return (date.fromisoformat(written) + timedelta(days=40)).isoformat()
        except (ValueError, OverflowError):
            return written
    month = next(one for one in _MONTHS if one in written)
    return written.replace(month, _MONTHS[(_MONTHS.index(month) + 1) % 12])
