"""Numbers, amounts, times and long texts for people."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.model.values.formatting import duration, money, plural, shorten, timestamp


def test_numbers_agree_with_their_noun():
    assert [plural(number, "case") for number in (0, 1, 2)] == ["0 cases", "1 case", "2 cases"]
    assert [plural(1234, "line"), plural(1234, "line", ",")] == ["1234 lines", "1,234 lines"]


@pytest.mark.parametrize(
    ("usd", "said"), [(0, "$0.00"), (0.00001, "<$0.0001"), (0.5, "$0.5000"), (9.99994, "$9.9999"), (123.456, "$123.46")]
)
def test_money(usd, said):
    assert money(usd) == said


@pytest.mark.parametrize(
    ("milliseconds", "said"),
    [
        (0, "0.0 s"),
        (449, "0.4 s"),
        (59_900, "59.9 s"),
        (59_990, "1 min 00 s"),
        (125_000, "2 min 05 s"),
        (3_725_000, "1 h 02 min"),
    ],
)
def test_duration(milliseconds, said):
    assert duration(milliseconds) == said


def test_timestamps_are_in_utc():
    moment = datetime(2026, 11, 22, 9, 35, 0, 125_999, timezone(timedelta(hours=1)))
    assert timestamp(moment) == "2026-11-22T08:35:00.125Z"
    assert timestamp(moment, "seconds") == "2026-11-22T08:35:00Z"
    assert timestamp(datetime(2026, 11, 22, tzinfo=UTC)) == "2026-11-22T00:00:00.000Z"


@given(st.text(), st.integers(1, 20))
def test_a_text_is_as_long_as_it_may_be_and_whole_where_it_fits(text, longest):
    shown = shorten(text, longest)
    assert len(shown) == min(len(text), longest)
    assert shown == text if len(text) <= longest else shown == text[: longest - 1] + "…"
