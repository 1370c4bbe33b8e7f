"""The lines of a journal, key by key: what this version writes, later ones read."""

from __future__ import annotations

import json
from zlib import crc32

import pytest
from msgspec import UNSET, to_builtins

from agentv.model.values.message import DocumentBlock, FileBlock, ImageBlock, Message, TextBlock, ToolCall
from agentv.model.values.response import Attempt, TargetResponse
from agentv.model.values.retrieved import RetrievedText
from agentv.model.values.usage import TokenUsage
from agentv.store.journal.answers import (
    HEADER,
    AnswerFacts,
    SummaryChecksum,
    answer_line,
    answer_of,
    answer_row,
    discard_line,
    discarded_in,
    elapsed_in,
    facts_in,
    is_redacted,
    is_row_checksum,
    is_spent_line,
    is_summary_checksum,
    row_checksum_in,
    row_checksum_line,
    spent_line,
    summary_checksum_in,
    summary_checksum_line,
    verified,
)

USAGE = TokenUsage(3, 4, 7)
BLOCKS = (
    TextBlock("a"),
    FileBlock("v", "p", "t"),
    ImageBlock("i", "p", "0"),
    ImageBlock("i"),
    DocumentBlock("d", "p", "0", "text/csv"),
)
FULL = TargetResponse(
    "yes",
    (
        Message("user", "plain"),
        Message("assistant", BLOCKS, "name", (ToolCall("n", {"a": 1}, "id", 1.5, "out", "native"),)),
        Message("tool", {"text": "an object of the tool's", "path": "p"}),
    ),
    token_usage=USAGE,
    cost_usd=0.5,
    duration_ms=1.5,
    finish_reason="stop",
    metadata={"a": [1]},
    attempts=(Attempt("timeout", "too late", 1.0, 2.0),),
    earlier=True,
    metered=True,
    context=(RetrievedText("t", "s", 0.5, {"a": 1}),),
)


def body_of(line: bytes) -> dict[str, object]:
    """What a line says; its own checksum must be right."""
    assert line.endswith(b"\n")
    found = json.loads(line)
    rest = line[:-1].replace(b'"crc32":"%s",' % found["crc32"].encode(), b"", 1)
    assert found.pop("crc32") == f"{crc32(rest):08x}"
    assert verified(line[:-1]) == rest
    return found


def test_a_journal_begins_with_its_format():
    assert json.loads(HEADER) == {"format": "agentv-journal", "version": 1}
    assert HEADER.endswith(b"\n")


def test_an_answer_comes_back_field_for_field():
    for answer in (FULL, TargetResponse(None), TargetResponse("", (Message("user", ()),), TokenUsage())):
        line = answer_line("k", "c", answer)
        assert answer_of(verified(line[:-1])) == ("k", answer)
    found = body_of(answer_line("k", "c", FULL))
    extra = ("attempts", "earlier", "metered", "context")
    assert [name in found for name in extra] == [True] * 4
    assert found["metadata"] == {"a": [1]}
    assert found["context"] == [{"text": "t", "source": "s", "score": 0.5, "metadata": {"a": 1}}]


@pytest.mark.parametrize(
    ("answer", "target", "written"),
    [
        (TargetResponse("yes"), "gpt", None),
        (TargetResponse("yes", cost_usd=0.0), "gpt", "gpt"),
        (TargetResponse("yes", token_usage=USAGE), "gpt", "gpt"),
        (FULL, "gpt", "gpt"),
        (FULL, "", None),
    ],
)
def test_the_target_is_written_where_an_answer_was_paid_for(answer, target, written):
    assert body_of(answer_line("k", "c", answer, target=target)).get("target") == written


def test_what_a_judge_said_and_what_held_a_secret_are_marked():
    plain, judge = (answer_line("k", "c", FULL, judge=one) for one in (False, True))
    assert facts_in(plain) == AnswerFacts("k", "c", False, 0.5, USAGE, True)
    assert facts_in(judge) == AnswerFacts("k", "c", True, 0.5, USAGE, True)
    assert facts_in(answer_line("k", "c", TargetResponse("yes"))) == AnswerFacts("k", "c")
    assert "judge" not in body_of(plain)
    assert answer_row(FULL).redacted is UNSET
    redacted = answer_line("k", "c", TargetResponse("[redacted]"), redacted=True)
    assert body_of(redacted)["redacted"] is True
    assert [is_redacted(verified(line[:-1])) for line in (plain, judge, redacted)] == [False, False, True]


LINES = {
    "answer": answer_line("k", "c", FULL),
    "spent": spent_line("12345678deadbeef", "c", USAGE, 0.5),  # hex where the line of a row has its checksum
    "discarded": discard_line(["a", "b"]),
    "row": row_checksum_line("k", b"the row", 12.75),
    "summary": summary_checksum_line(SummaryChecksum.of(b"{}", 34)),
}


def test_lines_that_are_no_answers_say_what_they_are():
    assert body_of(LINES["spent"]) == {
        "spent": "12345678deadbeef",
        "case": "c",
        "token_usage": to_builtins(USAGE),
        "cost_usd": 0.5,
    }
    assert body_of(LINES["discarded"]) == {"anew": ["a", "b"]}
    assert body_of(LINES["row"]) == {"row": "k", "sum": f"{crc32(b'the row'):08x}", "at_ms": 12}
    assert body_of(row_checksum_line("k", b"")) == {"row": "k", "sum": "00000000", "at_ms": 0}
    assert body_of(LINES["summary"]) == {"summary": f"{crc32(b'{}'):08x}", "rows_bytes": 34}


def test_each_kind_of_line_is_read_as_its_own_kind_alone():
    whole = {name: line[:-1] for name, line in LINES.items()}
    for kind, is_kind in (("spent", is_spent_line), ("row", is_row_checksum), ("summary", is_summary_checksum)):
        assert [name for name, line in whole.items() if is_kind(line)] == [kind]
    found = {name: (discarded_in(line), row_checksum_in(line), elapsed_in(line)) for name, line in whole.items()}
    assert found == {
        "answer": (None, None, None),
        "spent": (None, None, None),
        "discarded": (["a", "b"], None, None),
        "row": (None, ("k", crc32(b"the row")), 12),
        "summary": (None, None, None),
    }
    checksums = {name: summary_checksum_in(line) for name, line in whole.items()}
    assert checksums == dict.fromkeys(LINES) | {"summary": SummaryChecksum.of(b"{}", 34)}


def test_a_line_that_was_changed_says_nothing():
    row, summary = LINES["row"][:-1], LINES["summary"][:-1]
    assert verified(row.replace(b'"k"', b'"l"')) is None
    assert elapsed_in(row.replace(b'"at_ms":12', b'"at_ms":13')) is None
    assert summary_checksum_in(summary.replace(b"34", b"35")) is None
    for body in (b'{"summary":"00000000"}', b'{"summary":"00000000","rows_bytes":"1"}', b'{"summary":"\xff"}'):
        assert summary_checksum_in(b'{"crc32":"%08x",%b' % (crc32(body), body[1:])) is None
