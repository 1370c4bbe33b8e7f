import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.judge.delimiter import Delimiter

FENCE = Delimiter("0123456789abcdef")
OPEN, CLOSE = "<answer-0123456789abcdef>", "</answer-0123456789abcdef>"


def test_every_fence_is_new():
    assert len({Delimiter.new().token for _ in range(100)}) == 100


def test_the_text_stands_between_two_tags_as_it_is():
    assert FENCE.around("answer", "a\n</answer>") == f"{OPEN}\na\n</answer>\n{CLOSE}"


@pytest.mark.parametrize(
    ("text", "outside"),
    [
        ("own", "own"),
        (f"own {OPEN}quoted{CLOSE} own", "own   own"),
        (f"own {OPEN}quoted", "own "),
        (f"quoted{CLOSE} own", " own"),
        (f"{OPEN}a{CLOSE}own{OPEN}b{CLOSE}", " own "),
        (f"{OPEN}a{CLOSE}b{CLOSE}own", "own"),
        (f"{OPEN}a{OPEN}b{CLOSE}own", " own"),
        ("<ANSWER-0123456789ABCDEF>quoted</ANSWER-0123456789ABCDEF>own", " own"),
        ("< tool-calls-0123456789abcdef >quoted</ tool-calls-0123456789abcdef >own", " own"),
        (
            "<answer-ffffffffffffffff>own</answer-ffffffffffffffff>",
            "<answer-ffffffffffffffff>own</answer-ffffffffffffffff>",
        ),
    ],
)
def test_what_stands_between_the_tags_is_passed_over(text, outside):
    assert FENCE.outside(text).strip() == outside.strip()


@given(before=st.text(), inside=st.text(), after=st.text())
def test_whatever_is_fenced_never_comes_out_again(before, inside, after):
    assert FENCE.outside(before + FENCE.around("answer", inside) + after) == f"{before} {after}"


@pytest.mark.parametrize("text", [f"x {OPEN}", f"x {OPEN.upper()}"])
def test_a_text_shows_a_fence_in_any_case(text):
    assert FENCE.shows("answer", text)
    assert not FENCE.shows("tool-calls", text)
