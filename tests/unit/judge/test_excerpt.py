import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.judge.excerpt import Excerpt


@pytest.mark.parametrize("text", ["", "a", "abcdefghij"])
def test_what_fits_is_left_alone(text):
    assert Excerpt.of(text, 10) == Excerpt(text)
    assert Excerpt(text).text == Excerpt(text).joined == text


def test_what_does_not_is_cut_in_the_middle_and_says_so():
    cut = Excerpt.of("abcdefghijklm", 5)
    assert cut.text == "abc\n[… 8 characters left out …]\nlm"
    assert (cut.joined, cut.left_out) == ("abclm", 8)


def test_many_characters_are_easy_to_read():
    assert "[… 1,999,900 characters left out …]" in Excerpt.of("x" * 2_000_000, 100).text


@given(text=st.text(min_size=1), most=st.integers(1, 20))
def test_both_ends_are_kept_and_the_numbers_add_up(text, most):
    cut = Excerpt.of(text, most)
    assert text.startswith(cut.head)
    assert text.endswith(cut.tail)
    assert len(cut.joined) + cut.left_out == len(text)
    assert len(cut.joined) <= most
