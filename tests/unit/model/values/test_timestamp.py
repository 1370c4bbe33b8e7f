from __future__ import annotations

from datetime import UTC, datetime

import pytest

from agentv.model.values.timestamp import timestamp


@pytest.mark.parametrize(
    ("moment", "written"),
    [
        ("2026-11-22T09:35:00.125+01:00", "2026-11-22T08:35:00.125Z"),
        ("2026-11-22T08:35:00.125999+00:00", "2026-11-22T08:35:00.125Z"),
        ("2026-11-22T08:35:00+00:00", "2026-11-22T08:35:00.000Z"),
    ],
)
def test_a_moment_is_written_in_utc_to_the_millisecond(moment, written):
    found = datetime.fromisoformat(moment)
    assert timestamp(found) == timestamp(found.astimezone(UTC)) == written
