import pytest

from agentv.extensions.agents.assertions.tool_calls import ExpectedCall, ToolCallF1, ToolTrajectory
from agentv.extensions.agents.assertions.trajectory import (
    Arguments,
    Counted,
    NamedStep,
    SkillUsed,
    StepBounds,
    StepCount,
    Steps,
    ToolArgsMatch,
    ToolSequence,
    ToolUsed,
)
from agentv.model.values.message import ToolCall
from doubles.nested_grading import answer, answer_after_calls, graded


@pytest.mark.parametrize(
    ("value", "made", "passed"),
    [
        ("Search*", ["search_web"], True),
        ("search", [], False),
        (("a", "b"), ["b", "a"], True),
        (Counted("a"), ["a"], True),
        (Counted("a", 2), ["a"], False),
        (Counted("a", 2), ["a", "a", "a"], True),
        (Counted("a", max=1), ["a", "a"], False),
        (Counted("a", 0, 1), [], True),
        (Counted("a", max=0), [], True),
        (Counted("a", max=0), ["a"], False),
    ],
)
def test_tools_that_were_used(value, made, passed):
    assert graded(ToolUsed(value), answer_after_calls(*made)).passed is passed


@pytest.mark.parametrize(
    ("value", "made", "passed"),
    [
        (("a", "b"), "xaxb", True),
        (("a", NamedStep("b")), "ba", False),
        (Steps(("a", "b")), "axb", True),
        (Steps(("a", "b"), "exact"), "ab", True),
        (Steps(("a", "b"), "exact"), "abx", False),
        (("a",), "", False),
    ],
)
def test_sequences(value, made, passed):
    grade = graded(ToolSequence(value), answer_after_calls(*made))
    assert grade.passed is passed
    assert grade.score == float(passed)


@pytest.mark.parametrize(
    ("wanted", "made", "passed"),
    [
        (Arguments("a", {"q": {"x": 1}}), {"q": {"x": 1, "y": 2}, "n": 3}, True),
        (Arguments("a", {"q": [1]}), {"q": [1, 2]}, False),
        (Arguments("a", {"q": 1}, "exact"), {"q": 1, "n": 2}, False),
        (Arguments("a", {"q": 1}, "exact", {"n": 2}), {"q": 1, "n": 2}, True),
        (Arguments("a", {"q": 1}, "exact", {"n": 2}), {"q": 1, "n": 3}, False),
        (Arguments("a", {"q": 1}, "exact", ignore="n"), {"q": 1, "n": 3}, True),
        (Arguments("a", {"q": 1, "x_id": 1}, "exact", ignore=("*_id",)), {"q": 1, "y_id": 3}, True),
        (Arguments("a", {}, "exact"), {}, True),
    ],
)
def test_arguments(wanted, made, passed):
    assert graded(ToolArgsMatch(wanted), answer_after_calls(ToolCall("a", made))).passed is passed


@pytest.mark.parametrize(
    ("bounds", "passed"),
    [
        (StepBounds(max=5), True),
        (StepBounds(max=4), False),
        (StepBounds(5), True),
        (StepBounds(3, 3, "tool"), True),
        (StepBounds(2, 2, name="a"), True),
        (StepBounds(max=1, name="a"), False),
    ],
)
def test_steps_are_counted(bounds, passed):
    assert graded(StepCount(bounds), answer_after_calls("a", "a", "b")).passed is passed


def test_skills_that_the_target_reports_are_believed():
    rows = [{"name": "pdf"}, {"name": "xlsx", "is_error": True}, "odd", {"name": 3}]
    context = answer("done", response_metadata={"skillCalls": rows})
    assert graded(SkillUsed("pdf"), context).passed
    assert not graded(SkillUsed("xlsx"), context).passed
    assert graded(SkillUsed(Counted("*", 1, 1)), context).passed


EACH = [
    ToolUsed("a"),
    ToolUsed(Counted("a", max=0)),
    SkillUsed("a"),
    ToolSequence(("a",)),
    ToolArgsMatch(Arguments("a", {"q": 1})),
    StepCount(StepBounds(max=3)),
    ToolTrajectory("subset", expected=(ExpectedCall("a"),)),
    ToolCallF1("a"),
]


@pytest.mark.parametrize("assertion", EACH)
@pytest.mark.parametrize(
    "context", [answer("text"), answer("x", messages=answer_after_calls("a").messages, has_transcript=False)]
)
def test_without_a_transcript_nothing_is_known(assertion, context):
    grade = graded(assertion, context)
    assert grade.error.code == "no-data"
