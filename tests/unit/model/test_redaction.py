import base64
import json
import string
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from msgspec.structs import replace

from agentv.errors import Diagnostic
from agentv.model.redaction import Redactor, forms_of, is_searched
from agentv.model.run.grade import AskedJudge, Check, Grade
from agentv.model.run.trial import Score
from agentv.model.suite.conversation import Turn
from agentv.model.suite.workspace import Variant
from agentv.model.values.message import DocumentBlock, FileBlock, ImageBlock, Message, TextBlock, ToolCall
from agentv.model.values.response import Attempt, CallFailure, Failure, TargetResponse
from agentv.model.values.retrieved import RetrievedText
from agentv.model.values.trace import MessageStep, Trace
from agentv.model.values.values import Span
from agentv.store.files.encoding import to_json
from agentv.store.rows.rows import row_of
from doubles.trials import ROOT, entry, finished, trial

SECRET = "sk-5uper"
TOLD = f"the key is {SECRET}!"
KEPT = "the key is [redacted]!"
CONTEXT = (RetrievedText(TOLD, TOLD, 0.5, {"a": TOLD}),)


@pytest.fixture
def redactor():
    return Redactor([SECRET])


def test_takes_every_occurrence_out(redactor):
    assert redactor.redact(f"{SECRET} and {TOLD}") == f"[redacted] and {KEPT}"


def test_a_longer_secret_goes_before_one_that_it_holds():
    assert Redactor(["abcd1234", "abcd1234efgh"]).redact("abcd1234efgh abcd1234") == "[redacted] [redacted]"


@pytest.mark.parametrize(
    "secret",
    [
        *("", "abc", "    ", " ab", "test", "ollama", "1234567", " 1234567\n", "        ", "********"),
        *("localhost", "Disabled", "UNDEFINED", "placeholder", "not-needed", "Not-Needed", "your-api-key"),
    ],
)
def test_a_value_that_cannot_be_told_from_ordinary_text_is_left_alone(secret):
    redactor = Redactor([secret])
    assert not redactor
    assert redactor.redact(f"x{secret}y") == f"x{secret}y"


def test_finds_a_value_without_the_line_end_that_came_with_it():
    assert Redactor([f"{SECRET}\n"]).redact(TOLD) == KEPT


@given(st.text(min_size=8).filter(is_searched))
def test_finds_a_value_in_text_and_in_json(secret):
    redactor = Redactor([secret])
    for told in (secret, json.dumps(secret), json.dumps(secret, ensure_ascii=False)):
        assert "[redacted]" in redactor.redact(f"<{told}>")
        assert redactor.found_in(json.dumps({"output": told}, ensure_ascii=False).encode(errors="replace"))


LETTERS = string.ascii_letters + string.digits + "+/=&<\"'%é _-.\\\t\r\n"
SECRETS = st.text(LETTERS, min_size=8, max_size=80).filter(is_searched)


@given(SECRETS, st.tuples(st.text("ab", max_size=4), st.text("ab", max_size=4)))
def test_no_encoding_of_a_secret_stays(secret, around):
    data, (before, behind) = secret.strip().encode(), around
    padded = before.encode() + data + behind.encode()
    redactor = Redactor([secret])
    for told in (
        *(secret, json.dumps(secret), json.dumps(secret, ensure_ascii=False)),
        *(padded.hex(), padded.hex().upper(), quote(data), quote(data, safe=""), quote_plus(data)),
        *(base64.b64encode(padded).decode(), base64.urlsafe_b64encode(padded).decode()),
    ):
        clean = redactor.redact(f"[{told}]")
        assert "[redacted]" in clean
        assert told not in clean
        assert redactor.spans_in(f"[{told}]")
        assert redactor.found_in(json.dumps({"output": told}, ensure_ascii=False).encode())


@pytest.mark.parametrize(
    ("secret", "text"),
    [
        ("sk-ant-api03-Xk93mPq2Lw81", "Keys begin with sk-ant-api03- there, and this one ends with 93mPq2Lw81"),
        ("correct horse battery staple", "correct horse battery stap…"),
        ("https://login.example.com/v1/Xk93mPq2", "See https://login.example.com/v1/help"),
    ],
)
def test_a_part_of_a_secret_is_ordinary_text(secret, text):
    redactor = Redactor([secret])
    assert redactor.redact(text) == text
    assert redactor.redact(f"{text} {secret}.") == f"{text} [redacted]."
    assert redactor.spans_in(f"{text} {secret}.") == [(len(text) + 1, len(text) + 1 + len(secret))]
    assert not any(redactor.found_in(part.encode()) for part in (text, secret[1:], secret[:-1]))


@pytest.mark.parametrize("before", range(3))
def test_every_character_of_base64_that_a_secret_determines_is_redacted(before):
    data = b"pass4word-12"  # 12 bytes, so that base64 needs no padding
    low, high = (base64.b64encode(edge * before + data + edge * (6 - before)).decode() for edge in (b"\0", b"\xff"))
    same = [place for place, (one, other) in enumerate(zip(low, high, strict=True)) if one == other]
    first, end = same[0], same[-1] + 1
    redactor = Redactor([data.decode()])
    assert redactor.redact(low) == f"{low[:first]}[redacted]{low[end:]}"
    assert redactor.redact(high) == f"{high[:first]}[redacted]{high[end:]}"


def test_half_a_character_in_a_secret_is_no_error():
    redactor = Redactor(["pass\ud800word-1234"])
    assert redactor.redact("x pass\ud800word-1234") == "x [redacted]"
    assert redactor.found_in(b'{"output": "x pass\\ud800word-1234"}')
    assert redactor.redact(f"x {b'pass?word-1234'.hex()}") == "x [redacted]"


def test_what_is_wrong_in_a_file_is_said_without_secrets(redactor):
    found = Diagnostic("no-target", TOLD, Span("a.yaml", 1, 1, 1, 2), hint=TOLD, notes=(TOLD, "b"))
    wanted = Diagnostic("no-target", KEPT, Span("a.yaml", 1, 1, 1, 2), hint=KEPT, notes=(KEPT, "b"))
    assert redactor.redact_diagnostic(found) == wanted
    assert redactor.redact_diagnostic(replace(found, hint=None)).hint is None


def test_without_secrets_nothing_is_looked_at():
    redactor = Redactor()
    assert not redactor
    assert redactor.spans_in(TOLD) == []
    assert redactor.redacted(TargetResponse(TOLD, context=CONTEXT)) == TargetResponse(TOLD, context=CONTEXT)
    assert not redactor.found_in(b"anything")
    value = {"a": [SECRET]}
    assert redactor.redact_json(value) is value


def test_data_is_redacted_to_its_depth_keys_included():
    data = {SECRET: [{"a": TOLD}, (TOLD, 1, None, True, 2.5)]}
    assert Redactor([SECRET]).redact_json(data) == {"[redacted]": [{"a": KEPT}, [KEPT, 1, None, True, 2.5]]}


def test_a_number_that_is_the_secret_goes_too():
    assert Redactor(["1234567890123"]).redact_json([1234567890123, 1234567, 0.5]) == ["[redacted]", 1234567, 0.5]


def test_an_answer_is_redacted_in_every_field(redactor):
    call = ToolCall(TOLD, {"a": TOLD}, TOLD, 1.0, TOLD, TOLD)
    blocks = (
        TextBlock(TOLD),
        FileBlock(TOLD, TOLD, TOLD),
        ImageBlock(TOLD, TOLD),
        ImageBlock(TOLD),
        DocumentBlock(TOLD, TOLD, "0"),
        DocumentBlock(TOLD, TOLD, "", TOLD),
        ImageBlock("a.png", "/a.png", "0"),
        DocumentBlock("a.pdf", "/a.pdf", "0"),
    )
    messages = (Message("user", TOLD, TOLD, (call,)), Message("tool", blocks), Message("tool", {"a": TOLD}))
    answer = redactor.redacted(
        TargetResponse(TOLD, messages, finish_reason=TOLD, metadata={"a": TOLD}, context=CONTEXT, ignored=(TOLD,))
    )
    assert SECRET not in repr(answer)
    assert answer == TargetResponse(
        KEPT,
        (
            Message("user", KEPT, KEPT, (ToolCall(KEPT, {"a": KEPT}, KEPT, 1.0, KEPT, KEPT),)),
            Message(
                "tool",
                (
                    TextBlock(KEPT),
                    FileBlock(KEPT, KEPT, KEPT),
                    ImageBlock(KEPT, KEPT),
                    ImageBlock(KEPT),
                    DocumentBlock(KEPT, KEPT, "0"),
                    DocumentBlock(KEPT, KEPT, "", KEPT),
                    ImageBlock("a.png", "/a.png", "0"),
                    DocumentBlock("a.pdf", "/a.pdf", "0"),
                ),
            ),
            Message("tool", {"a": KEPT}),
        ),
        finish_reason=KEPT,
        metadata={"a": KEPT},
        context=(RetrievedText(KEPT, KEPT, 0.5, {"a": KEPT}),),
        ignored=(KEPT,),
    )


def test_a_result_is_redacted_in_all_that_is_written_of_it(redactor):
    subject = trial(TOLD, target=TOLD, suite=TOLD, tags=(TOLD,), metadata={"a": TOLD}, key="k" * 64)
    placed = structs.replace(entry(looks_for=TOLD), span=Span(TOLD, 1, 1, 1, 2))
    scores = (
        Score(placed, Grade(0.0, False, (Check(TOLD, False, TOLD),), TOLD, {"a": TOLD}), 1.0),
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
        context=CONTEXT,
        response_metadata={"a": TOLD},
        turns=(TargetResponse(TOLD, (Message("assistant", TOLD),), attempts=(Attempt("timeout", TOLD, 1.0),)),),
        retries=(Attempt("timeout", TOLD, 1.0, 2.0),),
        notes=(TOLD,),
    )
    result = structs.replace(
        result,
        trial=structs.replace(
            subject,
            variant=Variant(TOLD),
            case=structs.replace(
                subject.case,
                prompt_id=TOLD,
                cluster_key=TOLD,
                cluster=TOLD,
                conversation_id=TOLD,
                expected_output=(Message("assistant", TOLD),),
                turns=(Turn((), expected_output=(Message("assistant", TOLD),)),),
            ),
        ),
    )
    clean = redactor.redact_result(result)
    assert clean.scores[0].entry.name == f"contains: {KEPT}"
    assert clean.trial.case.id == clean.trial.target.name == clean.trial.suite.name == KEPT
    assert clean.scores[0].entry.span == Span(KEPT, 1, 1, 1, 2)
    assert clean.trial.case.tags == (KEPT,)
    assert clean.error == Failure("broken", KEPT)
    assert clean.scores[1].grade.error == Failure("broken", KEPT)
    assert clean.scores[0].grade.checks == (Check(KEPT, False, KEPT),)
    shown = (
        clean.output,
        clean.input,
        clean.messages,
        clean.metadata,
        clean.context,
        clean.response_metadata,
        clean.turns,
        clean.retries,
        clean.trial.case.conversation_id,
        clean.trial.case.metadata,
        clean.trial.case.expected_output,
        [turn.expected_output for turn in clean.trial.case.turns],
        clean.scores[0].grade,
    )
    assert SECRET not in repr(shown)
    row = to_json(row_of(clean, ROOT))
    assert SECRET.encode() not in row
    assert json.loads(row)["cluster"] == json.loads(row)["prompt_id"] == json.loads(row)["variant"] == KEPT


def test_attempts_behind_a_failure_are_redacted_too(redactor):
    failed = CallFailure("http-status", TOLD, status=500, attempts=(Attempt("timeout", TOLD, 1.0),))
    clean = redactor.redact_result(finished("errored", error=failed)).error
    assert clean == CallFailure("http-status", KEPT, status=500, attempts=(Attempt("timeout", KEPT, 1.0),))


def test_words_of_the_program_stay_though_a_secret_is_spelled_like_them():
    error = Failure("http-status", "http-status 500")
    clean = Redactor(["http-status"]).redact_result(finished("errored", error=error))
    assert clean.error == Failure("http-status", "[redacted] 500")


def test_work_stays_as_it_is_until_it_is_stored(redactor):
    trace = Trace((MessageStep("assistant", TOLD),))
    clean = redactor.redacted(TargetResponse(TOLD, trace=trace, logs={"stdout": TOLD.encode()}))
    assert clean.output == KEPT
    assert clean.trace is trace
    assert clean.logs == {"stdout": TOLD.encode()}


def test_a_rubric_with_a_secret_is_redacted_and_its_hash_tells_nothing(redactor):
    told = AskedJudge(TOLD, TOLD, TOLD, "a" * 64, "b" * 64)
    asked = redactor.redacted(Grade(1.0, passed=True, asked_judge=told)).asked_judge
    assert (asked.judge, asked.model, asked.rubric) == (KEPT, KEPT, KEPT)
    assert asked.rubric_sha256 != told.rubric_sha256
    plain = AskedJudge("judge", "openai:small", "is polite", "a" * 64, "b" * 64)
    assert redactor.redacted(Grade(1.0, passed=True, asked_judge=plain)).asked_judge == plain


def test_places_in_an_answer_go_if_a_secret_in_it_moved_them(redactor):
    found = finished(output="ok", scores=[Score(entry(), Grade(1.0, True, (Check("x", True, None, ((0, 2),)),)), 1.0)])
    assert redactor.redact_result(found).scores[0].grade.checks[0].spans == ((0, 2),)
    moved = redactor.redact_result(structs.replace(found, output=f"{SECRET} ok"))
    assert moved.scores[0].grade.checks[0].spans == ()


def test_values_that_servers_without_keys_are_given_are_no_secrets():
    placeholders = ["no-key-required", "none-needed", "not-a-key", "not-needed", "not-required", "not-used"]
    placeholders += ["no_key_required", "not_needed", "not_required", "not_used", "lm-studio", "lm_studio"]
    placeholders += ["your-api-key", "your_api_key", "plaCeholder", " NOT-NEEDED\n"]
    assert [one for one in placeholders if is_searched(one)] == []


def test_a_secret_has_eight_characters_and_is_no_single_short_word():
    found = {one: is_searched(one) for one in ("abcd1234", "01010101", "horse battery", "horsebattery", "horseBattery")}
    assert [one for one, searched in found.items() if not searched] == []
    left = ["abcd123", "00000000", "hippopotami", "Hippopotami", "HIPPOPOTAMI", "localhost"]
    assert [one for one in left if is_searched(one)] == []


def test_a_secret_is_found_as_json_of_any_writer_has_it():
    assert {'a/b"c-d-e', 'a/b\\"c-d-e', 'a\\/b\\"c-d-e'} <= forms_of('a/b"c-d-e')
