import pytest

from agentv.assertions.measured import Cost, ExecutionMetrics, FinishReason, Latency, TokenUsageWithin
from agentv.model.values.message import Message, ToolCall
from agentv.model.values.usage import TokenUsage
from doubles.nested_grading import answer, graded, issues

CALL = ToolCall("search", {"q": "x"})
TRANSCRIPT = (Message("assistant", "", tool_calls=(CALL, CALL)), Message("tool", "hit"), Message("assistant", "done"))
KNOWN = answer(
    "done",
    messages=TRANSCRIPT,
    token_usage=TokenUsage(input=100, output=20, total=130),
    cost_usd=0.02,
    duration_ms=1500.5,
    finish_reason="end_turn",
    time_to_first_token_ms=300.25,
)
UNKNOWN = answer("done")


@pytest.mark.parametrize(
    ("assertion", "passed"),
    [
        (Latency(1500.5), True),
        (Latency(1500), False),
        (Latency(first_token_ms=300.25), True),
        (Latency(first_token_ms=300), False),
        (Cost(0.02), True),
        (Cost(0.019), False),
        (TokenUsageWithin(max_total=130), True),
        (TokenUsageWithin(max_total=129), False),
        (TokenUsageWithin(max_input=100, max_output=19), False),
        (ExecutionMetrics(max_tool_calls=2), True),
        (ExecutionMetrics(max_tool_calls=1), False),
        (ExecutionMetrics(max_llm_calls=1), False),
        (ExecutionMetrics(max_tokens=130, max_cost_usd=0.02, max_duration_ms=2000), True),
        (ExecutionMetrics(max_tokens=129, max_cost_usd=0.02, max_duration_ms=2000), False),
        (FinishReason("end_turn"), True),
        (FinishReason("stop"), True),
        (FinishReason("end-turn"), True),
        (FinishReason(("length", "stop")), True),
        (FinishReason("length"), False),
    ],
    ids=repr,
)
def test_bounds_are_inclusive(assertion, passed):
    grade = graded(assertion, KNOWN)
    assert grade.error is None
    assert grade.passed is passed
    assert grade.counted == float(passed)


@pytest.mark.parametrize(
    "assertion",
    [
        Latency(1e9),
        Latency(first_token_ms=1e9),
        Cost(1e9),
        TokenUsageWithin(max_total=10**9),
        TokenUsageWithin(max_input=10**9),
        ExecutionMetrics(max_tool_calls=10**9),
        ExecutionMetrics(max_llm_calls=10**9),
        ExecutionMetrics(max_cost_usd=1e9),
        ExecutionMetrics(max_duration_ms=1e9),
        FinishReason("stop"),
    ],
    ids=repr,
)
def test_without_the_data_there_is_no_verdict(assertion):
    grade = graded(assertion, UNKNOWN)
    assert (grade.error.code, grade.passed) == ("no-data", False)
    assert grade.negated().error is grade.error


def test_names_of_checks_on_latency_tell_the_two_times_apart():
    assert (Latency(500).label(), Latency(first_token_ms=90).label()) == ("≤ 500 ms", "time to first token ≤ 90 ms")
    assert issues(Latency()) == [("missing-value", ())]
    assert "stream: true" in graded(Latency(first_token_ms=9), UNKNOWN).error.message


def test_a_missing_total_is_the_sum_of_what_is_known():
    assert graded(TokenUsageWithin(max_total=7), answer("", token_usage=TokenUsage(input=3, output=4))).passed
    assert not graded(TokenUsageWithin(max_total=6), answer("", token_usage=TokenUsage(input=3, output=4))).passed
    assert graded(TokenUsageWithin(max_total=9), answer("", token_usage=TokenUsage(input=3))).error.code == "no-data"


def test_the_score_is_the_share_of_the_bounds_that_hold_and_the_verdict_is_what_counts():
    grade = graded(ExecutionMetrics(max_tokens=1, max_cost_usd=1.0, max_duration_ms=9999.0), KNOWN)
    assert (grade.score, grade.passed, grade.counted) == (pytest.approx(2 / 3), False, 0.0)
    assert grade.negated().counted == 1.0
    assert [(check.text, check.passed, check.evidence) for check in grade.checks] == [
        ("tokens at most 1", False, "130"),
        ("cost at most $1", True, "$0.02"),
        ("duration at most 9999 ms", True, "1500.5 ms"),
    ]


def test_tokens_without_a_price_are_the_reason_why_a_cost_cannot_be_judged():
    for subject in (Cost(5), ExecutionMetrics(max_cost_usd=5)):
        grade = graded(subject, answer("", token_usage=TokenUsage(1, 2, 3)))
        assert (grade.error.code, "is not known" in grade.error.message) == ("no-data", True)
