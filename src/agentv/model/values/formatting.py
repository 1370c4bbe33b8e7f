"""Formatting of numbers, amounts, times and long texts for people."""

from __future__ import annotations

from datetime import UTC, datetime

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


def timestamp(moment: datetime) -> str:
    """ISO 8601 in UTC, to the millisecond: `2026-11-22T08:35:00.125Z`.

    Args:
        moment: with a time zone.
    """
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def shorten(text: str, longest: int) -> str:
    """The text, at most `longest` characters long; `…` stands for the rest of a longer one."""
    return text if len(text) <= longest else text[: longest - 1] + ELLIPSIS
