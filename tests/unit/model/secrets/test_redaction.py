from __future__ import annotations

import base64
import html
import json
import re
import string
from dataclasses import replace
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from msgspec import structs

from agentv.assertions.evidence import excerpt
from agentv.errors import Diagnostic
from agentv.model.run.grade import AskedJudge, Check, Grade
from agentv.model.run.trial import Score
from agentv.model.secrets.redaction import Redactor
from agentv.model.secrets.secret_forms import encoded_forms, is_searched, written_forms
from agentv.model.suite.conversation import Turn
from agentv.model.suite.workspace import Variant
from agentv.model.values.message import DocumentBlock, FileBlock, ImageBlock, Message, TextBlock, ToolCall
from agentv.model.values.response import Attempt, CallFailure, Failure, TargetResponse
from agentv.model.values.retrieved import RetrievedText
from agentv.model.values.span import Span
from agentv.store.files.encoding import to_json
from agentv.store.rows.rows import RelativePaths, row_of
from agentv.user_code.excerpts import head, tail
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
    redactor = Redactor(["abcd1234", "abcd1234efgh"])
    assert redactor.redact("abcd1234efgh abcd1234") == "[redacted] [redacted]"


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
def test_finds_a_value_in_text_in_json_and_in_json_within_json(secret):
    redactor = Redactor([secret])
    for told in (secret, json.dumps(secret), json.dumps(secret, ensure_ascii=False)):
        assert "[redacted]" in redactor.redact(f"<{told}>")
        assert redactor.found_in(json.dumps({"output": told}, ensure_ascii=False).encode(errors="replace"))


LETTERS = string.ascii_letters + string.digits + "+/=&<\"'%é _-.\\\t\r\n"
SECRETS = st.text(LETTERS, min_size=8, max_size=80).filter(is_searched)
KEYS = st.text(string.ascii_letters + string.digits, min_size=16, max_size=80).filter(
    lambda key: all(
        re.search(r"[a-z]", key[at : at + 8]) and re.search(r"\d", key[at : at + 8]) for at in range(len(key) - 7)
    )
)
"""Keys as services make them: no stretch of them reads as a word."""


def told_in_every_way(secret, around):
    """The secret as programs write it, wherever in a text it stands."""
    data, (before, behind) = secret.encode(), around
    padded = before.encode() + data + behind.encode()
    yield from (secret, json.dumps(secret), json.dumps(secret, ensure_ascii=False), repr(secret), html.escape(secret))
    yield from (data.hex(), data.hex().upper(), padded.hex(), quote(secret), quote(secret, safe=""), quote_plus(secret))
    yield from (base64.b64encode(padded).decode(), base64.urlsafe_b64encode(padded).decode())
    yield from (html.escape(json.dumps(secret)), json.dumps(html.escape(secret)))
    yield from ("\r\n".join(secret.splitlines()), "\n".join(secret.splitlines()))
    yield from (data.hex(":"), data.hex(" ").upper(), base64.b32encode(padded).decode())
    if "\\" not in secret:  # beside an unseen letter in JSON it cannot be told from the beginning of an escape
        yield "\0".join(secret)


@given(st.lists(SECRETS, min_size=1, max_size=3), st.tuples(st.text("ab", max_size=4), st.text("ab", max_size=4)))
@example(["000<\n000"], ("", ""))  # a page in JSON
@example(['"\n"\n"\n"\n1'], ("", ""))
@example(['000"AA=='], ("", ""))  # JSON in a page
@example(["000\r0000"], ("", ""))  # another line end
def test_no_encoding_of_a_secret_stays(secrets, around):
    redactor = Redactor(secrets)
    for secret in secrets:
        for told in told_in_every_way(secret, around):
            clean = redactor.redact(f"[{told}]")
            assert "[redacted]" in clean
            assert told not in clean
            assert redactor.found_in(json.dumps({"output": told}).encode())


@pytest.mark.parametrize("before", ["", "a", "ab", "abc"])
@pytest.mark.parametrize("encode", [base64.b85encode, base64.a85encode])
def test_base85_of_a_longer_secret_goes(encode, before):
    secret = "hunter2-Hunter2-hunter"
    told = encode(f"{before}{secret}behind".encode()).decode()
    clean = Redactor([secret]).redact(f"[{told}]")
    assert "[redacted]" in clean
    assert told not in clean


def test_hex_with_signs_between_of_something_else_stays():
    text = "dump 61:62:63 2026-11-22 de:ad:be:ef:00:11 of it"
    assert Redactor(["hunter2-abcd-Hunter2"]).redact(text) == text


@given(KEYS, st.data())
def test_eight_characters_of_a_key_that_was_cut_are_taken_out_wherever_they_stand(key, data):
    first = data.draw(st.integers(0, len(key) - 8))
    piece = key[first : data.draw(st.integers(first + 8, len(key)))]
    before, behind = (data.draw(st.sampled_from(["", "…", " […] ", "...", "key=", "\n", '"', "x is "])) for _ in "ab")
    assume(not any(f"{before[at:]}{piece}" in key for at in range(len(before))))
    assume(not any(f"{piece}{behind[:end]}" in key for end in range(1, len(behind) + 1)))  # a longer piece of the key
    redactor = Redactor([key])
    assert redactor.redact(f"{before}{piece}{behind}") == f"{before}[redacted]{behind}"
    assert redactor.found_in(json.dumps([f"{before}{piece}{behind}"]).encode())


@given(
    KEYS,
    st.integers(0, 400),
    st.sampled_from([excerpt, lambda text: head(text.encode()), lambda text: tail(text.encode())]),
)
def test_a_text_that_was_cut_before_shows_no_eight_characters_of_a_key(key, pad, cut):
    text = cut("." * pad + key + "." * 700)
    clean = Redactor([key]).redact(text)
    assert not [at for at in range(len(key) - 7) if key[at : at + 8] in clean]


@given(st.lists(SECRETS, max_size=3), st.text())
def test_a_text_without_a_secret_stays_as_it_is(secrets, text):
    told = [form for secret in secrets for form in (*written_forms(secret), *encoded_forms(secret))]
    if not any(
        form[at : at + 8].encode() in text.encode("utf-8", "surrogatepass") for form in told for at in range(len(form))
    ):
        assert Redactor(secrets).redact(text) == text


@pytest.mark.parametrize(
    ("secret", "text"),
    [
        ("correct horse battery staple", "A battery is not a horse; this is correct, and a staple."),
        ("https://login.example.com/v1/Xk93mPq2", "See https://example.com and https://login.example.com/v1/help"),
        ("sk-ant-api03-Xk93mPq2Lw81", "Keys begin with sk-ant-api03- there"),
        ('{"type": "service_account", "key": "Xk93mPq2Lw81"}', 'It says "type": "service_account"'),
        ("my-company-staging-Xk93mPq2", "the company is staging it, at my-company too"),
    ],
)
def test_what_a_secret_shares_with_ordinary_text_stays(secret, text):
    assert Redactor([secret]).redact(text) == text
    assert Redactor([secret]).redact(f"{text} {secret}.") == f"{text} [redacted]."


def test_a_passphrase_is_taken_out_whole_in_longer_pieces_and_at_a_cut():
    redactor = Redactor(["correct horse battery staple"])
    assert redactor.redact("It is: horse battery, so") == "It is:[redacted], so"
    assert redactor.redact("It is correct ho…") == "It is [redacted]…"
    assert redactor.redact("… staple") == "… staple"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("it is xrse battery x", "it is x[redacted]x"),  # twelve characters
        ("it is xrse batteryx", "it is xrse batteryx"),  # eleven
        ("horse ba, x", "[redacted], x"),
        ("'horse ba, x", "'[redacted], x"),
        ("xhorse ba, x", "xhorse ba, x"),
        ("xx horse ba xx", "xx horse ba xx"),
        ("it says horse ba", "it says[redacted]"),
        ('"x, horse ba"', '"x,[redacted]"'),
        ("x, horse ba\nmore", "x,[redacted]\nmore"),
        ("x\nhorse ba x", "x\n[redacted] x"),
    ],
)
def test_a_short_piece_of_a_passphrase_goes_where_the_text_was_cut_alone(text, shown):
    redactor = Redactor(["correct horse battery staple"])
    assert redactor.redact(text) == shown
    assert redactor.found_in(text.encode()) == (text != shown)


@pytest.mark.parametrize(
    ("secret", "text", "shown"),
    [
        ("sk-ant-api03-Xk93mPq2Lw81", "x Xk93mPq2 y", "x [redacted] y"),
        ("sk-ant-api03-Xk93mPq2Lw81", "x -Xk93mPq y", "x [redacted] y"),
        ("abcd!#$efgh", "x bcd!#$ef y", "x [redacted] y"),  # three signs are no ordinary text
        ("abcd!#efghij", "x bcd!#efg y", "x bcd!#efg y"),
        ("abcdefg1hijklmn", "x bcdefg1h y", "x [redacted] y"),
        ("https://a.example/abcdefg1/hijk", "x bcdefg1/ y", "x bcdefg1/ y"),  # as a version in a path
        ("https://a.example/Xk93mPq2/hijk", "x Xk93mPq2 y", "x [redacted] y"),
        ("abcd1234", "abcd1234abcd1234", "[redacted]"),
        ("a1b2a1b2", "a1b2a1b2", "[redacted]"),
        ("1éé2éé3é4", "1éé2éé3", "[redacted]"),
        ("ñbcd1234", "xбbcd1234 y", "x[redacted] y"),  # a letter that ends as the secret's
        ("1234bcdñ", "1234bcdò y", "[redacted] y"),
        ("1234bcd\ud7ff", "1234bcd\ud800 y", "[redacted] y"),  # half a character that begins as the secret ends
        ("pass\ud800word-1234", "\ud800 word-1234 y", "\ud800 [redacted] y"),
    ],
)
def test_a_piece_goes_with_whole_letters_if_it_is_no_ordinary_text(secret, text, shown):
    redactor = Redactor([secret])
    assert redactor.redact(text) == shown
    assert redactor.found_in(text.encode(errors="surrogatepass")) == (text != shown)


def test_hex_of_a_secret_goes_though_a_part_of_another_that_is_no_secret_holds_the_same():
    spelled = b"abcdefgh1".hex(":")
    redactor = Redactor(["abcdefgh1", f"https://a.example/{spelled}/Xk93mPq2"])
    assert redactor.redact(f"dump {spelled} of it") == "dump [redacted] of it"


def test_two_pieces_that_share_a_letter_leave_what_follows_in_its_place():
    redactor = Redactor(["abc1234\U0001f100 is one", "\U0001f640xyz9876"])
    assert redactor.redact("abc1234\U0001f600xyz9876 tail") == "[redacted][redacted] tail"


def test_a_secret_is_found_wherever_in_a_text_it_begins():
    for secret in ("Xk93mPq2", "Xk93mPq2L", "Xk93mPq2Lw8"):
        redactor = Redactor([secret])
        for before in range(9):
            text = f"{'.' * before}{secret}"
            assert redactor.redact(text) == f"{'.' * before}[redacted]"
            assert redactor.stretches(text + " x") == [(before, before + len(secret))]
            assert redactor.found_in(text.encode())


def test_lines_without_a_secret_hold_none_however_they_are_escaped_and_encoded(redactor):
    deep = 'plain " text'
    for _ in range(5):
        assert redactor.found_in(deep.encode()) is False
        deep = json.dumps(deep)
    assert redactor.found_in(b"%25252525252541") is False
    assert not redactor.found_in(b"\xff \\u0041")
    assert redactor.found_in(b"\xff " + "".join(f"\\u{ord(one):04x}" for one in SECRET).encode())


def test_what_is_wrong_in_a_file_is_said_without_secrets(redactor):
    found = Diagnostic("no-target", TOLD, Span("a.yaml", 1, 1, 1, 2), hint=TOLD, notes=(TOLD, "b"))
    wanted = Diagnostic("no-target", KEPT, Span("a.yaml", 1, 1, 1, 2), hint=KEPT, notes=(KEPT, "b"))
    assert redactor.redact_diagnostic(found) == wanted
    assert redactor.redact_diagnostic(replace(found, hint=None)).hint is None


def test_without_secrets_nothing_is_looked_at():
    redactor = Redactor()
    assert not redactor
    assert redactor.stretches(TOLD) == []
    assert redactor.redact_answer(TargetResponse(TOLD, context=CONTEXT)) == TargetResponse(TOLD, context=CONTEXT)
    assert not redactor.found_in(b"anything")
    value = {"a": [SECRET]}
    assert redactor.redact_json(value) is value


def test_data_is_redacted_to_its_depth_keys_included():
    data = {SECRET: [{"a": TOLD}, (TOLD, 1, None, True, 2.5)]}
    assert Redactor([SECRET]).redact_json(data) == {"[redacted]": [{"a": KEPT}, [KEPT, 1, None, True, 2.5]]}


def test_a_number_that_is_the_secret_goes_too():
    redactor = Redactor(["1234567890123"])
    assert redactor.redact_json([1234567890123, 1234567, 0.5]) == ["[redacted]", 1234567, 0.5]


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
    answer = redactor.redact_answer(
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


def test_an_answer_without_text_stays_without(redactor):
    assert redactor.redact_answer(TargetResponse(None)) == TargetResponse(None)


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
    row = to_json(row_of(clean, RelativePaths(ROOT)))
    assert SECRET.encode() not in row
    assert json.loads(row)["cluster"] == json.loads(row)["prompt_id"] == json.loads(row)["variant"] == KEPT


def test_attempts_behind_a_failure_are_redacted_too(redactor):
    failed = CallFailure("http-status", TOLD, status=500, attempts=(Attempt("timeout", TOLD, 1.0),))
    clean = redactor.redact_result(finished("errored", error=failed)).error
    assert clean == CallFailure("http-status", KEPT, status=500, attempts=(Attempt("timeout", KEPT, 1.0),))


def test_words_of_the_program_are_no_secrets():
    clean = Redactor(["passed", "user", "broken"]).redact_result(finished("errored", error=Failure("broken", "x")))
    assert clean.status == "errored"
    assert clean.error == Failure("broken", "x")
    assert clean.input[0].role == "user"


SPELLED = "Pr0c-S3cr3t.KeyA9"


@pytest.mark.parametrize(
    "spelled",
    [
        lambda letter: f"%{ord(letter):02x}",
        lambda letter: f"%{ord(letter):02X}",
        lambda letter: f"&#{ord(letter)};",
        lambda letter: f"&#x{ord(letter):X};",
        lambda letter: f"&amp;#{ord(letter):04};",
        lambda letter: f"\\u{ord(letter):04x}",
        lambda letter: f"\\\\u{ord(letter):04x}",
        lambda letter: f"\\u{{{ord(letter):x}}}",
        lambda letter: f"\\x{ord(letter):02x}",
        lambda letter: f"{letter}\u200b",
        lambda letter: f"{letter}\xad",
        lambda letter: f"\x1b[1;31m{letter}\x1b[0m",
    ],
)
@pytest.mark.parametrize("every", [1, 2, 5])
def test_a_secret_whose_letters_are_spelled_out_goes_and_the_text_around_it_stays(spelled, every):
    told = "".join(spelled(one) if at % every == 0 else one for at, one in enumerate(SPELLED))
    redactor = Redactor([SPELLED])
    shown = redactor.redact(f"50%25 caf\xe9 &#233; {told} \\u00e9 &amp; \u200bmore")
    assert (
        re.sub(r"(?:\[redacted\]|\x1b\[[0-9;]*m|[\xad\u200b])+", "_", shown)
        == "50%25 caf\xe9 &#233; _ \\u00e9 &amp; _more"
    )
    assert redactor.found_in(json.dumps([told]).encode())


@pytest.mark.parametrize(
    "text", ["100%", "%zz%41", "&#1114112; &#xD800; \\ud800", "\\" * 9 + "u", "a\u200bb \x1b[1mred\x1b[0m"]
)
def test_spelled_letters_of_no_secret_stay(text):
    assert Redactor([SPELLED]).redact(f"{text} café {text}") == f"{text} café {text}"


@given(st.text(alphabet="Aé%41&#;x\\u0\u200b\x1b[m"), st.text(alphabet="Aé%41&#;x\\u0\u200b\x1b[m"))
def test_what_is_spelled_out_around_a_secret_moves_nothing(before, after):
    told = "".join(f"%{ord(one):02X}" for one in SPELLED)
    assert Redactor([SPELLED]).redact(f"{before} {told} {after}") == f"{before} [redacted] {after}"


def test_a_rubric_with_a_secret_is_redacted_and_its_hash_tells_nothing(redactor):
    told = AskedJudge(TOLD, TOLD, TOLD, "a" * 64, "b" * 64)
    asked = redactor.redact_grade(Grade(1.0, passed=True, asked_judge=told)).asked_judge
    assert (asked.judge, asked.model, asked.rubric) == (KEPT, KEPT, KEPT)
    assert asked.rubric_sha256 != told.rubric_sha256
    plain = AskedJudge("judge", "openai:small", "is polite", "a" * 64, "b" * 64)
    assert redactor.redact_grade(Grade(1.0, passed=True, asked_judge=plain)).asked_judge == plain


def test_a_secret_is_found_at_every_place_of_a_long_text():
    secret = "k7Qx9ZpW"  # eight letters: no border may lie within them
    looking = Redactor([secret])
    missed = [
        before
        for around in (1 << 14, 2 << 14)
        for before in range(around - 10, around + 10)
        if not looking.found_in(b"x" * before + secret.encode() + b"x" * 20_000)
    ]
    assert missed == []
    assert not looking.found_in(b"x" * 50_000)


def test_a_few_digits_within_a_hash_are_skipped_only_when_asked():
    secret = "tok-Qz7/9fKw2LmX"
    digits = secret.encode().hex()
    redactor = Redactor([secret, "0f5d3a9be1c24687"])
    for piece in (digits[4:12], digits[4:15], "5d3a9be1", digits[4:12].upper()):
        around = "0C0C0C" if piece.isupper() else "0c0c0c"
        row = json.dumps({"key": around * 4 + piece + around * 4}).encode()
        assert redactor.found_in(row), piece
        assert not redactor.found_in(row, skip_hashes=True), piece
        for elsewhere in (piece, f"x{piece}y", around * 2 + piece, f"{piece}-{around * 6}"):
            assert redactor.found_in(json.dumps([elsewhere]).encode(), skip_hashes=True), elsewhere
    for piece in (digits[4:16], digits, "0f5d3a9be1c24687"):
        line = json.dumps({"key": "0c0c0c" * 4 + piece + "0c0c0c" * 4}).encode()
        assert redactor.found_in(line, skip_hashes=True), piece
    both = json.dumps({"key": "0c0c0c" * 4 + digits[4:12] + "0c0c0c" * 4, "output": digits[4:12]}).encode()
    assert redactor.found_in(both, skip_hashes=True)


def test_a_whole_secret_of_few_digits_is_found_within_a_hash():
    redactor = Redactor(["5d3a9be1f0"])
    line = json.dumps({"key": "0c0c0c" * 4 + "5d3a9be1f0" + "0c0c0c" * 4}).encode()
    assert redactor.found_in(line, skip_hashes=True)
    assert not redactor.found_in(line.replace(b"5d3a9be1f0", b"5d3a9be1c0"), skip_hashes=True)
