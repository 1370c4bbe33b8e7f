"""How a judge's YES or NO is parsed; an unreadable reply passes in neither direction."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.assertions.evidence import LIMIT
from agentv.assertions.judged.triggering import LONGEST, Triggering, read_answer
from agentv.model.run.context import AssertionContext

YES = [
    "YES", " yes.\n", "**YES**", "YES\n\nThe description says so.", "The description names diffs.\n\nYES",
    "Answer: YES", "**Final answer:** `YES`", "The answer is yes.", '"YES"', "“Yes.”",
    "<think>NO? It names diffs.</think>YES", "NO at first sight, but</think>\n\nYES", "YES <thinking>or NO", "> YES",
    "# YES", "Y\u200bES", "ＹＥＳ",
]  # fmt: skip
NO = [answer.replace("YES", "NO").replace("Yes", "No").replace("yes", "no") for answer in YES[:-5]]
UNREADABLE = {
    "": "empty",
    " \n\u200b": "empty",
    "YES and NO": "YES and NO",
    "YES\n\nNO": "YES and NO",
    "Yes. There is no other prompt.": "YES and NO",
    "YES n\u200bo": "YES and NO",
    "Yes/No": "YES and NO",
    "maybe": "neither",
    "Yes, its description names diffs.": "mentions YES",
    "YES - it fits": "mentions YES",
    "YES, if it asked for a refund.": "mentions YES",
    "It would be loaded. YES.": "mentions YES",
    "<think>YES": "empty",
    "<think>YES</think>": "empty",
    "<think>It is a </think> tag? NO</think> YES or NO": "YES and NO",
    "<yes/>no</yes>": "YES and NO",
    "yesterday": "neither",
    "a no-brainer": "neither",
    "No doubt that it is loaded": "mentions NO",
    "There is no reason to load it": "mentions NO",
    '"No, thanks" is a query for it': "mentions NO",
    "The query says no": "mentions NO",
    "The query says: no": "mentions NO",
    "I would not say yes to that one": "mentions YES",
    "YES " + "x" * LONGEST: "characters",
}


@pytest.mark.parametrize(("answer", "said"), [*((one, True) for one in YES), *((one, False) for one in NO)])
def test_an_answer_is_read(answer, said):
    assert read_answer(answer) is said
    right, wrong = (Triggering(value).grade(AssertionContext((), answer)) for value in (said, not said))
    assert (right.passed, right.score, wrong.passed, wrong.score) == (True, 1.0, False, 0.0)
    assert wrong.checks[0].text == f"answers {'NO' if said else 'YES'}"
    assert wrong.negated().passed


@pytest.mark.parametrize(("answer", "why"), UNREADABLE.items(), ids=range(len(UNREADABLE)))
@pytest.mark.parametrize("value", [True, False])
def test_what_cannot_be_read_passes_in_no_direction_and_says_so(answer, why, value):
    grade = Triggering(value).grade(AssertionContext((), answer))
    for one in (grade, grade.negated(), grade.passing_at(0.0)):
        assert (one.passed, one.score, one.error) == (False, 0.0, None)
    (check,) = grade.checks
    assert why in check.evidence
    assert "unreadable" in check.evidence
    assert len(check.evidence) <= LIMIT


@given(
    st.lists(
        st.sampled_from(["yes", "NO", "no", "YES", " ", "\n", ".", ", ", '"', "answer: ", "the ", "-", "(", "*"]),
        max_size=8,
    ).map("".join)
)
def test_both_directions_never_pass_at_once(answer):
    said = [Triggering(value).grade(AssertionContext((), answer)).passed for value in (True, False)]
    assert said != [True, True]
    assert any(said) is isinstance(read_answer(answer), bool)


@pytest.mark.parametrize("reason", ["length", "MAX_TOKENS", "max_output_tokens"])
def test_an_answer_that_was_cut_cannot_be_read(reason):
    grade = Triggering(True).grade(AssertionContext((), "YES", finish_reason=reason))
    assert (grade.passed, grade.reason) == (False, "unreadable: it was cut off at its length limit")
    assert Triggering(True).grade(AssertionContext((), "YES", finish_reason="stop")).passed


def test_without_an_answer_there_is_nothing_to_read():
    assert Triggering(False).grade(AssertionContext((), None)).error.code == "no-output"


def test_it_is_named_by_the_word_that_is_expected():
    assert [Triggering(value).label() for value in (True, False)] == ["YES", "NO"]
