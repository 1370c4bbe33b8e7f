from __future__ import annotations

from pathlib import Path

import pytest

from agentv.errors import StoreError
from agentv.store.journal.verification import check_rows
from doubles.stored_runs import scoring, vouch, write_run


@pytest.fixture
def run(tmp_path):
    return Path(write_run(tmp_path / "run", scoring({"a": 1.0, "b": 0.0})))


def test_rows_as_they_were_written_are_fine(run):
    check_rows(run)
    (run / "index.jsonl").write_bytes((run / "index.jsonl").read_bytes() + b'{"test_id": "torn')
    check_rows(run)  # its writer is about to write the rest


@pytest.mark.parametrize(
    ("old", "new"),
    [(b'"status":"failed"', b'"status":"passed"'), (b'"score":0.0', b'"score":1.0'), (b'"a"', b'"c"')],
)
def test_a_row_that_was_edited_is_named(run, old, new):
    index = run / "index.jsonl"
    index.write_bytes(index.read_bytes().replace(old, new, 1))
    with pytest.raises(
        StoreError, match=r"index.jsonl:\d: this row was changed after it was written; agentv eval --resume=run"
    ):
        check_rows(run)
    vouch(run)
    check_rows(run)


def test_a_row_that_was_added_is_named(run):
    with (run / "index.jsonl").open("ab") as index:
        index.write(b'{"key": "new"}\n')
    with pytest.raises(StoreError, match=r"index.jsonl:3: this row was changed after it was written"):
        check_rows(run)


@pytest.mark.parametrize("journal", [None, b"", b'{"format":"agentv-journal","version":1}\n'])
def test_rows_without_a_journal_are_refused(run, journal):
    (run / "journal.jsonl").unlink()
    if journal is not None:
        (run / "journal.jsonl").write_bytes(journal)
    with pytest.raises(StoreError, match=r"journal.jsonl has checksums of none of them"):
        check_rows(run)
    (run / "index.jsonl").write_bytes(b"")
    check_rows(run)


def test_a_checksum_that_was_changed_counts_for_nothing(run):
    journal = run / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"row":', b'"row": ', 1))
    with pytest.raises(StoreError, match=r"index.jsonl:1: this row was changed after it was written"):
        check_rows(run)
