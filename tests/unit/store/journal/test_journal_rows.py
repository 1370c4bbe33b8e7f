"""Rows of a run that run again, are not drawn, are replaced, or that something else wrote."""

from __future__ import annotations

import json

import pytest
from msgspec import structs

from agentv.model.run.summary import NOT_DRAWN
from agentv.model.secrets.redaction import Redactor
from agentv.model.values.response import Failure, TargetResponse
from agentv.model.values.trace import UsageStep
from agentv.model.values.usage import TokenUsage
from agentv.store.files.directory import RunDirectory, is_being_written
from agentv.store.journal.journal import Journal
from agentv.store.journal.verification import check_rows, stored_summary
from doubles.stores import call
from doubles.trials import NOW, ROOT, finished, trial


def result(key, status="passed", **more):
    return finished(status, trial=trial(key, key=key), **more)


def keys(directory, name):
    path = directory.path / name
    return [json.loads(line)["key"] for line in path.read_text().splitlines()] if path.exists() else None


def fill(journal, *results):
    for one in results:
        journal.keep(call(one.trial.key, one.trial.case.id), TargetResponse("yes"))
        journal.finish(one)


def test_cases_that_run_again_lose_their_rows_and_their_answers_and_others_keep_both(directory, journal):
    fill(journal, result("a"), result("b", "failed"), result("c", "failed"))
    assert list(journal.finished()) == ["a", "b", "c"]
    assert journal.load_answers() == 3
    assert journal.discard(lambda row: row.status == "failed") == 2
    assert (keys(directory, "index.jsonl"), keys(directory, "history.jsonl")) == (["a"], ["b", "c"])
    assert [journal.stored_answer(call(key)) is not None for key in "abc"] == [True, False, False]
    assert [journal.holds(key) for key in "abc"] == [True, False, False]
    assert list(journal.finished()) == ["a"]
    before = (directory.path / "journal.jsonl").read_bytes()
    assert journal.discard(lambda row: row.status == "failed") == 0
    assert (directory.path / "journal.jsonl").read_bytes() == before


def not_drawn(key):
    return result(key, "skipped", error=Failure(NOT_DRAWN, "it is decided"))


def test_trials_that_were_not_drawn_have_a_row_which_can_be_moved_away_so_that_they_are(directory, journal):
    fill(journal, result("a"))
    assert list(journal.finished()) == ["a"]
    journal.discard_skipped()
    assert keys(directory, "history.jsonl") is None
    fill(journal, not_drawn("b"), result("c", "skipped"), result("d", "skipped", error=Failure("limit", "no")))
    assert list(journal.finished()) == ["a"]
    assert keys(directory, "index.jsonl") == ["a", "b"]
    journal.discard_skipped()
    assert (keys(directory, "index.jsonl"), keys(directory, "history.jsonl")) == (["a"], ["b"])


@pytest.mark.parametrize(
    ("written", "current", "superseded", "files"),
    [
        ("ab", "ab", 0, (["a", "b"], None)),
        ("ab", "a", 1, (["a"], ["b"])),
        ("aba", "ab", 0, (["b", "a"], ["a"])),
        ("abac", "a", 2, (["a"], ["a", "b", "c"])),
    ],
)
def test_rows_that_no_longer_count_are_moved(directory, journal, written, current, superseded, files):
    fill(journal, *map(result, written))
    assert list(journal.finished()) == [*written]
    journal.load_answers()
    assert journal.supersede(set(current)) == superseded
    assert (keys(directory, "index.jsonl"), keys(directory, "history.jsonl")) == files


def test_nothing_is_stored_of_a_run_before_its_answers_are_loaded(directory, journal):
    journal.keep(call("k"), TargetResponse("yes"))
    assert (journal.stored_answer(call("k")), journal.holds("k"), journal.damaged) == (None, False, 0)
    assert journal.load_answers() == 1
    assert (journal.stored_answer(call("k")), journal.holds("k")) == (TargetResponse("yes"), True)


SECRET = "sk-5uper-s3cret"


def test_no_secret_is_in_what_a_run_writes_and_shows(tmp_path):
    with RunDirectory.create(tmp_path, NOW, redactor=Redactor([SECRET])) as directory:
        with Journal(directory, ROOT) as journal:
            journal.spend(f"case {SECRET}", f"target {SECRET}", UsageStep(tokens=TokenUsage(3, 4), cost_usd=0.5))
            journal.spend("case", "target", UsageStep(tokens=TokenUsage(3, 4), cost_usd=0.25))
            made = call("k", f"case {SECRET}")
            journal.keep(structs.replace(made, target=f"t {SECRET}"), TargetResponse(f"it is {SECRET}", cost_usd=0.5))
            shown = [journal.finish(result(key, output=f"it is {SECRET}")) for key in "ab"]
            shown.append(journal.finish(result("c", "skipped", output=f"it is {SECRET}")))
            plain = result("d")
            assert journal.finish(plain) is plain
        lines = [json.loads(line) for line in (directory.path / "journal.jsonl").read_text().splitlines()]
        assert [one.output for one in shown] == ["it is [redacted]"] * 3
        assert [(one["spent"], one["case"], one["cost_usd"]) for one in lines if "spent" in one] == [
            ("target [redacted]", "case [redacted]", 0.5),
            ("target", "case", 0.25),
        ]
        (answer,) = (one for one in lines if "output" in one)
        assert (answer["target"], answer["case"], answer["redacted"]) == ("t [redacted]", "case [redacted]", True)
        assert not [path.name for path in directory.path.iterdir() if SECRET.encode() in path.read_bytes()]


def test_a_finished_trial_comes_back_as_it_was_without_secrets(journal):
    for one in (result("a"), result("b", "skipped"), not_drawn("c")):
        assert journal.finish(one) is one


def test_before_a_run_begins_nothing_is_restored(directory, journal):
    (directory.path / "summary.json").write_text("{}")
    assert journal.restore() == ()
    assert (directory.path / "summary.json").exists()


def test_what_agentv_writes_itself_is_left_as_it_is(directory, journal):
    journal.begin({"run_id": "r"})
    assert json.loads((directory.path / "run.json").read_text()) == {"schema_version": 1, "run_id": "r"}
    fill(journal, result("a"))
    assert journal.restore() == ()
    assert keys(directory, "index.jsonl") == ["a"]
    journal.write_record({"run_id": "r", "ended": "now"})
    journal.write_summary({"pass_rate": 1.0})
    assert journal.restore() == ()
    assert json.loads((directory.path / "run.json").read_text()) == {"run_id": "r", "ended": "now"}
    assert stored_summary(directory.path).document == {"pass_rate": 1.0}


def test_what_something_else_wrote_is_undone_and_reported(directory, journal):
    journal.begin({"run_id": "r"})
    fill(journal, result("a"))
    assert journal.restore() == ()
    (directory.path / "run.json").write_text("{}")
    with (directory.path / "index.jsonl").open("ab") as index:
        index.write(b'{"key":"z","test_id":"forged"}\n')
    with (directory.path / "journal.jsonl").open("ab") as lines:
        lines.write(b"forged\n")
    assert journal.restore() == (
        "run.json was changed or removed: agentv's version is restored",
        "journal.jsonl was changed: 1 line not written by agentv, removed",
        "index.jsonl was changed: 1 line (forged) not written by agentv, moved to rejected.jsonl",
    )
    assert (keys(directory, "index.jsonl"), keys(directory, "rejected.jsonl")) == (["a"], ["z"])
    assert journal.restore() == ()
    check_rows(directory.path)
    assert is_being_written(directory.path)  # the journal that was restored is locked, too


def test_checksums_that_something_else_removed_are_written_again_with_that_of_the_summary(directory, journal):
    journal.begin({"run_id": "r"})
    fill(journal, result("a"))
    (directory.path / "journal.jsonl").write_bytes(b"")
    assert len(journal.restore()) == 1
    check_rows(directory.path)
    assert stored_summary(directory.path) is None
    journal.write_summary({"pass_rate": 1.0})
    (directory.path / "journal.jsonl").write_bytes(b"")
    assert len(journal.restore()) == 1
    check_rows(directory.path)
    assert stored_summary(directory.path).verified
