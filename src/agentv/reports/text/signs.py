"""Differences with their sign. What rounds to nothing has none."""

from __future__ import annotations


def signed(number: float, places: int) -> str:
    """`+8.0`, `-0.04`; `0.0` of what so many places show as nothing."""
    shown = f"{number:+.{places}f}"
    return shown if float(shown) else shown[1:]
