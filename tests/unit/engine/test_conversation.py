import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from agentv.engine.conversation import run_conversation, transcript_of
from agentv.engine.trial import is_conversation
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Grade
from agentv.model.run.trial import Trial, TrialResult
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.suite.conversation import Flow, Turn, answer_messages
from agentv.model.suite.suite import Case, Suite, TargetSpec
from agentv.model.values.message import Message, ToolCall
from agentv.model.values.response import Failure, TargetResponse
from agentv.model.values.usage import TokenUsage
from doubles.nested_grading import CallbackAssertion, entry
from doubles.run_contexts import FakeRunContext
from doubles.stores import MemoryStore


class Ticking:
    """A clock that advances one second per reading."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += 1
        return self.now

    def utc(self) -> datetime:
        return datetime(2026, 11, 22, tzinfo=UTC)


@dataclass
class Script:
    """A target that gives its answers in order."""

    answers: list[Any]
    requests: list[Any] = field(default_factory=list)

    def answer(self, request: Any) -> Any:
        self.requests.append(request)
        return self.answers[len(self.requests) - 1]

    async def close(self) -> None:
        return


def looking(seen: list[AssertionContext]) -> AssertionEntry:
    """Return an assertion that records its contexts."""
    return entry(CallbackAssertion(lambda context: seen.append(context) or Grade.of(True, "looked")))


def user(text: str) -> Message:
    return Message("user", text)


def assistant(text: str, *calls: ToolCall) -> Message:
    return Message("assistant", text, tool_calls=calls)


def trial_of(*turns: Turn, opening: tuple[Message, ...] = (), history: tuple[Message, ...] = (), **given: Any) -> Trial:
    case = Case("case", opening, given.pop("assertions", ()), turns=turns, **given)
    return Trial(Suite("s", (case,)), case, TargetSpec("t", "x", None), 0.8, 7.0, key="key-1", history=history)


def run(trial: Trial, *answers: Any) -> tuple[TrialResult, Script, MemoryStore]:
    target, store = Script(list(answers)), MemoryStore()
    run_context = FakeRunContext(lambda _: target, store, Ticking())
    return asyncio.run(run_conversation(trial, run_context)), target, store


def test_every_turn_is_asked_with_the_transcript_so_far():
    spoken = (assistant("", ToolCall("look_up", {"id": 1}, "x")), Message("tool", "found"), assistant("One"))
    trial = trial_of(Turn((user("a"),)), Turn((user("b"),)), opening=(Message("system", "Be kind"),))
    _, target, _ = run(trial, TargetResponse("One", spoken), TargetResponse("Two"))
    first = (Message("system", "Be kind"), user("a"))
    assert [request.messages for request in target.requests] == [first, (*first, *spoken, user("b"))]
    assert [request.turn for request in target.requests] == [1, 2]
    assert [request.timeout_s for request in target.requests] == [7.0, 7.0]
    assert target.requests[0].prompt == "system:\nBe kind\n\nuser:\na"


def test_a_turn_sees_its_own_answer_and_the_case_the_whole():
    of_turn: list[AssertionContext] = []
    of_case: list[AssertionContext] = []
    expected = (assistant("two"),)
    trial = trial_of(
        Turn((user("a"),)),
        Turn((user("b"),), (looking(of_turn),), "counts", expected),
        assertions=(looking(of_case),),
        criteria="is kind",
        expected_output=expected,
    )
    run(trial, TargetResponse("One", cost_usd=0.5), TargetResponse("Two", cost_usd=0.25, finish_reason="stop"))
    (turn,), (whole,) = of_turn, of_case
    assert (turn.output, turn.criteria, turn.expected_output) == ("Two", "counts", expected)
    assert turn.input == (user("a"), assistant("One"), user("b"))
    assert turn.messages == (assistant("Two"),)
    assert turn.cost_usd == 0.25
    assert (whole.output, whole.criteria, whole.expected_output) == ("Two", "is kind", expected)
    assert whole.input == turn.input
    assert whole.messages == (user("a"), assistant("One"), user("b"), assistant("Two"))
    assert (whole.cost_usd, whole.duration_ms, whole.finish_reason) == (0.75, 2000.0, "stop")


@pytest.mark.parametrize(
    ("broken", "code", "output"),
    [(Failure("timeout", "late"), "timeout", None), (TargetResponse(" "), "empty-output", " ")],
)
def test_a_turn_without_an_answer_errs_the_trial_and_ends_it(broken, code, output):
    grading = looking([])
    trial = trial_of(*[Turn((user(name),), (grading,)) for name in "abc"], assertions=(grading,))
    result, target, store = run(trial, TargetResponse("One"), broken)
    assert len(target.requests) == 2
    assert (result.status, result.score, result.error.code) == ("errored", None, code)
    assert result.error.message.startswith("turn 2: ")
    assert len(result.scores) == 1
    assert (result.output, result.attempts) == (output, 2)
    assert result.input == (user("a"), assistant("One"), user("b"))
    assert [answer.output for answer in result.turns] == ["One", *([output] if output else [])]
    assert store.answers[0][1].output == "One"


def test_every_answer_is_kept_under_a_key_of_its_own():
    _, _, store = run(trial_of(Turn((user("a"),)), Turn((user("b"),))), TargetResponse("One"), TargetResponse("Two"))
    assert [answer.output for _, answer in store.answers] == ["One", "Two"]
    assert len(dict(store.answers)) == 2


def test_what_was_spent_is_summed_and_unknown_stays_unknown():
    known = TargetResponse("x", token_usage=TokenUsage(1, 2, 3), cost_usd=0.0, duration_ms=5.0)
    partly = TargetResponse("x", token_usage=TokenUsage(10, None, 30), duration_ms=7.0)
    two = (Turn((user("a"),)), Turn((user("b"),)))
    result, _, _ = run(trial_of(*two), known, known)
    assert (result.token_usage, result.cost_usd, result.duration_ms) == (TokenUsage(2, 4, 6), 0.0, 10.0)
    result, _, _ = run(trial_of(*two), known, partly)
    assert (result.token_usage, result.cost_usd, result.duration_ms) == (TokenUsage(11, None, 33), None, 12.0)
    result, _, _ = run(trial_of(*two), known, replace(known, token_usage=None))
    assert result.token_usage is None


def test_a_case_of_a_conversation_goes_on_from_its_history_without_the_suites_opening():
    seen: list[AssertionContext] = []
    history = (Message("system", "Be kind"), user("a"), assistant("One"))
    trial = trial_of(
        opening=(Message("system", "Be kind"), user("b")),
        history=history,
        preamble=1,
        conversation_id="x",
        assertions=(looking(seen),),
    )
    assert is_conversation(trial)
    result, target, store = run(trial, TargetResponse("Two"))
    assert target.requests[0].messages == (*history, user("b"))
    assert target.requests[0].turn is None
    assert (result.status, result.input) == ("passed", (*history, user("b")))
    assert seen[0].messages == (assistant("Two"),)
    assert len(store.answers) == 1
    assert transcript_of(trial, result.turns) == (*history, user("b"), assistant("Two"))


ASKED = (Message("system", {"rules": []}), user("a"))


@pytest.mark.parametrize(
    ("reported", "added"),
    [
        ((), (assistant("One"),)),
        ((assistant("Thinking"), assistant("One")), (assistant("Thinking"), assistant("One"))),
        ((Message("system", "{}"), user("a"), assistant("One")), (assistant("One"),)),
        ((user("a"), assistant("One")), (user("a"), assistant("One"))),
        ((Message("system", "{}"), user("b"), assistant("One")),) * 2,
    ],
)
def test_what_a_target_was_asked_stands_in_the_transcript_once(reported, added):
    assert answer_messages(TargetResponse("One", reported), ASKED) == added


def test_a_window_leaves_out_a_result_whose_call_it_does_not_show():
    call = Message("assistant", "", tool_calls=(ToolCall("look", {}),))
    spoken = [Message("system", "s"), Message("user", "q"), call, Message("tool", "found"), Message("assistant", "a")]
    turn = (Message("user", "next"),)
    whole = Flow().messages_for(spoken, turn)
    assert [one.role for one in whole] == ["system", "user", "assistant", "tool", "assistant", "user"]
    shown = [one.role for one in Flow(window_size=2).messages_for(spoken, turn)]
    assert shown == [*("system", "assistant", "tool", "assistant"), "user"]
    spoken.append(Message("assistant", "b"))
    assert [one.text for one in Flow(window_size=2).messages_for(spoken, turn)] == ["s", "a", "b", "next"]
    assert [one.text for one in Flow(window_size=1).messages_for(spoken, turn * 3)] == ["s", "next", "next", "next"]
