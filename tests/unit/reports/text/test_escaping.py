from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.model.values.formatting import ELLIPSIS
from agentv.reports.text.escaping import cells, one_line, safe


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("a\tb\nc", "a\tb\nc"),
        ("\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07"),
        ("over\rwritten", "over\\rwritten"),
        ("\x9b31m", "\\x9b31m"),
        ("\x7f\x00", "\\x7f\\x00"),
        ("user\u202egpj.exe", "user\\u202egpj.exe"),
        ("\u2066a\u2069\u200f", "\\u2066a\\u2069\\u200f"),
        ("a\u2028b", "a\\u2028b"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("naïve “日本” 👩‍🔬", "naïve “日本” 👩‍🔬"),
    ],
)
def test_what_steers_a_terminal_is_spelled_out(text, shown):
    assert safe(text) == shown


@given(st.text(st.characters()))
def test_safe_text_steers_nothing_and_can_be_written(text):
    shown = safe(text)
    assert not [letter for letter in shown if unicodedata.category(letter) in ("Cc", "Cs") and letter not in "\t\n"]
    assert not set(shown) & set("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029")
    shown.encode()
    assert safe(shown) == shown


@given(st.text(st.characters()), st.integers(1, 30))
def test_one_line_is_one_line_and_no_longer_than_asked(text, longest):
    shown = one_line(text, longest)
    assert len(shown) <= longest
    assert not set(shown) & set("\n\t\r")
    assert one_line(text).startswith(shown.removesuffix(ELLIPSIS))


@pytest.mark.parametrize(("text", "columns"), [("abc", 3), ("日本", 4), ("e\u0301", 1), ("", 0), ("\u200d", 0)])
def test_columns_of_a_terminal(text, columns):
    assert cells(text) == columns
