"""What an earlier run's journal holds."""

from __future__ import annotations

from contextlib import closing

import pytest
from msgspec.structs import replace

from agentv.errors import StoreError
from agentv.model.run.budget import Amount
from agentv.model.values.response import TargetResponse
from agentv.model.values.usage import TokenUsage
from agentv.store.journal.answers import (
    HEADER,
    answer_line,
    discard_line,
    row_checksum_line,
)
from agentv.store.journal.journal_reader import JournalReader, amount_of
from doubles.stores import call

ROW = b'{"key":"r","test_id":"a"}'


@pytest.fixture
def read(tmp_path):
    path, readers = tmp_path / "run" / "journal.jsonl", []
    path.parent.mkdir()

    def made(*lines):
        path.write_bytes(b"".join((HEADER, *lines)))
        readers.append(JournalReader(path))
        return readers[-1]

    yield made
    for reader in readers:
        reader.close()


def answered(key, text="yes", case="a", **more):
    return answer_line(key, case, TargetResponse(text), **more)


@pytest.mark.parametrize(
    ("cost", "tokens", "amount"),
    [
        (None, None, Amount()),
        (0.5, None, Amount(0.5, 0)),
        (None, TokenUsage(), Amount()),
        (0.5, TokenUsage(3, 4), Amount(0.5, 7)),
        (0.5, TokenUsage(3, 4, 9), Amount(0.5, 9)),
        (0.5, TokenUsage(3), Amount(0.5, 3)),
        (0.5, TokenUsage(None, 4), Amount(0.5, 4)),
    ],
)
def test_what_a_call_took_is_its_price_and_all_of_its_tokens(cost, tokens, amount):
    assert amount_of(cost, tokens) == amount


def test_answers_are_found_by_their_keys_and_of_several_the_last(read):
    reader = read(answered("k", "first"), b"\n", answered("l"), answered("k", "second"))
    assert (len(reader), "k" in reader, "l" in reader, "m" in reader, reader.damaged) == (2, True, True, False, 0)
    assert [reader.answer(key) for key in "klm"] == [TargetResponse("second"), TargetResponse("yes"), None]
    assert reader.stored_answer(call("l")) == TargetResponse("yes")
    assert (reader.run.name, reader.run_id) == ("run", "run")
    size = len(HEADER)
    first, second = len(answered("k", "first")), len(answered("l"))
    assert [reader.answer_position(key) for key in "klm"] == [size + first + 1 + second, size + first + 1, None]


def test_answers_before_the_line_that_discards_their_cases_are_gone_and_those_behind_it_count(read):
    reader = read(answered("k"), answered("l"), answered("m", case="b"), discard_line(["a", "c"]), answered("l", "new"))
    assert [reader.answer(key) for key in "klm"] == [None, TargetResponse("new"), TargetResponse("yes")]
    assert ("k" in reader, reader.answer_position("k")) == (False, None)
    reader = read(answered("k", case="c"), discard_line(["c"]), answered("l"), discard_line(["a"]))
    assert [reader.answer(key) for key in "kl"] == [None, None]


def test_an_answer_with_a_secret_is_known_and_not_given(read):
    reader = read(answered("k", "[redacted]", redacted=True), answered("l"))
    assert (reader.answer("k"), reader.redacted, len(reader)) == (None, {"k"}, 1)


def test_what_judges_took_is_summed_by_the_case_discarded_answers_and_secrets_among_it(read):
    paid = TargetResponse("yes", cost_usd=0.25, token_usage=TokenUsage(3, 4))
    lines = [
        answer_line("1", "a", paid, judge=True),
        answer_line("2", "a", paid, judge=True, redacted=True),
        discard_line(["a"]),
        answer_line("3", "a", replace(paid, earlier=True), judge=True),
        answer_line("4", "a", paid),
        answer_line("5", "b", paid, judge=True),
    ]
    assert read(*lines).judged == {hash("a"): Amount(0.5, 14), hash("b"): Amount(0.25, 7)}


def test_checksums_of_rows_are_found_by_key_and_content_at_the_first_line_that_has_them(read):
    line = row_checksum_line("r", ROW)
    reader = read(answered("k"), line, row_checksum_line("r", b"{}"), line)
    position = len(HEADER) + len(answered("k"))
    assert (reader.has_checksums, reader.has_checksum_of(ROW), reader.checksum_position(ROW)) == (True, True, position)
    for other in (b"{}", ROW.replace(b'"a"', b'"b"'), ROW.replace(b'"r"', b'"s"')):
        assert (reader.has_checksum_of(other), reader.checksum_position(other)) == (False, None)
    assert read(line).has_checksums
    reader = read(answered("k"))
    assert (reader.has_checksums, reader.has_checksum_of(ROW)) == (False, False)


def test_damaged_lines_are_counted(read):
    changed = answered("k").replace(b"yes", b"no!")
    reader = read(changed, b"no line\n", answered("l"), row_checksum_line("r", ROW).replace(b'"r"', b'"s"'))
    assert (reader.damaged, len(reader), reader.has_checksums) == (3, 1, False)


def test_a_line_that_was_changed_since_it_was_read_gives_no_answer(read, tmp_path):
    reader = read(answered("k"), answered("l"))
    path = tmp_path / "run" / "journal.jsonl"
    for other in (answered("k", "no!"), answered("k").replace(b"yes", b"no!"), answered("m")):
        path.write_bytes(HEADER + other + answered("l"))
        assert [reader.answer(key) for key in "kl"] == [None, TargetResponse("yes")]


def test_a_journal_that_is_missing_or_closed_cannot_be_read(tmp_path):
    with pytest.raises(StoreError, match=r"cannot read .*journal\.jsonl"):
        JournalReader(tmp_path / "journal.jsonl")
    (tmp_path / "journal.jsonl").write_bytes(HEADER)
    with closing(JournalReader(tmp_path / "journal.jsonl")) as reader:
        assert not reader.has_checksums
        reader.close()
        assert reader._file.closed  # nothing else shows it
