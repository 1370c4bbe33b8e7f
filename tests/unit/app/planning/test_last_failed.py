"""Which cases `--last-failed` runs, after runs that were cut, chosen, or damaged."""

import json

import pytest

from agentv.app.planning.last_failed import last_failed
from agentv.app.planning.preparation import prepare
from agentv.app.running.run_record import record_of
from agentv.app.settings import EvalSettings
from agentv.store.files.directory import PreviousRun
from doubles.loading import repository

SUITE = """\
name: s
target: echo
tests:
  - {id: a, input: x, assert: [contains: x]}
  - {id: b, input: x, assert: [contains: x]NEEDS}
  - {id: c, input: x, assert: [contains: x]}
"""
WHOLE = {"a": "passed", "b": "passed", "c": "passed"}


class Runs:
    """A suite, its past runs, and what `--last-failed` selects after them."""

    def __init__(self, root):
        self.root = root
        self.number = 0
        self.suite()
        (root / "other.jsonl").write_text('{"id": "a", "input": "other", "assert": [{"contains": "o"}]}\n')

    def suite(self, needs=""):
        repository(self.root, {"s.eval.yaml": SUITE.replace("NEEDS", needs)})

    def prepared(self, **settings):
        return prepare(EvalSettings(paths=(str(self.root / "s.eval.yaml"),), process_env={}, **settings))

    def ran(self, rows, **settings):
        """A run that ended after these cases; its directory."""
        self.number += 1
        prepared = self.prepared(**settings)
        run = self.root / f".agentv/results/20261123T1748{self.number:02}Z-aaaa"
        run.mkdir(parents=True)
        (run / "run.json").write_text(json.dumps(record_of(prepared, run.name, PreviousRun())))
        ended = [row_of(trial, rows[trial.case.id]) for trial in prepared.plan if trial.case.id in rows]
        (run / "index.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ended))
        return run

    def selected(self, **settings):
        found = last_failed(self.prepared(**settings).plan, self.root, str(self.root), settings.get("tests_from"))
        cases = "".join(sorted(key[2] for key in found.trials.keys)) if found.trials is not None else ""
        return cases, [note.replace(str(self.root), "") for note in found.notes]


def row_of(trial, status):
    score = {"passed": 1.0, "failed": 0.0}.get(status)
    facts = {"test_id": trial.case.id, "suite": "s", "eval_path": "s.eval.yaml", "target": trial.target.name}
    facts |= {"key": trial.key, "status": status, "score": score, "scores": [], "threshold": trial.threshold}
    return {**facts, "input": [], "case_sha256": "", "schema_version": 1}


@pytest.fixture
def runs(tmp_path):
    return Runs(tmp_path)


def test_a_dependent_of_a_case_that_did_not_pass_runs_with_it(runs):
    runs.suite(", depends_on: [a]")
    runs.ran(WHOLE)
    runs.ran({"a": "failed", "c": "passed"})
    assert runs.selected() == ("ab", [])
    runs.ran(WHOLE, filter="b")  # and what it depends on
    assert runs.selected() == ("", [])


def test_cases_without_an_earlier_outcome_are_left_out_and_named(runs):
    runs.ran({"c": "failed"}, filter="c")
    assert runs.selected() == ("c", ["--last-failed: 2 cases without an earlier outcome are left out: a, b"])


def test_cases_of_another_file_are_other_cases(runs):
    other = str(runs.root / "other.jsonl")
    runs.ran({**WHOLE, "a": "failed"})
    runs.ran({"a": "passed"}, tests_from=other)
    assert runs.selected() == ("a", [])
    assert runs.selected(tests_from=other) == ("", [])


@pytest.mark.parametrize("index", [None, "torn\n"])
def test_what_a_damaged_run_may_have_had_runs_again(runs, index):
    runs.ran(WHOLE)
    damaged = runs.ran({**WHOLE, "c": "failed"})
    (damaged / "index.jsonl").unlink()
    if index is not None:
        (damaged / "index.jsonl").write_text(index + "{}\n")
    runs.ran({"b": "passed"}, filter="b")
    selected, (note,) = runs.selected()
    assert selected == "ac"
    assert note.startswith(f"--last-failed runs the cases of the run {damaged.name} again: ")


def test_a_foreign_run_is_ignored_and_it_says_so(runs):
    runs.ran({**WHOLE, "c": "failed"})
    foreign = runs.ran(WHOLE)
    suite = {"name": "s", "path": "s.eval.yaml"}
    for suites in ([1], [{**suite, "targets": 3}], [{**suite, "targets": ["t"]}], [{}], None):
        (foreign / "run.json").write_text(json.dumps({"suites": suites, "settings": {}, "planned": {"trials": 3}}))
        why = f"/.agentv/results/{foreign.name}/run.json does not describe a run"
        assert runs.selected() == ("c", [f"--last-failed ignores the run {foreign.name}: {why}"])
