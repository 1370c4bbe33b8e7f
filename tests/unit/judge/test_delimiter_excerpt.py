from hypothesis import given
from hypothesis import strategies as st

from agentv.judge.delimiter import Excerpt


@given(text=st.text(min_size=1), most=st.integers(1, 20))
def test_both_ends_are_kept_and_the_numbers_add_up(text, most):
    cut = Excerpt.of(text, most)
    assert text.startswith(cut.head)
    assert text.endswith(cut.tail)
    assert len(cut.joined) + cut.left_out == len(text)
    assert len(cut.joined) <= most
