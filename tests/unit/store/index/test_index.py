import json
import os
import sqlite3
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from agentv.errors import StoreError
from agentv.model.run.matrix import Counts
from agentv.model.run.runs import Selection
from agentv.store.files.directory import RunDirectory
from agentv.store.files.encoding import to_json
from agentv.store.index import RowIndex, remove_run
from agentv.store.rows.results import read_results_at
from agentv.store.rows.rows import RelativePaths, row_of
from agentv.store.totals.summary import PlannedCounts, summarize
from doubles.trials import ROOT, finished, trial

ALL = Selection()
TRIALS = [
    finished("passed", trial=trial("refund-1", tags=("smoke", "en"))),
    finished("failed", trial=trial("refund-2", target="haiku")),
    finished("errored", trial=trial("order-1", suite="orders")),
    finished("skipped", trial=trial("order[locale=de]", suite="orders", tags=("de",)), score=None),
    finished("failed", trial=trial("Refund-3", tags=("de",))),
]


def add(run, *results):
    with (run / "index.jsonl").open("ab") as file:
        file.writelines(to_json(row_of(result, RelativePaths(ROOT))) + b"\n" for result in results)


@pytest.fixture
def run(tmp_path):
    add(tmp_path, *TRIALS)
    return tmp_path


def chosen(run, index, **selection):
    places = index.places(Selection(**selection))
    return [result.trial.case.id for result in read_results_at(run / "index.jsonl", ROOT, places)]


@pytest.mark.parametrize(
    ("selection", "found"),
    [
        ({}, ["refund-1", "refund-2", "Refund-3", "order-1", "order[locale=de]"]),
        ({"statuses": ("errored", "failed")}, ["refund-2", "Refund-3", "order-1"]),
        ({"cases": ("refund-1", "order-?")}, ["refund-1", "order-1"]),
        ({"cases": ("[rR]efund-[!1]",)}, ["refund-2", "Refund-3"]),
        ({"cases": ("order[locale=de]",)}, ["order[locale=de]"]),
        ({"cases": ("%", "_________", "refund")}, []),
        ({"suites": ("order*",), "statuses": ("errored",)}, ["order-1"]),
        ({"targets": ("haiku", "no")}, ["refund-2"]),
        ({"tags": ("en", "de")}, ["refund-1", "Refund-3", "order[locale=de]"]),
        ({"tags": ("de",), "suites": ("refunds",)}, ["Refund-3"]),
    ],
)
def test_trials_are_found_by_what_their_rows_say(run, selection, found):
    with RowIndex.of(run) as index:
        assert chosen(run, index, **selection) == found
        assert index.counts(Selection(**selection)).total == len(found)


def test_they_are_counted_by_how_they_ended(run):
    with RowIndex.of(run) as index:
        assert index.counts(ALL) == Counts(5, 1, 2, 1, 1)
        assert index.counts(Selection(suites=("orders",))) == Counts(2, 0, 0, 1, 1)


def test_of_a_trial_with_two_rows_the_newest_counts(run):
    add(run, replace(TRIALS[1], status="passed"), replace(TRIALS[1], status="errored"))
    with RowIndex.of(run) as index:
        assert index.counts(ALL) == Counts(5, 1, 1, 2, 1)
        assert chosen(run, index, statuses=("errored",)) == ["refund-2", "order-1"]


def grown(run):
    add(run, finished(trial=trial("new")))


def edited_in_place(run):
    text = (run / "index.jsonl").read_text()
    (run / "index.jsonl").write_text(text.replace('"test_id":"refund-1"', '"test_id":"new","":7'))
    os.utime(run / "index.jsonl", ns=(1, 1))


def lost(run):
    grown(run)
    (run / "index.sqlite").unlink()


def damaged(run):
    grown(run)
    (run / "index.sqlite").write_bytes(b"this is no database" * 100)


def newer(run):
    database = sqlite3.connect(run / "index.sqlite")
    database.execute("PRAGMA user_version = 2")
    database.close()
    grown(run)


@pytest.mark.parametrize("change", [grown, edited_in_place, lost, damaged, newer])
def test_it_is_made_anew_where_it_is_not_of_these_rows(run, change):
    RowIndex.of(run).close()
    change(run)
    assert RowIndex.there(run) is None
    with RowIndex.of(run) as index:
        assert index.counts(Selection(cases=("new",))).total == 1
    RowIndex.there(run).close()


def test_a_directory_that_cannot_be_written_works_without_it(run, monkeypatch):
    def refused(*_):
        raise PermissionError

    monkeypatch.setattr("pathlib.Path.replace", refused)  # whoever runs the tests as root may write anywhere
    with RowIndex.of(run) as index:
        assert index.counts(ALL).total == 5
    assert [path.name for path in run.iterdir()] == ["index.jsonl"]


def test_a_line_that_is_no_row_is_named_and_leaves_nothing_behind(run):
    (run / "index.jsonl").write_bytes((run / "index.jsonl").read_bytes() + b"{}\n")
    with pytest.raises(StoreError, match=r"index.jsonl:6: not a row of a run"):
        RowIndex.of(run)
    assert [path.name for path in run.iterdir()] == ["index.jsonl"]


def test_an_index_whose_pages_are_damaged_says_what_to_do(run):
    add(run, *(finished(trial=trial(f"{number}" * 50)) for number in range(200)))
    RowIndex.of(run).close()
    file = run / "index.sqlite"
    whole = file.read_bytes()
    file.write_bytes(whole[:12288] + b"\xff" * (len(whole) - 12288))
    with pytest.raises(StoreError, match=r"index.sqlite: delete that file"), RowIndex.of(run) as index:
        list(index.places(ALL))


def test_totals_are_made_from_the_same_reading(run):
    def summing(rows):
        return summarize(rows, run_id="r", planned=PlannedCounts(trials=9, cases=9), duration_ms=0.0)

    RowIndex.of(run).close()
    with RowIndex.of(run, summing=summing) as index:
        made = index.totals()
    kept = RowIndex.there(run)
    assert kept is not None
    with kept:
        assert kept.totals() == made
    assert (made.trials, list(made.by_suite)) == (Counts(9, 1, 2, 1, 5), ["orders", "refunds"])


def test_a_row_of_a_newer_agentv_is_refused(run):
    row = json.loads((run / "index.jsonl").read_text().splitlines()[0])
    (run / "index.jsonl").write_text(json.dumps({**row, "schema_version": 99}) + "\n")
    with pytest.raises(StoreError, match="written by a newer agentv"):
        RowIndex.of(run)


NAMES = st.text("ab*?[]!^-é\n", max_size=4) | st.from_regex(r"\A[ab]?\[!?[ab]-?[abc]\][ab*?]?\Z")


@settings(max_examples=60)  # each makes a file
@example(["b[aa]", "a"], "[b-a]*")
@given(st.lists(NAMES, max_size=6, unique=True), NAMES)
def test_patterns_match_as_in_a_shell(tmp_path_factory, names, pattern):
    run = tmp_path_factory.mktemp("run")
    add(run, *(finished(trial=trial(name)) for name in names))
    with RowIndex.of(run, keep=False) as index:
        shown = chosen(run, index, cases=(pattern,))
        assert shown == [name for name in names if name == pattern or fnmatchcase(name, pattern)]


def test_an_interrupt_leaves_nothing_of_an_index(run):
    def summing(_rows):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        RowIndex.of(run, summing=summing)
    assert [one.name for one in run.iterdir()] == ["index.jsonl"]


NOW = datetime(2026, 11, 21, 14, 3, 22, tzinfo=UTC)


@pytest.fixture
def deletion_run(tmp_path):
    with RunDirectory.create(tmp_path, NOW) as directory:
        path = directory.path
    for name in ("index.jsonl", "summary.json", "history.jsonl", "rejected.jsonl", ".run.json.new"):
        (path / name).write_text("")
    RowIndex.of(path).close()
    (path / ".index.sqlite.123.new").write_text("")
    return path


def test_a_run_is_removed_with_its_directory_and_no_other(deletion_run):
    assert remove_run(deletion_run) == ()
    assert [path.name for path in deletion_run.parent.iterdir()] == [".gitignore"]


def test_a_run_in_a_directory_of_its_own_takes_the_ignore_file_along(tmp_path):
    with RunDirectory.create(tmp_path, NOW, out=tmp_path / "out"):
        pass
    assert remove_run(tmp_path / "out") == ()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["report.html", "artifacts", ".gitignore"])
def test_what_is_no_part_of_it_stays(deletion_run, name):
    (deletion_run / name).mkdir() if name == "artifacts" else (deletion_run / name).write_text("*\n!mine\n")
    assert remove_run(deletion_run) == (name,)
    assert [path.name for path in deletion_run.iterdir()] == [name]


def test_a_link_to_a_run_is_refused(deletion_run, tmp_path):
    (tmp_path / "link").symlink_to(deletion_run)
    with pytest.raises(StoreError, match="it is a symlink"):
        remove_run(tmp_path / "link")
    assert (deletion_run / "run.json").exists()


@pytest.mark.parametrize("name", ["index.jsonl", "journal.jsonl", "summary.json"])
def test_a_link_inside_is_removed_and_not_followed(deletion_run, tmp_path, name):
    (tmp_path / "elsewhere").write_text("mine")
    (deletion_run / name).unlink()
    (deletion_run / name).symlink_to(tmp_path / "elsewhere")
    assert remove_run(deletion_run) == ()
    assert (tmp_path / "elsewhere").read_text() == "mine"


def test_a_run_that_is_being_written_is_refused_whole(deletion_run):
    with RunDirectory.open(deletion_run):
        before = {path.name for path in deletion_run.iterdir()}
        with pytest.raises(StoreError, match="still being written"):
            remove_run(deletion_run)
    assert {path.name for path in deletion_run.iterdir()} == before


@pytest.mark.parametrize("record", [None, "{", "[]", "{}", '{"run_id": "x"}', '{"run_id": 7, "schema_version": 1}'])
def test_what_is_no_run_is_refused(deletion_run, record):
    (deletion_run / "run.json").unlink()
    if record is not None:
        (deletion_run / "run.json").write_text(record)
    with pytest.raises(StoreError, match=r"run\.json"):
        remove_run(deletion_run)
    assert (deletion_run / "index.jsonl").exists()


def test_a_run_whose_removal_was_cut_off_can_be_removed_again(deletion_run, monkeypatch):
    removed = []

    def unlink(path):
        if path.name == "summary.json":
            raise OSError(5, "Input/output error")
        removed.append(path.name)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", unlink)
        with pytest.raises(StoreError, match="cannot delete"):
            remove_run(deletion_run)
    assert "run.json" not in removed
    assert remove_run(deletion_run) == ()
