import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.assertions.judged.retrieval import sentences_of


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("", ()),
        ("One. Two! Three?", ("One.", "Two!", "Three?")),
        ('He said "no." She left.', ('He said "no."', "She left.")),
        ("It costs 3.50 euros. 2 are left.", ("It costs 3.50 euros.", "2 are left.")),
        ("Fruit, e.g. apples, is sold.", ("Fruit, e.g. apples, is sold.",)),
        ("Facts:\n- one\n- two\n1. three", ("Facts:", "one", "two", "three")),
        ("Above\n---\nBelow", ("Above", "Below")),
        ("東京は首都です。大きいです。", ("東京は首都です。", "大きいです。")),
        ("Wait… What?", ("Wait…", "What?")),
    ],
)
def test_sentences_end_as_punctuation_says(text: str, sentences: tuple[str, ...]) -> None:
    assert sentences_of(text) == sentences


@given(st.text())
def test_no_word_is_lost(text: str) -> None:
    kept = "".join(sentences_of(text))
    assert [one for one in text if one.isalpha()] == [one for one in kept if one.isalpha()]
