"""The two files that a run appends to."""

from __future__ import annotations

import shutil
from contextlib import suppress

import pytest

from agentv.errors import StoreError
from agentv.store.journal.answers import (
    HEADER,
    discard_line,
    row_checksum_line,
)
from agentv.store.journal.journal_files import JournalFiles
from agentv.store.journal.verification import check_rows

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


def test_what_others_write_is_undone_in_both_files_from_the_moment_they_are_signed(tmp_path, files):
    files.append_row("a", A, 0)
    files.write_rows()
    assert files.restore() == (None, None)
    files.sign()
    whole = held(tmp_path)
    for name in ("journal.jsonl", "index.jsonl"):
        with (tmp_path / name).open("ab") as file:
            file.write(b"foreign\n")
    rows, answers = files.restore()
    assert (rows.foreign, rows.lost, answers.foreign, answers.lost) == ((b"foreign\n",), 0, (b"foreign\n",), 0)
    assert held(tmp_path) == whole
    assert files.restore() == (None, None)


def test_checksums_of_all_rows_are_written_again_for_a_journal_that_lost_them(tmp_path, files):
    files.append_row("a", A, 0)
    files.append_row("b", B, 0)
    files.write_rows()
    (tmp_path / "index.jsonl").write_bytes(A + b"\nno row\n" + B + b"\n")
    (tmp_path / "journal.jsonl").write_bytes(HEADER)
    files.append_checksums(7)
    sums = row_checksum_line("a", A, 7) + row_checksum_line("b", B, 7)
    assert held(tmp_path)[0] == HEADER + sums


def test_what_failed_in_the_background_is_raised_by_the_next_check_and_answer(tmp_path):
    files = JournalFiles(tmp_path)
    files.check()
    files._flusher.failure = StoreError("cannot write: the disk is full")  # as its thread sets it
    for call in (files.check, lambda: files.append_answer(ANSWER)):
        with pytest.raises(StoreError, match="the disk is full"):
            call()
    assert held(tmp_path)[0] == HEADER
    files.close()
