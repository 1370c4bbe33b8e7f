import csv

import pytest

from agentv.errors import StoreError, UsageError
from agentv.extensions.labels.labelling import export_answers, import_labels, open_session
from doubles.judged_runs import judged_run


@pytest.fixture
def session(tmp_path):
    judged_run(tmp_path, [True, True, True, False], answer='=SUM(1) \x1b answer, "{}"\nnext')
    return open_session("last", None, 4, 0, "ada")


def test_what_is_exported_and_filled_in_comes_back(session, tmp_path):
    file = tmp_path / "labels.csv"
    export_answers(session, file)
    rows = read(file)
    assert (rows[0]["criteria"], rows[0]["label"]) == ("Is polite", "")
    rows[0]["label"], rows[1]["label"], rows[2]["label"] = "pass", "FAIL ", "unsure"
    rows[1].update(note="rude", person="bob")
    write(file, rows)
    added = import_labels("last", file, "ada")
    assert (added.added, added.known, added.empty) == (3, 0, 1)
    labels = session.store.read(session.suites)
    shown = [(one.verdict, one.person, one.note) for one in labels]
    assert shown == [("pass", "ada", ""), ("fail", "bob", "rude"), ("unsure", "ada", "")]
    assert [one.probability for one in labels] == [1, 1, 1]
    assert {one.judge_passed: one.drawn_from for one in labels}[True] == 3
    assert import_labels("last", file, "ada").added == 0, "the same file twice adds nothing"


def test_wrong_lines_are_named_and_nothing_is_added(session, tmp_path):
    file = tmp_path / "labels.csv"
    export_answers(session, file)
    rows = read(file)
    for row in rows:
        row["label"] = "pass"
    rows[0]["label"], rows[1]["rubric_sha256"], rows[2]["draw"] = "yes", "f" * 64, "all of them"
    rows += [dict(rows[3], label="fail"), dict(rows[3], output_sha256="")]
    write(file, rows)
    with pytest.raises(UsageError) as found:
        import_labels("last", file, "ada")
    told = str(found.value)
    assert "unknown label 'yes'; write pass, fail or unsure" in told
    assert "of another run or rubric" in told
    assert "agentv wrote no draw 'all of them'; leave that column as it was exported" in told
    assert "ada says something else of this answer above" in told
    assert "it was cut off, or these columns were emptied" in told
    assert len(told.splitlines()) == 5
    assert session.store.read(session.suites) == []


def test_answers_of_no_draw_are_labelled_and_told(session, tmp_path):
    file = tmp_path / "labels.csv"
    export_answers(session, file)
    rows = [{**row, "label": "pass", "draw": ""} for row in read(file)]
    write(file, rows)
    added = import_labels("last", file, "ada")
    assert (added.added, added.not_drawn) == (4, 4)
    assert {(one.probability, one.drawn_from) for one in session.store.read(session.suites)} == {(None, None)}


def test_files_that_are_none_are_refused(session, tmp_path):
    for name, content, error, says in (
        ("none.csv", None, StoreError, "it does not exist"),
        ("a.csv", b"\xff\xfe", StoreError, "not UTF-8"),
        ("b.csv", b"case,label\n", UsageError, "no column assertion, output_sha256, rubric_sha256"),
    ):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(error, match=says):
            import_labels("last", tmp_path / name, "ada")
    with pytest.raises(UsageError, match="cannot tell the format"):
        export_answers(session, tmp_path / "labels.xlsx")


def test_nothing_exported_tells_what_the_judge_said(tmp_path, monkeypatch):
    """Exports of opposite judges are equal except for the selection of answers."""
    monkeypatch.chdir(tmp_path)
    exported = []
    for number, verdicts in enumerate(([True] * 9 + [False] * 3, [False] * 9 + [True] * 3)):
        run = judged_run(tmp_path, verdicts, run=f"run-{number}")
        file = tmp_path / f"{run}.csv"
        export_answers(open_session(run, None, 100, 0, "ada"), file)
        exported.append({row.pop("case"): row for row in read(file)})
    assert exported[0] == {case: exported[1][case] | {} for case in exported[0]}
    assert not {"judge", "judge_pass", "probability", "drawn_from", "passed", "reason"} & set(exported[0]["c0"])


def test_the_file_is_never_overwritten(session, tmp_path):
    (tmp_path / "labels.csv").write_text("mine")
    with pytest.raises(UsageError, match="exists and may hold labels") as found:
        export_answers(session, tmp_path / "labels.csv")
    assert found.value.hint == "import it first, or choose another name"
    assert (tmp_path / "labels.csv").read_text() == "mine"


def test_the_probability_comes_from_the_draw_and_not_from_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    judged_run(tmp_path, [True] * 30 + [False] * 10)
    session = open_session("last", None, 8, 3, "ada")
    file = tmp_path / "labels.csv"
    export_answers(session, file)
    rows = read(file)
    assert {row["draw"] for row in rows} == {"sample 8 seed 3"}
    for row in rows:
        row["label"] = "fail"
    write(file, rows)
    assert import_labels("last", file, "ada").not_drawn == 0
    wanted = {(one.answer.case, one.probability, one.drawn_from) for one in session.drawn}
    assert {(one.case, one.probability, one.drawn_from) for one in session.store.read(session.suites)} == wanted


def read(file):
    return list(csv.DictReader(file.read_bytes().decode().splitlines(keepends=True)))


def write(file, rows):
    with file.open("w", newline="") as out:
        writer = csv.DictWriter(out, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
