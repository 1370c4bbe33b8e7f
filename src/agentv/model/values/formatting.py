"""Formatting of numbers, amounts, times and long texts for people."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

ELLIPSIS = "…"

_SMALLEST = 0.0001


def plural(number: int, noun: str, separator: str = "") -> str:
    """`1 case`, `2 cases`.

    Args:
        number: how many.
        noun: in the singular; its plural ends with `s`.
        separator: of thousands, such as `,`.
    """
    return f"{number:{separator}} {noun}{'' if number == 1 else 's'}"


def money(usd: float) -> str:
    """US dollars: `$0.00`, `<$0.0001`, `$0.0123`, `$12.34`."""
    if 0 < usd < _SMALLEST:
        return f"<${_SMALLEST:.4f}"
    return f"${usd:.2f}" if usd >= 10 or usd == 0 else f"${usd:.4f}"


def duration(milliseconds: float) -> str:
    """`0.4 s`, `2 min 05 s`, `1 h 02 min`."""
    seconds = milliseconds / 1000
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s"
    return elapsed(round(seconds))


def elapsed(seconds: float) -> str:
    """`5 s`, `2 min 05 s`, `1 h 02 min`: whole seconds, so that it changes once a second."""
    whole = int(max(0.0, seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def timestamp(moment: datetime, precision: Literal["milliseconds", "seconds"] = "milliseconds") -> str:
    """ISO 8601 in UTC: `2026-11-22T08:35:00.125Z`.

    Args:
        moment: with a time zone.
        precision: what it ends with.
    """
    return moment.astimezone(UTC).isoformat(timespec=precision).replace("+00:00", "Z")


def cut(text: str, longest: int) -> str:
    """The text; of a longer one its first `longest` characters, and how many it has."""
    return text if len(text) <= longest else f"{text[:longest]}{ELLIPSIS} ({len(text):,} characters)"


def shorten(text: str, longest: int) -> str:
    """The text, at most `longest` characters long; `…` stands for the rest of a longer one."""
    return text if len(text) <= longest else text[: longest - 1] + ELLIPSIS


LIMIT = 200
"""Characters of an excerpt, the mark of a cut included."""

CUT = " […] "
"""Stands where something was left out."""


def excerpt(text: str, limit: int = LIMIT) -> str:
    """The text itself if it is short, else its start and end with a mark between them."""
    if len(text) <= limit:
        return writable(text)
    room = limit - len(CUT)
    return f"{writable(text[: room - room // 2])}{CUT}{writable(text[-(room // 2) :])}"


def writable(text: str) -> str:
    """The text without halves of surrogate pairs, which JSON can contain but which cannot be written to a file."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
