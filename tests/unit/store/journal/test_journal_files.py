"""The two files that a run appends to."""

from __future__ import annotations

import shutil
import threading
from contextlib import suppress

import pytest

from agentv.errors import StoreError
from agentv.store.files.background_flush import BackgroundFlusher
from agentv.store.journal.answers import (
    HEADER,
    SummaryChecksum,
    discard_line,
    row_checksum_line,
    summary_checksum_line,
)
from agentv.store.journal.journal_files import BUFFERED_BYTES, JournalFiles
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


def test_a_journal_begins_with_its_header_once(tmp_path):
    for _ in range(2):
        JournalFiles(tmp_path).close()
    assert held(tmp_path) == (HEADER, b"")


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


def test_rows_are_written_at_once_where_many_bytes_of_them_wait(tmp_path, files, monkeypatch):
    monkeypatch.setattr(BackgroundFlusher, "wake", lambda _: None)
    half = b"x" * (BUFFERED_BYTES // 2)
    for written in range(3):
        files.append_row("k", half[1:], 0)
        files.append_row("k", half, 0)
        assert held(tmp_path)[1].count(b"\n") == 3 * written
        files.append_row("k", b"x", 0)
        assert held(tmp_path)[1].count(b"\n") == 3 * written + 3


def test_closing_writes_what_waits_and_ends_the_thread_and_the_second_time_nothing(tmp_path):
    files = JournalFiles(tmp_path)
    files.append_row("a", A, 0)
    files.close()
    files.close()
    assert held(tmp_path) == (HEADER + row_checksum_line("a", A), A + b"\n")
    assert "agentv-store" not in {thread.name for thread in threading.enumerate()}


def test_a_summary_is_of_all_rows_those_that_waited_among_them(tmp_path, files):
    files.append_row("a", A, 0)
    files.append_summary_checksum(b"{}")
    summary = summary_checksum_line(SummaryChecksum.of(b"{}", len(A) + 1))
    assert held(tmp_path) == (HEADER + row_checksum_line("a", A) + summary, A + b"\n")


def test_each_answer_and_row_wakes_the_thread_that_has_them_on_the_disk(files, monkeypatch):
    woken = []
    monkeypatch.setattr(BackgroundFlusher, "wake", lambda _: woken.append(1))
    files.append_answer(ANSWER)
    files.append_row("a", A, 0)
    assert len(woken) == 2


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


def test_answers_that_are_discarded_are_noted(tmp_path, files):
    files.discard_answers(["x"])
    assert held(tmp_path)[0] == HEADER + ANSWER


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
