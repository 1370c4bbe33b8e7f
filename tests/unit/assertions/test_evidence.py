from hypothesis import given
from hypothesis import strategies as st

from agentv.assertions.evidence import CUT, LIMIT, around, excerpt

any_text = st.text() | st.integers(0, 2000).map(lambda length: "ab c" * length)


@given(any_text, st.integers(20, 300))
def test_an_excerpt_is_the_text_or_both_its_ends(text, limit):
    shown = excerpt(text, limit)
    assert len(shown) <= limit
    if len(text) <= limit:
        assert shown == text
    else:
        head, tail = shown.split(CUT)
        assert text.startswith(head)
        assert text.endswith(tail)
        assert len(shown) == limit


@given(any_text.filter(bool), st.data())
def test_a_place_is_shown_with_what_stands_around_it(text, data):
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start, len(text)))
    shown = around(text, start, end)
    assert len(shown) <= LIMIT
    assert shown.startswith("…") or text.startswith(shown[:20])
    assert shown.endswith("…") or text.endswith(shown[-20:])
    if end - start <= 100:
        assert text[start:end] in shown


@given(st.text(min_size=1, max_size=20).filter(str.isprintable))
def test_every_excerpt_can_be_written(text):
    assert excerpt(text + "\udcff\ud800" + text).encode() is not None
    assert around(text + "\udcff" + text, 0, 1).encode() is not None
