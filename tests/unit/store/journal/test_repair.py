"""What is said of a run's files that were repaired or restored."""

from __future__ import annotations

import json

from agentv.store.files.lines import Restored
from agentv.store.journal.answers import HEADER, discard_line
from agentv.store.journal.repair import cut_torn_lines, quarantined, restored_answers, restored_rows


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
    assert quarantined(1) == (
        f"{begin}1 row was changed after it was written: moved to rejected.jsonl; its trial is graded again"
    )
    assert quarantined(2_000) == (
        f"{begin}2,000 rows were changed after they were written: moved to rejected.jsonl; their trials are graded again"
    )


def test_what_was_wrong_with_the_rows_is_named_with_the_first_cases():
    begin, resume = "index.jsonl was changed: ", "--resume grades their trials again from the answers"
    described = {
        Restored((), 0): "its rows are in their place again",
        Restored((b"x\n",), 0): "1 line not written by agentv, moved to rejected.jsonl",
        Restored((row("a"), b"x\n", row("a")), 0): "3 lines (a) not written by agentv, moved to rejected.jsonl",
        Restored(tuple(map(row, "abcde")), 0): (
            "5 lines (a, b, c, d, e) not written by agentv, moved to rejected.jsonl"
        ),
        Restored(tuple(map(row, "abcdef")), 1): (
            "6 lines (a, b, c, d, e and others) not written by agentv, moved to rejected.jsonl; "
            f"1 row is lost; {resume}"
        ),
        Restored((), 2): f"2 rows are lost; {resume}",
    }
    assert {found: restored_rows(found) for found in described} == {
        found: begin + what for found, what in described.items()
    }


def test_what_was_wrong_with_the_journal_is_counted():
    begin, resume = "journal.jsonl was changed: ", "--resume makes these calls again"
    described = {
        Restored((), 0): "its lines are in their place again",
        Restored((b"x\n",), 0): "1 line not written by agentv, removed",
        Restored((b"x\n", b"y\n"), 1): f"2 lines not written by agentv, removed; 1 line lost; {resume}",
        Restored((), 2): f"2 lines lost; {resume}",
    }
    assert {found: restored_answers(found) for found in described} == {
        found: begin + what for found, what in described.items()
    }
