import pytest

from agentv.extensions.agents.assertions.tool_calls import PermissionDenials, ToolErrors, Turns
from agentv.model.values.trace import MessageStep, PermissionStep, ToolCallStep, Trace, UsageStep
from doubles.grading import grade

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
def test_a_partial_trace_shows_that_there_were_too_many_and_not_that_there_were_few(least):
    partial = Trace(TRACE.steps, partial="there is no span at all")
    assert grade(least, agent_trace=partial).passed is False
    found = grade(type(least)(9), agent_trace=partial)
    assert (found.error.code, "there is no span at all" in found.error.message) == ("no-data", True)
