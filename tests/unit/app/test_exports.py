import csv
import io
import json
from pathlib import Path

import junitparser
import pytest
from msgspec import structs
from msgspec.structs import replace

from agentv.app.exports import Exported, check_exports, known_suffixes, rendered, write_export
from agentv.app.results.selecting import choose
from agentv.app.results.stored import open_run
from agentv.cli.eval import split_outs
from agentv.errors import StoreError, UsageError
from agentv.model.run.runs import Selection
from agentv.sdk import evaluate

SUITE = {
    "name": "greetings",
    "target": "echo",
    "threshold": 1,
    "tests": [
        {"id": name, "input": f"hello {name}", "assert": [{"contains": "b"}]} for name in ("anna", "bob", "barbara")
    ],
}


@pytest.fixture
def run(tmp_path, monkeypatch):
    (tmp_path / ".agentv").mkdir()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.eval.yaml").write_text(json.dumps(SUITE))
    evaluate("a.eval.yaml", workers=1)
    return open_run("last", action="export")


def text(run, suffix):
    return "".join(rendered(suffix, Exported(run)))


@pytest.fixture
def passed(run):
    """Return the run with only its passed trials."""
    return choose(run, Selection(statuses=("passed",))).run


def test_rows_are_as_they_lie_on_disk(run):
    run.index.write_text(run.index.read_text().replace('"schema_version":1', '"schema_version":1,"newer":[1]'))
    assert text(run, ".jsonl") == run.index.read_text()


def test_of_a_trial_that_was_done_again_the_newest_row_is_exported(run):
    first = json.loads(run.index.read_text().splitlines()[0])
    with run.index.open("a") as file:
        file.write(json.dumps(first | {"status": "passed"}) + "\n")
    rows = [json.loads(line) for line in text(run, ".jsonl").splitlines()]
    assert [(row["test_id"], row["status"]) for row in rows][-1] == ("anna", "passed")
    assert len(rows) == 3


def test_only_what_is_chosen_is_in_the_other_formats(run, passed):
    table = csv.DictReader(io.StringIO(text(passed, ".csv"), newline=""))
    assert [row["test_id"] for row in table] == ["bob", "barbara"]
    (suite,) = junitparser.JUnitXml.fromstring(text(passed, ".xml").encode())
    assert (suite.tests, suite.failures) == (2, 0)
    assert "anna" not in text(passed, ".md")
    assert "anna" in text(run, ".md")


def test_a_page_is_of_trials(run, passed):
    page = text(run, ".html")
    assert page.startswith("<!doctype html>")
    assert "anna" in page
    assert "hello anna" not in text(passed, ".html")
    with pytest.raises(UsageError, match="nothing to report"):
        text(replace(run, places=()), ".html")


def test_trials_without_a_row_are_told_as_not_run(run):
    run.index.write_text("".join(run.index.read_text().splitlines(keepends=True)[1:]))
    (run.path / "summary.json").unlink()
    killed = open_run("last", action="export")
    ran, not_run = junitparser.JUnitXml.fromstring(text(killed, ".xml").encode())
    assert (ran.tests, ran.errors) == (2, 0)
    assert (not_run.name, not_run.tests, not_run.errors) == ("not run", 1, 1)
    assert "1 not run" in text(killed, ".md")
    assert "not run" not in text(choose(killed, Selection(statuses=("passed",))).run, ".xml")


def test_a_line_that_is_no_row_is_told_and_leaves_no_half_file(run, tmp_path):
    with run.index.open("a") as file:
        file.write('{"no": "key"}\n')
    for suffix in known_suffixes():
        with pytest.raises(StoreError, match=r"index\.jsonl:4: (not a row of a run|this row was changed)"):
            write_export(Exported(run), tmp_path / f"out{suffix}")
    assert not list(tmp_path.glob("*out*"))


def test_the_suffix_names_the_format_unless_another_is_asked_for(run, tmp_path):
    write_export(Exported(run), tmp_path / "A.JSONL")
    assert (tmp_path / "A.JSONL").read_text() == run.index.read_text()
    write_export(Exported(run), tmp_path / "rows.txt", ".jsonl")
    assert (tmp_path / "rows.txt").read_text() == run.index.read_text()
    with pytest.raises(UsageError, match="unknown suffix"):
        write_export(Exported(run), tmp_path / "rows.txt")


@pytest.mark.parametrize("name", ["run.json", "index.jsonl", "journal.jsonl", "summary.json", "history.jsonl"])
def test_what_a_run_keeps_is_never_replaced(run, name):
    before = run.index.read_bytes()
    with pytest.raises(UsageError, match="is one of the run's own files"):
        write_export(Exported(run), run.path / name)
    with pytest.raises(UsageError, match="is one of the run's own files"):
        write_export(Exported(structs.replace(run, path=Path("elsewhere"))), run.path / name)
    assert run.index.read_bytes() == before
    write_export(Exported(run), run.path / "rows.jsonl")


def test_places_are_checked_before_a_run(run, tmp_path):
    check_exports(["new.csv", "out/a.csv"], "out", set())
    with pytest.raises(UsageError, match=r"the directory other does not exist") as refused:
        check_exports(["other/a.csv"], "out", set())
    assert refused.value.hint == "mkdir -p other"
    with pytest.raises(UsageError, match="an input of this run"):
        check_exports(["cases.jsonl"], None, {str(tmp_path / "cases.jsonl")})
    with pytest.raises(UsageError, match="is one of the run's own files"):
        check_exports(["out/index.jsonl"], "out", set())
    assert sorted(one.name for one in tmp_path.iterdir()) == [".agentv", "a.eval.yaml"]


def test_outs_are_a_directory_and_exports():
    assert split_outs(("a.csv", "out", "b.MD", "a.csv")) == ("out", ("a.csv", "b.MD"))
    assert split_outs(("results-1.2", "x.xml")) == ("results-1.2", ("x.xml",))
    assert split_outs(("out.d",)) == ("out.d", ())
    assert split_outs(("odd.md/",)) == ("odd.md/", ())
    with pytest.raises(UsageError, match="two results directories given: a and b"):
        split_outs(("a", "b"))


@pytest.mark.parametrize(("slip", "meant"), [("a.htm", ".html"), ("a.jsn", ".json"), ("a.jsnl", ".jsonl")])
def test_a_slip_in_a_suffix_makes_no_directory(tmp_path, monkeypatch, slip, meant):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="no export has the suffix '") as refused:
        split_outs((slip,))
    assert f"did you mean '{meant}'?" in refused.value.hint
    (tmp_path / slip).mkdir()
    assert split_outs((slip,)) == (slip, ())
