from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.model.conversation import Turn
from agentv.model.grade import Check, Grade
from agentv.model.message import DocumentBlock, FileBlock, ImageBlock, Message, TextBlock, ToolCall
from agentv.model.redaction import Redactor
from agentv.model.response import Attempt, CallFailure, Failure, TargetResponse
from agentv.model.trial import Score
from doubles.trials import entry, finished, trial

SECRET = "sk-5uper"
TOLD = f"the key is {SECRET}!"
KEPT = "the key is [redacted]!"


@pytest.fixture
def redactor():
    return Redactor([SECRET])


def test_takes_every_occurrence_out(redactor):
    assert redactor.redact(f"{SECRET} and {TOLD}") == f"[redacted] and {KEPT}"


def test_a_longer_secret_goes_before_one_that_it_holds():
    assert Redactor(["abcd", "abcdefgh"]).redact("abcdefgh abcd") == "[redacted] [redacted]"


@pytest.mark.parametrize("secret", ["", "abc", "    ", " ab"])
def test_short_and_blank_values_are_left_alone(secret):
    redactor = Redactor([secret])
    assert not redactor
    assert redactor.redact(f"x{secret}y") == f"x{secret}y"


def test_finds_a_value_without_the_line_end_that_came_with_it():
    assert Redactor([f"{SECRET}\n"]).redact(TOLD) == KEPT


@given(st.text(min_size=4).filter(lambda secret: secret.strip() and len(secret.strip()) >= 4))
def test_finds_a_value_in_text_in_json_and_in_json_within_json(secret):
    redactor = Redactor([secret])
    for told in (secret, json.dumps(secret), json.dumps(secret, ensure_ascii=False)):
        assert "[redacted]" in redactor.redact(f"<{told}>")
        assert redactor.found_in(json.dumps({"output": told}, ensure_ascii=False).encode(errors="replace"))


def test_without_secrets_nothing_is_looked_at():
    redactor = Redactor()
    assert not redactor
    assert not redactor.found_in(b"anything")
    value = {"a": [SECRET]}
    assert redactor.redact_json(value) is value


def test_data_is_redacted_to_its_depth_keys_included():
    data = {SECRET: [{"a": TOLD}, (TOLD, 1, None, True, 2.5)]}
    assert Redactor([SECRET]).redact_json(data) == {"[redacted]": [{"a": KEPT}, [KEPT, 1, None, True, 2.5]]}


def test_a_number_that_is_the_secret_goes_too():
    assert Redactor(["1234"]).redact_json([1234, 12345, 1234.0]) == ["[redacted]", 12345, 1234.0]


def test_an_answer_is_redacted_in_every_field(redactor):
    call = ToolCall(TOLD, {"a": TOLD}, TOLD)
    blocks = (
        TextBlock(TOLD),
        FileBlock(TOLD, TOLD, TOLD),
        ImageBlock(TOLD, TOLD),
        ImageBlock(TOLD),
        DocumentBlock(TOLD, TOLD, "0"),
    )
    messages = (Message("user", TOLD, TOLD, (call,)), Message("tool", blocks), Message("tool", {"a": TOLD}))
    answer = redactor.redact_answer(TargetResponse(TOLD, messages, finish_reason=TOLD, metadata={"a": TOLD}))
    assert SECRET not in repr(answer)
    assert repr(answer).count(KEPT) == 18
    assert answer.messages[1].content[1] == FileBlock(KEPT, KEPT, KEPT)


def test_an_answer_without_text_stays_without(redactor):
    assert redactor.redact_answer(TargetResponse(None)) == TargetResponse(None)


def test_a_result_is_redacted_in_all_that_is_written_of_it(redactor):
    subject = trial(TOLD, target=TOLD, suite=TOLD, tags=(TOLD,), metadata={"a": TOLD}, key="k" * 64)
    scores = (
        Score(entry(looks_for=TOLD), Grade(0.0, False, (Check(TOLD, False, TOLD),), TOLD, {"a": TOLD}), 1.0),
        Score(entry(), Grade.errored("broken", TOLD), 1.0),
    )
    result = finished(
        "errored",
        trial=subject,
        scores=scores,
        error=Failure("broken", TOLD),
        output=TOLD,
        input=(Message("user", TOLD),),
        messages=(Message("assistant", TOLD),),
        metadata={"a": TOLD},
        turns=(TargetResponse(TOLD, (Message("assistant", TOLD),), attempts=(Attempt("timeout", TOLD, 1.0),)),),
        retries=(Attempt("timeout", TOLD, 1.0, 2.0),),
    )
    result = replace(
        result,
        trial=replace(
            subject,
            case=replace(
                subject.case,
                conversation_id=TOLD,
                expected_output=(Message("assistant", TOLD),),
                turns=(Turn((), expected_output=(Message("assistant", TOLD),)),),
            ),
        ),
    )
    clean = redactor.redact_result(result)
    assert clean.scores[0].entry.name == f"contains: {KEPT}"
    assert clean.trial.case.id == clean.trial.target.name == clean.trial.suite.name == KEPT
    assert clean.trial.case.tags == (KEPT,)
    assert clean.error == Failure("broken", KEPT)
    assert clean.scores[1].grade.error == Failure("broken", KEPT)
    assert clean.scores[0].grade.checks == (Check(KEPT, False, KEPT),)
    shown = (
        clean.output,
        clean.input,
        clean.messages,
        clean.metadata,
        clean.turns,
        clean.retries,
        clean.trial.case.conversation_id,
        clean.trial.case.metadata,
        clean.trial.case.expected_output,
        [turn.expected_output for turn in clean.trial.case.turns],
        clean.scores[0].grade,
    )
    assert SECRET not in repr(shown)


def test_attempts_behind_a_failure_are_redacted_too(redactor):
    failed = CallFailure("http-status", TOLD, status=500, attempts=(Attempt("timeout", TOLD, 1.0),))
    clean = redactor.redact_result(finished("errored", error=failed)).error
    assert clean == CallFailure("http-status", KEPT, status=500, attempts=(Attempt("timeout", KEPT, 1.0),))


def test_words_of_the_program_are_no_secrets():
    clean = Redactor(["passed", "user", "broken"]).redact_result(finished("errored", error=Failure("broken", "x")))
    assert clean.status == "errored"
    assert clean.error == Failure("broken", "x")
    assert clean.input[0].role == "user"
