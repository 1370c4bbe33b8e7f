"""The lines of a journal by key: this version writes them, later ones must read them."""

import json
from zlib import crc32

import pytest
from msgspec import UNSET, structs, to_builtins
from msgspec.structs import replace

from agentv.model.values.message import DocumentBlock, FileBlock, ImageBlock, Message, TextBlock, ToolCall
from agentv.model.values.response import Attempt, TargetResponse
from agentv.model.values.retrieved import RetrievedText
from agentv.model.values.usage import Amount, Ceiling, TokenUsage
from agentv.store.files.directory import RunDirectory
from agentv.store.files.encoding import to_json
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
from agentv.store.journal.journal import Journal
from agentv.store.journal.journal_reader import AccountedAnswers, JournalReader, JournalSpending, spent_in
from agentv.store.rows.rows import row_of
from doubles.stores import call
from doubles.trials import NOW, ROOT, finished, trial

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
    """Return the content of a line, whose own checksum must be right."""
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
        assert answer_of(verified(answer_line("k", "c", answer)[:-1])) == ("k", answer)
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
    "spent": spent_line("12345678deadbeef", "c", USAGE, 0.5),  # hex where a row's line has its checksum
    "discarded": discard_line(["a", "b"]),
    "row": row_checksum_line("k", b"the row", 12.75),
    "summary": summary_checksum_line(b"{}", 34),
}


def test_lines_that_are_no_answers_say_what_they_are():
    shown = body_of(LINES["spent"])
    assert shown == {"spent": "12345678deadbeef", "case": "c", "token_usage": to_builtins(USAGE), "cost_usd": 0.5}
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
    assert checksums == dict.fromkeys(LINES) | {"summary": SummaryChecksum(f"{crc32(b'{}'):08x}", 34)}


def test_a_line_that_was_changed_says_nothing():
    row, summary = LINES["row"][:-1], LINES["summary"][:-1]
    assert verified(row.replace(b'"k"', b'"l"')) is None
    assert elapsed_in(row.replace(b'"at_ms":12', b'"at_ms":13')) is None
    assert summary_checksum_in(summary.replace(b"34", b"35")) is None
    for body in (b'{"summary":"00000000"}', b'{"summary":"00000000","rows_bytes":"1"}', b'{"summary":"\xff"}'):
        assert summary_checksum_in(b'{"crc32":"%08x",%b' % (crc32(body), body[1:])) is None


PAID = TargetResponse("yes", cost_usd=0.25, token_usage=TokenUsage(90, 10))


def call_for(key, case="case", *, judge=False, **changed):
    """Return a call for a case of the suite `refunds` on the target `gpt`."""
    made = call(key, case)
    request = replace(made.request, suite="refunds\0a hash", nonces=("n",) if judge else (), **changed)
    return structs.replace(made, request=request)


def row(key="row", case="case", judged=None, **more):
    """Return the line of a row; `judged` is the judge's answer whose cost it reports."""
    took = {} if judged is None else {"judge_cost_usd": judged.cost_usd, "judge_token_usage": judged.token_usage}
    return to_json(row_of(finished(trial=trial(case, key=key, **more), **took), ROOT))


@pytest.fixture
def of(tmp_path):
    path, readers = tmp_path / "journal.jsonl", []

    def made(journal, superseded=(), current=()):
        path.write_bytes(b"".join((HEADER, *journal)))
        readers.append(JournalReader(path))
        return AccountedAnswers(readers[-1], [line + b"\n" for line in superseded], [line + b"\n" for line in current])

    yield made
    for reader in readers:
        reader.close()


def test_an_answer_before_the_checksum_of_its_trials_superseded_row_is_in_it(of):
    before, behind = answer_line("before", "case", PAID), answer_line("behind", "case", PAID)
    line = row()
    found = of([before, row_checksum_line("row", line), behind], [line])
    assert call_for("before") in found
    assert call_for("behind") not in found
    assert call_for("unknown") not in found
    for other in ({"case": "other"}, {"sample": 2}, {"prompt_id": "p"}):
        assert call_for("before", **other) not in found
    assert structs.replace(call_for("before"), target="another") not in found
    assert structs.replace(call_for("before"), request=replace(call_for("before").request, suite="others")) not in found


def test_of_several_superseded_rows_of_a_trial_the_last_one_counts(of):
    first, second = row("first"), row("second")
    journal = [row_checksum_line("first", first), answer_line("between", "case", PAID)]
    journal += [row_checksum_line("second", second), answer_line("behind", "case", PAID)]
    for order in ([first, second], [second, first]):
        found = of(journal, order)
        assert call_for("between") in found
        assert call_for("behind") not in found


def test_a_row_without_a_checksum_or_that_is_none_counts_for_nothing(of):
    line = row()
    found = of([answer_line("k", "case", PAID)], [line])
    assert call_for("k") not in found
    broken = b'{"key":"row"}'
    found = of([answer_line("k", "case", PAID), row_checksum_line("row", broken)], [broken], [b"no row"])
    assert call_for("k") not in found


@pytest.mark.parametrize("answer", [PAID, structs.replace(PAID, cost_usd=None)])
@pytest.mark.parametrize("superseded", [True, False])
def test_as_many_verdicts_count_as_the_journal_has_and_no_row_reports(of, answer, superseded):
    keys = ("one", "two", "three")
    journal = [answer_line(key, "case", answer, judge=True) for key in keys]
    line, another = row(judged=answer), row("another", judged=answer)
    journal += [row_checksum_line("row", line), row_checksum_line("another", another)]
    for rows, reported in (([], [False] * 3), ([line], [False, False, True]), ([line, another], [False, True, True])):
        found = of(journal, rows, []) if superseded else of(journal, [], rows)
        assert [call_for(key, judge=True) in found for key in keys] == reported, len(rows)
    assert call_for("unknown", judge=True) not in of(journal, [line])
    assert call_for("one", "other", judge=True) not in of(journal, [line])


def test_a_verdict_of_another_run_is_in_a_row_by_its_place_as_an_answer_is(of):
    line = row("row", target="any target", sample=3)
    earlier = structs.replace(PAID, earlier=True)
    before, behind = (answer_line(key, "case", earlier, judge=True) for key in ("before", "behind"))
    found = of([before, row_checksum_line("row", line), behind], [line])
    assert call_for("before", judge=True) in found
    assert call_for("behind", judge=True) not in found


def test_answers_of_targets_are_distinguished_from_those_of_judges_of_the_same_case(of):
    line = row(judged=PAID)
    journal = [answer_line("own", "case", PAID), answer_line("judged", "case", PAID, judge=True)]
    found = of([*journal, row_checksum_line("row", line)], [line])
    assert call_for("own") in found
    assert call_for("judged", judge=True) in found
    assert call_for("own") in found


def test_every_answer_counts_but_those_of_other_runs_and_damaged_lines(tmp_path):
    with RunDirectory.create(tmp_path, NOW, out=tmp_path / "run") as directory, Journal(directory, ROOT) as journal:
        journal.keep(call("a", "a"), TargetResponse("yes", cost_usd=0.5, token_usage=TokenUsage(total=10)))
        journal.keep(call("b", "b"), TargetResponse("yes", cost_usd=0.25, token_usage=TokenUsage(input=2, output=1)))
        journal.keep(call("c", "c"), TargetResponse("yes", cost_usd=9.0, earlier=True))
        journal.keep(call("d", "d"), TargetResponse("yes"))
        journal.finish(finished(trial=trial("a", key="a")))
        assert list(journal.finished()) == ["a"]
        journal.retire_rows(lambda row: True, lambda finished: finished)
        journal.keep(call("a", "a"), TargetResponse("again", cost_usd=0.5, token_usage=TokenUsage(total=10)))
    path = tmp_path / "run" / "journal.jsonl"
    assert spent_in(path) == JournalSpending(Amount(1.25, 23), {"gpt": Ceiling(0.5, 10), "": Ceiling()})
    path.write_bytes(path.read_bytes().replace(b'"cost_usd":0.25', b'"cost_usd":0.75'))
    assert spent_in(path).total == Amount(1.0, 20)


NO_PRICE = b'{"key":"k","case":"a","cost_usd":"much"}'
"""Has a valid checksum, but was not written by agentv."""


def test_what_an_agents_model_calls_took_counts_call_by_call_and_its_answer_not_again(tmp_path):
    path = tmp_path / "journal.jsonl"
    lines = [
        spent_line("agent", "a", TokenUsage(3, 4), 0.5),
        b'{"crc32":"%08x",%b\n' % (crc32(NO_PRICE), NO_PRICE[1:]),
        spent_line("agent", "a", TokenUsage(input=5), None),
        spent_line("agent", "a", TokenUsage(output=6), 0.25),
        spent_line("other", "a", None, 0.125),
        answer_line("k", "a", TargetResponse("yes", cost_usd=9.0, metered=True), target="agent"),
        answer_line("l", "a", TargetResponse("yes", cost_usd=9.0, earlier=True), target="agent"),
        b"no line of a journal\n",
        discard_line(["a"]),
        row_checksum_line("k", b"{}"),
        summary_checksum_line(b"{}", 2),
    ]
    path.write_bytes(HEADER + b"".join(lines))
    largest = {"agent": Ceiling(0.5, 7), "other": Ceiling(0.125, None)}
    assert spent_in(path) == JournalSpending(Amount(0.875, 18), largest)
