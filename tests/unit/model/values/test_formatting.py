"""Formatting of numbers, amounts, times and long texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.model.values.formatting import duration, money, shorten


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


@given(st.text(), st.integers(1, 20))
def test_a_text_is_as_long_as_it_may_be_and_whole_where_it_fits(text, longest):
    shown = shorten(text, longest)
    assert len(shown) == min(len(text), longest)
    assert shown == text if len(text) <= longest else shown == text[: longest - 1] + "…"
