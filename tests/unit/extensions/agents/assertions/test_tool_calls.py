import pytest

from agentv.extensions.agents.assertions.tool_calls import (
    ExpectedCall,
    PermissionDenials,
    ToolCallF1,
    ToolErrors,
    ToolState,
    ToolTrajectory,
    Turns,
)
from agentv.model.run.context import AssertionContext
from agentv.model.values.message import ToolCall
from agentv.model.values.trace import MessageStep, PermissionStep, ToolCallStep, Trace, UsageStep
from agentv.registry.fields import LoadedJson
from doubles.grading import grade
from doubles.nested_grading import answer_after_calls, graded


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
    grade = graded(expects("a", "b", mode=mode), answer_after_calls(*made))
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
    context = answer_after_calls(ToolCall("a", made))
    assert graded(expects(ExpectedCall("a", wanted), args_match=how), context).passed is passed
    assert graded(expects(ExpectedCall("a", wanted, how), args_match="ignore"), context).passed is passed


def test_a_time_that_nobody_knows_errs_the_grade():
    grade = graded(expects(ExpectedCall("a", max_duration_ms=10)), answer_after_calls("a"))
    assert grade.error.code == "no-data"


@pytest.mark.parametrize("mode", ["exact", "subset"])
def test_an_empty_list_forbids_every_call(mode):
    assert graded(expects(mode=mode), answer_after_calls()).passed
    assert not graded(expects(mode=mode), answer_after_calls("a")).passed


def test_an_agent_that_called_no_tool_fails():
    grade = graded(expects("a"), answer_after_calls())
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
    grade = graded(ToolCallF1(wanted), answer_after_calls(*made))
    assert grade.score == pytest.approx(score)
    assert grade.passed is (score == 1.0)
    assert graded(ToolCallF1(wanted, 0.6), answer_after_calls(*made)).passed is (score >= 0.6)


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


TRACE = Trace(
    (
        MessageStep("user", "do it"),
        UsageStep("m"),
        ToolCallStep("shell", {}, status="failed"),
        ToolCallStep("shell", {}, error="no such file", status="unknown"),
        ToolCallStep("edit", {}, status="completed"),
        PermissionStep("edit", allowed=True),
        PermissionStep("shell", allowed=False),
        UsageStep("m"),
        UsageStep("small", parent="7"),
        MessageStep("assistant", "done"),
    )
)


@pytest.mark.parametrize(
    ("assertion", "passed", "evidence"),
    [
        (ToolErrors(), False, "2 tool errors: shell 2×"),
        (ToolErrors(2), True, "2 tool errors: shell 2×"),
        (PermissionDenials(), False, "1 permission denial: shell"),
        (PermissionDenials(1), True, "1 permission denial: shell"),
        (Turns(1), False, "2 turns"),
        (Turns(2), True, "2 turns"),
    ],
)
def test_steps_are_counted(assertion, passed, evidence):
    found = grade(assertion, agent_trace=TRACE)
    assert (found.passed, found.checks[0].evidence) == (passed, evidence)


@pytest.mark.parametrize("assertion", [ToolErrors(), PermissionDenials(), Turns(9)])
def test_without_a_trace_they_err(assertion):
    assert grade(assertion).error.code == "no-data"


@pytest.mark.parametrize("least", [ToolErrors(1), PermissionDenials(0), Turns(1)])
@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"partial": "there is no span at all"}, "there is no span at all"),
        ({"source": "tools"}, "only its calls of scripted tools are seen"),
    ],
)
def test_a_partial_trace_shows_that_there_were_too_many_and_not_that_there_were_few(least, facts, why):
    partial = Trace(TRACE.steps, **facts)
    assert grade(least, agent_trace=partial).passed is False
    found = grade(type(least)(9), agent_trace=partial)
    assert (found.error.code, why in found.error.message) == ("no-data", True)


STATE = {"shop": {"orders": {"17": {"status": "refunded", "amount": 5}}, "log": [1, 2]}}


def compared(state, value, **options):
    return ToolState(LoadedJson(value), **options).grade(AssertionContext((), "Done.", tool_state=state))


@pytest.mark.parametrize(
    ("value", "options", "passed"),
    [
        ("refunded", {"path": "orders.17.status"}, True),
        ("shipped", {"path": "orders.17.status"}, False),
        ({"status": "refunded"}, {"path": "orders['17']"}, True),
        ({"status": "refunded"}, {"path": "orders.17", "mode": "equal"}, False),
        ({"orders": {"17": {"amount": 5}}}, {}, True),
        ([1, 2], {"path": "$.log", "server": "shop"}, True),
        (None, {"path": "orders.18"}, False),
    ],
)
def test_it_compares_what_the_functions_kept(value, options, passed):
    assert compared(STATE, value, **options).passed is passed


def test_a_missing_path_is_told_as_any_other():
    assert [compared(STATE, 1, path=path).checks[0].text for path in ("a.b", "log.0")] == ["a.b is 1", "log.0 is 1"]


def test_without_scripted_tools_it_is_an_error():
    for state, options in (({}, {}), ({"a": {}, "b": {}}, {}), ({"a": {}}, {"server": "b"})):
        found = compared(state, "x", **options)
        assert (found.error.code, found.passed) == ("no-tool-state", False)


def test_what_is_wrong_with_the_options():
    assert [one.code for one in ToolState(LoadedJson("x"), path="a..b").validate()] == ["bad-path"]
    assert [one.path for one in ToolState(LoadedJson({})).validate()] == [("value",)]
