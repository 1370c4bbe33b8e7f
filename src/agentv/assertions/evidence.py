"""Short excerpts of an answer as evidence of a check."""

from __future__ import annotations

from functools import lru_cache

from msgspec.structs import replace

from agentv.model.run.grade import Grade
from agentv.model.values.formatting import CUT, LIMIT, excerpt, writable

__all__ = ["CUT", "LIMIT", "NO_OUTPUT", "around", "excerpt", "listed", "quoted", "texts_in", "with_quotations"]

_MARGIN = 40
_LEAST_QUOTE = 8
_SHOWN_VALUE = 60
_SHOWN_VALUES = 3

NO_OUTPUT = Grade.errored("no-output", "there is no answer to check")
"""Grade of every type that reads the answer, if there is no answer."""


def around(text: str, start: int, end: int) -> str:
    """Return a part of a text with some context before and after it."""
    first, last = max(start - _MARGIN, 0), min(end + _MARGIN, len(text))
    if last - first <= LIMIT - 2:
        piece = text[first:last]
    else:
        room = (LIMIT - 2 - len(CUT)) // 2
        piece = f"{text[first : first + room]}{CUT}{text[last - room : last]}"
    return f"{'…' if first else ''}{writable(piece)}{'…' if last < len(text) else ''}"


@lru_cache(maxsize=4096)
def quoted(value: str) -> str:
    """Return a value from the eval file as labels and checks show it: on one line, quoted and shortened."""
    line = " ".join(excerpt(value, 4 * _SHOWN_VALUE).split())
    return f"'{excerpt(line, _SHOWN_VALUE)}'" if line else repr(excerpt(value, _SHOWN_VALUE))


@lru_cache(maxsize=1024)
def listed(values: tuple[str, ...]) -> str:
    """Return the first few values of a list, quoted, and how many more there are."""
    shown = ", ".join(quoted(value) for value in values[:_SHOWN_VALUES])
    return shown if len(values) <= _SHOWN_VALUES else f"{shown} and {len(values) - _SHOWN_VALUES} more"


def texts_in(value: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the texts of an option that takes one text, several or none."""
    return (value,) if isinstance(value, str) else value or ()


def with_quotations(grade: Grade, answer: str | None) -> Grade:
    """Return a judge's grade with spans for evidence that quotes the answer verbatim, if the quote occurs only once."""
    checks = tuple(replace(check, spans=_quotation(check.evidence or "", answer or "")) for check in grade.checks)
    return replace(grade, checks=checks)


def _quotation(evidence: str, answer: str) -> tuple[tuple[int, int], ...]:
    quote = evidence.strip().strip("\"'“”‘’").strip()
    at = answer.find(quote) if len(quote) >= _LEAST_QUOTE else -1
    return () if at < 0 or answer.find(quote, at + 1) >= 0 else ((at, at + len(quote)),)
