import pytest

from agentv.judge.delimiter import Delimiter

FENCE = Delimiter("0123456789abcdef")
OPEN, CLOSE = "<answer-0123456789abcdef>", "</answer-0123456789abcdef>"


def test_every_fence_is_new():
    assert len({Delimiter.new().token for _ in range(100)}) == 100


@pytest.mark.parametrize("text", [f"x {OPEN}", f"x {OPEN.upper()}"])
def test_a_text_shows_a_fence_in_any_case(text):
    assert FENCE.shows("answer", text)
    assert not FENCE.shows("tool-calls", text)
