import csv
import json

import pytest

from agentv.app.labels.exchange import export_answers, import_labels
from agentv.app.labels.labelling import open_session
from agentv.errors import StoreError, UsageError
from agentv.store.labels.label_files import read_labels
from doubles.judged_runs import judged_run


@pytest.fixture
def session(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    judged_run(tmp_path, [True, True, True, False], answer='=SUM(1) \x1b answer, "{}"\nnext')
    return open_session("last", None, 4, 0, "ada")


@pytest.mark.parametrize("name", ["labels.csv", "labels.jsonl"])
def test_what_is_exported_and_filled_in_comes_back(session, tmp_path, name):
    file = tmp_path / name
    export_answers(session, file)
    assert "judge_pass" not in file.read_text(), "the verdicts stay hidden"
    rows = read(file)
    assert (rows[0]["criteria"], rows[0]["label"]) == ("Is polite", "")
    rows[0]["label"], rows[1]["label"], rows[2]["label"] = "pass", "FAIL ", "unsure"
    rows[1].update(note="rude", person="bob")
    write(file, rows)
    added = import_labels("last", file, "ada")
    assert (added.added, added.known, added.empty) == (3, 0, 1)
    labels = read_labels(session.files)
    assert [(one.verdict, one.person, one.note) for one in labels] == [
        ("pass", "ada", ""),
        ("fail", "bob", "rude"),
        ("unsure", "ada", ""),
    ]
    assert [one.probability for one in labels] == [1, 1, 1]
    assert {one.judge_passed: one.drawn_from for one in labels}[True] == 3
    assert import_labels("last", file, "ada").added == 0, "the same file twice adds nothing"


def test_wrong_lines_are_named_and_nothing_is_added(session, tmp_path):
    file = tmp_path / "labels.csv"
    export_answers(session, file)
    rows = read(file)
    for row in rows:
        row["label"] = "pass"
    rows[0]["label"], rows[1]["rubric_sha256"], rows[2]["probability"] = "yes", "f" * 64, "2"
    write(file, rows)
    with pytest.raises(UsageError) as found:
        import_labels("last", file, "ada")
    told = str(found.value)
    assert "unknown label 'yes'; write pass, fail or unsure" in told
    assert "of another run or rubric" in told
    assert "the probability 2 is not above 0 and at most 1" in told
    assert len(told.splitlines()) == 3
    assert read_labels(session.files) == []


def test_answers_without_a_probability_were_not_drawn(session, tmp_path):
    file = tmp_path / "labels.jsonl"
    export_answers(session, file)
    rows = [{**row, "label": "pass", "probability": None} for row in read(file)]
    write(file, rows)
    import_labels("last", file, "ada")
    assert {(one.probability, one.drawn_from) for one in read_labels(session.files)} == {(None, None)}


def test_files_that_are_none_are_refused(session, tmp_path):
    for name, content, error, says in (
        ("a.txt", b"", UsageError, "cannot tell the format"),
        ("none.csv", None, StoreError, "it does not exist"),
        ("a.csv", b"\xff\xfe", StoreError, "not UTF-8"),
        ("b.csv", b"case,label\n", UsageError, "no column assertion, output_sha256, rubric_sha256"),
        ("a.jsonl", b"{\n", UsageError, r"a\.jsonl:1: not JSON"),
        ("b.jsonl", b"[]\n", UsageError, "expected an object"),
    ):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(error, match=says):
            import_labels("last", tmp_path / name, "ada")
    with pytest.raises(UsageError, match="cannot tell the format"):
        export_answers(session, tmp_path / "labels.xlsx")


def read(file):
    text = file.read_bytes().decode()
    if file.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    return list(csv.DictReader(text.splitlines(keepends=True)))


def write(file, rows):
    with file.open("w", newline="") as out:
        if file.suffix == ".jsonl":
            out.writelines(json.dumps(row) + "\n" for row in rows)
            return
        writer = csv.DictWriter(out, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
