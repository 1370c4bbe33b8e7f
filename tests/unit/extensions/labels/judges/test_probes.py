import pytest

from agentv.extensions.labels.judges.probes import PROBES
from agentv.model.run.rubric import Rubric, RubricItem

PROSE = "We refund within 30 days. Please send it back, e.g. by post! Is that fine?"


def words(text):
    return [one for one in text.replace("#", " ").replace("- ", " ").split() if one != "Answer"]


@pytest.mark.parametrize("name", ["longer", "markdown", "confident", "other-model", "own-model"])
def test_a_change_of_the_form_keeps_every_word_in_its_order(name):
    change = PROBES[name].answer
    changed = change(PROSE, "openai:gpt-5-mini")
    assert changed == change(PROSE, "openai:gpt-5-mini") != PROSE
    kept = iter(words(changed))
    assert all(word in kept for word in words(PROSE))
    assert change('{"days": 30}', "openai:gpt-5-mini") is None
    assert change("42", "openai:gpt-5-mini") is None
    assert change("```python\nprint(1)\n```", "openai:gpt-5-mini") is None
    assert change("  ", "openai:gpt-5-mini") is None


def test_a_list_has_a_line_for_each_sentence():
    assert PROBES["markdown"].answer(PROSE, "").splitlines() == [
        "## Answer",
        "",
        "- We refund within 30 days.",
        "- Please send it back, e.g. by post!",
        "- Is that fine?",
    ]
    assert PROBES["markdown"].answer("# Refunds\n\nWithin 30 days.", "") is None


def test_only_a_list_of_items_has_an_order():
    one, two = RubricItem("a", "Is short"), RubricItem("b", "Is polite")
    assert PROBES["order"].rubric(Rubric("checklist", items=(one, two))).items == (two, one)
    assert PROBES["order"].rubric(Rubric("checklist", items=(one,))) is None
    assert PROBES["order"].rubric(Rubric("freeform", text="Is polite")) is None
