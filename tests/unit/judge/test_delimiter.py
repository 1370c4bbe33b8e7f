import pytest

from agentv.judge.delimiter import Delimiter

FENCE = Delimiter("0123456789abcdef")
OPEN, CLOSE = "<answer-0123456789abcdef>", "</answer-0123456789abcdef>"


def test_every_fence_is_new():
    assert len({Delimiter.new().token for _ in range(100)}) == 100


def test_the_text_stands_between_two_tags_as_it_is():
    assert FENCE.around("answer", "a\n</answer>") == f"{OPEN}\na\n</answer>\n{CLOSE}"


@pytest.mark.parametrize("text", [f"x {OPEN}", f"x {OPEN.upper()}"])
def test_a_text_shows_a_fence_in_any_case(text):
    assert FENCE.shows("answer", text)
    assert not FENCE.shows("tool-calls", text)
