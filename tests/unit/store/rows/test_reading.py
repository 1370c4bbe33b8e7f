import json

import pytest

from agentv.errors import StoreError
from agentv.model.run.trial import SCHEMA_VERSION
from agentv.model.values.response import RUN_INTERRUPTED, CallFailure, Failure
from agentv.store.files.encoding import to_json
from agentv.store.rows import reading
from agentv.store.rows.reading import (
    count_interrupted,
    finished_keys,
    key_of_row,
    read_placed_rows,
    replaced_lines,
    replaced_rows,
)
from agentv.store.rows.results import read_results, read_results_at
from agentv.store.rows.rows import row_of
from doubles.trials import ROOT, finished


def written(path, *rows):
    path.write_bytes(b"".join(row + b"\n" for row in rows))
    return path


def row(**given):
    return to_json(row_of(finished(**given), ROOT))


def test_interrupted_rows_are_counted_wherever_the_file_is_cut(tmp_path, monkeypatch):
    interrupted = row(status="errored", error=Failure(RUN_INTERRUPTED, "Ctrl-C"))
    others = [row(), row(status="errored", error=Failure("timeout", "late")), row(output=RUN_INTERRUPTED)]
    none = written(tmp_path / "none.jsonl", *others)
    one = written(tmp_path / "one.jsonl", *others, interrupted)
    two = written(tmp_path / "two.jsonl", interrupted, *others, interrupted)
    for at_once in (*range(64, 128), 1 << 16):
        monkeypatch.setattr(reading, "_BLOCK_BYTES", at_once)
        assert [count_interrupted(path) for path in (none, one, two, tmp_path / "gone.jsonl")] == [0, 1, 2, 0], at_once


@pytest.mark.parametrize(
    ("status", "error", "is_finished"),
    [
        ("passed", None, True),
        ("failed", None, True),
        ("errored", Failure("timeout", "late"), True),
        ("errored", Failure(RUN_INTERRUPTED, "Ctrl-C"), False),
        ("errored", CallFailure("http-status", "wrong key", stops=True), False),
        ("skipped", None, False),
    ],
)
def test_which_trials_need_not_run_again(tmp_path, status, error, is_finished):
    line = row(status=status, error=error)
    path = written(tmp_path / "index.jsonl", line)
    assert list(finished_keys(path)) == ([key_of_row(line)] if is_finished else [])
    assert key_of_row(line) == json.loads(line)["key"]
    assert key_of_row(b"[]") is None


@pytest.mark.parametrize("score", [7, -0.1, 1.001])
@pytest.mark.parametrize("of", ["its own", "of an assertion"])
def test_a_score_that_is_none_is_refused_with_its_line(tmp_path, score, of):
    written_row = json.loads(row())
    (written_row if of == "its own" else written_row["scores"][0])["score"] = score
    path = written(tmp_path / "index.jsonl", row(), json.dumps(written_row).encode())
    with pytest.raises(StoreError, match=r"jsonl:2: not a row of a run.*score"):
        list(read_placed_rows(path))


@pytest.mark.parametrize("changed", [{}, {"scores": "in another shape"}])
def test_a_row_of_a_newer_agentv_is_refused_with_its_version(tmp_path, changed):
    newer = json.loads(row()) | changed | {"schema_version": SCHEMA_VERSION + 1}
    path = written(tmp_path / "index.jsonl", json.dumps(newer).encode())
    expected = f"jsonl:1: written by a newer agentv .format {SCHEMA_VERSION + 1};"
    with pytest.raises(StoreError, match=expected):
        list(read_placed_rows(path))
    with pytest.raises(StoreError, match=expected):
        list(read_results(path, ROOT))
    with pytest.raises(StoreError, match=f"written by a newer agentv .format {SCHEMA_VERSION + 1};"):
        list(read_results_at(path, ROOT, [0]))


def test_a_row_of_an_older_agentv_is_read(tmp_path):
    older = {key: value for key, value in json.loads(row()).items() if key in {"test_id", "target", "status", "key"}}
    path = written(tmp_path / "index.jsonl", json.dumps(older).encode())
    (found,), (result,) = [one for _, one in read_placed_rows(path)], read_results(path, ROOT)
    assert (found.vars, found.finish_reason, found.scores, found.sample) == ({}, None, (), 1)
    assert (result.status, result.trial.case.vars, result.finish_reason) == ("passed", {}, None)


def test_a_last_row_that_is_being_written_is_passed_over(tmp_path):
    path = written(tmp_path / "index.jsonl", row(), row())
    path.write_bytes(path.read_bytes()[:-20])
    assert len(list(read_placed_rows(path))) == 1


def test_of_several_rows_of_one_trial_the_last_counts(tmp_path):
    index = tmp_path / "index.jsonl"
    keys = ["a", "b", "a", "c", "b", "a"]
    index.write_text("\n".join(json.dumps({"key": key}) for key in keys[:3]) + "\n\n")
    with index.open("a") as file:
        file.writelines(json.dumps({"key": key}) + "\n" for key in keys[3:])

    assert replaced_lines(index) == {1, 2, 3}  # line 4 is empty


def test_a_line_that_is_no_row_replaces_nothing(tmp_path):
    index = tmp_path / "index.jsonl"
    index.write_text('{"key": "a"}\n{"other": 1}\nno json\n{"key": "b"}\n')

    assert replaced_lines(index) == frozenset()
    assert replaced_lines(tmp_path / "none") == frozenset()


ROW = {"test_id": "a", "target": "t", "status": "failed", "key": "k-1", "cost_usd": 0.5}


def test_a_torn_end_is_passed_over_since_its_row_still_stands_in_the_index(tmp_path):
    whole = json.dumps(ROW)
    (tmp_path / "history.jsonl").write_text(whole + "\n" + whole[:30])
    assert [row.test_id for row in replaced_rows(tmp_path)] == ["a"]


def test_a_damaged_row_in_the_middle_is_told(tmp_path):
    whole = json.dumps(ROW)
    (tmp_path / "history.jsonl").write_text(whole[:30] + "\n" + whole + "\n")
    with pytest.raises(StoreError, match=r"history.jsonl:1"):
        list(replaced_rows(tmp_path))


def test_a_row_that_is_in_the_index_too_or_twice_counts_once(tmp_path):
    rows = [json.dumps(ROW | {"test_id": case}) + "\n" for case in "abca"]
    (tmp_path / "history.jsonl").write_text("".join(rows))
    assert [row.test_id for row in replaced_rows(tmp_path)] == ["a", "b", "c"]
    (tmp_path / "index.jsonl").write_text(rows[1])
    assert [row.test_id for row in replaced_rows(tmp_path)] == ["a", "c"]
