import json
from pathlib import Path
from zlib import crc32

import pytest

from agentv.errors import StoreError
from agentv.store.journal.answers import HEADER, discard_line, row_checksum_line
from agentv.store.journal.journal_files import cut_torn_lines, quarantine_message
from agentv.store.journal.verification import check_rows, stored_summary
from doubles.stored_runs import scored_trials, update_checksums, write_run, write_summary


@pytest.fixture
def run(tmp_path):
    return Path(write_run(tmp_path / "run", scored_trials({"a": 1.0, "b": 0.0})))


def test_rows_as_they_were_written_are_fine(run):
    check_rows(run)
    (run / "index.jsonl").write_bytes((run / "index.jsonl").read_bytes() + b'{"test_id": "torn')
    check_rows(run)  # its writer is about to write the rest


@pytest.mark.parametrize(
    ("old", "new"), [(b'"status":"failed"', b'"status":"passed"'), (b'"score":0.0', b'"score":1.0'), (b'"a"', b'"c"')]
)
def test_a_row_that_was_edited_is_named(run, old, new):
    index = run / "index.jsonl"
    index.write_bytes(index.read_bytes().replace(old, new, 1))
    with pytest.raises(
        StoreError, match=r"index.jsonl:\d: this row was changed after it was written; agentv eval --resume=run"
    ):
        check_rows(run)
    update_checksums(run)
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


def test_a_row_is_not_verified_by_a_checksum_that_was_changed_with_it(run):
    index, journal = run / "index.jsonl", run / "journal.jsonl"
    row = index.read_bytes().splitlines()[1]
    forged = row.replace(b'"status":"failed"', b'"status":"passed"')
    assert forged != row
    index.write_bytes(index.read_bytes().replace(row, forged))
    sums = [b'"sum":"%08x"' % crc32(one) for one in (row, forged)]
    assert sums[0] in journal.read_bytes()
    journal.write_bytes(journal.read_bytes().replace(*sums))
    with pytest.raises(StoreError, match=r"index.jsonl:2: this row was changed after it was written"):
        check_rows(run)


def test_a_summary_is_verified_as_it_was_written_of_as_many_rows(run):
    assert stored_summary(run) is None
    write_summary(run, {"pass_rate": 0.5})
    found = stored_summary(run)
    assert (found.verified, found.document) == (True, {"pass_rate": 0.5})
    with (run / "index.jsonl").open("ab") as index:
        index.write(b'{"key": "new"}\n')
    assert not stored_summary(run).verified
    (run / "index.jsonl").unlink()
    assert not stored_summary(run).verified


@pytest.mark.parametrize("content", [b'{"pass_rate": 1.0}', b"", b"[]"])
def test_a_summary_that_was_changed_is_refused(run, content):
    write_summary(run, {"pass_rate": 0.5})
    (run / "summary.json").write_bytes(content)
    repair = "agentv eval --resume=run writes it again"
    with pytest.raises(StoreError, match=rf"summary\.json was changed after it was written; {repair}"):
        stored_summary(run)


def test_the_checksum_of_an_earlier_summary_counts_no_more_once_rows_follow(run):
    write_summary(run, {"pass_rate": 0.5})
    (run / "summary.json").write_bytes(b"{}")
    with (run / "journal.jsonl").open("ab") as journal:
        journal.write(row_checksum_line("c", b"{}"))
    assert not stored_summary(run).verified
    write_summary(run, b"{}")
    assert stored_summary(run).verified


def test_a_checksum_of_a_summary_that_was_changed_counts_for_nothing(run):
    write_summary(run, {"pass_rate": 0.5})
    journal = run / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"rows_bytes":', b'"rows_bytes":1'))
    assert not stored_summary(run).verified


def test_a_file_that_cannot_be_read_is_named(run):
    write_summary(run, {"pass_rate": 0.5})
    (run / "index.jsonl").unlink()
    (run / "index.jsonl").symlink_to("index.jsonl")  # a link to itself
    with pytest.raises(StoreError, match=r"cannot read .*index\.jsonl"):
        stored_summary(run)
    (run / "summary.json").unlink()
    (run / "summary.json").mkdir()
    with pytest.raises(StoreError, match=r"cannot read .*summary\.json"):
        stored_summary(run)


def row(case: str) -> bytes:
    return json.dumps({"test_id": case, "key": case}).encode() + b"\n"


def test_torn_lines_are_cut_off_every_file_of_a_run_and_whole_ones_are_left(tmp_path):
    whole = {"journal.jsonl": HEADER + discard_line(["a"]), "index.jsonl": row("a"), "history.jsonl": row("b")}
    for name, content in whole.items():
        (tmp_path / name).write_bytes(content)
    assert list(cut_torn_lines(tmp_path)) == []
    for torn in (b"torn", b"torn\n"):
        for name, content in whole.items():
            (tmp_path / name).write_bytes(content + torn)
        described = [f"{tmp_path / name}: removed {len(torn)} bytes of an incomplete line" for name in whole]
        assert list(cut_torn_lines(tmp_path)) == described
        assert {name: (tmp_path / name).read_bytes() for name in whole} == whole
    (tmp_path / "journal.jsonl").write_bytes(HEADER)
    assert list(cut_torn_lines(tmp_path)) == []
    assert (tmp_path / "journal.jsonl").read_bytes() == HEADER


def test_quarantined_rows_are_counted():
    begin = "index.jsonl: "
    shown = quarantine_message(1)
    assert shown == f"{begin}1 row was changed after it was written: moved to rejected.jsonl; its trial is graded again"
    assert quarantine_message(2_000) == (
        f"{begin}2,000 rows were changed after they were written: moved to rejected.jsonl; their trials are graded again"
    )
