"""Timestamps as rows, records and logs have them."""

from __future__ import annotations

from datetime import UTC, datetime

_TO_THE_MILLISECOND = len("2026-11-22T08:35:00.125")


def timestamp(moment: datetime) -> str:
    """ISO 8601 in UTC, to the millisecond: `2026-11-22T08:35:00.125Z`."""
    written = moment.astimezone(UTC).isoformat(timespec="milliseconds")
    return f"{written[:_TO_THE_MILLISECOND]}Z"  # without the offset, which is none
