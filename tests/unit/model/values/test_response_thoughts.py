"""Thoughts before an answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.model.values.response import split_thoughts


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>maybe 41?</think>\n\n42", "42"),
        ("  \n<think>\nmaybe 41?\n</think>42 ", "42 "),
        ("<thinking>41</thinking>42", "42"),
        ("<REASONING>41</Reasoning> 42", "42"),
        ("<think>41</think>\n<think>43</think>\n42", "42"),
        ("<think>the tag <think> opens</think>42", "42"),
        ("<think>41 </thinking> or 43</think>42", "42"),
        ("<think>maybe 41, but", ""),
        ("maybe 41?\n</think>\n\n42", "42"),
        (" 42\n", " 42\n"),
        ("42 <think>no, 41</think>", "42 <think>no, 41</think>"),
        ("The tag <think> opens and\n</think>\ncloses.", "The tag <think> opens and\n</think>\ncloses."),
        ("`<think>` is a tag", "`<think>` is a tag"),
        ("<thinker>41</thinker>42", "<thinker>41</thinker>42"),
    ],
)
def test_what_is_the_answer(text: str, answer: str) -> None:
    assert split_thoughts(text)[1] == answer


@given(st.lists(st.sampled_from(["<think>", "</think>", "<reasoning>", "</reasoning>", "\n", " ", "42"])).map("".join))
def test_the_parts_are_the_whole_and_the_answer_has_no_more_blocks_in_front(text: str) -> None:
    thoughts, answer = split_thoughts(text)
    assert thoughts + answer == text
    assert not answer.startswith(("<think>", "<reasoning>"))
