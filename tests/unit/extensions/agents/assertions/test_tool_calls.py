import pytest

from agentv.extensions.agents.assertions.tool_calls import ExpectedCall, ToolCallF1, ToolTrajectory
from agentv.model.values.message import ToolCall
from doubles.nested_grading import did, graded


def expects(*tools, mode="in_order", **options):
    expected = tuple(tool if isinstance(tool, ExpectedCall) else ExpectedCall(tool) for tool in tools)
    return ToolTrajectory(mode, expected=expected, **options)


@pytest.mark.parametrize(
    ("mode", "made", "score"),
    [
        ("in_order", "ab", 1.0),
        ("in_order", "xaxbx", 1.0),
        ("in_order", "ba", 0.5),
        ("in_order", "", 0.0),
        ("any_order", "ba", 1.0),
        ("any_order", "bxa", 1.0),
        ("any_order", "b", 0.5),
        ("superset", "bxa", 1.0),
        ("superset", "aa", 0.5),
        ("exact", "ab", 1.0),
        ("exact", "abx", 0.666666666667),
        ("exact", "ba", 0.0),
        ("exact", "", 0.0),
        ("subset", "", 1.0),
        ("subset", "aaab", 1.0),
        ("subset", "abx", 0.666666666667),
    ],
)
def test_modes(mode, made, score):
    grade = graded(expects("a", "b", mode=mode), did(*made))
    assert grade.score == score
    assert grade.passed is (score == 1.0)


@pytest.mark.parametrize(
    ("how", "wanted", "made", "passed"),
    [
        ("superset", {"q": 1}, {"q": 1, "n": 2}, True),
        ("superset", {"q": 1}, {"q": 2}, False),
        ("superset", {"q": {"a": 1}}, {"q": {"a": 1, "b": 2}}, False),
        ("exact", {"q": 1}, {"q": 1.0}, True),
        ("exact", {"q": 1}, {"q": True}, False),
        ("exact", {"q": 1}, {"q": 1, "n": 2}, False),
        ("exact", {}, {}, True),
        ("exact", {}, {"q": 1}, False),
        ("subset", {"q": 1, "n": 2}, {"q": 1}, True),
        ("subset", {"q": 1}, {"q": 1, "n": 2}, False),
        ("ignore", {"q": 1}, {}, True),
        (("q",), {"q": 1, "n": 2}, {"q": 1, "n": 3}, True),
        (("q.a",), {"q": {"a": 1}}, {"q": {"a": 2}}, False),
        (("q.a",), {"q": {"a": 1}}, {}, False),
        (("z",), {"q": 1}, {}, True),
        ("superset", "any", {"q": 1}, True),
        ("superset", None, {"q": 1}, True),
    ],
)
def test_arguments(how, wanted, made, passed):
    context = did(ToolCall("a", made))
    assert graded(expects(ExpectedCall("a", wanted), args_match=how), context).passed is passed
    assert graded(expects(ExpectedCall("a", wanted, how), args_match="ignore"), context).passed is passed


def test_a_time_that_nobody_knows_errs_the_grade():
    grade = graded(expects(ExpectedCall("a", max_duration_ms=10)), did("a"))
    assert grade.error.code == "no-data"


@pytest.mark.parametrize("mode", ["exact", "subset"])
def test_an_empty_list_forbids_every_call(mode):
    assert graded(expects(mode=mode), did()).passed
    assert not graded(expects(mode=mode), did("a")).passed


def test_an_agent_that_called_no_tool_fails():
    grade = graded(expects("a"), did())
    assert (grade.error, grade.passed, grade.checks[0].evidence) == (None, False, "no tool was called")


@pytest.mark.parametrize(
    ("wanted", "made", "score"),
    [
        ("a, b", "ab", 1.0),
        ("a, b", "aab", 1.0),
        (("a", "b"), "a", 2 / 3),
        (("a", "b"), "abxy", 2 / 3),
        (("a",), "x", 0.0),
        (("a",), "", 0.0),
    ],
)
def test_f1_over_the_sets_of_names(wanted, made, score):
    grade = graded(ToolCallF1(wanted), did(*made))
    assert grade.score == pytest.approx(score)
    assert grade.passed is (score == 1.0)
    assert graded(ToolCallF1(wanted, 0.6), did(*made)).passed is (score >= 0.6)


@pytest.mark.parametrize(
    ("assertion", "path"),
    [
        (ToolTrajectory("in_order", expected=(ExpectedCall("a"),), args_match=("a[",)), ("args_match", 0)),
        (ExpectedCall("a", {}, ("a[",)), ("args_match", 0)),
        (ExpectedCall("a", {"q": 1}, ("q", "qq")), ("args_match", 1)),
        (ToolTrajectory("in_order", expected=(ExpectedCall("a", {"q": 1}),), args_match=("qq",)), ("args_match", 0)),
        (ToolCallF1(" , "), ("value",)),
    ],
)
def test_faults(assertion, path):
    assert [fault.path for fault in assertion.validate()] == [path]
