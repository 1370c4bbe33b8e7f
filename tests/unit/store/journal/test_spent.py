from __future__ import annotations

from zlib import crc32

from agentv.model.run.budget import Amount, Ceiling
from agentv.model.values.response import TargetResponse
from agentv.model.values.usage import TokenUsage
from agentv.store.files.directory import RunDirectory
from agentv.store.journal.answers import (
    HEADER,
    SummaryChecksum,
    answer_line,
    discard_line,
    row_checksum_line,
    spent_line,
    summary_checksum_line,
)
from agentv.store.journal.journal import Journal
from agentv.store.journal.spent import JournalSpending, spent_in
from doubles.stores import call
from doubles.trials import NOW, ROOT, finished, trial


def test_every_answer_counts_but_those_of_other_runs_and_damaged_lines(tmp_path):
    with RunDirectory.create(tmp_path, NOW, out=tmp_path / "run") as directory, Journal(directory, ROOT) as journal:
        journal.keep(call("a", "a"), TargetResponse("yes", cost_usd=0.5, token_usage=TokenUsage(total=10)))
        journal.keep(call("b", "b"), TargetResponse("yes", cost_usd=0.25, token_usage=TokenUsage(input=2, output=1)))
        journal.keep(call("c", "c"), TargetResponse("yes", cost_usd=9.0, earlier=True))
        journal.keep(call("d", "d"), TargetResponse("yes"))
        journal.finish(finished(trial=trial("a", key="a")))
        journal.discard(lambda row: True)
        journal.keep(call("a", "a"), TargetResponse("again", cost_usd=0.5, token_usage=TokenUsage(total=10)))
    path = tmp_path / "run" / "journal.jsonl"
    assert spent_in(path) == JournalSpending(Amount(1.25, 23), {"gpt": Ceiling(0.5, 10), "": Ceiling()})
    path.write_bytes(path.read_bytes().replace(b'"cost_usd":0.25', b'"cost_usd":0.75'))
    assert spent_in(path).total == Amount(1.0, 20)


NO_PRICE = b'{"key":"k","case":"a","cost_usd":"much"}'
"""With a checksum of its own, and not written by agentv."""


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
        summary_checksum_line(SummaryChecksum.of(b"{}", 2)),
    ]
    path.write_bytes(HEADER + b"".join(lines))
    largest = {"agent": Ceiling(0.5, 7), "other": Ceiling(0.125, None)}
    assert spent_in(path) == JournalSpending(Amount(0.875, 18), largest)
