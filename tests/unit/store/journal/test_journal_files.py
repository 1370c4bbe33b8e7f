"""The files that a run appends to, read through an earlier run's journal and moved by a resumed run."""

import json
import shutil
from contextlib import closing, suppress

import pytest
from msgspec import structs
from msgspec.structs import replace

from agentv.errors import StoreError
from agentv.model.redaction import Redactor
from agentv.model.run.summary import NOT_DRAWN
from agentv.model.values.response import Failure, TargetResponse
from agentv.model.values.trace import UsageStep
from agentv.model.values.usage import Amount, TokenUsage
from agentv.store.files.directory import RunDirectory
from agentv.store.journal.answers import HEADER, answer_line, discard_line, row_checksum_line
from agentv.store.journal.journal import Journal
from agentv.store.journal.journal_files import JournalFiles
from agentv.store.journal.journal_reader import JournalReader, amount_of
from agentv.store.journal.verification import check_rows
from doubles.stores import call
from doubles.trials import NOW, ROOT, finished, trial

A, B = (b'{"key":"%b","test_id":"%b"}' % (key, key) for key in (b"a", b"b"))
ANSWER = discard_line(["x"])


@pytest.fixture
def files(tmp_path):
    made = JournalFiles(tmp_path)
    yield made
    made.close()


def held(tmp_path):
    return (tmp_path / "journal.jsonl").read_bytes(), (tmp_path / "index.jsonl").read_bytes()


def test_an_answer_is_in_the_file_at_once_and_a_row_behind_its_checksum_when_it_is_written(tmp_path, files):
    files.append_answer(ANSWER)
    assert held(tmp_path)[0] == HEADER + ANSWER
    for key, row in (("a", A), ("b", B)):
        files.append_row(key, row, 5)
    files.write_rows()
    sums = row_checksum_line("a", A, 5) + row_checksum_line("b", B, 5)
    assert held(tmp_path) == (HEADER + ANSWER + sums, A + b"\n" + B + b"\n")
    files.write_rows()
    files.flush()
    assert held(tmp_path) == (HEADER + ANSWER + sums, A + b"\n" + B + b"\n")
    assert list(files.rows()) == [(1, A + b"\n"), (2, B + b"\n")]


@pytest.mark.parametrize(
    "write",
    [
        lambda files: files.discard_answers(["x"]),
        lambda files: files.append_summary_checksum(b"{}"),
        JournalFiles.flush,
        JournalFiles.close,
    ],
)
def test_what_must_be_on_the_disk_is_refused_where_the_run_was_removed(tmp_path, write):
    run = tmp_path / "run"
    run.mkdir()
    files = JournalFiles(run)
    shutil.rmtree(run)
    with pytest.raises(StoreError, match="it was removed during the run"):
        write(files)
    with suppress(StoreError):
        files.close()


def test_rows_are_moved_to_another_file_and_more_can_follow(tmp_path, files):
    for key, row in (("a", A), ("b", B), ("a", A)):
        files.append_row(key, row, 0)
    files.write_rows()
    assert files.move_rows(lambda number, row: row == A and number > 1, "history.jsonl") == 1
    assert (tmp_path / "history.jsonl").read_bytes() == A + b"\n"
    files.append_row("a", A, 0)
    files.write_rows()
    assert held(tmp_path)[1] == A + b"\n" + B + b"\n" + A + b"\n"
    check_rows(tmp_path)


def test_what_failed_in_the_background_is_raised_by_the_next_check_and_answer(tmp_path):
    files = JournalFiles(tmp_path)
    files.check()
    files._flusher.failure = StoreError("cannot write: the disk is full")  # as set by its thread
    for write in (files.check, lambda: files.append_answer(ANSWER)):
        with pytest.raises(StoreError, match="the disk is full"):
            write()
    assert held(tmp_path)[0] == HEADER
    files.close()


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
    assert (reader.has_checksums, reader.checksum_position(ROW)) == (True, position)
    for other in (b"{}", ROW.replace(b'"a"', b'"b"'), ROW.replace(b'"r"', b'"s"')):
        assert (reader.checksum_position(other) is not None, reader.checksum_position(other)) == (False, None)
    assert read(line).has_checksums
    reader = read(answered("k"))
    assert (reader.has_checksums, reader.checksum_position(ROW) is not None) == (False, False)


def test_damaged_lines_are_counted(read):
    changed = answered("k").replace(b"yes", b"no!")
    reader = read(changed, b"no line\n", answered("l"), row_checksum_line("r", ROW).replace(b'"r"', b'"s"'))
    assert (reader.damaged, len(reader), reader.has_checksums) == (3, 1, False)


def test_a_line_that_was_damaged_since_it_was_read_gives_no_answer(read, tmp_path):
    reader = read(answered("k"), answered("l"))
    path = tmp_path / "run" / "journal.jsonl"
    for other in (answered("k").replace(b"yes", b"no!"), answered("m")):
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


def result(key, status="passed", **more):
    return finished(status, trial=trial(key, key=key), **more)


def keys(directory, name):
    path = directory.path / name
    return [json.loads(line)["key"] for line in path.read_text().splitlines()] if path.exists() else None


def fill(journal, *results):
    for one in results:
        journal.keep(call(one.trial.key, one.trial.case.id), TargetResponse("yes"))
        journal.finish(one)


def is_failed(row):
    return row.status == "failed"


def test_cases_that_run_again_lose_their_rows_and_their_answers_and_others_keep_both(directory, journal):
    fill(journal, result("a"), result("b", "failed"), result("c", "failed"))
    assert list(journal.finished()) == ["a", "b", "c"]
    assert journal.load_answers() == 3
    assert journal.retire_rows(is_failed, lambda finished: finished) == 0
    assert (keys(directory, "index.jsonl"), keys(directory, "history.jsonl")) == (["a"], ["b", "c"])
    assert [journal.stored_answer(call(key)) is not None for key in "abc"] == [True, False, False]
    assert [journal.holds(key) for key in "abc"] == [True, False, False]
    assert list(journal.finished()) == ["a"]
    before = (directory.path / "journal.jsonl").read_bytes()
    assert journal.retire_rows(is_failed, lambda finished: finished) == 0
    assert (directory.path / "journal.jsonl").read_bytes() == before


def not_drawn(key):
    return result(key, "skipped", error=Failure(NOT_DRAWN, "it is decided"))


def test_trials_that_were_not_drawn_have_a_row_which_can_be_moved_away_so_that_they_are(directory, journal):
    fill(journal, result("a"))
    assert list(journal.finished()) == ["a"]
    journal.retire_rows(is_failed, lambda finished: finished)
    assert keys(directory, "history.jsonl") is None
    fill(journal, not_drawn("b"), result("c", "skipped"), result("d", "skipped", error=Failure("limit", "no")))
    assert list(journal.finished()) == ["a"]
    assert keys(directory, "index.jsonl") == ["a", "b"]
    journal.retire_rows(is_failed, lambda finished: finished)
    assert (keys(directory, "index.jsonl"), keys(directory, "history.jsonl")) == (["a"], ["b"])


@pytest.mark.parametrize(
    ("written", "current", "superseded", "files"),
    [
        ("ab", "ab", 0, (["a", "b"], None)),
        ("ab", "a", 1, (["a"], ["b"])),
        ("aba", "ab", 0, (["b", "a"], ["a"])),
        ("abac", "a", 2, (["a"], ["a", "b", "c"])),
    ],
)
def test_rows_that_no_longer_count_are_moved(directory, journal, written, current, superseded, files):
    fill(journal, *map(result, written))
    assert list(journal.finished()) == [*written]
    journal.load_answers()
    assert journal.retire_rows(is_failed, lambda _: set(current)) == superseded
    assert (keys(directory, "index.jsonl"), keys(directory, "history.jsonl")) == files


def test_nothing_is_stored_of_a_run_before_its_answers_are_loaded(directory, journal):
    journal.keep(call("k"), TargetResponse("yes"))
    assert (journal.stored_answer(call("k")), journal.holds("k"), journal.damaged) == (None, False, 0)
    assert journal.load_answers() == 1
    assert (journal.stored_answer(call("k")), journal.holds("k")) == (TargetResponse("yes"), True)


SECRET = "sk-5uper-s3cret"


def test_no_secret_is_in_what_a_run_writes_and_shows(tmp_path):
    with RunDirectory.create(tmp_path, NOW, redactor=Redactor([SECRET])) as directory:
        with Journal(directory, ROOT) as journal:
            journal.spend(f"case {SECRET}", f"target {SECRET}", UsageStep(tokens=TokenUsage(3, 4), cost_usd=0.5))
            journal.spend("case", "target", UsageStep(tokens=TokenUsage(3, 4), cost_usd=0.25))
            made = call("k", f"case {SECRET}")
            journal.keep(structs.replace(made, target=f"t {SECRET}"), TargetResponse(f"it is {SECRET}", cost_usd=0.5))
            shown = [journal.finish(result(key, output=f"it is {SECRET}")) for key in "ab"]
            shown.append(journal.finish(result("c", "skipped", output=f"it is {SECRET}")))
            plain = result("d")
            assert journal.finish(plain) is plain
        lines = [json.loads(line) for line in (directory.path / "journal.jsonl").read_text().splitlines()]
        assert [one.output for one in shown] == ["it is [redacted]"] * 3
        found = [(one["spent"], one["case"], one["cost_usd"]) for one in lines if "spent" in one]
        assert found == [("target [redacted]", "case [redacted]", 0.5), ("target", "case", 0.25)]
        (answer,) = (one for one in lines if "output" in one)
        assert (answer["target"], answer["case"], answer["redacted"]) == ("t [redacted]", "case [redacted]", True)
        assert not [path.name for path in directory.path.iterdir() if SECRET.encode() in path.read_bytes()]


def test_a_finished_trial_comes_back_as_it_was_without_secrets(journal):
    for one in (result("a"), result("b", "skipped"), not_drawn("c")):
        assert journal.finish(one) is one
