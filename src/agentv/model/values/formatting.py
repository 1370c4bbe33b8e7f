"""Formatting of numbers, amounts, times and long texts for people."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

ELLIPSIS = "…"

_SMALLEST = 0.0001


def plural(number: int, noun: str, separator: str = "") -> str:
    """Return a number with its noun: `1 case`, `2 cases`.

    Args:
        number: the count.
        noun: singular of a noun whose plural ends with `s`.
        separator: thousands separator, such as `,`.
    """
    return f"{number:{separator}} {noun}{'' if number == 1 else 's'}"


def money(usd: float) -> str:
    """Format US dollars: `$0.00`, `<$0.0001`, `$0.0123`, `$12.34`."""
    if 0 < usd < _SMALLEST:
        return f"<${_SMALLEST:.4f}"
    return f"${usd:.2f}" if usd >= 10 or usd == 0 else f"${usd:.4f}"


def duration(milliseconds: float) -> str:
    """Format a duration, with tenths below a minute: `0.4 s`, `2 min 05 s`, `1 h 02 min`."""
    seconds = milliseconds / 1000
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s"
    return elapsed(round(seconds))


def elapsed(seconds: float) -> str:
    """Format a running time in whole seconds, so that it changes once a second: `5 s`, `2 min 05 s`, `1 h 02 min`."""
    whole = int(max(0.0, seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def timestamp(moment: datetime, precision: Literal["milliseconds", "seconds"] = "milliseconds") -> str:
    """Format a time as ISO 8601 in UTC: `2026-11-22T08:35:00.125Z`.

    Args:
        moment: the time, with a time zone.
        precision: the smallest unit to include.
    """
    return moment.astimezone(UTC).isoformat(timespec=precision).replace("+00:00", "Z")


def cut(text: str, longest: int) -> str:
    """Return the text, or the first `longest` characters of a longer one followed by its length."""
    return text if len(text) <= longest else f"{text[:longest]}{ELLIPSIS} ({len(text):,} characters)"


def shorten(text: str, longest: int) -> str:
    """Return the text, shortened to at most `longest` characters including a final `…`."""
    return text if len(text) <= longest else text[: longest - 1] + ELLIPSIS


LIMIT = 200
"""Maximum characters of an excerpt, including `CUT`."""

CUT = " […] "
"""Marks the place where text was left out."""


def excerpt(text: str, limit: int = LIMIT) -> str:
    """Return the text, or the start and end of a longer one with `CUT` between them."""
    if len(text) <= limit:
        return writable(text)
    room = limit - len(CUT)
    return f"{writable(text[: room - room // 2])}{CUT}{writable(text[-(room // 2) :])}"


def writable(text: str) -> str:
    """Return the text with lone surrogates replaced: JSON can contain them, but UTF-8 cannot encode them."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
